"""What rows say about a limit on a metric: the pairs that are compared, and a p-value of each.

A disparity is the largest of several comparisons, so "the disparity is the limit or more" says that
one of them is. It is rejected if each is (intersection-union): the largest p-value counts, and
nothing is shared out over pairs, rates or attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.blocks.partitions import is_lazy
from skfair.blocks.weighted_rows import LazyRows
from skfair.metrics.compared_groups import ComparedGroups, Reference, is_group
from skfair.metrics.label_rates import RATES, LabelTable, label_table
from skfair.metrics.labels import LabelSpec
from skfair.metrics.two_rates import (
    both_ways,
    effective_size,
    largest_rate,
    pair_test,
    rest_of_block,
    smallest_limit,
)
from skfair.utils.rounding import TINY
from skfair.utils.validation import check_rows, check_weights, one_dimensional

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


class _Counts(NamedTuple):
    """Rates of cells: their names, successes and effective numbers of rows."""

    rate: str
    names: Sequence[str]
    sizes: FloatArray
    rates: FloatArray
    weights: FloatArray

    @property
    def successes(self) -> FloatArray:
        return self.rates * self.sizes


def evidence_of_labels(
    sample: Sample, name: str, spec: LabelSpec, comparison: str, method: str, reference: Reference
) -> Evidence:
    """Return the comparisons of a metric of labels."""
    groups, counts = _counts(sample, spec, name)
    if spec.kind == "largest":
        return _caps(groups, counts)
    is_overall = not is_group(reference) and reference == "overall"
    if is_overall and comparison == "ratio":
        raise ValueError(
            "Ratios to the overall rate have no test here. Use reference='pairwise', or "
            "comparison='difference'."
        )
    pairs = None if is_overall else groups.pairs_with(reference)
    sides = [
        _against_rest(groups, of_rate) if pairs is None else _between_groups(pairs, of_rate)
        for of_rate in counts
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


def _caps(groups: ComparedGroups, counts: Sequence[_Counts]) -> Evidence:
    """Return the evidence on the largest rate of a group."""
    [of_rate] = counts
    cells = groups.present
    columns = {
        "rate": [of_rate.rate] * cells.size,
        "first": [of_rate.names[i] for i in cells.tolist()],
        "second": ["limit"] * cells.size,
        "n_first": of_rate.sizes[cells],
        "rate_first": of_rate.rates[cells],
    }
    k, n = of_rate.successes[cells], of_rate.sizes[cells]
    return Evidence(columns, of_rate.rates[cells], lambda limit: largest_rate(k, n, limit), "exact")


class _Sides(NamedTuple):
    """What is compared: names of both sides, and their numbers."""

    rate: str
    first: list[str]
    second: list[str]
    # (5, n_comparisons): successes and rows of both sides, and by what their difference is
    # multiplied
    numbers: FloatArray


def _between_groups(pairs: tuple[IntArray, IntArray], counts: _Counts) -> _Sides:
    """Compare pairs of groups."""
    first, second = pairs
    hits, sizes = counts.successes, counts.sizes
    numbers = np.stack(
        [hits[first], sizes[first], hits[second], sizes[second], np.ones(first.size)]
    )
    names = [[counts.names[cell] for cell in cells.tolist()] for cells in (first, second)]
    return _Sides(counts.rate, names[0], names[1], numbers)


def _against_rest(groups: ComparedGroups, counts: _Counts) -> _Sides:
    """Compare each group with the others of its block.

    Its distance to the overall rate is a share of that to the others: the share of the sample.
    """
    cells = groups.compared
    hits, sizes = counts.successes, counts.sizes
    rest = rest_of_block(counts.rates, sizes, counts.weights, groups.block_sums)
    cells = cells[rest.size[cells] > 0]
    numbers = np.stack([hits, sizes, rest.rate * rest.size, rest.size, rest.share])[:, cells]
    names = [counts.names[cell] for cell in cells.tolist()]
    return _Sides(counts.rate, names, ["rest"] * cells.size, numbers)


def _counts(sample: Sample, spec: LabelSpec, name: str) -> tuple[ComparedGroups, list[_Counts]]:
    """Count the rows of each cell and rate; weighted rows by their effective number."""
    if spec.uses_y_true and sample.y_true is None:
        raise ValueError(f"{name} needs y_true, got None.")
    sample, weights, squared = _in_memory(sample, spec)

    def table(of_rows: FloatArray | None) -> LabelTable:
        rows = (sample.y_true, sample.y_pred, *sample.groups(of_rows))
        return label_table(*rows, pos_label=sample.pos_label, rates=spec.rates, name=name)

    mass = table(weights)
    squares = mass if squared is weights else table(squared)
    groups = mass.groups
    # In an attribute with strata the cells of a stratum without weight are left out.
    of_cells = groups.present if spec.kind == "largest" else groups.compared
    counts = []
    for rate in spec.rates:
        rates = mass.rate(rate, "raise", of_cells)
        above, below = RATES[rate][:2]
        sums = [
            (table.counts * entries).sum(axis=(-2, -1))
            for entries in (below, above)
            for table in (mass, squares)
        ]
        sizes = effective_size(*sums)
        counts.append(_Counts(rate, groups.cells.names, sizes, np.nan_to_num(rates), sums[0]))
    return groups, counts


def _in_memory(
    sample: Sample, spec: LabelSpec
) -> tuple[Sample, FloatArray | None, FloatArray | None]:
    """Return rows in memory, and what stands behind each: weight and squared weight."""
    arguments = (sample.y_true, sample.y_pred, sample.sensitive_features, sample.sample_weight)
    if is_lazy(*arguments, sample.control_features):
        rows = LazyRows(
            {"y_true": sample.y_true if spec.uses_y_true else None, "y_pred": sample.y_pred},
            sensitive_features=sample.sensitive_features,
            control_features=sample.control_features,
            sample_weight=sample.sample_weight,
            intersectional=sample.intersectional,
        ).kinds()
        few = sample._replace(
            y_true=rows.columns.get("y_true"),
            y_pred=rows.columns["y_pred"],
            sensitive_features=rows.groups,
            control_features=rows.control_features,
        )
        if sample.sample_weight is None:
            counts = rows.counts.astype(np.float64)
            return few, counts, counts
        return few, rows.weights, rows.squares
    if sample.sample_weight is None:
        return sample, None, None
    n = len(one_dimensional(sample.y_pred, "y_pred"))
    check_rows(n, "y_pred", None)
    weights = check_weights(sample.sample_weight, n)
    assert weights is not None
    return sample, weights, weights**2
