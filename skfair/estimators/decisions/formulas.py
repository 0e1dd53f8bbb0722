r"""Group-blind decisions of logistic regressions as tables, for programs without Python.

``FairDecisionClassifier.to_formula`` calls :func:`formula_of`. Two classes, and groups that are
estimated by logistic regressions, give the margin

.. math:: \sum_k p_k(x) \, (u_k - \sum_g P(g | k, x) \, d_{gk}),

where u is the gain of utility by the second class and d its offset. Both probabilities are made of
scores that are linear in the columns, whose coefficients are the rows of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from skfair._typing import FloatArray
from skfair.estimators.decisions.prediction import Decider
from skfair.estimators.group_probabilities import MOST_PAIRS

OF_OUTCOME = "outcome"  # the first part of the index in rows of the models of the classes


def formula_of(
    decider: Decider,
    models: list[Any],  # models of the classes
    classes: NDArray[Any],  # the two classes, the positive one last
    names: NDArray[Any],  # names of the columns that the models read
    direction: float,  # -1 if the positive class is the first one of the sorted classes, else 1
) -> Any:
    """Return the table; raise if decisions are made in another way."""
    import pandas as pd

    if decider.strata is not None or decider.corrections is not None:
        reason = "limits hold within strata"
        if decider.corrections is not None:
            reason = "the probabilities of the model are corrected, as those of class weights are"
        raise ValueError(
            f"These decisions have no formula, because {reason}. Use skfair.export.to_onnx."
        )
    offsets = direction * (decider.offsets[:, 0, :, 1] - decider.offsets[:, 0, :, 0])
    gains = direction * (decider.utility[:, 1] - decider.utility[:, 0])
    groups = decider.group_models if decider.offsets.any() else None
    if groups is None:  # no offset depends on the group
        gains = gains - offsets[decider.groups.offsets[:-1]].sum(axis=0)
    index, rows = [], []
    for number, model in enumerate(models):
        for label, coef, intercept in _scores(model):
            k = classes.tolist().index(label)
            index.append((OF_OUTCOME, number, "", label))
            rows.append([*coef, intercept, gains[k]])
    if groups is not None:
        for attribute, of_attribute in enumerate(groups.models):
            first, n_classes = decider.groups.offsets[attribute], groups.n_classes
            is_of_pairs = groups.sizes[attribute] * n_classes <= MOST_PAIRS
            for number, model in enumerate(of_attribute):
                for label, coef, intercept in _scores(model):
                    # A model of groups alone knows no classes: its score of a group is used for
                    # all classes. Otherwise a label stands for one pair of group and class.
                    pairs = [(int(label), k) for k in range(n_classes)]
                    if is_of_pairs:
                        pairs = [divmod(int(label), n_classes)]
                    for group, k in pairs:
                        name = decider.groups.names[first + group]
                        index.append((_attribute(decider, attribute), number, name, classes[k]))
                        rows.append([*coef, intercept, -offsets[first + group, k]])
    keys = pd.MultiIndex.from_tuples(index, names=["of", "model", "group", "label"])
    columns: Any = pd.Index([*names, "intercept", "weight"])
    return pd.DataFrame(np.array(rows), index=keys, columns=columns)


def _attribute(decider: Decider, number: int) -> str:
    """Return the first part of the index for an attribute; intersections count as one."""
    levels = decider.groups
    named = levels.attributes if levels.combinations is not None else [levels.attributes[number]]
    return f"group of {' and '.join(named)}"


def _scores(model: Any) -> Iterator[tuple[Any, FloatArray, float]]:
    """Yield the label, the coefficients and the intercept of each score of a logistic regression.

    The probabilities are the softmax of the scores. Raises for other models.
    """
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    inner = steps[-1].estimator if isinstance(steps[-1], FrozenEstimator) else steps[-1]
    if isinstance(inner, Pipeline):
        steps, inner = [*steps[:-1], *(step for _, step in inner.steps[:-1])], inner.steps[-1][1]
        steps.append(inner)
    are_scalers = all(isinstance(own, StandardScaler | MaxAbsScaler) for own in steps[:-1])
    if not are_scalers or not isinstance(inner, LogisticRegression):
        named = " and ".join(dict.fromkeys(type(own).__name__ for own in (*steps[:-1], inner)))
        raise ValueError(
            "Decisions have a formula only if the models of classes and groups are "
            "LogisticRegression, perhaps after StandardScaler or MaxAbsScaler. Here is a model of "
            f"{named}. Use skfair.export.to_onnx."
        )
    coef = np.asarray(inner.coef_, dtype=np.float64)
    intercept = np.asarray(inner.intercept_, dtype=np.float64)
    if len(coef) == 1:  # two classes: the score of the first one is 0
        coef, intercept = np.vstack([0 * coef, coef]), np.array([0.0, intercept[0]])
    for scaler in reversed(steps[:-1]):
        if scaler.scale_ is not None:
            coef = coef / scaler.scale_
        mean = getattr(scaler, "mean_", None)
        if mean is not None and scaler.with_mean:
            intercept = intercept - coef @ mean
    yield from zip(inner.classes_.tolist(), coef, intercept.tolist(), strict=True)
