"""Folds: linear regressors are certified on all rows, none of which is lost for the fit.

Models are fitted on folds, and each row is judged by the one that has not seen it. What is returned
is the mean of the models. Its mean prediction for a group is the mean of theirs, so what the rows
show of the models on average is shown of the mean. (Decisions have no such law: the rates of a mean
of models are not the mean of their rates.) The mean of linear models is one, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from skfair._typing import IntArray, Seed
from skfair.estimators.certified_split import fit_quietly
from skfair.estimators.chances import FEW_ROWS, FOLDS, FOLDS_OF_FEW, Split

# With more rows, halves lose little, and take a tenth of the time.
MOST_ROWS = 50_000
# What rows show of models of folds hardly depends on chance, so small steps pay.
SHARES = (0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Folds(NamedTuple):
    """Rows that are all for the fit, and all judge."""

    X: Any
    y: Any
    metadata: Mapping[str, Any]  # what ``fit`` takes besides: groups and strata
    splits: list[Split]

    @classmethod
    def of(cls, X: Any, y: Any, metadata: Mapping[str, Any], kinds: IntArray, seed: Seed) -> Folds:
        """Divide rows by chance, with as many of each kind in each fold as there can be."""
        sizes = np.bincount(kinds)
        wanted = FOLDS_OF_FEW if kinds.size < FEW_ROWS else FOLDS
        n_folds = int(np.clip(sizes.max(), 2, wanted))
        kinds = np.where(sizes[kinds] >= n_folds, kinds, sizes.argmax())
        cut = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        used = {name: values for name, values in metadata.items() if values is not None}
        return cls(X, y, used, list(cut.split(np.zeros(kinds.size), kinds)))

    @property
    def shares(self) -> tuple[float, ...]:
        """Limits of the path, as shares of the one that is asked for."""
        return SHARES

    @property
    def n_judging(self) -> int:
        """Number of rows that judge."""
        return len(self.y)

    def part(self, values: Any) -> Any:
        """Return what belongs to the rows that judge: all."""
        return values

    def fit(self, estimator: Any) -> list[Any]:
        """Fit a model for each fold, on the others."""
        return [
            fit_quietly(clone(estimator), self.X, self.y, self.metadata, rows)
            for rows, _ in self.splits
        ]

    def predict(self, fitted: list[Any]) -> NDArray[Any]:
        """Predict each row by the model that has not seen it."""
        predicted = np.empty(len(self.y))
        for model, (_, rows) in zip(fitted, self.splits, strict=True):
            predicted[rows] = model.predict(_safe_indexing(self.X, rows))
        return predicted

    def attributes(self, fitted: list[Any]) -> dict[str, Any]:
        """Return the mean of the models."""
        return {
            "coef_": np.mean([model.coef_ for model in fitted], axis=0),
            "intercept_": np.mean([model.intercept_ for model in fitted], axis=0),
        }
