"""The test of a path of decisions: which of its steps can be certified for unseen data.

Offsets that satisfy a limit on the training rows exceed it for unseen data about half of the time.
So a path of decisions is laid out, from certainly fair to free ones, and :func:`walk` tests its
steps in this order. The result is the last step before the first one that fails. The order is fixed
beforehand, so each step may be tested at the full *level*, which is 1 minus the confidence (a fixed
sequence).

How p-values of pairs of groups, rates and constraints are combined depends on the decisions:

- Decisions that do not depend on the tested rows violate a limit only if at least one comparison
  does. The step passes if every comparison passes at the full level, so the largest p-value counts.
- Paths close the gaps on the very rows that test them. At equal rates nearly every step passes as
  soon as the standard errors are small enough, and the true gaps are the errors of all comparisons,
  in either direction. Any of them may exceed the limit, so the p-values add up
  (``RowRates.is_equalised``). With the largest one instead, 48 of 240 certificates with four to ten
  groups of equal size were wrong at a confidence of 0.95.

``skfair/estimators/certified`` and ``skfair/classification/certifying.py`` make :class:`RowRates`
of their constraints by :func:`row_rates`, and call :func:`walk` with the decisions of all steps.
With cross-fitting, each row gets the decision of the model that has not seen it. Predictions come
from the mean of the models, which :func:`last_satisfied` tests in addition.
:func:`people_needed` says how many people a certificate would take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special
from scipy.optimize.elementwise import find_root
from sklearn.utils import gen_batches

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.constraints.comparisons import Pairwise, Ratio
from skfair.enforcement.strict_evaluation import ClassConstraint
from skfair.groups.rates import Moments, effective_size
from skfair.groups.row_units import RowUnits, n_people
from skfair.groups.two_rates import melded, rest_of_peers, score_statistic

# Decisions are counted for this many rows at once, to save memory.
_ROWS_AT_ONCE = 50_000
_PRECISION = 1e-6  # precision of the smallest limits that can be shown
# Numbers of people that are needed are searched up to this many times those at hand.
_MOST_TIMES = 1e6
# Quick p-values that are nearer to the level than this are computed again, exactly.
_ROUGH = 1e-4
# If both sides of a comparison have at least _MANY_ROWS rows, the fast score statistic takes the
# place of the melded test in sums of p-values. If only the largest p-value counts, the comparison
# that has it also has a large score statistic, so the melded test is only made if the statistic is
# within _NEAR of the largest.
_MANY_ROWS, _NEAR = 30.0, 1.0


class Peers(NamedTuple):
    """Rates that are compared with each other, and how."""

    rates: IntArray  # (n_peers,): numbers of the rates
    limit: float
    is_ratio: bool  # whether the limit is on 1 minus the ratio of rates, not on their difference
    against_overall: bool  # whether each is compared with the overall rate, not with each other
    # (n_peers,): weight that each rate is divided by. It is empty until RowRates.weighted_peers
    # sets it for a test
    weights: FloatArray = np.empty(0)
    constraint: str = ""  # name of the constraint, and of the attribute that the limit is for


class RateSums(NamedTuple):
    """The sums over rows that rates are made of, for each step, (n_rates, n_steps) each."""

    mass: FloatArray  # sum of the weights of all rows of the rate
    hits: FloatArray  # sum of the weights of the rows that count as a success
    squared_mass: FloatArray  # the same sums of squared weights
    squared_hits: FloatArray
    # Sums over units, the sets of rows that belong together; None if each row is on its own
    of_units: Moments | None

    def shares(self) -> FloatArray:
        """Return the rates, clipped because rounding of the sums may lead beyond 1."""
        return np.clip(self.hits / np.where(self.mass > 0, self.mass, 1.0), 0.0, 1.0)

    def sizes(self) -> FloatArray:
        """Return the effective numbers of rows."""
        # A hit is 0 or 1, so it is its own square.
        rows = Moments(self.mass, self.hits, self.hits)
        squares = Moments(self.squared_mass, self.squared_hits, self.squared_hits)
        return effective_size(rows, squares, self.of_units)


@dataclass(frozen=True, eq=False)
class RowRates:
    """Rates of groups as sums over rows, so that they can be taken of any part of the rows.

    A rate is the weight of its successes divided by the weight of its members. In the false
    negative rate, for example, members are positives, and a success is a refused member.
    """

    members: sparse.csr_array  # (n_rates, n_samples): 1 if a row is a member
    # Two matrices (n_rates, n_samples). The first is 1 if the row is a success when it is refused.
    # The second says by how much this changes when the row is selected (-1, 0 or 1)
    counted: tuple[sparse.csr_array, sparse.csr_array]
    groups: IntArray  # (n_rates,): group of each rate
    # (n_rates,): the decision that counts as selection in each rate: a class or TRUE_CLASS
    labels: IntArray
    compared: tuple[Peers, ...]  # rates that are compared with each other
    classes: IntArray  # (n_samples,): the true classes
    weights: FloatArray  # (n_samples,): weights of the rows; they add up to 1
    # Whether the tested decisions were equalised between the groups on these rows, as paths are
    is_equalised: bool = False
    # Share of the members of each rate that may be replaced by other people. Certificates hold
    # after such a shift of the population
    shift: float = 0.0
    units: RowUnits | None = None  # the unit of each row; None if each is on its own

    def against(self, shift: float) -> RowRates:
        """Return the rates with limits so tight that the present limits hold after a shift.

        A rate r becomes (1 - shift) r + shift q for some q from 0 to 1. So a difference d becomes
        at most (1 - shift) d + shift.
        """
        if not shift:
            return self
        lowest = min((peers.limit for peers in self.compared), default=1.0)
        if any(peers.is_ratio for peers in self.compared):
            raise ValueError(f"shift={shift:g} is for limits on differences, not on ratios.")
        if lowest <= shift:
            raise ValueError(
                f"shift={shift:g} lets a disparity grow by as much, so max_disparity={lowest:g} "
                "cannot be shown. Pass a smaller shift or a larger limit."
            )
        compared = [
            peers._replace(limit=(peers.limit - shift) / (1 - shift)) for peers in self.compared
        ]
        return replace(self, compared=tuple(compared), shift=shift)

    def after_shift(self, disparity: FloatArray | float) -> FloatArray:
        """Return the largest disparity after the shift, given the disparity before it."""
        return np.asarray(self.shift + (1 - self.shift) * disparity)

    def part(self, rows: IntArray | slice) -> RowRates:
        """Return the rates of some of the rows."""
        columns: Any = rows
        members, refused, step = (
            sparse.csr_array(matrix[:, columns]) for matrix in (self.members, *self.counted)
        )
        classes, weights, counted = self.classes[rows], self.weights[rows], (refused, step)
        units = None if self.units is None else self.units.taken(rows)
        columns = {"classes": classes, "weights": weights, "units": units}
        return replace(self, members=members, counted=counted, **columns)

    def totals(self) -> FloatArray:
        """Return the weight that each rate is divided by."""
        return np.asarray(self.members @ self.weights)

    def weighted_peers(self) -> list[Peers]:
        """Return the compared rates with the weights that they are divided by, as tests need."""
        totals = self.totals()
        return [peers._replace(weights=totals[peers.rates]) for peers in self.compared]

    def gained(self, decisions: NDArray[Any], weights: FloatArray) -> FloatArray:
        """Return what decisions add to the hits of the rates, (n_rates, n_steps).

        ``decisions`` (n_samples, n_steps) are classes, or booleans that say who is selected.
        """
        gained = np.zeros((self.labels.size, decisions.shape[1]))
        for label in np.unique(self.labels).tolist():
            selected = decisions == (self.classes[:, None] if label < 0 else label)
            which = np.flatnonzero(self.labels == label)
            gained[which] = self.counted[1][which].multiply(weights).tocsr() @ selected
        return gained

    def shares_and_sizes(self, decisions: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """Return rates and effective numbers of rows, each (n_rates, n_steps)."""
        sums = self.sums(decisions)
        return sums.shares(), sums.sizes()

    def sums(self, decisions: NDArray[Any]) -> RateSums:
        """Return the sums of all rates under the decisions of each step."""
        shape = self.labels.size, decisions.shape[1]
        hits, squared_hits, of_units = np.zeros(shape), np.zeros(shape), np.zeros((3, *shape))
        is_equal = bool((self.weights == self.weights[0]).all())
        for part, own in self._blocks(decisions):
            hits += part._hits(own, part.weights)
            if not is_equal:
                squared_hits += part._hits(own, part.weights**2)
            if part.units is not None:
                of_units += part._squares_of_units(own, part.units)
        if is_equal:
            squared_hits = self.weights[0] * hits
        totals = self.totals(), np.asarray(self.members @ self.weights**2)
        mass, squared_mass = (np.broadcast_to(own[:, None], shape) for own in totals)
        squares = None if self.units is None else Moments(*of_units)
        return RateSums(mass, hits, squared_mass, squared_hits, squares)

    def _hits(self, decisions: NDArray[Any], weights: FloatArray) -> FloatArray:
        """Return the weight of the successes of each rate, (n_rates, n_steps)."""
        return np.asarray((self.counted[0] @ weights)[:, None] + self.gained(decisions, weights))

    def _blocks(self, decisions: NDArray[Any]) -> Iterator[tuple[RowRates, NDArray[Any]]]:
        """Yield parts of the rows, with whole units, and the decisions on these rows."""
        if self.units is None:
            blocks: list[Any] = list(gen_batches(self.weights.size, _ROWS_AT_ONCE))
        else:
            # Rows are sorted by unit, and a block begins with the first unit that begins after the
            # next multiple of _ROWS_AT_ONCE rows.
            order = np.argsort(self.units.codes, kind="stable")
            first = np.flatnonzero(np.diff(self.units.codes[order], prepend=-1))
            starts = first[np.unique(first // _ROWS_AT_ONCE, return_index=True)[1]]
            blocks = np.split(order, starts[1:])
        if len(blocks) == 1:
            yield self, decisions
            return
        for rows in blocks:
            yield self.part(rows), decisions[rows]

    def _squares_of_units(self, decisions: NDArray[Any], units: RowUnits) -> FloatArray:
        """Return the :class:`Moments` of the units as one array, (3, n_rates, n_steps).

        With the weight W of the members of a unit, and the weight S of its successes, these are the
        sums of W^2, W S and S^2 over the units.
        """
        sums, codes = np.zeros((3, self.labels.size, decisions.shape[1])), units.codes
        for r, label in enumerate(self.labels.tolist()):
            rows = self.members[[r]].indices
            rows = rows[np.argsort(codes[rows], kind="stable")]
            ends = np.append(np.flatnonzero(np.diff(codes[rows], prepend=-1)), rows.size)
            own = self.weights[rows], np.arange(rows.size), ends
            by_unit = sparse.csr_array(own, shape=(ends.size - 1, rows.size))  # weights by unit
            refused, step = (m[[r]].toarray()[0, rows] for m in self.counted)
            selected = decisions[rows] == (self.classes[rows, None] if label < 0 else label)
            hits = by_unit.multiply(step).tocsr() @ selected + (by_unit @ refused)[:, None]
            mass: FloatArray = (by_unit @ np.ones(rows.size))[:, None]
            sums[0, r] = (mass**2).sum()
            sums[1:, r] = (mass * hits).sum(axis=0), (hits**2).sum(axis=0)
        return sums


def row_rates(
    constraints: Sequence[ClassConstraint],  # limits on differences or ratios of rates
    classes: IntArray,  # (n_samples,): the true classes
    weights: FloatArray,  # (n_samples,): weights with a sum of 1
    units: RowUnits | None = None,
) -> RowRates:
    """Return the rates of constraints; raise for constraints that have no test."""
    members, refused, steps, compared = [], [], [], []
    labels: list[int] = []
    for limited in constraints:
        bound = limited.bound
        if bound.quotients is not None or not isinstance(bound.comparison, Pairwise | Ratio):
            raise ValueError(
                f"certificate= has no test of {bound.name} yet: use limits on differences or "
                "ratios of selection, true or false positive rates, or of accuracies."
            )
        against_overall = bound.comparison.against_overall
        is_ratio = isinstance(bound.comparison, Ratio)
        if against_overall and is_ratio:
            raise ValueError("certificate= has no test of ratios to the overall rate.")
        counts = sparse.csr_array(bound.rates[:, bound.cells].multiply(bound.row_weights > 0))
        counts.eliminate_zeros()
        counts.data = np.ones(counts.nnz)
        if_refused, change = limited.effects
        for own_set in np.unique(bound.compared_sets):
            which = np.flatnonzero(bound.compared_sets == own_set)
            if which.size > 1:
                peers = Peers(which + len(labels), bound.max_disparity, is_ratio, against_overall)
                compared.append(peers._replace(constraint=bound.name))
        members.append(counts)
        refused.append(counts.multiply(if_refused))
        steps.append(counts.multiply(change))
        labels += [limited.counted] * len(bound.rate_names)
    who, base, rise = (sparse.csr_array(sparse.vstack(own)) for own in (members, refused, steps))
    groups = np.concatenate([limited.bound.rate_groups for limited in constraints])
    rows = classes, weights
    rates = RowRates(who, (base, rise), groups, np.array(labels), tuple(compared), *rows)
    return replace(rates, units=units)


class Walked(NamedTuple):
    """The result of judging the steps of a path."""

    step: int  # the last step that was certified; -1 if there is none
    p_values: FloatArray  # (n_steps,): p-values of the hypothesis that any limit is exceeded
    disparities: FloatArray  # (n_steps,): the largest measured disparities
    bounds: FloatArray  # (n_steps,): the smallest common limits that can be shown
    # p-values and smallest limits of each constraint alone, (2, n_steps)
    by_constraint: dict[str, FloatArray]

    def reported(self, step: int) -> dict[str, object]:
        """Return the fitted attributes that say what was shown at a step."""
        p_values, bounds = (
            {name: float(values[k, step]) for name, values in self.by_constraint.items()}
            for k in (0, 1)
        )
        return {
            "p_value_": float(self.p_values[step]),
            "p_values_": p_values,
            "certified_disparity_": float(self.bounds[step]),
            "certified_disparities_": bounds,
        }


def walk(
    rates: RowRates,
    decisions: NDArray[Any],  # (n_samples, n_steps): the decisions of each step
    confidence: float,
) -> Walked:
    """Judge the steps of a path in their order, up to the first that is not shown to be fair."""
    tests, level = _Tests.of(rates, decisions), 1 - confidence
    by_constraint = {
        name: np.stack([of_name.judged(level), rates.after_shift(of_name.smallest_limits(level))])
        for name, of_name in tests.by_constraint().items()
    }
    p_values, bounds = tests.judged(level), tests.smallest_limits(level)
    failed = np.flatnonzero(p_values > level)
    last = int(failed[0]) - 1 if failed.size else p_values.size - 1
    disparities = tests.disparities()
    return Walked(last, p_values, disparities, rates.after_shift(bounds), by_constraint)


def last_satisfied(
    rates: RowRates,
    decisions: NDArray[Any],  # (n_samples, n_steps): decisions by the model of each row's fold
    # (n_rates, n_steps): change of the rates if the mean of the models decides instead
    changes: FloatArray,
    confidence: float,
) -> int:
    """Return the last step at which the mean of the models is within the limits; -1 if none is.

    The rates of the mean are those of the folds plus ``changes``. The changes are less exact,
    because they are measured on rows that most models have seen. So the level of this test is twice
    the level of the test of the folds.
    """
    tests = _Tests.of(rates, decisions)
    tests = replace(tests, share=np.clip(tests.share + changes, 0.0, 1.0))
    return int(np.flatnonzero(tests.p_values() <= 2 * (1 - confidence)).max(initial=-1))


def likely_p_values(rates: RowRates, selected: BoolArray) -> FloatArray:
    """Return the p-values (n_steps,) that steps would have if peers had the same, pooled rates.

    They depend on numbers of rows and on pooled rates, not on differences between groups.
    ``selected`` has the shape (n_samples, n_steps).
    """
    return _Tests.of(rates, selected).at_equal_rates().p_values()


@dataclass(frozen=True, eq=False)
class _Tests:
    """The tests of all compared sets, for the decisions of each step."""

    sets: list[Peers]
    share: FloatArray  # (n_rates, n_steps): the rates
    size: FloatArray  # (n_rates, n_steps): effective numbers of rows
    adds: bool  # whether p-values add up, see the module docstring

    @classmethod
    def of(cls, rates: RowRates, decisions: NDArray[Any]) -> _Tests:
        return cls(rates.weighted_peers(), *rates.shares_and_sizes(decisions), rates.is_equalised)

    def by_constraint(self) -> dict[str, _Tests]:
        """Return the tests of each constraint."""
        names = dict.fromkeys(peers.constraint for peers in self.sets)
        return {
            name: replace(self, sets=[peers for peers in self.sets if peers.constraint == name])
            for name in names
        }

    def at_equal_rates(self) -> _Tests:
        """Return the tests with the same numbers of rows, if all peers of a set had the same rate.

        This rate is the pooled one, the mean of the rates of the peers weighted by their sizes.
        """
        share = self.share.copy()
        for peers in self.sets:
            rows = self.size[peers.rates] + 1e-12
            share[peers.rates] = np.average(self.share[peers.rates], axis=0, weights=rows)
        return replace(self, share=share)

    def merged(self, of_groups: IntArray, merged: Sequence[int]) -> _Tests:
        """Return the tests if the first group of ``merged`` includes the rows of the others.

        ``of_groups`` (n_rates,) is the group of each rate. Rates must be equal within each set.
        """
        size, sets = self.size.copy(), list[Peers]()
        for peers in self.sets:
            groups = of_groups[peers.rates]
            members = peers.rates[np.isin(groups, merged)]
            size[members] = self.size[members].sum(axis=0)
            kept = ~np.isin(groups, merged[1:])
            sets.append(peers._replace(rates=peers.rates[kept], weights=peers.weights[kept]))
        return replace(self, size=size, sets=[peers for peers in sets if peers.rates.size > 1])

    def disparities(self) -> FloatArray:
        """Return the largest measured disparity of each step."""
        measured = [np.zeros(self.share.shape[1])]
        measured += [_disparities(peers, self.share, self.size) for peers in self.sets]
        return np.asarray(np.max(measured, axis=0))

    def p_values(
        self,
        steps: IntArray | slice = slice(None),
        # (n_steps,): one limit for all sets at each step; if None, each set has its own limit
        limits: FloatArray | None = None,
        *,
        quick: bool = True,
    ) -> FloatArray:
        """Return the p-values of the hypothesis that the disparity of any set is its limit or more.

        With ``quick`` they have six correct decimals.
        """
        share, size = self.share[:, steps], self.size[:, steps]
        combined = np.zeros(share.shape[1])
        for peers in self.sets:
            limit = peers.limit if limits is None else limits
            of_pairs = _p_values(peers, share, size, limit, self.adds, quick=quick)
            if self.adds:
                combined += of_pairs.sum(axis=0)
            else:
                combined = np.maximum(combined, of_pairs.max(axis=0))
        return np.minimum(combined, 1.0)

    def judged(self, level: float) -> FloatArray:
        """Return the p-values of all steps, exact where they are near the level."""
        p_values = self.p_values()
        near = np.flatnonzero(np.abs(p_values - level) < _ROUGH)
        if near.size:
            p_values[near] = self.p_values(near, quick=False)
        return p_values

    def smallest_limits(self, level: float) -> FloatArray:
        """Return, for each step, the smallest common limit that can be shown.

        The p-value of the test of a limit falls if the limit becomes larger. The smallest limit is
        the one at which the p-value equals the level.
        """

        def excess(limits: FloatArray, steps: FloatArray) -> FloatArray:
            """Return how far p-values are above the level, as normal quantiles."""
            p_values = self.p_values(steps.astype(np.int64), limits)
            # The normal quantile of a p-value is nearly linear in the limit, which suits the solver
            return np.clip(special.ndtri(p_values) - special.ndtri(level), -6.0, 6.0)

        def shown(steps: FloatArray, ends: Any) -> FloatArray:
            """Return the smallest limits of some steps, which are searched between two ends."""
            options: Any = {"xatol": 0.5 * _PRECISION, "xrtol": 0.0}
            roots = find_root(excess, ends, args=(steps,), tolerances=options)
            # If the sign is the same at both ends, there is no root between them. The result is
            # then 1 if not even the larger end is shown, and 0 if the smaller end is shown already.
            beyond = np.where(roots.f_bracket[0] > 0, 1.0, 0.0)
            return np.where(roots.success, np.maximum(*roots.bracket), beyond)

        measured = self.disparities()
        if not self.sets:
            return measured
        # The limit is usually within a few standard errors above the measured disparity, so it is
        # first searched there. The largest end is 0.999, because at a limit of 1 all pairs of
        # groups tie, and all would be tested, which is six times the work.
        fewest = self.size[np.concatenate([peers.rates for peers in self.sets])].min(axis=0)
        errors = (0.5 / np.maximum(fewest, 1.0)) ** 0.5
        steps = np.arange(measured.size, dtype=np.float64)
        smallest = shown(steps, (measured, np.minimum(measured + 3 * errors, 0.999)))
        outside = np.flatnonzero((smallest == 0.0) | (smallest == 1.0))
        if outside.size:
            smallest[outside] = shown(steps[outside], (0.0, 0.999))
        return np.asarray(np.minimum(smallest + 0.5 * _PRECISION, 1.0))


def _sides(
    peers: Peers, share: FloatArray, size: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the two sides of every comparison, as five arrays.

    These are successes and rows of the first side, successes and rows of the second side, and a
    factor, all of shape (n_comparisons, n_steps). The disparity is the factor times the difference
    of the rates of both sides. The second side is another group. For comparisons with the overall
    rate it is all other groups together: the difference from their rate, times their share of the
    weight, is the difference from the overall rate.
    """
    hits, rows = (share * size)[peers.rates], size[peers.rates]
    if peers.against_overall:
        weights = np.broadcast_to(peers.weights[:, None], rows.shape)
        rest, n_rest, factor = rest_of_peers(share[peers.rates], rows, weights, _in_set)
        return hits, rows, rest * n_rest, n_rest, factor
    i, j = np.triu_indices(peers.rates.size, k=1)
    return hits[i], rows[i], hits[j], rows[j], np.ones((i.size, share.shape[1]))


