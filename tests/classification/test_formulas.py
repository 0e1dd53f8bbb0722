"""Decisions that somebody computes from the tables of a model, as ``predict`` decides."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from skfair import Sensitive
from skfair.classification import FairDecisionClassifier
from skfair.constraints import ConditionalOn
from tests.messages import messages
from tests.seeds import generator

N = 900


def people(key=0, n_groups=2):
    rng = generator(key)
    group = rng.integers(0, n_groups, N)
    X = pd.DataFrame(
        rng.normal(size=(N, 3)) + (group % 2)[:, None] * [1, 0, 0], columns=list("abc")
    )
    y = (X["a"] + rng.normal(size=N) > 0.5).to_numpy().astype(int)
    return X * [1, 10, 1], y, np.array(list("fmxyzuvwpqrs"))[group]


def by_hand(table, X):
    """Return the margins of rows by the four steps of the docstring."""
    features = table.drop(columns=["intercept", "weight"])
    scores = X[features.columns].to_numpy() @ features.T + table["intercept"].to_numpy()
    share = np.exp(scores).T  # a row for each score, a column for each person
    of_model = share.groupby(level=["of", "model"]).transform("sum")
    chances = (share / of_model).groupby(level=["of", "group", "label"]).mean()
    weights = table["weight"].groupby(level=["of", "group", "label"]).first()
    of_class = chances.loc["outcome"].droplevel("group")
    worth = pd.DataFrame(np.zeros(of_class.shape), index=of_class.index)
    worth = worth.add(weights.loc["outcome"].droplevel("group"), axis=0)
    for attribute in set(chances.index.get_level_values("of")) - {"outcome"}:
        own = chances.loc[attribute]
        own = own / own.groupby(level="label").transform("sum")
        worth += own.mul(weights.loc[attribute], axis=0).groupby(level="label").sum()
    return (of_class * worth).sum(axis=0).to_numpy()


@pytest.mark.parametrize("positive", [None, "no"])
@pytest.mark.parametrize(
    "inner",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(MaxAbsScaler(), LogisticRegression(C=1e3)),
    ],
)
@pytest.mark.parametrize("n_groups", [2, 12])  # of 12 groups, models predict the group alone
def test_the_formula_of_estimated_groups_is_the_decision(n_groups, inner, positive):
    X, y, sex = people(n_groups=n_groups)
    constraint = "demographic_parity" if positive is None else "equal_opportunity"
    model = FairDecisionClassifier(inner, constraint, 0.02 * n_groups, cv=2, pos_label=positive)
    model.fit(X, np.array(["no", "yes"])[y], sensitive_features=sex)
    assert model.group_estimators_
    assert model.offsets_.any()
    margins = by_hand(model.to_formula(), X)
    np.testing.assert_allclose(margins, model.decision_function(X), atol=1e-9)
    assert np.array_equal(model.classes_[(margins > 0).astype(int)], model.predict(X))


def test_the_formula_of_several_attributes_and_of_fitted_models():
    X, y, sex = people()
    groups = pd.DataFrame({"sex": sex, "old": X["b"] > 0})
    inner = FrozenEstimator(LogisticRegression().fit(*people(1)[:2]))
    model = FairDecisionClassifier(
        inner, max_disparity=0.02, cv="prefit", sensitive=Sensitive(intersectional=False)
    )
    model.fit(X, y, sensitive_features=groups)
    table = model.to_formula()
    assert set(table.index.get_level_values("of")) == {"outcome", "group of sex", "group of old"}
    np.testing.assert_allclose(by_hand(table, X), model.decision_function(X), atol=1e-9)


@pytest.mark.filterwarnings("ignore:sensitive_features has a single group")
@pytest.mark.parametrize("options", [{}, {"selection_rate": 0.2}])
def test_one_threshold_for_everybody_is_a_table_of_one_row(options):
    X, y, sex = people()
    inner = LogisticRegression().fit(*people(1)[:2])
    model = FairDecisionClassifier(inner, cv="prefit", max_disparity=1.0, **options)
    model.fit(X, y, sensitive_features=np.full(N, "f") if options else sex)
    assert model.offsets_.any() == bool(options)
    table, predicted = model.to_thresholds(), model.predict(X)
    assert list(table.index) == ["everybody"]
    above = model.predict_proba(X)[:, 1] > table["threshold"].item()
    assert np.array_equal(above.astype(int), predicted)
    own = model.to_linear().loc["everybody"]
    assert np.array_equal(X @ own[["a", "b", "c"]] + own["intercept"] > 0, predicted == 1)
    np.testing.assert_allclose(by_hand(model.to_formula(), X), model.decision_function(X))


def fitted(inner=None, target=None, **options):
    X, y, sex = people()
    y = y if target is None else target(X)
    constraint = options.pop("constraint", "demographic_parity")
    given = {}
    if isinstance(constraint, ConditionalOn):
        given["control_features"] = X["b"] > 0
    model = FairDecisionClassifier(inner, constraint, options.pop("limit", 0.02), cv=2, **options)
    return model.fit(X, y, sensitive_features=sex, **given)


def three(X):
    return np.digitize(X["a"], [0, 1])


TREES = HistGradientBoostingClassifier(max_iter=4, max_leaf_nodes=4)
BALANCED = LogisticRegression(class_weight={0: 1, 1: 30})


def of_balanced():
    return fitted(BALANCED, objective="balanced_accuracy").to_formula()


test_other_decisions_are_told_what_to_use = messages(
    (ValueError, "estimated groups.*to_formula", lambda: fitted().to_thresholds()),
    (ValueError, "estimated groups.*to_formula", lambda: fitted().to_linear()),
    (ValueError, "only for two classes", lambda: fitted(target=three).to_thresholds()),
    (ValueError, "for two classes and group-blind", lambda: fitted(target=three).to_formula()),
    (ValueError, "to_thresholds", lambda: fitted(group_aware=True).to_formula()),
    (
        ValueError,
        "HistGradientBoosting.*to_onnx",
        lambda: fitted(group_estimator=TREES).to_formula(),
    ),
    (ValueError, "corrected", of_balanced),
    (
        ValueError,
        "within strata.*to_onnx",
        lambda: fitted(constraint=ConditionalOn("demographic_parity")).to_formula(),
    ),
)


def test_a_single_model_has_a_formula_of_single_models():
    X, y, sex = people(key=5)
    model = FairDecisionClassifier(
        LogisticRegression(), max_disparity=0.02, ensemble=False, random_state=0
    )
    model.fit(X, y, sensitive_features=sex)
    table = model.to_formula()
    assert set(table.index.get_level_values("model")) == {0}
    np.testing.assert_allclose(by_hand(table, X), model.decision_function(X), atol=1e-9)
