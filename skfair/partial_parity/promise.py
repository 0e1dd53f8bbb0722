"""The disparity that the estimators of partial parity limit, measure and certify.

A :class:`Promise` says what is limited on given rows, and measures it with :mod:`skfair.metrics`.
Fits make it by :func:`promise_of_fit`, with the limit from :func:`limit_of`. For other rows
:func:`skfair.partial_parity.prediction.promise_on` makes it of a fitted model. These read it:

- the smooth problem: ``rows``, ``tolerance`` and ``ratios`` (:mod:`.strict_rounds`),
- repair and the comparison of solutions: ``measure``, ``load`` and ``bound``,
- certificates: :func:`upper_bound`.

There are three units. ``limit`` and ``bound`` are in units of the metric: shares of the interval
(scale "conditional") or of the whole group (scale "ccdf"). ``tolerance`` is always a share of the
interval, because moments and solvers use this unit. ``load`` makes attributes with different limits
comparable: it divides their disparities so that one bound applies to all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from skfair import metrics
from skfair._typing import BoolArray, ColumnLike, FloatArray, IntervalLike
from skfair.constraints.base import Constraint, limit_for
from skfair.groups.compared_groups import ComparedGroups
from skfair.groups.encoding import GroupEncoding
from skfair.groups.intervals import Intervals
from skfair.groups.limits import InForce, Limit, limits_of_attributes, loosest
from skfair.groups.measured_rows import MeasuredRows
from skfair.groups.row_units import RowUnits
from skfair.partial_parity.interval_constraint import IntervalConstraint, read_constraint
from skfair.partial_parity.metrics import StatisticalParityGap
from skfair.partial_parity.ranked_moment import IntervalRows
from skfair.partial_parity.surrogates import Surrogate
from skfair.utils.rounding import ROUNDING
from skfair.utils.text import listed
from skfair.utils.validation import check_limit, check_scores
from skfair.utils.warn import warn_user


@dataclass(frozen=True, eq=False)
class Promise:
    """The disparities that are limited on given rows."""

    constraint: IntervalConstraint
    interval: IntervalLike  # the interval as the user gave it
    is_ccdf: bool  # whether disparities are shares of the whole groups, not of the interval
    # The largest disparity allowed. A number holds for all attributes. A dict has a number for each
    # attribute, or None for an attribute without a limit
    limit: Limit
    groups: GroupEncoding  # the groups of the rows
    targets: FloatArray  # (n_samples,): -1 and 1
    weights: FloatArray | None  # (n_samples,): weights of the rows
    # The limit that the user set. ``limit`` is larger if ``asked`` is less than one row of a group
    asked: Any = None
    units: RowUnits | None = None  # the unit of each row; None if no two rows share one

    @cached_property
    def own_intervals(self) -> Intervals:
        """The intervals of the user, by group."""
        return Intervals(self.interval, self.groups.levels)

    @cached_property
    def intervals(self) -> Intervals:
        """The intervals on which the shares of the groups have to agree.

        They are those of the user, unless groups are compared at the same thresholds. At a
        threshold in the interval of one group, the rank of another group may be outside of its own
        by up to the bound. So each group then has the union of all intervals, longer by the bound.
        """
        own = self.own_intervals
        return own.widened(self.bound) if self.compares_thresholds else own

    @property
    def bound(self) -> float:
        """The largest disparity allowed: the limit, or the largest of the attributes' limits."""
        return loosest(self.limit)

    def _seen_longer(self, length: float) -> Self:
        """Return the promise on the union of the user's intervals, longer on both sides."""
        return replace(self, interval=_pairs(self.own_intervals.widened(length)))

    def of_attributes(self) -> list[Self]:
        """Return a promise for each attribute that has a limit of its own.

        If one limit holds for all attributes, it is the promise itself.
        """
        if not isinstance(self.limit, Mapping):
            return [self]
        parts = []
        for a, name in enumerate(self.groups.levels.attributes):
            limit = self.limit[name]
            if limit is not None:
                groups, ends = self.groups.of_attribute(a), self.groups.offsets[a : a + 2]
                pairs = self.own_intervals.bounds[ends[0] : ends[1]]
                own = dict(zip(groups.names, pairs, strict=True))
                parts.append(replace(self, groups=groups, interval=own, limit=float(limit)))
        return parts

    def in_force(self, scores: FloatArray) -> InForce:
        """Return the disparity of scores (key "") and the limit, for each attribute with a limit.

        "asked" is the limit that the user set, if the one in force is larger.
        """
        limits: InForce = {}
        for part in self.of_attributes():
            name, asked = self.name, self.asked
            if isinstance(self.limit, Mapping):
                (attribute,) = part.groups.levels.attributes
                name, asked = f"{name} of {attribute}", asked[attribute]
            limits[name] = {"": part.measure(scores), "limit": part.bound}
            limits[name] |= {"asked": asked} if part.bound > asked + ROUNDING else {}
        return limits

    @property
    def ratios(self) -> FloatArray:
        """Limit of each attribute that is limited, divided by the bound (the largest of them)."""
        bounds = np.array([part.bound for part in self.of_attributes()])
        return np.asarray(np.maximum(bounds, ROUNDING) / max(self.bound, ROUNDING))

    def load(self, scores: FloatArray) -> float:
        """Return a number that is at most the bound if and only if all limits are satisfied.

        It is the disparity of scores. If each attribute has its own limit, their disparities are
        divided by :attr:`ratios` first.
        """
        if not isinstance(self.limit, Mapping):
            return self.measure(scores)
        parts = zip(self.of_attributes(), self.ratios, strict=True)
        return max((part.measure(scores) / ratio for part, ratio in parts), default=0.0)

    @property
    def name(self) -> str:
        """Name of the constraint, as the user passed it."""
        name = self.constraint.constraint
        return name if isinstance(name, str) else type(name).__name__

    @property
    def is_vacuous(self) -> bool:
        """Whether no attribute has two groups to compare."""
        return self.groups.is_vacuous

    @property
    def compares_thresholds(self) -> bool:
        """Whether groups are compared at the same thresholds, not at the same ranks."""
        return self.is_ccdf and self.constraint.ranked.ccdf_metric is not None

    @property
    def unit(self) -> float:
        """Factor that turns a share of the intervals into the unit of the disparity."""
        is_share = self.is_ccdf and self.constraint.ranked.is_share
        return float(self.intervals.lengths[0]) if is_share else 1.0

    @property
    def tolerance(self) -> float:
        """The bound as a share of the intervals."""
        return self.bound / self.unit

    def percentiles(self, n_percentiles: int) -> FloatArray:
        """Return the shares of the intervals at which smooth statistical parity is imposed."""
        middles = (np.arange(n_percentiles) + 0.5) / n_percentiles
        if not self.compares_thresholds:
            return middles * max(0.0, 1 - self.tolerance)
        # As in the paper, the points are equally spaced in the user's interval. They are returned
        # as shares of ``intervals``, which are longer.
        pairs = np.unique(np.concatenate(self.own_intervals.bounds), axis=0)
        ends = np.cumsum(pairs[:, 1] - pairs[:, 0])
        place = middles * ends[-1]
        piece = np.searchsorted(ends, place)
        return self.intervals.share(pairs[piece, 1] - (ends[piece] - place), 0)

    def measure(self, scores: FloatArray) -> float:
        """Return the disparity of scores whose decision threshold is 0.

        It is infinite if no row of a class is inside the interval, so that it exceeds any limit.
        """
        if self.is_vacuous:
            return 0.0
        if self._parity is not None:
            return float(self.unit * self._parity(check_scores(scores)))
        metric, positive, arguments = self._metric
        if metric is None:
            return self._surrogate_value(scores)
        if not self.compares_thresholds:
            value = float(self.unit * metric(positive, scores, **arguments))
            return np.inf if np.isnan(value) else value
        try:
            ccdf_metric = getattr(metrics, str(self.constraint.ranked.ccdf_metric))
            return float(ccdf_metric(positive, scores, **arguments))
        except ValueError:  # ties leave a group without a threshold in the interval
            of_all = arguments | {"interval": _pairs(self.intervals)}
            return float(metric(positive, scores, **of_all, normalize=False))

    @cached_property
    def _parity(self) -> StatisticalParityGap | None:
        """Statistical parity, prepared to be measured many times; None for other constraints."""
        metric, _, arguments = self._metric
        if metric is not metrics.partial_statistical_parity_gap or self.compares_thresholds:
            return None
        groups = arguments["sensitive_features"]
        rows = MeasuredRows.of_scores(self.targets, None, groups, sample_weight=self.weights)
        return StatisticalParityGap(rows, self.interval)

    @cached_property
    def _metric(self) -> tuple[Callable[..., float] | None, BoolArray | None, dict[str, Any]]:
        """The metric (None if there is none), a boolean per row for the classes, and its arguments.

        The second is True for positive rows, or None if the constraint does not depend on classes.
        """
        constraint, name, positive = self.constraint, self.constraint.metric, None
        arguments: dict[str, Any] = {
            "sensitive_features": ComparedGroups.of(self.groups),
            "interval": self.interval,
            "sample_weight": self.weights,
        }
        if constraint.classes:
            positive, in_groups = self.targets > 0, constraint.ranks_whole_groups
            arguments["pos_label"] = bool(constraint.classes[-1])
            arguments |= {"rank_within": "group" if in_groups else "class"}
            arguments |= {"zero_division": np.nan} if in_groups else {}
        return None if name is None else getattr(metrics, name), positive, arguments

    def _surrogate_value(self, scores: FloatArray) -> float:
        """Return the disparity of a constraint without a metric: the largest of its own values."""
        surrogate, nothing = Surrogate("ramp", 0.5), np.empty(0)
        moments = [self.constraint.moments(rows, surrogate)[0] for rows in self.rows(0)]
        values = [moment.evaluate(scores, nothing).values for moment in moments]
        return max(float(of_attribute.max(initial=0.0)) for of_attribute in values)

    def rows(self, n_percentiles: int) -> list[IntervalRows]:
        """Return the rows that a moment is bound to, one entry for each attribute with a limit."""
        rows = []
        for part in self.of_attributes():
            for a in range(part.groups.n_attributes):
                ends = part.groups.offsets[a : a + 2].tolist()
                at = part.intervals.of_groups(*ends), part.percentiles(n_percentiles)
                known = part.groups.of_attribute(a), self.targets, self.weights
                rows.append(IntervalRows(*known, *at))
        return rows

    def check_nonempty(self, class_names: Sequence[Any]) -> None:
        """Raise if a group has no rows, or none of a class on which the constraint depends."""
        self.groups.check_nonempty(sample_weight=self.weights)
        if self.constraint.classes:
            classes = (self.targets > 0).astype(np.int64)
            counted = list(self.constraint.classes)
            self.groups.check_nonempty(classes, class_names, self.weights, counted)

    def inside(self) -> FloatArray:
        """Return how many rows of each group and class may lie inside the interval of the group.

        There is a column for each class on which the constraint depends, or a single one for all
        rows if it does not depend on classes.
        """
        counts, lengths = self.counts(), self.own_intervals.lengths[:, None]
        if not self.constraint.ranks_whole_groups:
            return np.asarray(counts * lengths)
        of_groups = np.asarray(self.groups.sums(self._counted), dtype=float)[:, None]
        return np.asarray(np.minimum(counts, of_groups * lengths))

    @property
    def _counted(self) -> FloatArray | None:
        """1 for each row with a positive weight and 0 for the others; None without weights."""
        return None if self.weights is None else (self.weights > 0).astype(float)

    def counts(self) -> FloatArray:
        """Return the number of rows by group and class that counts, (n_groups, n_classes)."""
        return self.sums(self._counted)

    def squares(self, weights: FloatArray) -> FloatArray:
        """Add up the squared weights of rows, or of units, by group and class that counts.

        With :meth:`sums` they give the effective number of independent rows.
        """
        if self.units is None:
            return self.sums(weights**2)
        n_classes = 2 if self.constraint.classes else 1
        classes, n_cells = (self.targets > 0) * (n_classes - 1), n_classes * self.groups.n_groups
        table = np.zeros((self.groups.n_groups, n_classes))
        for codes in self.groups.codes:
            parts = self.units.parts(codes * n_classes + classes, n_cells)
            table += parts.squares(parts.sums(weights[None]), n_cells).reshape(table.shape)
        return table[:, list(self.constraint.classes) or [0]]

    def sums(self, values: FloatArray | None) -> FloatArray:
        """Add up values by group and class that counts, (n_groups, n_classes); ones if None."""
        if not self.constraint.classes:
            return np.asarray(self.groups.sums(values), dtype=float)[:, None]
        classes = (self.targets > 0).astype(np.int64)
        table = self.groups.cross_counts(classes, 2, values)
        return np.asarray(table[:, list(self.constraint.classes)], dtype=float)


