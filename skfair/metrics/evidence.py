"""What rows say about a limit on a metric: the pairs that are compared, and a p-value of each.

A disparity is the largest of several comparisons, so "the disparity is the limit or more" says that
one of them is. It is rejected if each is (intersection-union): the largest p-value counts, and
nothing is shared out over pairs, rates or attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.blocks.partitions import is_lazy
from skfair.groups.compared_groups import Reference, is_group
from skfair.groups.encoding import encode_groups
from skfair.groups.probabilities import GroupProbabilities
from skfair.groups.table import RATES, GroupTable
from skfair.metrics.labels import LabelSpec
from skfair.metrics.two_rates import (
    both_ways,
    largest_rate,
    pair_test,
    rest_of_block,
    smallest_limit,
)
from skfair.utils.rounding import TINY

# "auto" counts every table if both groups have at most about this many rows.
_FEW_ROWS = 61


class Sample(NamedTuple):
    """Rows as the user passed them."""

    y_true: Any
    y_pred: Any
    sensitive_features: Any
    control_features: Any
    sample_weight: Any
    intersectional: bool
    pos_label: Any

    def groups(self, weights: FloatArray | None) -> tuple[Any, Any, Any, bool]:
        """Return groups and strata with other weights, in the order that metrics take them."""
        return self.sensitive_features, self.control_features, weights, self.intersectional


class Evidence(NamedTuple):
    """Comparisons, what was measured of each, and how unlikely that is if it exceeds a limit."""

    columns: dict[str, Any]  # of the table of comparisons, one entry for each
    measured: FloatArray  # (n_comparisons,): the disparity of each
    p_values: Callable[[float], FloatArray]  # of a limit: one for each comparison
    method: str

    def p_value(self, limit: float) -> float:
        """Return the largest p-value of a limit."""
        return float(self.p_values(limit).max(initial=0.0))

    @property
    def largest(self) -> float:
        """The largest disparity that was measured."""
        return float(self.measured.max(initial=0.0))

    def smallest_shown(self, confidence: float, spread: float | None = None) -> float:
        """Return the smallest limit that is shown: 1 at most, unless scores have a spread."""
        most = 1.0
        if spread is not None:
            most = spread or 1e-12
            while self.p_value(most) > 1 - confidence:
                most *= 2
        return smallest_limit(self.p_value, 1 - confidence, most)


def evidence_of_labels(
    sample: Sample, name: str, spec: LabelSpec, comparison: str, method: str, reference: Reference
) -> Evidence:
    """Return the comparisons of a metric of labels."""
    table = _table(sample, spec, name)
    groups = table.groups
    # In an attribute with strata the cells of a stratum without weight are left out.
    of_cells = groups.present if spec.kind == "largest" else groups.compared
    for rate in spec.rates:
        table.checked_rate(rate, of_cells)  # raises where it is undefined
    if spec.kind == "largest":
        return _caps(table, *spec.rates)
    is_overall = not is_group(reference) and reference == "overall"
    if is_overall and comparison == "ratio":
        raise ValueError(
            "Ratios to the overall rate have no test here. Use reference='pairwise', or "
            "comparison='difference'."
        )
    pairs = None if is_overall else groups.pairs_with(reference)
    sides = [
        _against_rest(table, rate) if pairs is None else _between_groups(table, rate, pairs)
        for rate in spec.rates
    ]
    k1, n1, k0, n0, share = np.concatenate([side.numbers for side in sides], axis=1)
    if method == "auto":
        is_whole = sample.sample_weight is None and not is_lazy(sample.y_pred)
        few = k1.size > 0 and float(((n1 + 1) * (n0 + 1)).max()) <= _FEW_ROWS**2
        method = "exact" if is_whole and few else "melded"
    if method == "exact" and sample.sample_weight is not None:
        raise ValueError("method='exact' counts rows, not weights. Use method='melded'.")
    test = pair_test(method, comparison)
    r1, r0 = k1 / np.maximum(n1, TINY), k0 / np.maximum(n0, TINY)
    measured = share * np.abs(r1 - r0)
    if comparison == "ratio":
        larger = np.maximum(r1, r0)
        measured = np.where(larger > 0, 1 - np.minimum(r1, r0) / np.where(larger > 0, larger, 1), 0)
    columns = {
        "rate": [side.rate for side in sides for _ in side.first],
        "first": [name for side in sides for name in side.first],
        "second": [name for side in sides for name in side.second],
        "n_first": n1,
        "n_second": n0,
        "rate_first": r1,
        "rate_second": r0,
    }

    def p_values(limit: float) -> FloatArray:
        if limit <= 0:  # every difference is as large as that
            return np.ones(k1.size)
        p = np.zeros(k1.size)
        for factor in np.unique(share[share > limit]):  # others cannot be so far apart
            at = share == factor
            p[at] = both_ways(test, k1[at], n1[at], k0[at], n0[at], limit / factor)
        return p

    return Evidence(columns, measured, p_values, method)


def _caps(table: GroupTable, rate: str) -> Evidence:
    """Return the evidence on the largest rate of a group."""
    cells = table.groups.present
    k, n = (numbers[cells] for numbers in table.effective_counts(rate))
    columns = {
        "rate": [rate] * cells.size,
        "first": [table.groups.cells.names[i] for i in cells.tolist()],
        "second": ["limit"] * cells.size,
        "n_first": n,
        "rate_first": k / n,
    }
    return Evidence(columns, k / n, lambda limit: largest_rate(k, n, limit), "exact")


class _Sides(NamedTuple):
    """What is compared: names of both sides, and their numbers."""

    rate: str
    first: list[str]
    second: list[str]
    # (5, n_comparisons): successes and rows of both sides, and by what their difference is
    # multiplied
    numbers: FloatArray


def _between_groups(table: GroupTable, rate: str, pairs: tuple[IntArray, IntArray]) -> _Sides:
    """Compare pairs of groups."""
    first, second = pairs
    hits, sizes = table.effective_counts(rate)
    numbers = np.stack(
        [hits[first], sizes[first], hits[second], sizes[second], np.ones(first.size)]
    )
    of_cells = table.groups.cells.names
    names = [[of_cells[cell] for cell in cells.tolist()] for cells in pairs]
    return _Sides(rate, names[0], names[1], numbers)


def _against_rest(table: GroupTable, rate: str) -> _Sides:
    """Compare each group with the others of its stratum.

    Its distance to the overall rate is a share of that to the others: the share of the sample.
    """
    groups = table.groups
    hits, sizes = table.effective_counts(rate)
    rates, weights = np.nan_to_num(table.rate(rate)), table.summed(RATES[rate].denominator)
    rest = rest_of_block(rates, sizes, weights, groups.block_sums)
    cells = groups.compared[rest.size[groups.compared] > 0]
    numbers = np.stack([hits, sizes, rest.rate * rest.size, rest.size, rest.share])[:, cells]
    names = [groups.cells.names[cell] for cell in cells.tolist()]
    return _Sides(rate, names, ["rest"] * cells.size, numbers)


def _table(sample: Sample, spec: LabelSpec, name: str) -> GroupTable:
    """Count the rows that a metric reads."""
    if spec.uses_y_true and sample.y_true is None:
        raise ValueError(f"{name} needs y_true, got None.")
    if isinstance(sample.sensitive_features, GroupProbabilities):
        encode_groups(sample.sensitive_features)  # raises: such rows are not independent
    rows, groups = (sample.y_true, sample.y_pred), sample.groups(sample.sample_weight)
    if spec.rates == ("accuracy",):
        return GroupTable.of_correct(*rows, groups)
    return GroupTable.of_labels(*rows, groups, sample.pos_label, ignores_true=not spec.uses_y_true)
