"""Groups of so few people that their numbers say something about single ones: these are hidden.

Rows of an attribute's group that is too small are left out of all numbers. A crossed group that is
too small is hidden, and so are others from which, together with all sums that are shown, it could
be computed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from skfair._typing import BoolArray, FloatArray
from skfair.groups.table import GroupTable
from skfair.report.options import Options
from skfair.report.subgroups import Table, tables_of
from skfair.report.views import View, views_of
from skfair.utils.rounding import SUM_ROUNDING

HIDDEN = "hidden"


def without_small(sample: GroupTable, least: float) -> tuple[GroupTable, list[tuple[str, str]]]:
    """Leave out the rows of groups of an attribute that are too small to be shown; list these."""
    left_out: list[tuple[str, str]] = []
    while True:
        is_small = {}
        for place, name in enumerate(sample.attributes):
            counts = np.bincount(sample.codes[:, place], sample.counts, len(sample.levels[name]))
            is_small[name] = (counts > 0) & (counts < least)
            left_out += [
                (name, str(sample.levels[name][i])) for i in np.flatnonzero(is_small[name])
            ]
        if not any(own.any() for own in is_small.values()):
            return sample, left_out

        def kept(table: GroupTable, is_small: dict[str, BoolArray] = is_small) -> GroupTable:
            columns = zip(is_small.values(), table.codes.T, strict=False)
            return table.only(~np.any([own[codes] for own, codes in columns], axis=0))

        scores = None if sample.scores is None else kept(sample.scores)
        sample = replace(kept(sample), scores=scores)
        if not sample.counts.size:
            raise ValueError(
                f"No group has {least:g} rows, and smaller ones are not shown. Pass "
                "suppress_below=1 for a report that nobody else sees."
            )


class Shown:
    """What of a sample may be shown, so that no group of few people can be computed from it.

    A sum over some of the crossed groups is a row of ones and zeros. Rows that are shown span what
    can be computed; groups that are too small must stay outside of it.
    """

    def __init__(self, sample: GroupTable, options: Options) -> None:
        self.sample, left_out = without_small(sample, options.suppress_below)
        self._options, n_rows = options, self.sample.counts
        self.views = views_of(self.sample, options)
        is_listed = len(self.views) > len(self.sample.attributes)
        self._crossing = self.views[-1] if is_listed else None
        if self._crossing is not None and n_rows.min() < options.suppress_below:
            self._find_secrets(self._crossing)
            self.views = list(map(self._hidden, self.views))
        crossed = [
            (view.name, name) for view in self.views
            for name, apart in zip(view.names, view.apart, strict=True) if apart == HIDDEN
        ]  # fmt: skip
        self.hidden = pd.DataFrame([*left_out, *crossed], columns=["view", "group"])

    def _find_secrets(self, crossing: View) -> None:
        """List the groups that nobody may compute: small ones, and all small ones of a group."""
        options, units = self._options, np.eye(len(crossing.names))
        is_small = crossing.n_rows < options.suppress_below
        small, self._known = [*units[is_small]], units[:0]
        for own in tables_of(self.sample, options.depth, 0):
            rows = [self._row(own.codes == i) for i in range(own.n_groups)]
            small += [*rows, *(row * is_small for row in rows)]
        n_rows = np.array(small) @ crossing.n_rows
        self._secret = np.array(small)[(n_rows > 0) & (n_rows < options.suppress_below)]
        self._admits(np.ones(len(units)))

    def _row(self, is_inside: BoolArray) -> FloatArray:
        """Return which crossed groups some cells of the sample are in."""
        assert self._crossing is not None
        n_cells = len(self._crossing.names)
        return (np.bincount(self._crossing.codes, is_inside, n_cells) > 0).astype(float)

    def _admits(self, row: FloatArray) -> bool:
        """Show a sum, unless a small group could be computed then."""
        new = row - self._known.T @ (self._known @ row)
        new -= self._known.T @ (self._known @ new)
        length = np.linalg.norm(new)
        if length < SUM_ROUNDING:
            return True
        new /= length
        secret = self._secret - np.outer(self._secret @ new, new)
        if (np.linalg.norm(secret, axis=1) < SUM_ROUNDING).any():
            return False
        self._secret, self._known = secret, np.vstack([self._known, new])
        return True

    def _hidden(self, view: View) -> View:
        """Hide groups of a view; larger ones are shown first."""
        apart = view.apart.copy()
        for i in np.argsort(-view.n_rows, kind="stable").tolist():
            is_small = view.n_rows[i] < self._options.suppress_below
            if is_small or not self._admits(self._row(view.codes == i)):
                apart[i] = HIDDEN
        return view._replace(apart=apart)

    def without_hidden(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table of groups without those that are hidden."""
        if not len(table) or not len(self.hidden):
            return table
        groups = pd.MultiIndex.from_frame(table[["view", "group"]])
        return table[~groups.isin(pd.MultiIndex.from_frame(self.hidden))].reset_index(drop=True)

    def subgroups(self, tables: list[Table], table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of subgroups that may be shown as well.

        If crossed groups are not listed, these are subgroups by attributes none of whose
        intersections is too small.
        """
        n_rows, options = self.sample.counts, self._options
        if not len(table) or n_rows.min() >= options.suppress_below:
            return table
        is_open = dict.fromkeys(table["subgroup"], False)
        for own in tables:
            least = np.bincount(own.codes, n_rows, own.n_groups).min()
            for place, name in zip(own.kept, own.names, strict=True):
                if name in is_open and self._crossing is not None:
                    is_open[name] = self._admits(self._row(own.codes == place))
                elif name in is_open:
                    is_open[name] = bool(least >= options.suppress_below)
        return table[table["subgroup"].map(is_open)].reset_index(drop=True)