def _pairs(intervals: Intervals) -> list[Any]:
    """Return intervals in the form that a user passes. They must be the same for all groups."""
    return [tuple(pair) for pair in intervals.bounds[0].tolist()]


def limit_of(constraint: str | Constraint, max_disparity: Limit | None) -> Limit:
    """Return the limit that is in force: the constraint's own one, or ``max_disparity``.

    Raises if both are given, or the limit is not valid. Warns of limits too large to matter.
    """
    own = read_constraint(constraint).own_limit
    limit: Limit = limit_for(constraint, max_disparity)
    limit = limit if own is None else own
    check_limit(min(loosest(limit), 1.0), f"max_disparity={limit!r}", ratio="")
    return limit


def promise_of_fit(
    constraint: str | Constraint,
    interval: IntervalLike,
    scale: str,
    max_disparity: Limit | None,  # None for the default, or if the constraint has its own
    groups: GroupEncoding,
    y: ColumnLike,
    classes: NDArray[Any],  # two, the positive one last
    weights: FloatArray | None,
) -> Promise:
    """Return what is limited on the rows of a fit.

    The limit is raised, with a warning, if it is less than one row of the smallest group.
    """
    limit = limit_of(constraint, max_disparity)
    limits = limits_of_attributes(limit, groups)
    if not isinstance(limit, Mapping) or len(limits) == 1:
        limit = loosest(limit)
    within, targets = read_constraint(constraint), np.where(y == classes[1], 1.0, -1.0)
    known = groups, targets, weights, limit
    promise = Promise(within, interval, scale == "ccdf", limit, *known)
    promise.check_nonempty(classes.tolist())
    _check_interval(promise)
    if not isinstance(limit, Mapping):
        return replace(promise, limit=_allowed_by_rows(promise, "max_disparity"))
    allowed: dict[str, float | None] = dict.fromkeys(groups.levels.attributes)
    limited = [name for name in allowed if limit[name] is not None]
    for name, part in zip(limited, promise.of_attributes(), strict=True):
        allowed[name] = _allowed_by_rows(part, f"max_disparity[{name!r}]")
    return replace(promise, limit=allowed)


