"""Disparity over time: the history of a monitor (``DisparityMonitor.history_``)."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skfair.groups.compared_groups import names_group
from skfair.inspection._display import AxesOrNone, Display, documented
from skfair.inspection._style import GREY, draw_line, look, marker_of_few, plain, with_name
from skfair.utils.text import listed
from skfair.utils.validation import check_number, check_numbers, check_scores


@documented
class MonitorDisplay(Display):
    """Disparity of decisions over time, with the limit and the alarm.

    The line shows the disparity of the most recent rows, and the band shows two standard errors
    above and below it. The disparity is signed if there is a reference group, and it is a ratio if
    ``min_ratio`` is given.

    It is recommended to create the display with :meth:`from_monitor`.

    Parameters
    ----------
    disparities : array-like of shape (n_batches,)
        The disparity after each batch. It is NaN until two groups have enough rows to be compared,
        which are ``min_group_size`` of a :class:`~skfair.monitoring.DisparityMonitor`.
    standard_errors : array-like of shape (n_batches,)
        The standard error of each disparity.
    max_disparity : float or None
        The limit. If None, no limit is drawn.
    min_ratio : float, default=None
        The limit of ratios. If given, ratios are drawn, and it replaces ``max_disparity``.
    reference : str, default=None
        Name of the group with which other groups are compared. If None, disparities have no sign.
    alarm_at : int, default=None
        Position of the batch at which the alarm was raised, counted from 0.
    batches : array-like of shape (n_batches,), default=None
        Numbers of the batches, if not all of them are given. If None, batches are counted from 0.
    attribute : str, default=None
        Name of the attribute whose groups are compared, for the legend.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The line of the disparity.

    See Also
    --------
    skfair.monitoring.DisparityMonitor : Monitor whose ``history_`` is drawn.

    Examples
    --------
    >>> from skfair.inspection import MonitorDisplay
    >>> display = MonitorDisplay(
    ...     disparities=[0.02, 0.03, 0.1], standard_errors=[0.01, 0.01, 0.01], max_disparity=0.05
    ... ).plot()
    >>> display.ax_.get_ylabel()
    'Disparity (lower is better)'
    """

    def __init__(
        self,
        *,
        disparities: ArrayLike,
        standard_errors: ArrayLike,
        max_disparity: float | None,
        alarm_at: int | None = None,
        batches: ArrayLike | None = None,
        attribute: str | None = None,
        min_ratio: float | None = None,
        reference: str | None = None,
    ) -> None:
        self.disparities = np.atleast_1d(check_numbers(disparities, "disparities"))
        self.standard_errors = np.atleast_1d(check_numbers(standard_errors, "standard_errors"))
        if self.disparities.ndim > 1 or self.standard_errors.ndim > 1:
            raise ValueError("disparities and standard_errors must have one number of each batch.")
        self.batches = np.arange(self.disparities.size, dtype=np.float64)
        if batches is not None:
            self.batches = check_scores(batches, "batches")
        self._check_same_length("batch", "disparities", "standard_errors", "batches")
        self.max_disparity, self.alarm_at, self.attribute = max_disparity, alarm_at, attribute
        self.min_ratio, self.reference = min_ratio, reference

    @classmethod
    def from_monitor(
        cls, monitor: Any, *, attribute: str | None = None, ax: AxesOrNone = None
    ) -> Self:
        """Draw the history of a monitor.

        Parameters
        ----------
        monitor : DisparityMonitor
            The monitor. If it has ``reference_batches``, its limit applies to the change of the
            disparity and not to the disparity itself, so the limit is not drawn.
        attribute : str, default=None
            The attribute to draw, if the monitor has limits for several attributes. Use ``ax`` to
            draw several attributes on the same axes.
        """
        cls._needs_matplotlib("from_monitor")
        try:
            history, alarm, ratio = monitor.history_, monitor.alarm_, monitor.min_ratio
        except AttributeError as error:
            raise TypeError(f"monitor must be a DisparityMonitor, got {monitor!r}.") from error
        if not history:
            raise ValueError("The monitor has not read a batch yet.")
        known = list(dict.fromkeys(point[4] for point in history))
        wanted = known[0] if attribute is None and len(known) == 1 else attribute
        if wanted not in known:
            raise ValueError(
                f"attribute={attribute!r} is none of those with a limit, {listed(known)}. Choose "
                "one."
            )
        points = [point for point in history if point[4] == wanted]
        batches = [point[0] for point in points]
        at = None
        if alarm is not None:
            # The history may lack the batch of the alarm. Then the next batch in it is used, or the
            # last one.
            last = len(batches) - 1
            at = next((i for i, number in enumerate(batches) if number >= alarm.batch), last)
        of_attribute, ratio = (
            limit[wanted] if isinstance(limit, Mapping) else limit
            for limit in (monitor.max_disparity, ratio)
        )
        display = cls(
            disparities=[point[1] for point in points],
            standard_errors=[point[2] for point in points],
            max_disparity=None if monitor.reference_batches else of_attribute,
            min_ratio=ratio,
            reference=_name_of(monitor.reference, wanted or ""),
            alarm_at=at,
            batches=batches if all(isinstance(number, Real) for number in batches) else None,
            attribute=wanted or None,
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: AxesOrNone = None) -> Self:
        """Draw the disparity over time.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a new figure is created.
        """
        if self.max_disparity is not None:
            check_number(self.max_disparity, "max_disparity", 0.0)
        if self.min_ratio is not None:
            check_number(self.min_ratio, "min_ratio", 1e-6, 1)
        if self.alarm_at is not None:
            check_number(self.alarm_at, "alarm_at", 0, self.batches.size - 1, Integral)
        ax, start = self._start(ax)
        style, table = look(start), self._table()
        marker = marker_of_few(style, int(np.isfinite(self.disparities).sum()))
        options = {"marker": marker, "label": with_name(self.attribute, "recent")}
        batches, ends = table["batch"], (table["lower"], table["upper"])
        self.line_ = draw_line(ax, batches, table["disparity"], style, {}, **options)
        ax.fill_between(batches, *ends, color=style.color, alpha=0.2, lw=0)
        what = "Disparity (lower is better)"
        if self.reference is not None:
            what = f"Difference from {self.reference} (0 is parity)"
        if self.min_ratio is not None:
            what = f"Ratio to {self.reference or 'highest rate'} (1 is parity)"
        label: str | None = with_name(self.attribute, "limit")
        for limit in filter(np.isfinite, self._limits()):
            ax.axhline(limit, color=GREY, lw=0.8, label=label)
            label = None
        for batch in batches[table["is_alarm"]]:
            ax.axvline(batch, color=look(1).color, ls="--", label="alarm")
        ax.set(xlabel="Batch", ylabel=plain(what))
        ax.legend()
        return self

    def _table(self) -> pd.DataFrame:
        low, high = self.disparities + np.multiply.outer([-2, 2], self.standard_errors)
        if self.reference is None or self.min_ratio is not None:
            low = np.maximum(low, 0)
        limit, other = self._limits()
        columns = {
            "batch": self.batches,
            "disparity": self.disparities,
            "lower": low,
            "upper": high,
            "limit": limit,
            "limit_on_other_side": other,
            "is_alarm": np.arange(self.batches.size) == self.alarm_at,
        }
        return pd.DataFrame(columns)

    def _limits(self) -> tuple[float, float]:
        """Return the limit, and the one on the other side if disparities have signs, else NaN."""
        limit = np.nan if self.max_disparity is None else self.max_disparity
        other = -limit
        if self.min_ratio is not None:
            limit, other = self.min_ratio, 1 / self.min_ratio
        return limit, other if self.reference else np.nan


def _name_of(reference: Any, attribute: str) -> str | None:
    """Return the name of the reference group of an attribute, or None.

    The attribute is "" if groups are intersections.
    """
    if isinstance(reference, Mapping):
        levels = [reference.get(attribute)] if attribute else list(reference.values())
        return None if levels[0] is None else ", ".join(map(str, levels))
    return None if not names_group(reference) else str(reference)
