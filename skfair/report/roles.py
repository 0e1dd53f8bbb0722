"""The views of an audit, and which of their groups are compared: known and large enough ones."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.groups.encoding import encode_groups
from skfair.groups.reference import read_reference
from skfair.report.moments import Moments
from skfair.report.options import Options
from skfair.report.rules import RULES
from skfair.report.tally import Tally

# A crossing with more groups than this is not listed; the search of subgroups covers it.
MOST_CROSSED = 100


class View(NamedTuple):
    """Groups by one attribute, or by several crossed."""

    name: str
    attributes: list[str]
    names: list[str]
    codes: IntArray  # group of each cell of the tally
    n_rows: FloatArray
    apart: Any  # why each group is not compared: "unknown", "small", or "" for one that is
    reference: int | None  # the group that has the reference level of each attribute

    def merged(self, cells: Moments) -> Moments:
        """Add up the cells of each group."""
        return cells.merged(self.codes, len(self.names))

    def rates(self, measure: str, value: Any, low: Any, high: Any) -> pd.DataFrame:
        """Return a table of one measure with its interval."""
        columns = {"view": self.name, "group": self.names, "n": self.n_rows, "measure": measure}
        ends = {"value": value, "value_low": low, "value_high": high, "apart": self.apart}
        return pd.DataFrame({**columns, **ends})


def views_of(tally: Tally, options: Options) -> list[View]:
    """List the attributes, and their crossing unless it has too many groups."""
    reference = read_reference(
        options.reference, {name: tally.levels[name] for name in tally.sensitive}
    )
    share = 0.0 if options.preset is None else RULES[options.preset].least_share
    views = []
    crossed = [tally.sensitive] if len(tally.sensitive) > 1 else []
    for attributes in [*([name] for name in tally.sensitive), *crossed]:
        groups = encode_groups(tally.columns(attributes), n_samples=tally.n_rows.size)
        if attributes in crossed and groups.n_groups > MOST_CROSSED:
            continue
        codes = groups.codes[0]
        n_rows = np.asarray(np.bincount(codes, tally.n_rows, groups.n_groups), float)
        is_unknown = np.zeros(groups.n_groups, bool)
        for name in attributes:
            is_unknown[codes[_has_level(tally, name, options.unknown)]] = True
        is_small = n_rows < max(options.min_group_size, share * n_rows[~is_unknown].sum())
        apart = np.where(is_unknown, "unknown", np.where(is_small, "small", ""))
        place = None
        if set(attributes) <= set(reference):
            own = [_has_level(tally, name, {reference[name]}) for name in attributes]
            place = next(iter(codes[np.all(own, axis=0)].tolist()), None)
        name = " x ".join(attributes)
        names = list(groups.names)
        views.append(View(name, attributes, names, codes, n_rows, apart.astype(object), place))
    return views


def _has_level(tally: Tally, name: str, levels: Collection[str]) -> BoolArray:
    """Return which cells have one of some levels of an attribute."""
    has_level = np.array([str(level) in levels for level in tally.levels[name]], bool)
    return has_level[tally.codes[:, list(tally.levels).index(name)]]