def _in_set(values: FloatArray) -> FloatArray:
    """Return the sum over all peers, repeated for each of them."""
    return np.broadcast_to(values.sum(axis=0), values.shape)


def _p_values(
    peers: Peers,
    share: FloatArray,
    size: FloatArray,
    limit: FloatArray | float,
    adds: bool,
    *,
    quick: bool,
) -> FloatArray:
    """Return the p-values of the comparisons of a set, (n_comparisons, n_steps).

    If they do not add up, only the largest one of each step is computed, and some others are 0.
    """
    k1, n1, k0, n0, factor = _sides(peers, share, size)
    wanted = np.minimum(limit / np.maximum(factor, 1e-300), 1.0)
    # Tests are one-sided, and either rate may be the higher one, so each comparison is made twice.
    both = [np.concatenate(two) for two in ((k1, k0), (n1, n0), (k0, k1), (n0, n1), (wanted,) * 2)]
    k1, n1, k0, n0, wanted = both
    statistic = score_statistic(
        k1, np.maximum(n1, 1e-9), k0, np.maximum(n0, 1e-9), wanted, peers.is_ratio
    )
    tested = np.minimum(n1, n0) < _MANY_ROWS
    if adds:
        p_values = special.ndtr(statistic)
    else:
        p_values = np.zeros(statistic.shape)
        tested |= statistic >= statistic.max(axis=0) - _NEAR
    k1, n1, k0, n0, wanted = (counts[tested] for counts in both)
    p_values[tested] = melded(k1, n1, k0, n0, wanted, peers.is_ratio, quick=quick)
    return np.asarray(p_values)


