"""Which groups are compared: those that are known and large enough, and the reference group."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from skfair._typing import BoolArray, IntArray
from skfair.report.options import Options
from skfair.report.rules import RULES
from skfair.report.tally import Tally


class View(NamedTuple):
    """Groups by one attribute, or by several crossed."""

    name: str
    attributes: list[str]
    names: list[str]
    codes: IntArray  # group of each cell of the tally


def set_apart(tally: Tally, view: View, options: Options) -> list[str]:
    """Return for each group why it is not compared: "unknown", "small", or "" for one that is."""
    n_rows = np.bincount(view.codes, tally.n_rows, len(view.names))
    is_unknown = unknown_groups(tally, view, options.unknown)
    share = 0.0 if options.preset is None else RULES[options.preset].least_share
    is_small = n_rows < max(options.min_group_size, share * n_rows[~is_unknown].sum())
    return list(np.where(is_unknown, "unknown", np.where(is_small, "small", "")))


def reference_group(tally: Tally, view: View, reference: dict[str, str]) -> int | None:
    """Return the group of a view that has the reference level of each of its attributes."""
    if not set(view.attributes) <= set(reference):
        return None
    is_reference = np.ones(tally.n_rows.size, bool)
    for name in view.attributes:
        is_reference &= _has_level(tally, name, {reference[name]})
    places = view.codes[is_reference]
    return int(places[0]) if places.size else None


def unknown_groups(tally: Tally, view: View, unknown: frozenset[str]) -> BoolArray:
    """Return which groups of a view are unknown in one of its attributes."""
    is_unknown = np.zeros(len(view.names), bool)
    for name in view.attributes:
        is_unknown[view.codes[_has_level(tally, name, unknown)]] = True
    return is_unknown


def _has_level(tally: Tally, name: str, levels: Collection[str]) -> BoolArray:
    """Return which cells have one of some levels of an attribute."""
    has_level = np.array([str(level) in levels for level in tally.levels[name]], bool)
    return has_level[tally.codes[:, list(tally.levels).index(name)]]
