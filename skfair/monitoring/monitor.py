"""A monitor of decisions: batch after batch, an alarm when the disparity exceeds its limit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike
from skfair.groups.decision_memo import Memo
from skfair.groups.limits import Limit
from skfair.groups.table import GroupTable
from skfair.metrics.labels import LABEL_METRICS
from skfair.monitoring import state as stored
from skfair.monitoring.batches import (
    Batch,
    check_settings,
    checked_batch,
    chosen_limit,
    count_batch,
    is_empty,
    named_groups,
    warn_of_groups,
)
from skfair.monitoring.comparison import COLUMNS, MOST_ROWS, Alarm, Comparison
from skfair.monitoring.late_labels import LatePredictions
from skfair.utils.dask_collections import is_lazy
from skfair.utils.text import listed
from skfair.utils.validation import check_number, one_dimensional

# A picture over time has at most this many points, then every second one is dropped.
_MOST_POINTS = 512
# Parameters that decide what is found; groups may differ.
_SETTINGS = (
    *("constraint", "max_disparity", "min_ratio", "confidence", "horizon"),
    *("min_rows", "reference_batches", "reference", "pos_label"),
)


class DisparityMonitor:
    """Monitor a deployed model: raise an alarm when the disparity of its decisions exceeds a limit.

    It may be looked at after every batch. As long as the disparity is within the limit, the chance
    that it ever raises an alarm is at most 1 - ``confidence``.

    Parameters
    ----------
    constraint : str, default="demographic_parity"
        The constraint: "demographic_parity", "equal_opportunity", "false_positive_parity",
        "false_negative_parity" or "equalized_odds".
    max_disparity : float, dict, str or path-like, default=None
        The limit on the difference of rates; None is 0.05 unless ``min_ratio`` is given. A dict has
        a limit for each attribute, ``{"sex": 0.05, "age": 0.08}``, None for no limit: groups are
        then compared within each attribute. The decision memo of a committee, as the path of its
        JSON file or as the dict in it, stands for the limit that was chosen; it must be about the
        same ``constraint``.
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
        with this many batches before it, at most ``horizon``. None limits the disparity itself.
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
    an approximation. Memory does not depend on the length of the stream, but with ``units`` the
    monitor and its stored state keep a number for each unit. A change to twice the
    limit, or to the square of ``min_ratio``, is what the monitor is tuned for. With
    ``reference_batches`` nothing is found before this many batches have been read, and a disparity
    that grows slowly, by less than the limit within them, is not found. A group that comes later
    has no evidence against it, and it takes part in what is bet from its first batch on, so it
    makes no false alarm more likely.

    With ``units`` a change is found by the people who are new since then: a panel of the same
    people says no more about the population after its first batch. The decisions of 300 people who
    stayed, a tenth of whom were replaced each month, led to a false alarm in 55% of streams of 60
    months without units, and in 0.3% with them. To count a person anew each year, pass units such
    as person and year: false alarms were 6% then if nobody was replaced, and the more often people
    count anew, the more there are. If the limit is on a change (``reference_batches``) and always
    the same people are watched, units are better left out, since what people are like cancels.
    Units are kept as hashes, which do not hide who they are from somebody who knows their names, so
    the stored state is personal data.

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
        max_disparity: Limit | Memo | None = None,
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
        if max_disparity is None and min_ratio is None:
            max_disparity = 0.05
        self.max_disparity: Limit | None = chosen_limit(max_disparity, constraint)
        self.constraint, self.min_ratio = constraint, min_ratio
        self.confidence, self.groups, self.pos_label = confidence, groups, pos_label
        self.horizon, self.min_rows, self.reference_batches = horizon, min_rows, reference_batches
        self.reference = reference
        check_settings(self._settings(), groups)
        self.alarm_: Alarm | None = None
        self.evidence_ = 0.0
        self.history_: list[stored.Point] = []
        self.new_groups_: list[stored.NewGroup] = []
        self._stride, self._pending = 1, LatePredictions()
        keys = [] if groups is None else named_groups(groups)
        nothing = GroupTable.of_keys(COLUMNS, keys, np.zeros((len(keys), 1, 2, 2)))
        self._seen = Comparison(self._settings(), nothing)
        if groups is not None and not self._seen.pairs.size:
            raise ValueError(
                f"A monitor compares two groups or more, got {listed(self._seen.names)}."
            )

    def __repr__(self) -> str:
        read = f"{self.n_rows_:,} rows, {self.n_batches_:,} batches"
        alarm = "no alarm" if self.alarm_ is None else f"alarm at batch {self.alarm_.batch}"
        limit = (
            f"{self.max_disparity!r}" if self.min_ratio is None else f"min_ratio={self.min_ratio}"
        )
        return f"DisparityMonitor({self.constraint!r}, {limit}): {read}, {alarm}"

    @property
    def n_rows_(self) -> int:
        """How many rows were read."""
        return self._seen.n_rows

    @property
    def n_batches_(self) -> int:
        """How many batches were read."""
        return self._seen.n_batches

    @property
    def status_(self) -> Literal["pass", "fail", "inconclusive"]:
        """Whether the limit is kept: "pass", "fail" or "inconclusive"."""
        windows = self._seen.windows
        if self.alarm_ is not None:
            return "fail"
        if windows.n_pairs and windows.starts.size and windows.reference_batches is None:
            kept = windows.log_kept(self._seen.limits_of_pairs).min()
            return "pass" if kept >= -np.log(1 - self.confidence) else "inconclusive"
        return "inconclusive"

    @property
    def rates_(self) -> dict[str, dict[str, float]]:
        """Each rate of each group, over all rows."""
        return self._seen.rates_by_name()

    @property
    def impact_ratios_(self) -> dict[str, dict[str, float]]:
        """Each rate of each group over that of the reference group, or else the highest one."""
        return self._seen.impact_ratios()

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _SETTINGS}

    def update(
        self,
        y_true: ColumnLike | None,
        y_pred: ColumnLike,
        sensitive_features: ColumnsLike,
        *,
        batch: Batch = None,
        units: ColumnLike | None = None,
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
        units : array-like of shape (n_samples,), default=None
            Which rows belong together, such as the person of each decision. The rows of a unit are
            evidence in the first batch that has it, and count as the number of independent rows
            that are as informative. Later rows of the unit count in ``rates_``,
            ``impact_ratios_`` and ``n_rows_`` only. If units are not given, every row is taken for
            another person, which makes false alarms likely where people repeat.

        Returns
        -------
        alarm : Alarm or None
            The first alarm of the monitor's life, if there has been one.
        """
        uses_y_true = LABEL_METRICS[f"{self.constraint}_difference"].uses_y_true
        if uses_y_true and y_true is None:
            raise ValueError(
                f"{self.constraint} needs y_true. If labels come later, use add_predictions and "
                "add_labels."
            )
        if is_lazy(y_true, y_pred, sensitive_features, units):
            raise TypeError("A batch is read in memory, got a Dask collection. compute() it.")
        batch = checked_batch(self.n_batches_ if batch is None else batch, self._seen.last)
        rows = evidence = self._seen.table.emptied()
        numbers: set[float] = set()
        if not is_empty(y_pred, sensitive_features, *([] if y_true is None else [y_true])):
            options = {"pos_label": self.pos_label, "ignores_true": not uses_y_true}
            known = self._seen.limit, options, units, self._seen.met
            rows, evidence, numbers = count_batch((y_true, y_pred), sensitive_features, *known)
            self._meet(rows, batch)
        self._seen.add(rows, batch, evidence)
        self._seen.met |= numbers
        self._look(batch)
        return self.alarm_

    def add_predictions(
        self,
        ids: ColumnLike,
        y_pred: ColumnLike,
        sensitive_features: ColumnsLike,
        *,
        units: ColumnLike | None = None,
    ) -> Self:
        """Note decisions whose true labels are not known yet.

        Parameters
        ----------
        ids : array-like of shape (n_samples,)
            What identifies each row.
        y_pred : array-like of shape (n_samples,)
            Decisions.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row; with a limit for each attribute, named columns.
        units : array-like of shape (n_samples,), default=None
            Which rows belong together, as in :meth:`update`.

        Returns
        -------
        self : DisparityMonitor
            The monitor; it keeps these rows until their labels are added.
        """
        if not is_empty(ids, y_pred, sensitive_features):
            self._pending.note(ids, y_pred, sensitive_features, self._seen.limit, units)
        return self

    def add_labels(
        self, ids: ColumnLike, y_true: ColumnLike, *, batch: Batch = None
    ) -> Alarm | None:
        """Read the true labels of rows that were noted before, as one batch.

        Parameters
        ----------
        ids : array-like of shape (n_samples,)
            What identifies each row.
        y_true : array-like of shape (n_samples,)
            Their true labels.
        batch : int, str, date or datetime, default=None
            Number or time of the batch.

        Returns
        -------
        alarm : Alarm or None
            The first alarm, if there has been one.
        """
        names = one_dimensional(ids, "ids", may_be_empty=True).tolist()
        y_pred, groups, units = self._pending.rows(names)
        alarm = self.update(y_true, y_pred, groups, batch=batch, units=units)
        for name in names:
            del self._pending[name]
        return alarm

    def merge(self, other: DisparityMonitor) -> DisparityMonitor:
        """Return a monitor of the rows of both, which watched the same time side by side.

        The rows of both together decide whether there is an alarm. Alarms of the two are not taken
        over: each of these has a chance of 1 - ``confidence`` to be false, and together more.

        Parameters
        ----------
        other : DisparityMonitor
            A monitor with the same settings; batches of the same number belong together. A group
            that only one of them knows is compared with the rows of that one. Rows of a unit that
            both have read are evidence twice, of which it is warned.

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
        made._pending.update({**other._pending, **self._pending})
        made._seen = self._seen + other._seen
        events = sorted([*self.new_groups_, *other.new_groups_], key=lambda event: event.batch)
        first_events = {event[1:]: event for event in reversed(events)}
        made.new_groups_ = sorted(first_events.values(), key=events.index)
        if made.n_batches_:
            made._look(made._seen.last)
        return made

    def to_prometheus(self) -> str:
        """Return the state as text for Prometheus.

        Returns
        -------
        text : str
            One gauge in a line. With a limit for each attribute, ``skfair_disparity`` and
            ``skfair_max_disparity`` have the label ``attribute``; with ``min_ratio`` they are
            called ``skfair_ratio`` and ``skfair_min_ratio``.
        """
        lines = stored.gauges(self, len(self._pending))
        return "".join(lines)

    def to_json(self) -> str:
        """Return the state as JSON.

        Returns
        -------
        text : str
            What :meth:`from_json` reads: everything, also predictions that wait for their labels.
        """
        state = {
            "settings": self._settings(),
            "stride": self._stride,
            "alarm": self.alarm_,
            "history": [[None if x != x else x for x in point] for point in self.history_],
            "new_groups": self.new_groups_,
            "pending": self._pending.to_list(),
        }
        return stored.write_text(state | self._seen.to_dict())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, which is replaced as a whole or not at all.

        Parameters
        ----------
        path : str or path-like
            The file that :meth:`load` reads; one that ends in ``.gz`` is compressed.
        """
        stored.write_file(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return a monitor in the state that was saved to a file.

        Parameters
        ----------
        path : str or path-like
            What :meth:`save` wrote.

        Returns
        -------
        monitor : DisparityMonitor
            It goes on where the other one stopped.
        """
        return cls.from_json(stored.read_file(path))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return a monitor in a stored state.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        monitor : DisparityMonitor
            It goes on where the other one stopped.
        """
        state = stored.read_text(text)
        try:
            made = cls(**state["settings"])
            made._restore(state)
        except stored.FAILURES as error:
            raise ValueError(
                f"The text is not the state of a monitor ({error!r:.200}). Pass what to_json "
                "returned."
            ) from error
        return made

    def _restore(self, state: dict[str, Any]) -> None:
        """Take over what was stored; raise for what no monitor can have seen."""
        if state["settings"].keys() != self._settings().keys():
            raise ValueError("The settings are not those of a monitor.")
        check_number(state["stride"], "stride", 1, MOST_ROWS, kind=int)
        self._stride = state["stride"]
        self._seen = Comparison.restored(self._settings(), state)
        self.evidence_ = self._seen.evidence()[0]
        if state["alarm"] is not None:
            self.alarm_ = stored.checked_alarm(state["alarm"], self._seen)
        self.history_ = stored.checked_history(state["history"], self._seen)
        self.new_groups_ = stored.checked_events(state["new_groups"], self._seen)
        self._pending.restore(state["pending"], self._seen.limit)

    def _meet(self, rows: GroupTable, batch: Any) -> None:
        """Compare more groups from a batch on: against them there is no evidence yet."""
        known = dict.fromkeys(self._seen.keys)
        newcomers = [key for key in rows.cells() if key not in known]
        if not newcomers:
            return
        seen = self._seen.with_groups(self._seen.table + rows.emptied())  # may raise
        warn_of_groups(newcomers, len(known), batch)
        if known:
            events = [stored.NewGroup(batch, *key) for key in newcomers]
            self.new_groups_ = self.new_groups_ + events
        self._seen = seen

    def _look(self, batch: Any) -> None:
        """Weigh the evidence after a batch."""
        self.evidence_, start, pair, sign = self._seen.evidence()
        if self.alarm_ is None and self.evidence_ >= -np.log(1 - self.confidence):
            self.alarm_ = self._seen.alarm(batch, start, pair, sign)
        limits = self._seen.limits
        if (self.n_batches_ - 1) % self._stride == 0:
            self.history_ += [(batch, *self._seen.recent(a), self.evidence_, a) for a in limits]
        if len(self.history_) > _MOST_POINTS * len(limits):
            kept = range(0, len(self.history_), 2 * len(limits))
            self.history_ = [row for k in kept for row in self.history_[k : k + len(limits)]]
            self._stride *= 2
