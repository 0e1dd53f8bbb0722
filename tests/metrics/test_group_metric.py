import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import f1_score, mean_absolute_error, recall_score, roc_auc_score
from sklearn.model_selection import cross_validate

from skfair.metrics import (
    equal_opportunity_difference,
    equal_opportunity_ratio,
    make_fairness_scorer,
    make_group_metric,
)
from tests.seeds import generator


@pytest.fixture
def people():
    rng = generator(4)
    n = 600
    groups = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    y = rng.integers(0, 2, n)
    scores = y + (groups == "a") * rng.normal(size=n) + rng.normal(size=n)
    return y, scores, groups


def own_values(metric, y, predicted, groups):
    return [metric(y[groups == g], predicted[groups == g]) for g in np.unique(groups)]


def test_each_comparison_equals_counting(people):
    y, scores, groups = people
    values = own_values(roc_auc_score, y, scores, groups)
    expected = {
        "difference": max(values) - min(values),
        "ratio": min(values) / max(values),
        "smallest": min(values),
        "largest": max(values),
    }
    for compare, one in expected.items():
        metric = make_group_metric(roc_auc_score, compare=compare)
        assert metric(y, scores, sensitive_features=groups) == pytest.approx(one, abs=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"reference": "overall"},
        {"agg": "mean"},
        {"sample_weight": generator(1).random(600)},
        {"control_features": np.arange(600) % 2},
        {"control_features": np.arange(600) % 2, "reference": "overall"},
    ],
)
@pytest.mark.parametrize("intersectional", [True, False])
def test_recall_is_equal_opportunity(people, options, intersectional):
    y, scores, groups = people
    both = np.column_stack([groups, np.arange(600) // 300])
    options = options | {"sensitive_features": both, "intersectional": intersectional}
    for compare, twin in (
        ("difference", equal_opportunity_difference),
        ("ratio", equal_opportunity_ratio),
    ):
        value = make_group_metric(recall_score, compare=compare)(y, scores > 0, **options)
        assert value == pytest.approx(twin(y, scores > 0, **options), abs=1e-12)


def test_scorers_in_a_search(people):
    y, scores, groups = people
    X = pd.DataFrame({"score": scores, "group": pd.factorize(groups)[0]})

    def scorer(metric, compare, is_better=False):
        own = make_group_metric(metric, compare=compare)
        return make_fairness_scorer(own, greater_is_better=is_better, sensitive="group")

    scoring = {
        "auc": scorer(roc_auc_score, "smallest", True),
        "f1": scorer(partial(f1_score, pos_label=0), "difference"),
    }
    found = cross_validate(LogisticRegression(), X, y, scoring=scoring, cv=3)
    assert np.all((found["test_auc"] > 0.3) & (found["test_auc"] < 1))
    assert (found["test_f1"] < 0).all()
    model = LogisticRegression().fit(X, y)
    by_group = own_values(roc_auc_score, y, model.decision_function(X), groups)
    assert scoring["auc"](model, X, y) == pytest.approx(min(by_group), abs=1e-12)
    ridge = Ridge().fit(X, y)
    by_group = own_values(mean_absolute_error, y, ridge.predict(X), groups)
    error = scorer(mean_absolute_error, "largest")
    assert error(ridge, X, y) == pytest.approx(-max(by_group), abs=1e-12)


def test_it_travels_and_says_what_it_is(people):
    y, scores, groups = people
    metric = make_group_metric(roc_auc_score, compare="ratio")
    again = pickle.loads(pickle.dumps(metric))
    assert repr(again) == "make_group_metric(roc_auc_score, compare='ratio')"
    assert again.__name__ == "roc_auc_score_ratio"
    found = [one(y, scores, sensitive_features=groups) for one in (metric, again)]
    assert found[0] == found[1]


def test_one_group_and_groups_without_a_value(people):
    y, scores, groups = people
    for compare in ("difference", "ratio"):
        metric = make_group_metric(roc_auc_score, compare=compare)
        one = {"sensitive_features": np.ones(600)}
        assert np.isnan(metric(y, scores, **one, zero_division=np.nan))
        with pytest.raises(ValueError, match="nothing to compare"):
            metric(y, scores, **one)
    y = np.where(groups == "c", 1, y)
    for compare in ("difference", "smallest"):
        metric = make_group_metric(roc_auc_score, compare=compare)
        with pytest.raises(ValueError, match="not defined for group 'c'"):
            metric(y, scores, sensitive_features=groups)
        assert np.isnan(metric(y, scores, sensitive_features=groups, zero_division=np.nan))


@pytest.mark.parametrize("has_strata", [False, True])
def test_groups_without_weight_have_no_value(people, has_strata):
    """Rows of weight 0 count as if they were not there."""
    y, scores, groups = people
    dept, weights = np.arange(600) % 2, 1.0 + np.arange(600) % 3
    weights[(groups == "c") & (dept <= (0 if has_strata else 1))] = 0
    given = {"sensitive_features": groups, "sample_weight": weights}
    metric = make_group_metric(mean_absolute_error)
    if has_strata:
        given["control_features"] = dept
        own = {name: one[weights > 0] for name, one in given.items()}
        expected = metric(y[weights > 0], scores[weights > 0], **own)
        assert metric(y, scores, **given) == pytest.approx(expected)
    else:
        with pytest.raises(ValueError, match="not defined for group 'c'"):
            metric(y, scores, **given)
        assert np.isnan(metric(y, scores, **given, zero_division=np.nan))
