"""What the estimators for partial fairness share: the promise, and repaired scores.

A :class:`Promise` says what is limited, in the units of the metric that measures it; it is read
from the parameters and the groups, and everything that is certified is measured by it, with
:mod:`skfair.metrics`. :func:`repair_scores` turns any scores into scores that keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skfair._typing import FloatArray
from skfair.blocks.weighted_rows import WeightedRows
from skfair.constraints.partial import PARTIAL_RULES, PartialRows, Surrogate
from skfair.enforcement.repair import (
    Blocks,
    GroupMaps,
    band_maps,
    choose_cuts,
    score_blocks,
    shift_maps,
)
from skfair.enforcement.strict_partial import EXACT
from skfair.groups.encoding import GroupEncoding
from skfair.groups.intervals import Intervals
from skfair.metrics import (
    partial_ccdf_gap,
    partial_demographic_parity_gap,
    partial_equal_opportunity_gap,
    partial_equalized_odds_gap,
    partial_group_auc_gap,
    partial_statistical_parity_gap,
)
from skfair.utils.text import listed
from skfair.utils.warn import warn_user

# Rules that repair can keep.
REPAIRABLE = (
    "statistical_parity",
    "demographic_parity",
    "group_auc",
    "equal_opportunity",
    "equalized_odds",
)
RATE_RULES: dict[str, Callable[..., float]] = {
    "demographic_parity": partial_demographic_parity_gap,
    "equal_opportunity": partial_equal_opportunity_gap,
    "equalized_odds": partial_equalized_odds_gap,
}
# Rules whose disparity is a share of something.
SCALED = ("statistical_parity", *RATE_RULES)
_BISECTIONS = 12
# Room for the noise of new rows, in units of sqrt(1 / n_k + 1 / n_k') within the interval: two
# distributions that are alike differ by 0.87 of it on average. Shares at the thresholds stay below
# the bound by the first number (half the bound at most), which costs accuracy, 0.05 points on a9a;
# elsewhere by the second as well, which costs none. Without any room the disparity of test rows
# there is 0.03 above the bound.
ROOM, ROOM_ELSEWHERE = 0.5, 3.0
_FLOOR_SAMPLES = 20


class Promise(NamedTuple):
    """What is limited on given rows.

    Attributes
    ----------
    rule : str
        Name of the rule.
    interval : object
        The interval as the user gave it.
    scale : {"conditional", "ccdf"}
        Whether disparities are shares of the interval, or of the whole groups.
    bound : float
        The disparity allowed.
    groups : GroupEncoding
        The groups of the rows.
    targets : ndarray of shape (n_samples,)
        -1 and 1.
    weights : ndarray of shape (n_samples,) or None
        Weights of the rows.
    intervals : Intervals
        The intervals on which shares have to agree: those of the user, or under "ccdf" for
        statistical parity all of them together, longer by the bound, since the ranks of other
        groups at their thresholds lie there.
    behind : WeightedRows or None
        Set if the rows are few weighted ones that stand for those of Dask collections.
    """

    rule: str
    interval: Any
    scale: str
    bound: float
    groups: GroupEncoding
    targets: FloatArray
    weights: FloatArray | None
    intervals: Intervals
    behind: WeightedRows | None = None

    @property
    def is_vacuous(self) -> bool:
        """Whether no attribute has two groups to compare."""
        return self.groups.n_groups == self.groups.n_attributes

    @property
    def unit(self) -> float:
        """Units of the disparity that a share of the intervals is."""
        if self.scale == "conditional" or self.rule not in SCALED:
            return 1.0
        return float(self.intervals.lengths[0])

    @property
    def tolerance(self) -> float:
        """The bound as a share of the intervals."""
        return self.bound / self.unit

    def percentiles(self, n_percentiles: int) -> FloatArray:
        """Return where smooth rules are imposed, as shares of the intervals."""
        middles = (np.arange(n_percentiles) + 0.5) / n_percentiles
        if self.rule != "statistical_parity" or self.scale == "conditional":
            return middles * max(0.0, 1 - self.tolerance)
        # As in the paper: equally spaced in the interval that the user gave.
        pairs = np.unique(
            np.concatenate(Intervals(self.interval, self.groups.levels).bounds), axis=0
        )
        ends = np.cumsum(pairs[:, 1] - pairs[:, 0])
        place = middles * ends[-1]
        piece = np.searchsorted(ends, place)
        return self.intervals.share(pairs[piece, 1] - (ends[piece] - place), 0)

    def measure(self, scores: FloatArray) -> float:
        """Return the disparity of scores whose decision threshold is 0."""
        if self.is_vacuous:
            return 0.0
        if self.rule not in REPAIRABLE:
            return self._surrogate_value(scores)
        given: dict[str, Any] = {
            "sensitive_features": self.groups,
            "interval": self.interval,
            "sample_weight": self.weights,
        }
        if self.rule == "statistical_parity":
            if self.scale == "conditional":
                return partial_statistical_parity_gap(None, scores, **given)
            try:
                return partial_ccdf_gap(None, scores, **given)
            except ValueError:  # ties: no threshold of some group lies in the interval
                pairs = [tuple(pair) for pair in self.intervals.bounds[0].tolist()]
                given["interval"] = pairs
                return partial_statistical_parity_gap(None, scores, **given, normalize=False)
        if self.rule == "group_auc":
            return partial_group_auc_gap(None, scores, **given)
        if self.rule == "demographic_parity":
            return self.unit * partial_demographic_parity_gap(None, scores, **given)
        gap = RATE_RULES[self.rule]
        return self.unit * gap(
            self.targets > 0, scores, **given, rank_within="class", pos_label=True
        )

    def _surrogate_value(self, scores: FloatArray) -> float:
        """Return what a comparator of the paper limits: its quadratic surrogate."""
        rows = self.rows(0, np.empty(0), 0.0)
        bound = PARTIAL_RULES[self.rule]().prepare(rows, Surrogate("ramp", 0.5))[0]
        return float(bound.evaluate(scores, np.empty(0)).values.max())

    def rows(self, attribute: int, percentiles: FloatArray, threshold: float) -> PartialRows:
        """Return what a rule sees: the groups of one attribute."""
        groups = self.groups
        first, stop = groups.offsets[attribute], groups.offsets[attribute + 1]
        return PartialRows(
            codes=groups.codes[attribute] - first,
            group_names=tuple(groups.names[first:stop]),
            targets=self.targets,
            sample_weight=self.weights,
            intervals=self.intervals.of_groups(first, stop),
            percentiles=percentiles,
            threshold=threshold,
        )

    def floor(self) -> float:
        """Return the smallest disparity that the numbers of rows let one ask for."""
        if self.rule not in REPAIRABLE or self.rule == "group_auc":
            return 0.0
        counts = self.counts()
        if self.scale == "conditional":
            return float((1 / (counts * self.intervals.lengths[:, None])).max())
        return float((1 / counts).max())

    def counts(self) -> FloatArray:
        """Return the rows of each group in each class that counts, (n_groups, n_classes)."""
        counted = None if self.weights is None else (self.weights > 0).astype(float)
        if self.behind is not None:
            counted = np.where(self.behind.weights > 0, self.behind.counts, 0.0)
        if self.rule not in ("equal_opportunity", "equalized_odds"):
            return np.asarray(self.groups.sums(counted), dtype=float)[:, None]
        classes = (self.targets > 0).astype(np.int64)
        table = self.groups.cross_counts(classes, 2, counted)
        return np.asarray(table[:, 1:] if self.rule == "equal_opportunity" else table, dtype=float)

    def kept_by_bins(self) -> tuple[Promise, float]:
        """Return what to keep by rows in bins so that all rows keep this promise, and the gap.

        Maps rise, so the scores of a bin stay between those of its neighbours: the share of a group
        above any score is that of the bins, or less by at most the share of one bin. Two such
        shares differ by at most that much more than the bins show; probabilities that one group
        outranks the other, by twice as much. Rates at thresholds between bins are exact.
        """
        if self.behind is None or self.is_vacuous or self.rule in RATE_RULES:
            return self, 0.0
        error = share = self.behind.resolution()
        promise = self
        if self.rule == "group_auc" or self.scale == "conditional":
            lengths = Intervals(self.interval, self.groups.levels).lengths
            error = share / float(lengths.min()) * (2 if self.rule == "group_auc" else 1)
        else:  # the ranks of all rows may lie in the interval where those of the bins do not
            wider = Intervals(self.interval, self.groups.levels).widened(share)
            promise = self._replace(interval=[tuple(pair) for pair in wider.bounds[0].tolist()])
        if error > 0.5 * self.bound:
            warn_user(
                f"Bins of scores hold up to {share:.2g} of a group, which leaves the disparity of "
                f"all rows open by {error:.2g}; max_disparity={self.bound:g} was asked. Ask for "
                "more, choose a longer interval or merge small groups."
            )
        # A bin is moved as a whole: less than its share cannot be asked of the bins.
        return promise._replace(bound=max(self.bound - error, error)), error


def make_promise(
    rule: str,
    interval: Any,
    scale: str,
    max_disparity: float,
    groups: GroupEncoding,
    targets: FloatArray,
    weights: FloatArray | None,
    class_names: Sequence[Any],
    *,
    uses_interval: bool = True,
    by_class: bool = False,
    behind: WeightedRows | None = None,
) -> Promise:
    """Read the promise from parameters and groups; raise or warn where it makes no sense.

    Returns
    -------
    promise : Promise
        With a bound that the numbers of rows allow.
    """
    groups.check_nonempty(sample_weight=weights)
    if by_class:
        classes = (targets > 0).astype(np.int64)
        needed = [1] if rule == "equal_opportunity" else None
        groups.check_nonempty(classes, class_names, weights, needed)
    intervals = Intervals(interval, groups.levels)
    if scale == "ccdf" and rule == "statistical_parity":
        intervals = intervals.widened(max_disparity)
    elif scale == "ccdf" and rule in RATE_RULES and np.ptp(intervals.lengths) > 1e-12:
        raise ValueError(
            "scale='ccdf' compares shares of whole groups, so the intervals of all groups must be "
            f"equally long; got {interval!r}. Use scale='conditional'."
        )
    promise = Promise(
        rule, interval, scale, float(max_disparity), groups, targets, weights, intervals, behind
    )
    if uses_interval:
        _check_rows_inside(promise)
    if promise.is_vacuous and groups.levels.attributes:
        warn_user(
            f"sensitive_features has a single group, {groups.names[0]!r}, so no fairness rule is "
            "active.",
        )
    floor = promise.floor()
    if max_disparity < floor and not promise.is_vacuous:
        warn_user(
            f"max_disparity={max_disparity:g} is less than one row of the smallest group in the "
            f"interval amounts to; {floor:.4g} is used. Ask for at least that, choose a longer "
            "interval or merge small groups.",
        )
        promise = promise._replace(bound=floor)
        if scale == "ccdf" and rule == "statistical_parity":
            wider = Intervals(interval, groups.levels).widened(floor)
            promise = promise._replace(intervals=wider)
    return promise


def _check_rows_inside(promise: Promise) -> None:
    """Raise if a group has no whole row inside its interval."""
    lengths = Intervals(promise.interval, promise.groups.levels).lengths
    inside = promise.counts().min(axis=1) * lengths
    if np.all(inside >= 1 - 1e-9):
        return
    rows = [
        f"{name!r} {number:.1f}"
        for name, number in zip(promise.groups.names, inside.tolist(), strict=True)
    ]
    raise ValueError(
        f"The interval {promise.interval!r} holds less than one row of a group. Rows inside it: "
        f"{listed(rows)}. Choose a longer interval or merge small groups."
    )


class Repaired(NamedTuple):
    """Maps of the groups, and what they are good for.

    Attributes
    ----------
    maps : GroupMaps
        From scores to scores whose decision threshold is 0.
    bound : float
        The disparity that is kept: larger than asked only where ties leave no choice.
    """

    maps: GroupMaps
    bound: float


def repair_scores(
    promise: Promise,
    scores: FloatArray,
    threshold: float | None,
    *,
    min_gap: float = 0.0,
    n_knots: int | None = None,
) -> Repaired:
    """Return monotone maps of the groups after which the promise is kept.

    Parameters
    ----------
    promise : Promise
        What is limited; the groups must not overlap.
    scores : ndarray of shape (n_samples,)
        Scores of the rows of the promise.
    threshold : float or None
        Decision threshold; None for the most accurate.
    min_gap : float, default=0.0
        Scores that are closer count as tied.
    n_knots : int, default=None
        Largest number of knots of a map.

    Returns
    -------
    repaired : Repaired
        The maps, and the bound that they keep. O(n log n + n G).
    """
    groups, codes = promise.groups, promise.groups.codes[0]
    blocks = score_blocks(scores, codes, groups.n_groups, promise.targets, promise.weights, min_gap)

    def thresholds(levels: Sequence[Sequence[FloatArray]], tolerance: float) -> FloatArray:
        chosen = choose_cuts(blocks, levels, tolerance, threshold).thresholds
        bins = None if promise.behind is None else promise.behind.bins
        return chosen if bins is None else bins.between(chosen)

    if groups.n_groups == 1:
        cuts = thresholds([[np.zeros(blocks[0].ends.size)]], 1.0)
        return Repaired(shift_maps(blocks, cuts), promise.bound)
    if promise.rule not in ("statistical_parity", "group_auc"):
        cuts = thresholds(_levels(promise, blocks), promise.tolerance)
        return Repaired(shift_maps(blocks, cuts), promise.bound)

    as_they_are = np.inf if threshold is None else promise.measure(scores - threshold)
    unmoved = shift_maps(blocks, np.full(groups.n_groups, threshold or 0.0))
    if as_they_are <= promise.bound:
        return Repaired(unmoved, promise.bound)
    sizes = groups.sums(promise.weights) * promise.intervals.lengths
    noise = float(np.sqrt(np.sort(1 / sizes)[-2:].sum()))

    def bands(tolerance: float, n_knots: int | None = None) -> tuple[GroupMaps, float]:
        aim = max(tolerance - ROOM * noise, 0.5 * tolerance)
        maps, _ = band_maps(
            blocks,
            thresholds(_levels(promise, blocks), aim),
            promise.intervals,
            aim,
            margin=ROOM_ELSEWHERE * noise,
            n_knots=n_knots,
        )
        return maps, promise.measure(maps(scores, codes))

    tolerance = promise.tolerance
    if promise.rule == "group_auc":
        tolerance = _widest(bands, promise.bound)
    maps, kept = bands(tolerance)
    if as_they_are < kept > promise.bound + EXACT:  # ties: better not to move them
        maps, kept = unmoved, as_they_are
    elif n_knots is not None:
        maps, _ = bands(tolerance, n_knots)
    return Repaired(maps, _kept_or_warned(promise, kept))


def _widest(bands: Callable[[float], tuple[GroupMaps, float]], bound: float) -> float:
    """Look for the widest bands that keep a bound: those of the bound do, and mostly wider ones."""
    low, high = bound, 1.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if bands(middle)[1] <= bound else (low, middle)
    return low


def _kept_or_warned(promise: Promise, kept: float) -> float:
    """Return the bound, or with a warning the disparity that ties do not let one go below."""
    if kept <= promise.bound + EXACT:
        return promise.bound
    warn_user(
        f"Tied scores leave no way below a {promise.rule} disparity of {kept:.4g} on the training "
        f"data; max_disparity={promise.bound:g} was asked. Finer scores, a longer interval or "
        "merged groups would help."
    )
    return kept


def _levels(promise: Promise, blocks: Sequence[Blocks]) -> list[list[FloatArray]]:
    """Return, for each comparison and group, the share of the interval above each cut."""
    share = promise.intervals.share
    by_class = {
        "equal_opportunity": ["positive"],
        "equalized_odds": ["positive", "negative"],
    }.get(promise.rule, ["ends"])
    return [[share(getattr(one, kind), g) for g, one in enumerate(blocks)] for kind in by_class]


def simulated_floor(promise: Promise) -> float:
    """Return the mean disparity of groups of these sizes whose scores are alike."""
    rng = np.random.RandomState(0)
    scores = np.linspace(-1, 1, promise.targets.size)
    values = [promise.measure(rng.permutation(scores)) for _ in range(_FLOOR_SAMPLES)]
    return float(np.mean(values))


def upper_bound(promise: Promise, scores: FloatArray, confidence: float) -> float:
    r"""Return what the disparity of all people is at most, judged by a sample of them.

    By the inequality of Dvoretzky, Kiefer and Wolfowitz the ranks of group k are within
    :math:`\epsilon_k = \sqrt{\log(2 m / \delta) / (2 n_k)}` of the true ones, of all m groups (and
    classes) at once with probability 1 - delta; shares of an interval of length L within
    epsilon_k / L. Under "ccdf" the thresholds that the interval touches may differ as well, so it
    is made longer by the largest epsilon. With weights n_k is the effective number of rows, which
    makes it an approximation.
    """
    counts = promise.counts()
    if promise.weights is not None and counts.shape[1] == 1:
        squares = np.asarray(promise.groups.sums(promise.weights**2), dtype=float)
        total = np.asarray(promise.groups.sums(promise.weights), dtype=float)
        counts = (total**2 / squares)[:, None]  # effective numbers of rows
    epsilon = np.sqrt(np.log(2 * counts.size / (1 - confidence)) / (2 * counts)).max(axis=1)
    if promise.is_vacuous:
        return 0.0
    if promise.scale == "conditional":
        epsilon = epsilon / promise.intervals.lengths
    elif promise.rule == "statistical_parity":
        own = Intervals(promise.interval, promise.groups.levels)
        wider = own.widened(float(epsilon.max())).bounds[0]
        promise = promise._replace(interval=[tuple(pair) for pair in wider.tolist()])
    return min(1.0, promise.measure(scores) + float(np.sort(epsilon)[-2:].sum()))


def warn_not_kept(promise: Promise, disparity: float, is_repaired: bool) -> None:
    """Warn that the promise is not kept on the training rows."""
    remedy = (
        "Allow more n_knots."
        if is_repaired
        else "Raise max_disparity or n_percentiles, choose a longer interval, merge small groups, "
        "or let the model use the group (group_aware=True), which makes the bound exact."
    )
    warn_user(
        f"No model was found whose {promise.rule} disparity on the training data is at most "
        f"{promise.bound:g}; the smallest reached is {disparity:.4g}. {remedy}",
        ConvergenceWarning,
    )
