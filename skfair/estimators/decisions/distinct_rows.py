"""Distinct rows in a canonical order, so that a search does not depend on the order of X.

:class:`skfair.estimators.decisions.solve.DecisionSearch` uses them if groups are estimated. Such
searches are chaotic, so that rounding errors alone change their results. Therefore copies of a row
become one row with their total weight, and rows and groups are sorted by their numbers, not by
their names or places. :meth:`DistinctRows.as_passed` returns results for the rows and groups as
they were passed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.estimators.decisions.bind import LabelledRows

# Probabilities are rounded to this many digits. They differ by up to 2e-13 if rows are passed in
# another order, and without rounding the accuracy of the result then differs by up to 5 points (800
# rows, four groups).
_DIGITS = 9


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Distinct rows in order, the probabilities of models for them, and where they come from."""

    rows: LabelledRows
    own: IntArray  # (n_distinct,): the decisions of the model itself
    chances: FloatArray  # (n_distinct, n_classes): probabilities of the classes
    joint: FloatArray  # (n_distinct, n_groups, n_classes): P(group and class | row)
    kinds: IntArray  # (n_samples,): number of the distinct row that equals each row as passed
    places: IntArray  # (n_groups,): number of each group as passed among the sorted groups

    @classmethod
    def of(
        cls, rows: LabelledRows, own: IntArray, chances: FloatArray, joint: FloatArray
    ) -> DistinctRows:
        """Return the distinct rows of the given ones; ``joint`` is P(group and class | row)."""
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
            has_group=None,  # rows without a group have no weight
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
        """Return offsets and decisions in the order in which groups and rows were passed."""
        return offsets.reshape(self.places.size, -1)[self.places], predicted[self.kinds]
