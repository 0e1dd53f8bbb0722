"""Calls as users write them: a type checker must find nothing to say of this file.

A comment that ignores an error and is not needed is an error, too, so each of them stands for a
wrong call that is refused. ``tests/test_typing.py`` and ``make lint`` check it.
"""

from typing import Any, assert_type

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from skfair import Cohort, Estimate
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.metrics import (
    demographic_parity_difference,
    disparity_test,
    fairness_report,
    get_scorer,
    kmeans_cost,
    wasserstein_gap,
)
from skfair.metrics.reports import Report
from skfair.regression import ConstrainedERMRegressor

Labels = NDArray[np.int32]
Numbers = NDArray[Any]
X, y, scores = np.eye(2), np.array([0, 1]), [0.1, 0.2]
sex = pd.Series(["f", "m"])


def cohorts() -> None:
    """A cohort stands in place of the columns, and options stay."""
    people = Cohort(y, y, sensitive_features=sex, y_score=scores)
    assert_type(people.difference("selection_rate"), Estimate)
    assert_type(people.where(sex="f"), Cohort)
    assert_type(demographic_parity_difference(people), float)
    assert_type(demographic_parity_difference(people, agg="mean", reference="overall"), float)
    assert_type(wasserstein_gap(people, intersectional=False), float)
    assert_type(fairness_report(people), Report)
    disparity_test(people, "equalized_odds", max_disparity=0.1)
    demographic_parity_difference(people, agg="most")  # type: ignore[call-overload]
    demographic_parity_difference(people, sensitive_features=sex)  # type: ignore[call-overload]
    demographic_parity_difference(y, y)  # type: ignore[call-overload]


def columns_of_every_kind() -> None:
    """Whatever holds one value per row is a column, and a table or dict of columns are several."""
    assert_type(demographic_parity_difference(y, y, sensitive_features=sex), float)
    demographic_parity_difference([0, 1], (0, 1), sensitive_features={"sex": sex, "old": [0, 1]})
    demographic_parity_difference(None, y, sensitive_features=sex.to_frame(), sample_weight=scores)
    demographic_parity_difference(y, y, sensitive_features=pd.Categorical(["f", "m"]))
    demographic_parity_difference(y, y, sensitive_features=pd.array(["f", "m"]))
    demographic_parity_difference(y, y, sensitive_features=range(2), control_features=sex)
    wasserstein_gap(None, pd.Series(scores), sensitive_features=[["f", "m"], ["a", "b"]])
    assert_type(kmeans_cost(sparse.csr_array(X), y), float)
    kmeans_cost(pd.DataFrame(X), y, centers=[[0.0, 1.0]])
    assert_type(fairness_report(y, y, sensitive_features=sex), Report)
    assert_type(fairness_report(y, None, y_score=scores, sensitive_features=sex), Report)
    get_scorer("ndcg", sensitive=["sex", 3])


def no_columns() -> None:
    """A number, a name or nothing is not a column."""
    demographic_parity_difference(y, y, sensitive_features=3)  # type: ignore[call-overload]
    demographic_parity_difference(y, y, sensitive_features="sex")  # type: ignore[call-overload]
    demographic_parity_difference(y, y, sensitive_features=None)  # type: ignore[call-overload]
    demographic_parity_difference(y, y, sensitive_features=sex, sample_weight=1.0)  # type: ignore[call-overload]
    demographic_parity_difference(y, 1, sensitive_features=sex)  # type: ignore[call-overload]
    kmeans_cost(3, y)  # type: ignore[arg-type]
    ConstrainedERMClassifier().fit(X, 3, sensitive_features=sex)  # type: ignore[arg-type]


def unknown_options() -> None:
    """What is not among the choices of an option is refused."""
    demographic_parity_difference(y, y, sensitive_features=sex, agg="sum")  # type: ignore[call-overload]
    ConstrainedERMClassifier(enforce="always")  # type: ignore[arg-type]
    ConstrainedERMRegressor(enforce="paper")  # type: ignore[arg-type]
    FairDecisionClassifier(group_aware="often")  # type: ignore[arg-type]
    FairDecisionClassifier(unseen="ignore")  # type: ignore[arg-type]
    FairDecisionClassifier(3)  # type: ignore[arg-type]


def results() -> None:
    """What estimators return has a type; names of registered solvers are open."""
    model = ConstrainedERMClassifier(enforce="strict").fit(X, y, sensitive_features=sex)
    assert_type(model.predict(X), Numbers)
    assert_type(model.predict_proba(X), Numbers)
    assert_type(model.decision_function(X), Numbers)
    assert_type(
        ConstrainedERMRegressor().fit(X, scores, sensitive_features=sex).predict(X), Numbers
    )
    decisions = FairDecisionClassifier(objective="f1").fit(X, y, sensitive_features=sex)
    assert_type(decisions.predict(X, sensitive_features=sex), Numbers)
