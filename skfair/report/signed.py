"""Each group against the reference group: who is lower, and by how much."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from skfair._typing import FloatArray
from skfair.metrics.intervals import difference_interval
from skfair.report.moments import Moments
from skfair.report.options import Options
from skfair.report.roles import View
from skfair.report.tally import Tally
from skfair.report.tasks import BEFORE
from skfair.utils.rounding import ROUNDING


def signed_table(
    tally: Tally,
    views: list[View],
    options: Options,
    chance: Mapping[tuple[str, str, frozenset[str]], tuple[float, float]],
) -> pd.DataFrame:
    """Return every measure of every group minus that of the reference group, with an interval.

    The table is empty without a reference group. ``chance`` has the p-value of each pair, covering
    all pairs, so that no verdict contradicts that of a gap, and above which difference it is beyond
    chance. Intervals agree with it: they hold 0 exactly if chance explains the difference.
    """
    tables = [
        _against(view.merged(cells), view, view.reference, options).assign(measure=measure)
        for view in views
        if view.reference is not None and not view.apart[view.reference]
        for measure, cells in tally.moments.items()
        if not measure.startswith(BEFORE)
    ]
    if not tables:
        return pd.DataFrame()
    table = pd.concat(tables, ignore_index=True)
    pairs = map(frozenset, zip(table["group"], table["reference"], strict=True))
    keys = zip(table["view"], table["measure"], pairs, strict=True)
    by_chance = [chance.get(key, (np.nan, np.nan)) for key in keys]
    p_values, noise = np.reshape(by_chance, (-1, 2)).T
    return _agreeing(table.assign(p_value=p_values), noise, 1 - options.confidence)


def _agreeing(table: pd.DataFrame, noise: FloatArray, level: float) -> pd.DataFrame:
    """Move the ends of intervals that disagree with the p-value of the same difference."""
    p_values, difference = table["p_value"].to_numpy(), table["difference"].to_numpy()
    low, high = table["difference_low"].to_numpy(), table["difference_high"].to_numpy()
    is_beyond = p_values <= level + ROUNDING
    is_tested = np.isfinite(p_values) & np.isfinite(difference)
    surplus = np.sign(difference) * np.minimum(np.abs(difference) - noise, np.abs(difference))
    is_up, is_down = is_beyond & (difference > 0), is_beyond & (difference < 0)
    low = np.where(is_tested & ~is_beyond, np.minimum(low, 0.0), low)
    high = np.where(is_tested & ~is_beyond, np.maximum(high, 0.0), high)
    return table.assign(
        difference_low=np.where(is_up & (low <= 0), surplus, low),
        difference_high=np.where(is_down & (high >= 0), surplus, high),
    )


def _against(moments: Moments, view: View, place: int, options: Options) -> pd.DataFrame:
    """Compare the groups of one view by one measure."""
    values = moments.means
    low, high = difference_interval(values, *moments.interval(options.confidence), place)
    table = pd.DataFrame(
        {
            "view": view.name,
            "group": view.names,
            "reference": view.names[place],
            "value": values,
            "reference_value": values[place],
            "difference": values - values[place],
            "difference_low": low,
            "difference_high": high,
        }
    )
    kept: pd.DataFrame = table[(view.apart == "") & (np.arange(len(table)) != place)]
    return kept
