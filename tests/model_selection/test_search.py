import pickle

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from skfair.exceptions import LooseLimitWarning, NoFeasibleModelWarning
from skfair.metrics import get_scorer
from skfair.model_selection import best_within
from tests.seeds import generator

RESULTS = {
    "mean_test_accuracy": np.array([0.9, 0.8, 0.7, np.nan]),
    "mean_test_gap": np.array([-0.2, -0.04, -0.01, -0.0]),
    "mean_test_ratio": np.array([0.5, 0.75, 0.9, 1.0]),
}


@pytest.mark.parametrize(
    ("limit", "best"),
    [
        ({}, 0),
        ({"gap": 0.2}, 0),
        ({"gap": 0.05}, 1),
        ({"gap": 0.02}, 2),
        ({"ratio": (0.8, None)}, 2),
        ({"gap": 0.05, "ratio": (0.7, None)}, 1),
        ({"gap": (None, 0.05)}, 1),
        ({"ratio": (0.6, 0.8)}, 1),
    ],
)
def test_best_score_among_those_within(limit, best):
    rule = best_within(score="accuracy", limit=limit)
    assert rule(RESULTS) == best
    assert pickle.loads(pickle.dumps(rule))(RESULTS) == best


def test_a_scorer_goes_by_the_name_of_its_metric():
    name = "demographic_parity_difference"
    results = RESULTS | {f"mean_test_neg_{name}": RESULTS["mean_test_gap"]}
    for given in (name, f"neg_{name}"):
        assert best_within(score="accuracy", limit={given: 0.05})(results) == 1


def test_none_within_is_said():
    with pytest.warns(
        NoFeasibleModelWarning, match=r"None of 4 candidates.*exceeds a limit by 0.005"
    ):
        assert best_within(score="accuracy", limit={"gap": 0.005})(RESULTS) == 2
    search = GridSearchCV(
        LogisticRegression(),
        {"C": [0.1, 1.0]},
        scoring={"accuracy": "accuracy", "recall": "recall"},
        refit=best_within(score="accuracy", limit={"recall": (1.5, None)}),
    )
    with pytest.warns(NoFeasibleModelWarning) as caught:
        search.fit([[0.0], [1.0]] * 10, [0, 1] * 10)
    assert caught[0].filename == __file__  # the line of fit, not one of scikit-learn
    assert best_within(score="accuracy", limit={"gap": 0.005}, slack=0.005)(RESULTS) == 2


def test_undefined_scores_are_not_within():
    results = {
        "mean_test_accuracy": np.array([0.9, 0.8]),
        "mean_test_gap": np.array([np.nan, -0.01]),
    }
    assert best_within(score="accuracy", limit={"gap": 0.05})(results) == 1


def test_a_limit_for_each_attribute():
    """Selection by the second column differs by age, by the third by sex; by the first by none."""
    rng = generator(0)
    sex, age = rng.integers(0, 2, (2, 4000))
    y = rng.integers(0, 2, 4000)
    noise = rng.normal(size=(3, 4000))
    X = np.column_stack([0.5 * y + noise[0], y + age + noise[1], y + sex + noise[2], sex, age])
    chosen = ColumnTransformer([("x", "passthrough", [0])])
    model = Pipeline([("chosen", chosen), ("model", LogisticRegression())])
    columns = [[("x", "passthrough", [k])] for k in range(3)]
    scoring = {"accuracy": "accuracy"} | {
        name: get_scorer("neg_demographic_parity_difference", sensitive=k)
        for name, k in (("sex", 3), ("age", 4))
    }
    best = {}
    for limits in ({"sex": 0.1, "age": 1.0}, {"sex": 1.0, "age": 0.1}, {"sex": 0.1, "age": 0.1}):
        rule = best_within(score="accuracy", limit=limits)
        search = GridSearchCV(
            model, {"chosen__transformers": columns}, scoring=scoring, refit=rule, cv=2
        )
        best[tuple(limits.values())] = search.fit(X, y).best_index_
    assert best == {(0.1, 1.0): 1, (1.0, 0.1): 2, (0.1, 0.1): 0}


def test_a_limit_in_percent_is_named():
    """A limit of 5 was taken for 500 points, and limited nothing."""
    results = {"mean_test_accuracy": [0.9, 0.8], "mean_test_gap": [-0.2, -0.04]}
    with pytest.warns(LooseLimitWarning, match=r"above 0\.2\. If 5% was meant, pass 0\.05\."):
        best_within("accuracy", {"gap": 5})(results)
    assert best_within("accuracy", {"gap": 0.05})(results) == 1
    salaries = results | {"mean_test_gap": [-2000.0, -400.0]}
    assert best_within("accuracy", {"gap": 500})(salaries) == 1
