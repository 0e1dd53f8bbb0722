"""A monitor of decisions: batch after batch, an alarm when the disparity exceeds its limit.

``update`` reads a batch in four steps: ``count_batch`` counts its rows by group (``batches.py``),
``_meet`` adds groups that are new, ``Comparison.add`` adds the counts (``comparison.py``, with the
statistics in ``windows.py``), and ``_look`` weighs the evidence, raises the alarm and notes a point
of the history. ``add_predictions`` and ``add_labels`` split this in two if labels come late
(``late_labels.py``), and ``state.py`` writes and reads the stored form.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike
from skfair.groups.cohort import cohort_of, with_columns
from skfair.groups.cohort_calls import method_takes_cohort
from skfair.groups.compared_groups import Reference
from skfair.groups.limits import Limit
from skfair.groups.table import GroupTable
from skfair.metrics.own_metrics import GroupMetric
from skfair.monitoring import state as stored
from skfair.monitoring.batches import (
    Batch,
    check_settings,
    checked_batch,
    chosen_limit,
    compared_by,
    constraint_name,
    count_batch,
    is_empty,
    named_groups,
    warn_of_groups,
)
from skfair.monitoring.comparison import COLUMNS, MOST_ROWS, Alarm, Comparison
from skfair.monitoring.late_labels import LatePredictions
from skfair.records.decision_memo import Memo
from skfair.records.record import Paths, write_record
from skfair.utils.dask_collections import is_lazy
from skfair.utils.keywords import groups_by_name
from skfair.utils.text import listed
from skfair.utils.validation import check_number, one_dimensional

# If the history has more points than this, every second one is dropped, and from then on only every
# second batch is noted.
_MOST_POINTS = 512
# Parameters that monitors must share to be merged, and that are stored. ``levels`` is none of them:
# it only says which groups are expected.
_SETTINGS = (
    *("constraint", "max_disparity", "min_ratio", "confidence", "horizon"),
    *("min_group_size", "reference_batches", "reference", "pos_label"),
)


class DisparityMonitor:
    """Monitor a deployed model and raise an alarm if the disparity of its decisions is too large.

    The monitor reads the decisions batch by batch, and you may look at it after every batch. As
    long as the disparity in the population is within the limit, the probability that it ever raises
    an alarm is at most 1 - ``confidence``.

    Parameters
    ----------
    constraint : str or GroupMetric, default="demographic_parity"
        The fairness constraint on rates: "demographic_parity", "equal_opportunity",
        "false_positive_parity", "false_negative_parity", "equalized_odds", "predictive_parity",
        "false_omission_parity" or "accuracy_parity". Or ``make_group_metric`` of a metric of
        scikit-learn that is such a rate, or an F score: ``f1_score``, ``fbeta_score``,
        ``precision_score`` or ``recall_score``. No other metric has evidence that may be looked at
        after every batch.
    max_disparity : float, dict, str or path-like, default=None
        The limit on the difference of rates. If None, it is 0.05 unless ``min_ratio`` is given. A
        dict such as ``{"sex": 0.05, "age": 0.08}`` sets one limit for each attribute, which may be
        None for an attribute without a limit. Groups are then compared within each attribute. The
        decision memo of a committee can be passed as the path of its JSON file, or as the dict in
        this file. The limit that the committee chose is then used. The memo must be about the same
        ``constraint``.
    confidence : float, default=0.95
        Confidence level. The probability of a false alarm over the whole life of the monitor is at
        most 1 - ``confidence``.
    levels : sequence or dict, default=None
        Names of the expected groups. If there is one limit per attribute, pass a dict with the
        levels of each attribute. If None, the groups of the first batch are expected. A group that
        occurs later is compared from its first batch on.
    horizon : int, default=1000
        Expected number of batches. Changes within the horizon are found fastest. The memory of the
        monitor is proportional to the horizon and to the number of pairs of groups.
    pos_label : label, default=None
        The class that counts as positive. It may be None if the positive class is unambiguous,
        which is so for labels 0/1, -1/1 or booleans. Other labels, such as 1/2 or text, require it.
    min_ratio : float or dict, default=None
        The limit on the ratio of the lower to the higher rate, as an alternative to
        ``max_disparity``. For example, 0.8 is the four-fifths rule. It cannot be combined with
        ``reference_batches``.
    reference_batches : int, default=None
        If given, the limit applies to the change of the disparity. The batches after a change are
        compared with this number of batches before it, which must be at most ``horizon``. If None,
        the limit applies to the disparity itself.
    reference : {"pairwise"}, group or dict, default="pairwise"
        The group with which each other group is compared, such as ``"male"``. If there is one limit
        per attribute, pass a dict such as ``{"sex": "male"}``. Disparities then have a sign, and
        they are negative if the rate of the other group is lower. If "pairwise", all pairs of
        groups are compared.
    min_group_size : int, default=50
        Number of rows of each group that are collected before groups are compared.

    Attributes
    ----------
    alarm_ : Alarm or None
        The first alarm, or None if there was no alarm. Its attributes say when it was raised, when
        the change probably began, which groups differ, and by how much.
    evidence_ : float
        Natural logarithm of the evidence against the limit. An alarm is raised if it reaches
        ``-log(1 - confidence)``.
    status_ : {"pass", "fail", "inconclusive"}
        Result so far.

        - "pass": The data show that the mean disparity since the first batch is within the limit.
          The probability that this is ever wrong is at most 1 - ``confidence``. This status does
          not occur with ``reference_batches``.
        - "fail": There was an alarm.
        - "inconclusive": Neither has been shown.
    rates_ : dict of str to dict of str to float
        Each rate of each group, computed from all rows.
    impact_ratios_ : dict of str to dict of str to float
        Each rate of each group, divided by the rate of the reference group. If there is no
        reference group, it is divided by the highest rate.
    new_groups_ : list of (batch, attribute, group)
        Groups that first occurred after the first batch and are not listed in ``levels``.
    n_rows_ : int
        Number of rows that have been read.
    n_batches_ : int
        Number of batches that have been read.
    history_ : list of (batch, disparity, standard error, evidence, attribute)
        Course of the monitor for at most 512 batches. The disparity (or the ratio, with
        ``min_ratio``) is computed from about the last ten blocks of rows. If there is one limit per
        attribute, each batch has one entry for each attribute. Otherwise the attribute is an empty
        string.

    See Also
    --------
    skfair.metrics.disparity_test : Test for a single sample.
    skfair.inspection.MonitorDisplay : Plot of ``history_``.

    Notes
    -----
    Groups are compared in blocks of at least ``min_group_size`` rows. The differences of rates in
    these blocks are treated as normally distributed, which is an approximation. The monitor is
    tuned to find a change to twice the limit, or to the square of ``min_ratio``. With
    ``reference_batches``, no change is found before this number of batches has been read, and a
    disparity that grows by less than the limit within these batches is not found. There is no
    evidence against a new group at first, so new groups do not increase the probability of a false
    alarm.

    Memory does not depend on the length of the stream. With ``units``, however, the monitor and its
    stored state keep a number for each unit. This number is a hash, which does not hide a person
    from somebody who knows the name, so the stored state is personal data.

    With ``units``, only people who were not seen before count as evidence, because the same people
    add no information about the population. In a simulation with 300 people, a tenth of whom were
    replaced each month, there was a false alarm in 55% of the streams of 60 months without units,
    and in 0.3% with units. To count each person again every year, pass units that combine person
    and year. If nobody was replaced, false alarms then occurred in 6% of the streams, and they
    become more frequent if people are counted more often. Do not pass units if the limit is on a
    change (``reference_batches``) and the same people are observed all the time, because their
    differences then cancel.

    References
    ----------
    Robbins (1970), Statistical methods related to the law of the iterated logarithm; Howard,
    Ramdas, McAuliffe and Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence
    sequences; Shin, Ramdas and Rinaldo (2024), E-detectors.

    Examples
    --------
    The selection rate of one group rises by 15 points in batch 20. The monitor names the group and
    the batch.

    >>> import numpy as np
    >>> from skfair.monitoring import DisparityMonitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = DisparityMonitor("demographic_parity", 0.05)
    >>> for batch in range(60):
    ...     sex = rng.choice(["f", "m"], 1000)
    ...     is_higher = (sex == "m") & (batch >= 20)
    ...     y_pred = (rng.random(1000) < 0.3 + 0.15 * is_higher).astype(int)
    ...     _ = monitor.update(None, y_pred, sensitive_features=sex)
    >>> alarm = monitor.alarm_
    >>> print(f"{alarm.higher} is higher since batch {alarm.since}, found in batch {alarm.batch}")
    m is higher since batch 20, found in batch 23
    """

    def __init__(
        self,
        constraint: str | GroupMetric = "demographic_parity",
        max_disparity: Limit | Memo | None = None,
        confidence: float = 0.95,
        *,
        levels: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
        horizon: int = 1000,
        pos_label: ClassLabel = None,
        min_ratio: Limit | None = None,
        reference_batches: int | None = None,
        reference: Reference = "pairwise",
        min_group_size: int = 50,
    ) -> None:
        if max_disparity is None and min_ratio is None:
            max_disparity = 0.05
        name: str = constraint_name(constraint, min_ratio is not None)
        self.max_disparity: Limit | None = chosen_limit(max_disparity, name)
        self.constraint, self.min_ratio = name, min_ratio
        self.confidence, self.levels, self.pos_label = confidence, levels, pos_label
        self.horizon, self.min_group_size = horizon, min_group_size
        self.reference_batches = reference_batches
        self.reference = reference
        check_settings(self._settings(), levels)
        self.alarm_: Alarm | None = None
        self.evidence_ = 0.0
        self.history_: list[stored.Point] = []
        self.new_groups_: list[stored.NewGroup] = []
        # Every how many batches the history has a point, and the predictions that wait for labels
        self._stride, self._pending = 1, LatePredictions()
        keys = [] if levels is None else named_groups(levels)
        nothing = GroupTable.of_keys(COLUMNS, keys, {"weights": np.zeros((len(keys), 2, 2))})
        self._seen = Comparison(self._settings(), nothing)
        if levels is not None and not self._seen.pairs.size:
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
        """Number of rows that have been read."""
        return self._seen.n_rows

    @property
    def n_batches_(self) -> int:
        """Number of batches that have been read."""
        return self._seen.n_batches

    @property
    def status_(self) -> Literal["pass", "fail", "inconclusive"]:
        """Result so far, which is "pass", "fail" or "inconclusive"."""
        windows = self._seen.windows
        if self.alarm_ is not None:
            return "fail"
        if windows.n_pairs and windows.starts.size and windows.reference_batches is None:
            kept = windows.log_kept(self._seen.limits_of_pairs).min()
            return "pass" if kept >= -np.log(1 - self.confidence) else "inconclusive"
        return "inconclusive"

    @property
    def rates_(self) -> dict[str, dict[str, float]]:
        """Each rate of each group, computed from all rows."""
        return self._seen.rates_by_name()

    @property
    def impact_ratios_(self) -> dict[str, dict[str, float]]:
        """Each rate of each group, divided by the reference rate or the highest rate."""
        return self._seen.impact_ratios()

    def _settings(self) -> dict[str, Any]:
        """Return the parameters that ``merge`` and ``to_json`` need."""
        return {name: getattr(self, name) for name in _SETTINGS}

    @method_takes_cohort
    def update(
        self,
        y_true: ColumnLike | None,
        y_pred: ColumnLike,
        *,
        sensitive_features: ColumnsLike,
        batch: Batch = None,
        units: ColumnLike | None = None,
    ) -> Alarm | None:
        """Read the decisions of a batch.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            True labels. They may be None if the constraint does not use them.
        y_pred : array-like of shape (n_samples,)
            Predicted labels, which are the decisions.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            Sensitive attributes, which define the group of each row. If there is one limit per
            attribute, pass a table with named columns.
        batch : int, str, date or datetime, default=None
            Number or time of the batch, which must be larger than for earlier batches. If None,
            batches are numbered from 0. A batch without rows also counts as a batch.
        units : array-like of shape (n_samples,), default=None
            Identifier of the unit that each row belongs to, such as a person with several
            decisions. The rows of a unit count as evidence only in the first batch in which the
            unit occurs. There they count as the number of independent rows with the same
            information. If a unit has rows in several groups, such as one CV under two names, what
            their rates have in common is learned from earlier batches. Later rows of the unit only
            count in ``rates_``, ``impact_ratios_`` and ``n_rows_``. If None, each row is treated as
            a different person, which makes false alarms likely if people occur repeatedly.

        Returns
        -------
        alarm : Alarm or None
            The first alarm of the monitor, or None if there has been no alarm.
        """
        people = cohort_of(y_true, y_pred, sensitive_features=sensitive_features, units=units)
        if people.pos_label is not None and people.pos_label != self.pos_label:
            raise ValueError(
                f"The monitor has pos_label={self.pos_label!r} and the batch {people.pos_label!r}. "
                "Make the monitor with the positive class of its batches."
            )
        people = with_columns(people, pos_label=self.pos_label)
        spec = compared_by(self.constraint)
        if spec.uses_y_true and people.y_true is None:
            raise ValueError(
                f"{self.constraint} needs y_true. If labels come later, use add_predictions and "
                "add_labels."
            )
        given = people.y_pred, people.sensitive_features, people.y_true, people.units
        if is_lazy(*given):
            raise TypeError("A batch is read in memory, got a Dask collection. compute() it.")
        batch = checked_batch(self.n_batches_ if batch is None else batch, self._seen.last)
        rows = evidence = self._seen.table.emptied()
        numbers: set[float] = set()
        digest = ""
        if not is_empty(*given[: 2 + (people.y_true is not None)]):
            known = self._seen.limit, spec.counted, self._seen.met, self._seen.last_rows
            counted = count_batch(people, *known)
            rows, evidence, numbers, digest = counted
            self._meet(rows, batch)  # raises before anything of the batch is kept
        self._seen.add(rows, batch, evidence)
        self._seen.met |= numbers
        self._seen.last_rows = digest
        self._look(batch)
        return self.alarm_

    @groups_by_name
    def add_predictions(
        self,
        ids: ColumnLike,
        y_pred: ColumnLike,
        *,
        sensitive_features: ColumnsLike,
        units: ColumnLike | None = None,
    ) -> Self:
        """Store decisions whose true labels are not known yet.

        Parameters
        ----------
        ids : array-like of shape (n_samples,)
            Unique identifiers of the rows.
        y_pred : array-like of shape (n_samples,)
            Predicted labels, which are the decisions.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            Sensitive attributes, which define the group of each row. If there is one limit per
            attribute, pass a table with named columns.
        units : array-like of shape (n_samples,), default=None
            Identifier of the unit that each row belongs to, as in :meth:`update`.

        Returns
        -------
        self : DisparityMonitor
            The monitor, which keeps these rows until their labels are added.
        """
        if not is_empty(ids, y_pred, sensitive_features):
            self._pending.note(ids, y_pred, sensitive_features, self._seen.limit, units)
        return self

    def add_labels(
        self, ids: ColumnLike, y_true: ColumnLike, *, batch: Batch = None
    ) -> Alarm | None:
        """Read the true labels of stored decisions as one batch.

        Parameters
        ----------
        ids : array-like of shape (n_samples,)
            Identifiers of the rows, as in :meth:`add_predictions`.
        y_true : array-like of shape (n_samples,)
            True labels of these rows.
        batch : int, str, date or datetime, default=None
            Number or time of the batch, as in :meth:`update`.

        Returns
        -------
        alarm : Alarm or None
            The first alarm of the monitor, or None if there has been no alarm.
        """
        names = one_dimensional(ids, "ids", may_be_empty=True).tolist()
        y_pred, groups, units = self._pending.rows(names)
        alarm = self.update(y_true, y_pred, sensitive_features=groups, batch=batch, units=units)
        for name in names:
            del self._pending[name]
        return alarm

    def merge(self, other: DisparityMonitor) -> DisparityMonitor:
        """Merge two monitors that observed the same period in parallel.

        The combined rows decide if there is an alarm. Alarms of the two monitors are not kept,
        because each of them is false with a probability of up to 1 - ``confidence``, and the
        probability that one of the two is false is larger.

        Parameters
        ----------
        other : DisparityMonitor
            A monitor with the same settings. Batches with the same number are combined. A group
            that occurs in only one monitor is compared with the rows of this monitor. If both
            monitors have read rows of the same unit, these count twice as evidence, and a warning
            is raised.

        Returns
        -------
        merged : DisparityMonitor
            A new monitor with the rows of both.
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
        # If both monitors met a new group, the earlier event stays.
        first_events = {event[1:]: event for event in reversed(events)}
        made.new_groups_ = sorted(first_events.values(), key=events.index)
        if made.n_batches_:
            made._look(made._seen.last)
        return made

    def to_prometheus(self) -> str:
        """Return the state in the text format of Prometheus.

        Returns
        -------
        text : str
            Text with one gauge per line. If there is one limit per attribute, ``skfair_disparity``
            and ``skfair_max_disparity`` have the label ``attribute``. With ``min_ratio``, they are
            called ``skfair_ratio`` and ``skfair_min_ratio``.
        """
        lines = stored.gauges(self, len(self._pending))
        return "".join(lines)

    def to_json(self) -> str:
        """Return the state as JSON.

        Returns
        -------
        text : str
            The complete state for :meth:`from_json`, which includes predictions that wait for
            their labels.
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
        """Write the state to a file for :meth:`load`.

        An existing file is replaced completely. If the writing fails, it stays as it was.

        Parameters
        ----------
        path : str or path-like
            Path of the file. It is compressed if the name ends in ``.gz``.
        """
        stored.write_file(path, self.to_json())

    def record(
        self, path: str | os.PathLike[str], *, after: Paths = (), force: bool = False
    ) -> None:
        """Write a record of what the monitor has found, as a link in a chain of evidence.

        The record is a JSON file with the settings, the status, the alarm, the rates, the numbers
        of rows and batches, the versions of the packages, and the SHA-256 of the files that came
        before it. It has no rows and no predictions that wait for labels. ``python -m skfair verify
        record.json --data monitor.json`` compares it with the monitor that :meth:`save` wrote to
        ``monitor.json``. See :doc:`/how_to/records`.

        Parameters
        ----------
        path : str or path-like
            File to write, whose name ends in ``.json``.
        after : str, path-like or sequence of these, default=()
            Files that came before, such as the record of the audit, or the monitor's record of last
            month.
        force : bool, default=False
            Whether to replace a record that exists already.
        """
        write_record(path, stored.KIND, stored.parts_of(self), after, force=force)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return a monitor in the state that was saved to a file.

        Parameters
        ----------
        path : str or path-like
            Path of a file that :meth:`save` wrote.

        Returns
        -------
        monitor : DisparityMonitor
            A monitor that continues from the saved state.
        """
        return cls.from_json(stored.read_file(path))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return a monitor in a stored state.

        Parameters
        ----------
        text : str
            The text that :meth:`to_json` returned.

        Returns
        -------
        monitor : DisparityMonitor
            A monitor that continues from the stored state.
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
        """Take over the state that ``to_json`` wrote; raise if no monitor can have this state."""
        if state["settings"].keys() != self._settings().keys():
            given = sorted(state["settings"])
            raise ValueError(f"The state has the settings {given}, which no monitor writes.")
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
        """Add the groups of a batch that the monitor does not know, and warn of them.

        They are compared from this batch on, and there is no evidence against them yet.
        """
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
        """Weigh the evidence after a batch: raise the first alarm, and note a point in the history.

        A point has one entry for each attribute with a limit, so these entries stay together when
        points are dropped.
        """
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