def _check_interval(promise: Promise) -> None:
    """Raise if the scale has no meaning for the constraint, or an interval holds no row."""
    within, groups = promise.constraint, promise.groups
    if promise.is_ccdf and not within.ranked.is_share:
        raise ValueError(
            f"scale='ccdf' has no meaning for constraint={promise.name!r}, whose disparity is "
            "no share of an interval. Use scale='conditional'."
        )
    if promise.is_ccdf and within.ranks_whole_groups:
        raise ValueError(
            "scale='ccdf' has no meaning for rank_within='group': how many rows of a class are "
            "inside the interval depends on the scores. Use scale='conditional'."
        )
    decides = within.ranked.limits_decisions
    if promise.is_ccdf and decides and np.ptp(promise.intervals.lengths) > ROUNDING:
        raise ValueError(
            "scale='ccdf' compares shares of whole groups, so the intervals of all groups must be "
            f"equally long; got {promise.interval!r}. Use scale='conditional'."
        )
    inside = promise.inside().min(axis=1)
    if within.metric and inside.min() < 1 - 1e-9:
        rows = [f"{name!r} {n:.1f}" for name, n in zip(groups.names, inside.tolist(), strict=True)]
        raise ValueError(
            f"The interval {promise.interval!r} holds less than one row of a group. Rows inside "
            f"it: {listed(rows)}. Choose a longer interval or merge small groups."
        )


