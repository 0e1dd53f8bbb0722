"""Probabilities of group and class together, for decisions that must not use the group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skfair._typing import FloatArray, IntArray, MatrixLike
from skfair.estimators.chances import Split, chances_of, cross_fit, make_splits, mean_chances
from skfair.groups.encoding import GroupEncoding
from skfair.groups.training_data import People
from skfair.utils.rounding import TINY

# With more pairs of group and class than this, the group is estimated by itself.
MOST_PAIRS = 20


@dataclass(frozen=True, eq=False)
class GroupModels:
    """Models of the groups of each attribute."""

    models: list[list[Any]]  # for each attribute the models of the folds
    # For each attribute the numbers that its models know: of pairs of group and class, or of groups
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
        for own, labels, size in zip(of_attributes, self.labels, self.sizes, strict=True):
            is_pairs = size * self.n_classes <= MOST_PAIRS
            width = size * self.n_classes if is_pairs else size
            if labels.size < width:
                own, known = np.zeros((own.shape[0], width)), own
                own[:, labels] = known
            if not is_pairs:
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
    of_classes = of_pairs @ spread.T
    # A class that the models of pairs find less likely says nothing of the group.
    is_known = of_classes > TINY
    joint = np.divide(chances, of_classes, out=np.zeros(chances.shape), where=is_known) @ spread
    joint *= of_pairs
    if not is_known.all():
        rows, classes = np.nonzero(~is_known)
        of_groups = of_pairs[rows].reshape(-1, n_groups, n_classes).sum(axis=2)
        parts = of_groups * chances[rows, classes][:, None]
        joint.reshape(-1, n_groups, n_classes)[rows, :, classes] = parts
    return np.asarray(joint)


def fit_group_models(
    estimator: Any,
    X: MatrixLike,  # the rows, without the sensitive columns that are dropped
    groups: GroupEncoding,
    classes: IntArray,  # (n_samples,): number of the class of each row
    row_params: dict[str, Any],  # what the estimator's fit takes besides
    cv: Any,  # number of folds, or the folds
    n_jobs: int | None,
    people: People | None = None,  # the rows behind those of several groups
) -> GroupModels:
    """Cross-fit models of the groups of each attribute."""
    if people is not None and not any("sample_weight" in name for name in row_params):
        raise ValueError(
            f"Probabilities of groups are weights in the fit of a model of groups, but "
            f"{type(estimator).__name__} takes no sample_weight. Pass group_estimator=, such as "
            "LogisticRegression()."
        )
    n_classes = int(classes.max()) + 1
    sizes = np.diff(groups.offsets)
    models, labels, of_rows = [], [], []
    for codes, start, size in zip(groups.codes, groups.offsets, sizes, strict=False):
        own = codes - start
        target = own if size * n_classes > MOST_PAIRS else own * n_classes + classes
        known = np.unique(target)
        if people is None:
            splits = make_splits(cv, X, target, target)
        else:
            splits = _folds_of_people(people, cv, classes)
        crossed = cross_fit(estimator, X, target, row_params, splits, known, n_jobs)
        models.append(crossed.models)
        labels.append(known)
        of_rows.append(crossed.chances)
    return GroupModels(models, labels, tuple(sizes.tolist()), n_classes, of_rows)


def _folds_of_people(people: People, cv: int, classes: IntArray) -> list[Split]:
    """Return folds in which all rows of a person are on the same side."""
    own, owners = classes[people.first], people.owners
    return [
        (np.flatnonzero(~np.isin(owners, test)), np.flatnonzero(np.isin(owners, test)))
        for _, test in make_splits(cv, people.X, own, own)
    ]
