"""Models of folds for certificates: what they say of rows that they have not seen, and of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.shares import Shares, estimated_shares, known_shares
from skfair.estimators.chances import (
    CrossFitted,
    Split,
    chances_of,
    cross_fit,
    make_splits,
)
from skfair.estimators.decisions.steps import LabelledRows
from skfair.estimators.group_chances import GroupFits, GroupModels

# Paths are found, and the mean is compared with the models of folds, on at most so many rows.
MOST_ROWS = 20_000


class Models(NamedTuple):
    """What is fitted: the model, those of groups, and how."""

    estimator: Any
    group_fits: Callable[..., GroupFits] | None  # None if decisions may use the groups
    row_params: dict[str, Any]
    is_prefit: bool  # whether the model is fitted already
    cv: Any
    n_jobs: int | None


class FoldModels(NamedTuple):
    """The models of the folds, and what they say of the rows."""

    X: Any  # the rows
    rows: LabelledRows  # their groups and classes
    n_strata: int  # number of strata, 1 if there are none
    splits: Sequence[Split]  # the folds; each row is in one test part
    crossed: CrossFitted
    groups: GroupModels | None  # None if decisions may use the groups

    @property
    def strata(self) -> IntArray | None:
        """Stratum of each row, if there are several."""
        return None if self.rows.strata is None else self.rows.strata.codes

    @property
    def kinds(self) -> IntArray:
        """Stratum and true class of each row, as one number."""
        codes, strata = self.rows.codes, self.strata
        return codes if strata is None else strata * self.rows.classes.size + codes

    def shares(self) -> Shares:
        """Return what rows are expected to add to rates, by models that have not seen them."""
        chances, of_rows = self.crossed.chances, self.rows.groups
        if self.groups is None:
            return known_shares(
                of_rows.codes, of_rows.n_groups, self.strata, self.n_strata, chances
            )
        return estimated_shares(self.groups.joint_of_rows(chances), self.strata, self.n_strata)

    def by_all(self, rows: IntArray | None) -> Iterator[tuple[FloatArray, Shares]]:
        """Yield chances and shares of some rows (all if None) by each model, then by their mean."""
        X = self.X if rows is None else _safe_indexing(self.X, rows)
        part: IntArray | slice = slice(None) if rows is None else rows
        strata, of_rows = self.strata, self.rows.groups
        strata = None if strata is None else strata[part]
        chances = [chances_of(model, X, self.rows.classes) for model in self.crossed.models]
        if len(chances) < len(self.splits):  # one model that was fitted before
            chances *= len(self.splits)
        chances.append(np.mean(chances, axis=0))
        shares: Iterable[Shares]  # made one after the other: with many groups each is large
        if self.groups is None:
            args = of_rows.codes[:, part], of_rows.n_groups, strata, self.n_strata
            shares = (known_shares(*args, of_model) for of_model in chances)
        else:
            joints = self.groups.joints(X, chances)
            shares = (estimated_shares(joint, strata, self.n_strata) for joint in joints)
        return zip(chances, shares, strict=True)

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes that prediction needs besides prices."""
        return {
            "estimators_": self.crossed.models,
            "group_estimators_": [] if self.groups is None else self.groups.models,
            "_group_models": None if self.groups is None else self.groups.without_rows(),
            "method_": "path",
        }


def fold_models(X: Any, y: Any, rows: LabelledRows, models: Models) -> FoldModels:
    """Fit the models of the folds."""
    kinds = rows.groups.cells(rows.codes, rows.classes.size).codes
    splits = make_splits(models.cv, X, y, kinds)
    if sum(test.size for _, test in splits) > rows.codes.size:
        raise ValueError(
            "With confidence= each row must be in one test part of cv, not in several."
        )
    if len(splits) < 3:
        raise ValueError(
            f"confidence= needs 3 folds or more, got cv={models.cv!r}: with two, the rows that a "
            "path is found on are scored by a model of just those that judge it."
        )
    n_strata = 1 if rows.strata is None else len(rows.strata.names)
    if models.is_prefit:
        crossed = CrossFitted([models.estimator], chances_of(models.estimator, X, rows.classes))
    else:
        args = (models.row_params, splits, rows.classes, models.n_jobs)
        crossed = cross_fit(models.estimator, X, y, *args)
    groups = None
    if models.group_fits is not None:
        fits = models.group_fits(crossed.models, splits)
        groups = fits(X, rows.groups, rows.codes)
    return FoldModels(X, rows, n_strata, splits, crossed, groups)


def sampled(n: int) -> IntArray | None:
    """Return the rows on which the mean is compared with the models; None for all."""
    return np.linspace(0, n - 1, MOST_ROWS).astype(np.int64) if n > MOST_ROWS else None
