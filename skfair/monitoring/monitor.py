"""A monitor of decisions: batch after batch, an alarm when the disparity exceeds its limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from numbers import Integral
from typing import Any

import numpy as np

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, FloatArray
from skfair.blocks.partitions import is_lazy
from skfair.groups.limits import Limit, limits_of_attributes
from skfair.groups.table import GroupTable
from skfair.metrics.labels import LABEL_METRICS
from skfair.monitoring.batches import (
    Batch,
    check_keys,
    check_limits,
    check_reference,
    checked_batch,
    is_empty,
    kind_of,
    limit_on_difference,
    named_groups,
    warn_of_groups,
)
from skfair.monitoring.late_labels import LateLabels
from skfair.monitoring.state import Alarm, NewGroup
from skfair.monitoring.windows import Windows, aligned
from skfair.utils.text import did_you_mean, listed
from skfair.utils.validation import check_number, check_probability

# Largest horizon and number of rows of a block.
_MOST = 1_000_000_000
# A picture over time has at most so many points, then every second one is dropped.
_MOST_POINTS = 512
_RULES = (
    "demographic_parity",
    "equal_opportunity",
    "false_positive_parity",
    "false_negative_parity",
    "equalized_odds",
)


class DisparityMonitor(LateLabels):
    """Watch whether the disparity of decisions stays within a limit, batch by batch.

    It may be looked at after every batch. As long as the disparity is within the limit, the chance
    that it ever raises an alarm is at most 1 - ``confidence``.

    Parameters
    ----------
    constraint : str, default="demographic_parity"
        The constraint: "demographic_parity", "equal_opportunity", "false_positive_parity",
        "false_negative_parity" or "equalized_odds".
    max_disparity : float or dict, default=None
        The limit on the difference of rates; None is 0.05 unless ``min_ratio`` is given. A dict has
        a limit for each attribute, ``{"sex": 0.05, "age": 0.08}``, None for no limit: groups are
        then compared within each attribute.
    confidence : float, default=0.95
        1 minus the chance of a false alarm, over the whole life of the monitor.
    groups : sequence or dict, default=None
        The groups that are expected; None for those of the first batch. With a limit for each
        attribute, a dict of the groups of each. A group that comes later is compared from then on.
    horizon : int, default=1000
        About how many batches are expected. Changes within it are found soonest; the memory is
        proportional to it and to the number of pairs of groups.
    min_rows : int, default=50
        Rows of each group that are collected before they are compared.
    pos_label : label, default=None
        The class that counts as positive. None is for labels that say it themselves: 0 and 1, -1
        and 1, and booleans. Others, such as 1 and 2 or text, need it.
    reference_batches : int, default=None
        If given, the limit is on the change of the disparity: what comes after a batch is compared
        with so many batches before it, at most ``horizon``. None limits the disparity itself.
    min_ratio : float or dict, default=None
        In place of ``max_disparity``: the limit on the ratio of the lower to the higher rate, such
        as 0.8 for the four-fifths rule.
    reference : group or dict, default=None
        The group that each other group is compared with, such as ``"male"``; with a limit for each
        attribute ``{"sex": "male"}``. Disparities then have a sign: below 0 the other group is
        lower. None compares all pairs.

    Attributes
    ----------
    alarm_ : Alarm or None
        The first alarm: when, since when, which groups, and how large the difference is.
    evidence_ : float
        Evidence against the limit, natural logarithm; an alarm is raised at
        ``-log(1 - confidence)``.
    status_ : {"pass", "fail", "inconclusive"}
        "fail" after an alarm. "pass" if it is shown that the disparity, as a mean since the first
        batch, is within the limit; the chance that it is ever shown wrongly is at most 1 -
        ``confidence``. With ``reference_batches`` it is never "pass".
    rates_ : dict of str to dict of str to float
        Each rate of each group, over all rows.
    impact_ratios_ : dict of str to dict of str to float
        Each rate over that of the reference group, or without one over the highest rate.
    new_groups_ : list of (batch, attribute, group)
        The groups that came later than the first batch and were not named by ``groups``.
    n_rows_, n_batches_ : int
        What has been read.
    history_ : list of (batch, disparity, standard error, evidence, attribute)
        At most 512 batches over time; the disparity is that of about the last ten blocks, with
        ``min_ratio`` the ratio. With a limit for each attribute, a batch has one entry for each;
        otherwise the attribute is "".

    See Also
    --------
    skfair.metrics.disparity_test : The test for a sample of fixed size.
    skfair.inspection.MonitorDisplay : Draws ``history_``.

    Notes
    -----
    Groups are compared in blocks of ``min_rows`` rows or more, whose difference is taken as normal:
    an approximation. Memory does not depend on the length of the stream. A change to twice the
    limit, or to the square of ``min_ratio``, is what the monitor is tuned for. With
    ``reference_batches`` nothing is found before so many batches have been read, and a disparity
    that grows slowly, by less than the limit within them, is not found. A group that comes later
    has no evidence against it, and it takes part in what is bet from its first batch on, so it
    makes no false alarm more likely.

    References
    ----------
    Robbins (1970), Statistical methods related to the law of the iterated logarithm; Howard,
    Ramdas, McAuliffe and Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence
    sequences; Shin, Ramdas and Rinaldo (2024), E-detectors.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.monitoring import DisparityMonitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = DisparityMonitor("demographic_parity", 0.05)
    >>> for batch in range(60):
    ...     sex = rng.choice(["f", "m"], 1000)
    ...     is_higher = (sex == "m") & (batch >= 20)
    ...     y_pred = (rng.random(1000) < 0.3 + 0.15 * is_higher).astype(int)
    ...     _ = monitor.update(None, y_pred, sex)
    >>> monitor.alarm_.higher, abs(monitor.alarm_.since - 20) <= 2, monitor.alarm_.batch < 30
    ('m', True, True)
    """

    def __init__(
        self,
        constraint: str = "demographic_parity",
        max_disparity: Limit | None = None,
        confidence: float = 0.95,
        *,
        groups: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
        horizon: int = 1000,
        min_rows: int = 50,
        pos_label: ClassLabel = None,
        reference_batches: int | None = None,
        min_ratio: Limit | None = None,
        reference: ClassLabel | Mapping[str, Any] = None,
    ) -> None:
        if constraint not in _RULES:
            raise ValueError(
                f"constraint must be one of {listed(_RULES)}, got {constraint!r}."
                f"{did_you_mean(constraint, _RULES)}"
            )
        self.max_disparity = limit_on_difference(max_disparity, min_ratio, reference_batches)
        self.min_ratio = min_ratio
        check_limits(self._limit, groups, "max_disparity" if min_ratio is None else "min_ratio")
        check_reference(reference, self._limit)
        check_probability(confidence, "confidence")
        if pos_label is not None:
            kind_of(pos_label, "pos_label")
        check_number(horizon, "horizon", 1, _MOST, kind=Integral)
        check_number(min_rows, "min_rows", 2, _MOST, kind=Integral)
        self.constraint, self.confidence, self.reference = constraint, confidence, reference
        self.groups, self.horizon, self.min_rows = groups, int(horizon), int(min_rows)
        if reference_batches is not None:
            check_number(reference_batches, "reference_batches", 1, self.horizon, kind=Integral)
        self.pos_label, self.reference_batches = pos_label, reference_batches
        self._spec = LABEL_METRICS[f"{constraint}_difference"]
        self.alarm_: Alarm | None = None
        self.evidence_, self.n_rows_, self.n_batches_ = 0.0, 0, 0
        self.history_: list[tuple[Any, float, float, float, str]] = []
        self.new_groups_: list[NewGroup] = []
        self._stride, self._names, self._attributes = 1, [], []
        self._first: dict[int, Any] = {}  # the batch id of each start that is kept
        self._last_id: Any = None
        self._pending: dict[Any, tuple[Any, dict[str, str]]] = {}
        if groups is not None:
            self._begin(named_groups(groups))
            if not self._pairs.size:
                raise ValueError(
                    f"A monitor compares two groups or more, got {listed(self._names)}."
                )

    def __repr__(self) -> str:
        read = f"{self.n_rows_:,} rows, {self.n_batches_:,} batches"
        alarm = "no alarm" if self.alarm_ is None else f"alarm at batch {self.alarm_.batch}"
        limit = (
            f"{self.max_disparity!r}" if self.min_ratio is None else f"min_ratio={self.min_ratio}"
        )
        return f"DisparityMonitor({self.constraint!r}, {limit}): {read}, {alarm}"

    def update(
        self,
        y_true: ColumnLike | None,
        y_pred: ColumnLike,
        sensitive_features: ColumnsLike,
        *,
        batch: Batch = None,
    ) -> Alarm | None:
        """Read a batch.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            True labels; None if the constraint does not use them.
        y_pred : array-like of shape (n_samples,)
            Decisions.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row; with a limit for each attribute, named columns.
        batch : int, str, date or datetime, default=None
            Number or time of the batch, larger than those before; None counts from 0. A batch
            without rows is counted.

        Returns
        -------
        alarm : Alarm or None
            The first alarm of the monitor's life, if there has been one.
        """
        if self._spec.uses_y_true and y_true is None:
            raise ValueError(
                f"{self.constraint} needs y_true. If labels come later, use add_predictions and "
                "add_labels."
            )
        if is_lazy(y_true, y_pred, sensitive_features):
            raise TypeError("A batch is read in memory, got a Dask collection. compute() it.")
        number = checked_batch(self.n_batches_ if batch is None else batch, self._last_id)
        if is_empty(y_pred, sensitive_features, *([] if y_true is None else [y_true])):
            counts = np.zeros((len(self._names), 2, 2))
        else:
            groups = (sensitive_features, None, None, not isinstance(self._limit, Mapping))
            table = GroupTable.of_labels(
                y_true, y_pred, groups, self.pos_label, ignores_true=not self._spec.uses_y_true
            )
            counts = self._placed(table, number)
        self._last_id = number
        self._first[self.n_batches_] = number
        if self._names:
            self._add(counts)
        self.n_batches_ += 1
        self._look(number)
        return self.alarm_

    def merge(self, other: DisparityMonitor) -> DisparityMonitor:
        """Return a monitor of the rows of both, which watched the same time side by side.

        The rows of both together decide whether there is an alarm. Alarms of the two are not taken
        over: each of these has a chance of 1 - ``confidence`` to be false, and together more.

        Parameters
        ----------
        other : DisparityMonitor
            A monitor with the same settings; batches of the same number belong together. A group
            that only one of them knows is compared with the rows of that one.

        Returns
        -------
        merged : DisparityMonitor
            A new monitor.
        """
        if self._settings() != other._settings():
            raise ValueError(
                "Only monitors with the same settings can be merged: "
                f"{self._settings()} and {other._settings()}."
            )
        both = [row_id for row_id in self._pending if row_id in other._pending]
        if both:
            raise ValueError(f"Both wait for labels of ids {listed(both)}. Add them first.")
        made = DisparityMonitor(**self._settings())
        made._pending = {**other._pending, **self._pending}
        keys = list(dict.fromkeys([*self._keys, *other._keys]))
        if not keys:  # neither has read a row
            longer = max(self, other, key=lambda monitor: monitor.n_batches_)
            made._first, made.n_batches_ = dict(longer._first), longer.n_batches_
            made._last_id = longer._last_id
            return made
        made._begin(keys)
        taken = [made._taken_over(monitor) for monitor in (self, other)]
        pairs = [(taken[0][0], self._first), (taken[1][0], other._first)]
        made._first, parts = aligned(*pairs)
        made._windows = parts[0].merged(parts[1])
        made._counts = taken[0][1] + taken[1][1]
        made.n_rows_ = self.n_rows_ + other.n_rows_
        made.new_groups_ = _first_events([*self.new_groups_, *other.new_groups_])
        made.n_batches_ = max(made._first, default=-1) + 1
        made._last_id = made._first.get(made.n_batches_ - 1)
        if made.n_batches_:
            made._look(made._last_id)
        return made

    def _placed(self, table: GroupTable, number: Any) -> FloatArray:
        """Return the counts of a batch in the order of the monitor's groups."""
        cells = table.groups.cells
        names, attributes = list(cells.names), [""] * len(cells.names)
        if isinstance(self._limit, Mapping):
            limits_of_attributes(self._limit, cells)  # they are those of the batch
            attributes = np.repeat(cells.levels.attributes, np.diff(cells.offsets)).tolist()
        keys = list(zip(attributes, names, strict=True))
        newcomers = list(dict.fromkeys(keys)) if not self._names else self._newcomers(keys)
        if newcomers:
            self._meet(newcomers, number)
        place = {key: k for k, key in enumerate(self._keys)}
        counts = np.zeros((len(place), 2, 2))
        counts[[place[key] for key in keys]] = table.weights
        return counts

    def _newcomers(self, keys: list[tuple[str, str]]) -> list[tuple[str, str]]:
        known = set(self._keys)
        return [key for key in keys if key not in known]

    def _meet(self, newcomers: list[tuple[str, str]], number: Any) -> None:
        """Compare more groups from a batch on: against them there is no evidence yet."""
        before, keys = copy(self), [*self._keys, *newcomers]
        check_keys(keys)  # before the warning
        made = copy(self)
        made._begin(keys)  # raises where the reference group is missing
        warn_of_groups(newcomers, len(self._names), number)
        if self._names:
            self.new_groups_ = self.new_groups_ + [NewGroup(number, *key) for key in newcomers]
        self._begin(keys)
        self._windows, self._counts = self._taken_over(before)

    def _taken_over(self, other: DisparityMonitor) -> tuple[Windows, FloatArray]:
        """Return what another monitor knows, about the groups and pairs of this one."""
        counts = np.zeros_like(self._counts)
        if not other._names:
            windows = self._empty_windows()
            for number in other._first:
                windows.start(number)
            return windows, counts
        place = {key: k for k, key in enumerate(self._keys)}
        at = np.array([place[key] for key in other._keys])
        counts[at] = other._counts
        rate, i, j = other._pairs.T
        numbers = np.full((len(self._spec.rates), len(place), len(place)), -1)
        numbers[rate, at[i], at[j]] = np.arange(rate.size)
        return other._windows.with_pairs(numbers[tuple(self._pairs.T)]), counts

    def _add(self, counts: FloatArray) -> None:
        """Add the counts of a batch, and a start before it."""
        self._windows.start(self.n_batches_)
        self._counts += counts
        self.n_rows_ += round(counts.sum() / len(set(self._attributes)))
        sums = np.array([self._sums(counts, rate) for rate in self._spec.rates])
        rate, i, j = self._pairs.T
        of_pairs = np.stack([sums[rate, :, i], sums[rate, :, j]], axis=1)
        self._windows.add(of_pairs, self.min_rows, self._limits)

    def _look(self, number: Any) -> None:
        """Weigh the evidence after a batch."""
        start, pair, sign = self._weigh()
        if self.alarm_ is None and self.evidence_ >= -np.log(1 - self.confidence):
            rate, i, j = self._pairs[pair].tolist()
            size, error = self._windows.estimate(start, pair)
            if self.min_ratio is not None:
                size = self._limits[pair] - size
            higher, lower = (i, j) if sign > 0 else (j, i)
            first = self._first[int(self._windows.starts[start])]
            names = self._names[higher], self._names[lower]
            rates = self._spec.rates
            self.alarm_ = Alarm(
                number, first, rates[rate], *names, float(sign * size), float(error)
            )
        limits = self._limits_by_attribute
        if (self.n_batches_ - 1) % self._stride == 0:
            points = {a: self._recent(a) for a in limits}
            self.history_ += [(number, *point, self.evidence_, a) for a, point in points.items()]
        if len(self.history_) > _MOST_POINTS * len(limits):
            kept = range(0, len(self.history_), 2 * len(limits))
            self.history_ = [row for k in kept for row in self.history_[k : k + len(limits)]]
            self._stride *= 2
        self._forget()

    def _forget(self) -> None:
        """Drop the batches that no start is kept of."""
        if self._names:
            kept = set(self._windows.starts.tolist())
            self._first = {k: name for k, name in self._first.items() if k in kept}
        elif len(self._first) > self.horizon + 1:
            del self._first[list(self._first)[1]]


def _first_events(events: list[NewGroup]) -> list[NewGroup]:
    """Return the first event of each group, in order."""
    first_events: dict[tuple[str, str], NewGroup] = {}
    for event in sorted(events, key=lambda new_group: new_group.batch):
        first_events.setdefault(event[1:], event)
    return list(first_events.values())
