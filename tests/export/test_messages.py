"""What has no ONNX graph is said, and what to do in its place."""

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

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


STRATA = ConditionalOn("demographic_parity")
TREE, BOOSTED = DecisionTreeClassifier(max_depth=3), HistGradientBoostingClassifier(max_iter=3)

RAW = {LogisticRegression: {"raw_scores": True}}
AWARE = r"asks for the groups .* group_aware=False.*cv='prefit'"

test_what_has_no_graph_is_said = messages(
    (TypeError, "Got LogisticRegression", lambda: to_onnx(LogisticRegression().fit(X, Y), X)),
    (ValueError, AWARE, lambda: to_onnx(decisions(group_aware=True), X)),
    (ValueError, "with group_estimator=", lambda: to_onnx(decisions(TREE), X)),
    (ValueError, "Fit LightGBM or XGBoost in its place", lambda: to_onnx(decisions(BOOSTED), X)),
    (ValueError, "within strata have no ONNX", lambda: to_onnx(decisions(None, STRATA), X)),
    (TypeError, "ConstrainedERMClassifier inside, whose converter", lambda: to_onnx(nested(), X)),
    *(
        (ValueError, "without sensitive", lambda model=model: to_onnx(by_column(model), WITH_SEX))
        for model in by_families("ONNX").values()
    ),
    (ValueError, "raw_scores=True", lambda: to_onnx(decisions(), X, options=RAW)),
    (NotFittedError, "not fitted", lambda: trusted_types(ConstrainedERMClassifier())),
)
