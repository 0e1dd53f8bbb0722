"""What has no ONNX graph is said, and what to do in its place."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skfair.classification import ConstrainedERMClassifier, FairDecisionClassifier
from skfair.constraints import ConditionalOn
from skfair.exceptions import MissingGroupsWarning
from skfair.export import to_onnx, trusted_types
from tests.families import by_families
from tests.messages import messages
from tests.seeds import generator

pytest.importorskip("skl2onnx", reason="skl2onnx is not installed (extra onnx)")

N = 200
RNG = generator()
SEX = RNG.choice(["f", "m"], N)
X = RNG.normal(size=(N, 4)) + (SEX == "m")[:, None] * [1, 0, 0, 0]
X[:, 3] = np.abs(X[:, 3]).round()  # read as a category, too
Y = X[:, 0] + RNG.normal(size=N) > 0.5
WITH_SEX = np.column_stack([X, SEX == "m"])


@cache
def decisions(inner=None, constraint="demographic_parity", **options):
    inner = LogisticRegression() if inner is None else inner
    model = FairDecisionClassifier(inner, constraint, max_disparity=0.02, cv=2, **options)
    strata = {"control_features": X[:, 1] > 0} if isinstance(constraint, ConditionalOn) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingGroupsWarning)  # of the model inside
        return model.fit(X, Y, sensitive_features=SEX, **strata)


def nested():
    return decisions(ConstrainedERMClassifier(), group_estimator=LogisticRegression())


def by_column(model):
    return clone(model).set_params(sensitive=4).fit(WITH_SEX)


def aware(groups, fitted_to=SEX):
    """Convert group-aware decisions, whose groups a user passes."""
    model = FairDecisionClassifier(LogisticRegression(), max_disparity=0.1, cv=2, group_aware=True)
    return to_onnx(model.fit(X, Y, sensitive_features=fitted_to), X, sensitive_features=groups)


def aware_by_column():
    model = FairDecisionClassifier(LogisticRegression(), max_disparity=0.1, cv=2, group_aware=True)
    return to_onnx(model.set_params(sensitive=4).fit(WITH_SEX, Y), X)


def mixed():
    """Convert decisions of groups whose ROC curves differ, so that one has several thresholds."""
    rng = generator("mixed")
    groups, truth = rng.choice(["a", "b"], 1500), rng.normal(size=1500)
    noisy = truth + np.where(groups == "a", 0.3, 1.5) * rng.normal(size=1500)
    y = truth + 0.3 * (groups == "b") + 0.3 * rng.normal(size=1500) > 0
    model = FairDecisionClassifier(
        LogisticRegression(), "equalized_odds", 0.02, group_aware="mixed", cv=3
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A hash of the row chooses")
        model.fit(noisy[:, None], y, sensitive_features=groups)
    return to_onnx(model, noisy[:, None], sensitive_features=groups)


def indicator_of_texts():
    jobs = pd.DataFrame({"job": np.where(SEX == "f", "a", None)})
    imputer = SimpleImputer(strategy="most_frequent", add_indicator=True)
    inner = make_pipeline(imputer, OneHotEncoder(), LogisticRegression())
    model = FairDecisionClassifier(inner, max_disparity=1.0, cv=2)
    return to_onnx(model.fit(jobs, Y, sensitive_features=SEX), jobs)


class XGBClassifier(LogisticRegression):
    """A model of XGBoost for which no converter is registered."""

    __module__ = "xgboost.sklearn"


STRATA = ConditionalOn("demographic_parity")
CATEGORIES = HistGradientBoostingClassifier(max_iter=3, categorical_features=[3])
TEXTS_AND_NUMBERS = np.array([1 if sex == "m" else "f" for sex in SEX], dtype=object)

RAW = {LogisticRegression: {"raw_scores": True}}

test_what_has_no_graph_is_said = messages(
    (TypeError, "Got LogisticRegression", lambda: to_onnx(LogisticRegression().fit(X, Y), X)),
    (
        ValueError,
        r"Pass some of them, to_onnx\(model, X, sensitive_features=",
        lambda: to_onnx(decisions(group_aware=True), X),
    ),
    (
        ValueError,
        r"Pass some of them, to_onnx\(model, X, control_features=",
        lambda: to_onnx(decisions(None, STRATA), X),
    ),
    (ValueError, "did not occur at fit.*'x'", lambda: aware(np.where(SEX == "f", "f", "x"))),
    (ValueError, "has 199 rows", lambda: aware(SEX[1:])),
    (ValueError, "X has no column", aware_by_column),
    (
        ValueError,
        r"types int, str.*groups.astype\(str\)",
        lambda: aware(TEXTS_AND_NUMBERS, fitted_to=TEXTS_AND_NUMBERS),
    ),
    (ValueError, "several thresholds.*group_aware=True", mixed),
    (
        ValueError,
        "splits by categories.*categorical_features=None",
        lambda: to_onnx(decisions(CATEGORIES), X),
    ),
    (TypeError, "ConstrainedERMClassifier inside, whose converter", lambda: to_onnx(nested(), X)),
    *(
        (ValueError, "without sensitive", lambda model=model: to_onnx(by_column(model), WITH_SEX))
        for model in by_families("ONNX").values()
    ),
    (ValueError, "add_indicator=True.* of texts", indicator_of_texts),
    (ImportError, "pip install onnxmltools", lambda: to_onnx(decisions(XGBClassifier()), X)),
    (ValueError, "raw_scores=True", lambda: to_onnx(decisions(), X, options=RAW)),
    (NotFittedError, "not fitted", lambda: trusted_types(ConstrainedERMClassifier())),
)
