"""``explain_decision`` says what ``predict`` does, and what the limits change of it."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from skfair import Sensitive
from skfair.classification import FairDecisionClassifier
from skfair.constraints import ConditionalOn, DemographicParity
from tests.seeds import generator

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
BALANCED = LogisticRegression(class_weight="balanced")
SETTINGS = {
    "blind": {},
    "aware": {"group_aware": True},
    "corrected": {"group_aware": True, "estimator": BALANCED, "objective": "balanced_accuracy"},
    "blind and corrected": {"estimator": BALANCED, "objective": "balanced_accuracy"},
    "costs": {"objective": [[0, 1], [0.3, 0]]},
    "f1": {"objective": "f1"},
    "trees": {"estimator": HistGradientBoostingClassifier(max_iter=10, random_state=0)},
    "odds": {"constraint": "equalized_odds", "selection_rate": "as before"},
    "first class": {"pos_label": "no"},
    "one model": {"ensemble": False},
    "two attributes": {"sensitive": Sensitive(intersectional=False), "group_aware": True},
    "no limit": {"max_disparity": 1.0},
}


def people(seed=0, n=500):
    rng = generator(seed)
    sex, age = rng.choice(["f", "m"], n), rng.choice(["old", "young"], n)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"), index=np.arange(n) + 100)
    X["a"] += 1.2 * (sex == "m")
    y = np.where(X["a"] + X["b"] + rng.logistic(size=n) > 0.6, "yes", "no")
    return X, y, pd.DataFrame({"sex": sex, "age": age}, index=X.index)


def fitted(X, y, groups, **settings):
    own = {"estimator": LogisticRegression(), "max_disparity": 0.03, "random_state": 0, **settings}
    model = FairDecisionClassifier(**own)
    is_single = own.get("sensitive") is None
    groups = groups["sex"] if is_single else groups
    model.fit(X, y, sensitive_features=groups)
    return model, {"sensitive_features": groups} if model.is_group_aware_ else {}


@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.parametrize("seed", [0, 1])
def test_probabilities_and_thresholds_are_those_of_the_decisions(kind, seed):
    X, y, groups = people(seed)
    model, of_rows = fitted(X, y, groups, **SETTINGS[kind])
    table = model.explain_decision(X, **of_rows)
    assert table.index.equals(X.index)
    assert_array_equal(table["decision"], model.predict(X, **of_rows))
    positive = SETTINGS[kind].get("pos_label", "yes")
    place = list(model.classes_).index(positive)
    assert_array_equal(table["probability"], model.predict_proba(X)[:, place])
    p, cut, is_above = table["probability"], table["threshold"], table["selected"] == "above"
    selected = np.where(is_above, p > cut, p < cut)
    assert_array_equal(selected, table["decision"] == positive)
    free = p > table["threshold_without_limits"]
    assert_array_equal(free, table["decision_without_limits"] == positive)
    if "objective" not in SETTINGS[kind] and not model.is_group_aware_:
        assert_allclose(table["threshold_without_limits"], 0.5)
    estimated = table.filter(like="estimated ")
    if model.group_estimators_:
        assert_allclose(estimated.sum(axis=1), 1.0)
    else:
        assert estimated.empty


def test_thresholds_of_known_groups_are_those_of_the_table():
    X, y, groups = people(2)
    model, of_rows = fitted(X, y, groups, group_aware=True)
    table = model.explain_decision(X, **of_rows)
    for name, row in model.to_thresholds().iterrows():
        own = table["threshold"][(groups["sex"] == str(name).removeprefix("sex=")).to_numpy()]
        assert_allclose(own, row["threshold"], atol=1e-12)


def test_a_person_is_told_in_one_sentence():
    X, y, groups = people(3)
    model, of_rows = fitted(X, y, groups)
    table = model.explain_decision(X, **of_rows)
    changed = table[table["decision"] != table["decision_without_limits"]]
    assert len(changed)
    for _, row in changed.iterrows():
        assert row["sentence"].startswith(f"Decision {row['decision']} at the probability 0.")
        assert row["sentence"].endswith(f"the decision {row['decision_without_limits']}.")
    one = model.explain_decision(X.iloc[:1])
    assert one["sentence"].tolist() == table["sentence"].tolist()[:1]
    same = table[table["decision"] == table["decision_without_limits"]]
    assert same["sentence"].str.endswith("the decision the same.").all()


def test_strata_and_groups_that_fit_did_not_see():
    X, y, groups = people(4)
    constraint = ConditionalOn(DemographicParity(0.05))
    model = FairDecisionClassifier(
        LogisticRegression(), constraint, group_aware=True, unseen="overall"
    )
    given = {"sensitive_features": groups["sex"], "control_features": groups["age"]}
    model.fit(X, y, **given)
    given["sensitive_features"] = groups["sex"].where(np.arange(len(X)) % 5 > 0)
    table = model.explain_decision(X, **given)
    assert_array_equal(table["decision"], model.predict(X, **given))
    selected = table["probability"] > table["threshold"]
    assert_array_equal(selected, table["decision"] == "yes")


def test_what_has_no_threshold_is_refused():
    X, y, groups = people(5)
    model, _ = fitted(X, np.where(X["c"] > 0.5, "maybe", y), groups)
    with pytest.raises(ValueError, match="no thresholds for 3 classes"):
        model.explain_decision(X)
    options = {"group_aware": "mixed", "constraint": "equalized_odds"}
    for seed in range(5, 15):
        X, y, groups = people(seed)
        mixed, of_rows = fitted(X, y, groups, **options)
        if mixed.method_ == "mixtures":
            break
    with pytest.raises(ValueError, match="several thresholds here"):
        mixed.explain_decision(X, **of_rows)
