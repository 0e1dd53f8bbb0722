"""Group-aware decisions by several thresholds of a group: worth, promise, and the same answers."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skfair.classification import FairDecisionClassifier
from skfair.metrics import equalized_odds_difference
from tests.seeds import generator


def people(n, seed):
    """Return rows of two groups whose ROC curves differ, so that thresholds must go far to meet."""
    rng = generator(seed)
    groups, truth = rng.choice(["a", "b"], n), rng.normal(size=n)
    noise = np.where(groups == "a", 0.3, 1.5)
    X = np.column_stack([truth + noise * rng.normal(size=n), rng.normal(size=n)])
    y = (truth + 0.3 * (groups == "b") + 0.3 * rng.normal(size=n) > 0).astype(int)
    return pd.DataFrame(X, columns=["skill", "luck"]), y, groups


def fitted(X, y, groups, limit=0.02, **params):
    params = {"group_aware": "mixed", "cv": 3, "random_state": 0, **params}
    model = FairDecisionClassifier(LogisticRegression(), "equalized_odds", limit, **params)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A hash of the row chooses")
        return model.fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("seed", range(3))
def test_mixtures_gain_and_the_limit_is_satisfied_exactly(seed):
    X, y, groups = people(1500, seed)
    mixed = fitted(X, y, groups)
    pure = fitted(X, y, groups, group_aware=True)
    assert mixed.method_ == "mixtures"
    assert pure.method_ != "mixtures"
    assert pure.mixed_share_ == 0 < mixed.mixed_share_ < 1
    right = [np.mean(model.train_predictions_ == y) for model in (mixed, pure)]
    assert right[0] > right[1] + 0.01
    for model in (mixed, pure):
        given = {"sensitive_features": groups}
        assert equalized_odds_difference(y, model.train_predictions_, **given) <= 0.02 + 1e-9


def test_the_same_person_gets_the_same_answer():
    X, y, groups = people(1500, 0)
    model = fitted(X, y, groups)
    new, _, theirs = people(60, 100)
    new = new.astype(np.float32).astype(np.float64)
    answers = model.predict(new, sensitive_features=theirs)
    draws = model._decider.draws(new)
    singly = [model.predict(new[i : i + 1], sensitive_features=theirs[[i]])[0] for i in range(60)]
    assert np.array_equal(singly, answers)
    for same in (new[::-1], new.astype(np.float32)[::-1]):
        assert np.array_equal(model._decider.draws(same)[::-1], draws)
        assert np.array_equal(model.predict(same, sensitive_features=theirs[::-1])[::-1], answers)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(new, sensitive_features=theirs), answers)
    refitted = fitted(X, y, groups)
    assert np.array_equal(refitted.predict(new, sensitive_features=theirs), answers)
    scores = model.decision_function(new, sensitive_features=theirs)
    assert np.array_equal(scores > 0, answers == 1)


def test_a_warning_names_the_share_that_numbers_decide():
    X, y, groups = people(1500, 0)
    model = FairDecisionClassifier(
        LogisticRegression(), "equalized_odds", 0.02, group_aware="mixed", random_state=0
    )
    with pytest.warns(UserWarning, match="A hash of the row chooses .*% of the training rows"):
        model.fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match="group_aware=True"):
        model.to_thresholds()
    table = fitted(X, y, groups, group_aware=True).to_thresholds()
    assert list(table.index) == ["a", "b"]


def test_people_of_unknown_groups_get_the_usual_threshold():
    X, y, groups = people(1500, 0)
    model = fitted(X, y, groups, unseen="overall")
    new = model.predict(X, sensitive_features=np.full(1500, "new"))
    gains = 2 * model.predict_proba(X)[:, 1] - 1  # expected accuracy gained by the second class
    mixture, sizes = model._decider.mixture, [np.mean(groups == who) for who in "ab"]
    usual = sum(
        size * (thresholds @ shares)
        for size, thresholds, shares in zip(sizes, mixture.thresholds, mixture.shares, strict=True)
    )
    assert np.array_equal(new, gains > usual)
    with pytest.raises(ValueError, match="is group-aware: pass the groups"):
        model.predict(X)


def test_a_looser_limit_is_never_worth_less():
    """On the cross-fitted rows; what is optimised counts right decisions and expected ones."""
    for seed in range(2):
        X, y, groups = people(1200, seed)
        right = [
            np.mean(fitted(X, y, groups, limit).train_predictions_ == y)
            for limit in (0.005, 0.02, 0.05, 0.1, 0.3)
        ]
        assert np.all(np.diff(right) >= -0.01)


def test_probabilities_are_corrected_where_groups_clearly_differ():
    """A model that does not know the group is off for both, also if no limit binds."""
    rng = generator(0)
    groups = rng.choice(["a", "b"], 3000)
    X = rng.normal(size=(3000, 2))
    y = (X[:, 0] + np.where(groups == "a", 1.0, -1.0) + 0.5 * rng.normal(size=3000) > 0).astype(int)
    model = FairDecisionClassifier(LogisticRegression(), "equalized_odds", 0.9, group_aware=True)
    model.fit(X, y, sensitive_features=groups)
    free = model.predict_proba(X).argmax(axis=1)
    decided = model.predict(X, sensitive_features=groups)
    assert np.mean(decided == y) > np.mean(free == y) + 0.05
    table = model.to_thresholds()
    chances = model.predict_proba(X)[:, 1]
    by_table = chances > table["threshold"].loc[groups].to_numpy()
    assert np.array_equal(by_table.astype(int), decided)