def _disparities(peers: Peers, share: FloatArray, size: FloatArray) -> FloatArray:
    """Return the measured disparity of a compared set, for each step."""
    k1, n1, k0, n0, factor = _sides(peers, share, size)
    first, other = k1 / np.maximum(n1, 1e-300), k0 / np.maximum(n0, 1e-300)
    if not peers.is_ratio:
        return np.asarray((factor * np.abs(first - other)).max(axis=0))
    larger = np.maximum(first, other)
    missing = 1 - np.minimum(first, other) / np.where(larger > 0, larger, 1.0)
    return np.asarray(np.where(larger > 0, missing, 0.0).max(axis=0))


def people_needed(
    rates: RowRates,
    decisions: NDArray[Any],
    confidence: float,
    merged: Sequence[int] = (),  # groups that count as a single one
) -> int:
    """Return about how many people in all it would take to certify decisions without disparity.

    With that many the limits can be shown of decisions that have the same rate in all groups: the
    mean rate of the given decisions. Paths close the gaps on the rows that test them, so no reserve
    is needed for measured gaps. If rows belong together, new people are assumed to have as many
    rows as these, which resemble each other as much.
    """
    tests = _Tests.of(rates, decisions[:, None]).at_equal_rates()
    # A rate of exactly 0 or 1 would seem to be known for certain.
    least = 1.0 / decisions.size
    tests = replace(tests, share=np.clip(tests.share, least, 1 - least))
    if merged:
        tests = tests.merged(rates.groups, merged)

    def is_shown(factor: float) -> bool:
        """Whether the limits are shown with this many times as many people."""
        more = replace(tests, size=np.maximum(factor * tests.size, 1e-9))
        return bool(more.p_values()[0] <= 1 - confidence)

    low, high = 0.0, 1.0
    while not is_shown(high) and high < _MOST_TIMES:
        low, high = high, 2 * high
    while high - low > 0.005 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_shown(middle) else (middle, high)
    return int(np.ceil(high * n_people(decisions.size, rates.units)))