def _allowed_by_rows(promise: Promise, name: str) -> float:
    """Return the limit, raised to the share of one row in the smallest group if it is less.

    It then warns; ``name`` is the parameter in the warning. If disparities are not shares of an
    interval, the limit is not raised.
    """
    counts = promise.counts() if promise.is_ccdf else promise.inside()
    floor = float((1 / counts).max())
    if promise.bound >= floor or promise.is_vacuous or not promise.constraint.ranked.is_share:
        return promise.bound
    warn_user(
        f"{name}={promise.bound:g} is less than one row of the smallest group in the interval, "
        f"so {floor:.4g} is used. Set at least this limit, choose a longer interval or merge small "
        "groups."
    )
    return floor


def upper_bound(
    promise: Promise, scores: FloatArray, confidence: float, shift: float = 0.0
) -> float:
    r"""Return an upper confidence bound on the disparity in the population, from a sample.

    By the inequality of Dvoretzky, Kiefer and Wolfowitz the ranks of group k, which has n_k rows,
    are within :math:`\epsilon_k = \sqrt{\log(2 m / \delta) / (2 n_k)}` of the true ones. This holds
    for all m groups (and classes) at once with probability 1 - delta, the confidence. Shares of an
    interval of length L are within epsilon_k / L. Two groups are compared, so the bound is the
    disparity plus the two largest of these errors.

    If groups are compared at thresholds, the true interval may reach other thresholds, so it is
    made longer by the largest epsilon. If a share ``shift`` of each group (and class) may be
    replaced by any other people, ranks may move by as much again. With weights or units n_k is an
    effective number of rows, which makes the bound an approximation.
    """
    if promise.constraint.ranks_whole_groups:
        raise ValueError(
            "There is no such bound for rank_within='group': how many rows of a class are inside "
            "the interval is not known. Use rank_within='class'."
        )
    counts = promise.counts()
    if promise.weights is not None or promise.units is not None:  # effective numbers
        weights = np.ones(scores.size) if promise.weights is None else promise.weights
        counts = promise.sums(weights) ** 2 / promise.squares(weights)
    epsilon = np.sqrt(np.log(2 * counts.size / (1 - confidence)) / (2 * counts)).max(axis=1)
    epsilon += shift
    if promise.is_vacuous:
        return 0.0
    if not promise.is_ccdf:
        epsilon = epsilon / promise.intervals.lengths
    elif promise.compares_thresholds:
        promise = promise._seen_longer(float(epsilon.max()))
    return min(1.0, promise.measure(scores) + float(np.sort(epsilon)[-2:].sum()))


def warn_not_kept(promise: Promise, disparity: float, is_repaired: bool) -> None:
    """Warn that the promise is not kept on the training rows."""
    remedy = (
        "Raise max_disparity, choose a longer interval, or merge small groups."
        if is_repaired
        else "Raise max_disparity or IntervalConstraint(n_percentiles=), choose a longer interval, "
        "merge small groups, or let the model use the group (group_aware=True), which satisfies "
        "the limit exactly."
    )
    limit = promise.limit if isinstance(promise.limit, Mapping) else f"{promise.bound:g}"
    warn_user(
        f"No model was found whose {promise.name} disparity on the training data is at most "
        f"{limit}; the smallest reached is {disparity:.4g}. {remedy}",
        ConvergenceWarning,
    )
