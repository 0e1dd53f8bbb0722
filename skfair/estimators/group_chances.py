"""Probabilities of group and class together, for decisions that must not use the group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.parallel import delayed

from skfair._typing import FloatArray, IntArray, MatrixLike
from skfair.estimators.chances import Split, chances_of, mean_chances
from skfair.estimators.inner_scores import fitted, held_out
from skfair.groups.encoding import GroupEncoding
from skfair.utils.rounding import TINY

# With more pairs of group and class than this, the group is estimated by itself.
MOST_PAIRS = 20


@dataclass(frozen=True, eq=False)
class GroupModels:
    """Models of the groups of each attribute."""

    models: list[list[Any]]  # for each attribute the models of the folds
    # For each attribute the numbers of its pairs of group and class, or of its groups
    labels: list[IntArray]
    sizes: tuple[int, ...]
    n_classes: int
    of_rows: list[FloatArray]  # probabilities of the training rows; empty after the fit

    def without_rows(self) -> GroupModels:
        """Return what new rows need: a model that is passed on says nothing of training rows."""
        return replace(self, of_rows=[])

    def joint(self, X: MatrixLike, chances: FloatArray) -> FloatArray:
        """Return P(group and class | row) of new rows, shape (n, n_groups, n_classes)."""
        parts = [
            mean_chances(models, X, labels)
            for models, labels in zip(self.models, self.labels, strict=True)
        ]
        return self._together(parts, chances)

    def joints(self, X: MatrixLike, chances: Sequence[FloatArray]) -> Iterator[FloatArray]:
        """Yield the same by the models of each fold, with its own chances; by their mean last."""
        by_attribute = [
            [chances_of(model, X, labels) for model in models]
            for models, labels in zip(self.models, self.labels, strict=True)
        ]
        by_fold = [
            *zip(*by_attribute, strict=True),
            [np.mean(of_fold, axis=0) for of_fold in by_attribute],
        ]
        for of_groups, of_classes in zip(by_fold, chances, strict=True):
            yield self._together(list(of_groups), of_classes)

    def joint_of_rows(self, chances: FloatArray) -> FloatArray:
        """Return the same of the training rows, by models that have not seen them."""
        return self._together(self.of_rows, chances)

    def _together(self, of_attributes: list[FloatArray], chances: FloatArray) -> FloatArray:
        parts = []
        for own, size in zip(of_attributes, self.sizes, strict=True):
            if size * self.n_classes > MOST_PAIRS:
                parts.append(own[:, :, None] * chances[:, None, :])
                continue
            parts.append(_within_class(own, chances).reshape(-1, size, self.n_classes))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _within_class(of_pairs: FloatArray, chances: FloatArray) -> FloatArray:
    """Return P(group | class, row) times the chances of the classes.

    What the models of pairs say of the class is left out: the classifier knows it better, and
    prices fit decisions best if both rely on the same probabilities of classes.
    """
    n_classes = chances.shape[1]
    n_groups = of_pairs.shape[1] // n_classes
    # Products with 0 and 1 are many times faster here than sums over short axes.
    spread = np.tile(np.eye(n_classes), n_groups)
    # A class that the models of pairs find impossible says nothing of the group.
    of_groups = of_pairs @ np.kron(np.eye(n_groups), np.ones((n_classes, n_classes)))
    of_pairs = of_pairs + TINY * of_groups
    return np.asarray(of_pairs * (chances / (of_pairs @ spread.T) @ spread))


class GroupFits(NamedTuple):
    """How models of groups are fitted."""

    estimator: Any  # what was passed for it; None for a neutral model of each fold
    row_params: dict[str, Any]  # what its fit takes besides; weights alone if it is neutral
    models: Sequence[Any]  # the fitted models of the folds, or one that was fitted before
    splits: Sequence[Split]  # the folds
    n_jobs: int | None

    def __call__(
        self,
        X: MatrixLike,  # the rows, without the sensitive columns that are dropped
        groups: GroupEncoding,
        classes: IntArray,  # (n_samples,): number of the class of each row
    ) -> GroupModels:
        """Cross-fit models of the groups of each attribute."""
        n_classes = int(classes.max()) + 1
        sizes = np.diff(groups.offsets)
        known, labels, of_rows = [], [], []
        for codes, start, size in zip(groups.codes, groups.offsets, sizes, strict=False):
            target, width = codes - start, size
            if size * n_classes <= MOST_PAIRS:
                target, width = target * n_classes + classes, size * n_classes
            labels.append(np.arange(width))
            read = partial(chances_of, classes=labels[-1])
            fits = self._fits(X, target)
            models, chances = held_out(fits, X, self.splits, read, self.n_jobs)
            known.append(models)
            of_rows.append(chances)
        return GroupModels(known, labels, tuple(sizes.tolist()), n_classes, of_rows)

    def _fits(self, X: MatrixLike, target: IntArray) -> Iterator[Any]:
        """Yield the fit of each fold."""
        # Imported where it is used: what it takes of scikit-learn costs 0.05 s.
        from skfair.estimators.neutral_models import fit_neutral

        for k, (train, _) in enumerate(self.splits):
            if self.estimator is not None:
                yield delayed(fitted)(self.estimator, X, target, self.row_params, train)
            else:
                inner = self.models[min(k, len(self.models) - 1)]
                yield delayed(fit_neutral)(inner, X, target, self.row_params, train)
