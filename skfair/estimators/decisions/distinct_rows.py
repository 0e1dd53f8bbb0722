"""Rows in an order that names and the order in which they were passed say nothing of.

Searches for decisions by estimated groups are chaotic: rounding errors alone change what is found.
So copies of a row become one with their weight, and rows and groups are sorted by what is known of
them. What is found is put back with :meth:`DistinctRows.as_passed`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.estimators.decisions.bind import LabelledRows

# Probabilities are searched with this many digits. Those of rows in another order differ by up to
# 2e-13, and a search from there by 5 points of accuracy (800 rows, four groups).
_DIGITS = 9


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Distinct rows in order, what models say of them, and from where they come."""

    rows: LabelledRows
    own: IntArray  # (n_distinct,): the decisions of the model itself
    chances: FloatArray  # (n_distinct, n_classes): probabilities of the classes
    joint: FloatArray  # (n_distinct, n_groups, n_classes): P(group and class | row)
    kinds: IntArray  # (n_samples,): which of them each row is
    places: IntArray  # (n_groups,): the place of each group

    @classmethod
    def of(
        cls, rows: LabelledRows, own: IntArray, chances: FloatArray, joint: FloatArray
    ) -> DistinctRows:
        """Return the distinct ones of some rows, and their groups, in order."""
        chances, joint = np.round(chances, _DIGITS), np.round(joint, _DIGITS)
        places = rows.groups.places(chances[:, -1], rows.sample_weight)
        by_place = np.argsort(places)
        joint = joint[:, by_place]
        keys = [own, chances.T, joint.reshape(rows.codes.size, -1).T]
        keys += [rows.codes, places[rows.groups.codes]]
        keys += [] if rows.strata is None else [rows.strata.codes]
        table = np.vstack(keys)
        order = np.lexsort(table)
        is_new = np.ones(order.size, bool)
        is_new[1:] = (np.diff(table[:, order]) != 0).any(axis=0)
        first, kinds = order[is_new], np.empty_like(order)
        kinds[order] = np.cumsum(is_new) - 1
        groups, strata, people = rows.groups, rows.strata, rows.groups.people
        names = tuple(groups.names[group] for group in by_place)
        groups = replace(
            groups,
            codes=np.ascontiguousarray(places[groups.codes][:, first]),
            counts=groups.counts[by_place],
            levels=replace(groups.levels, names=names),
            people=None if people is None else np.bincount(kinds, people).astype(np.float64),
            has_group=None,  # which the weights say
        )
        is_weighted = rows.sample_weight is not None or first.size < kinds.size
        weights = np.bincount(kinds, rows.counts, first.size).astype(np.float64)
        distinct = replace(
            rows,
            groups=groups,
            codes=rows.codes[first],
            sample_weight=weights if is_weighted else None,
            strata=None if strata is None else strata._replace(codes=strata.codes[first]),
        )
        return cls(distinct, own[first], chances[first], joint[first], kinds, places)

    def as_passed(self, offsets: FloatArray, predicted: IntArray) -> tuple[FloatArray, IntArray]:
        """Return offsets of the groups, and decisions of the rows, as these were passed."""
        return offsets.reshape(self.places.size, -1)[self.places], predicted[self.kinds]
