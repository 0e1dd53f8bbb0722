"""Who is selected does not hang on the order of columns, and little on the seed."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair.classification import FairDecisionClassifier
from skfair.datasets import make_loans
from skfair.metrics import demographic_parity_difference, equalized_odds_difference
from tests.seeds import generator, seed_of


def people(n=2000, seed=0):
    """Four groups, of which one has larger values in the first column."""
    rng = generator(seed)
    groups = rng.choice(list("abcd"), n, p=[0.4, 0.3, 0.2, 0.1])
    X = rng.normal(size=(n, 4))
    X[:, 0] += groups == "a"
    X[:, 3] = rng.integers(0, 3, n)
    score = X[:, 0] + 0.6 * X[:, 1] + 0.4 * (X[:, 3] == 1)
    return X, (score + rng.logistic(size=n) > 0.6).astype(int), groups


def fitted(X, y, groups, limit=0.05, estimator=None, **options):
    estimator = (
        make_pipeline(StandardScaler(), LogisticRegression()) if estimator is None else estimator
    )
    options = {"random_state": 0} | options
    model = FairDecisionClassifier(
        estimator, options.pop("constraint", "demographic_parity"), limit
    )
    return model.set_params(**options).fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("options", [{}, {"group_aware": True}, {"certificate": 0.9, "limit": 0.2}])
@pytest.mark.parametrize("as_frame", [False, True])
def test_reversed_columns_change_no_decision(as_frame, options):
    X, y, groups = people()
    new, _, new_groups = people(5000, seed=1)
    X, new = (pd.DataFrame(rows).add_prefix("x") if as_frame else rows for rows in (X, new))
    given = {"sensitive_features": new_groups} if options.get("group_aware") else {}
    turned = (lambda rows: rows.iloc[:, ::-1]) if as_frame else (lambda rows: rows[:, ::-1])
    usual = fitted(X, y, groups, **options)
    other = fitted(turned(X), y, groups, **options)
    # Sums are rounded differently, so a row whose margin is 0 to nine digits may change.
    assert np.mean(usual.predict(new, **given) != other.predict(turned(new), **given)) < 1e-3


@pytest.mark.parametrize("aware", [False, True])
def test_units_of_columns_change_hardly_a_decision(aware):
    """Powers of 2 are no rounding, and the model inside scales its columns."""
    X, y, groups = people()
    new, _, new_groups = people(5000, seed=1)
    given = {"sensitive_features": new_groups} if aware else {}
    units = np.array([4.0, 0.5, 1024.0, 1.0])
    usual = fitted(X, y, groups, group_aware=aware).predict(new, **given)
    other = fitted(X * units, y, groups, group_aware=aware).predict(new * units, **given)
    assert np.mean(usual != other) < 1e-3


@pytest.mark.parametrize("n", [500, 2500])
@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_another_seed_changes_few_decisions(n, constraint):
    """With rounds of exact cuts instead of the smooth search, 9% to 23% changed on average."""
    changed = []
    for seed in range(2):
        X, y, groups = people(n, seed=2 + seed)
        new, *_ = people(5000, seed=1)
        predicted = [
            fitted(X, y, groups, limit=0.1, constraint=constraint, random_state=k).predict(new)
            for k in range(3)
        ]
        changed += [np.mean(one != other) for one, other in combinations(predicted, 2)]
    assert np.mean(changed) < (0.3 if n == 500 else 0.15)


@pytest.mark.parametrize("aware", [False, True])
@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_close_calls_are_counted_and_named(constraint, aware):
    X, y, groups = people()
    model = fitted(X, y, groups, constraint=constraint, group_aware=aware)
    given = {"sensitive_features": groups} if aware else {}
    close = model.close_calls(X, **given)
    assert close.dtype == bool
    assert close.shape == (2000,)
    assert 0 < model.close_call_rate_ < 0.5
    assert close.mean() == pytest.approx(model.close_call_rate_, abs=0.05)
    assert f"{model.close_call_rate_:.1%} of the decisions are close calls" in model.summary_
    # People who are close calls have margins near 0.
    margin = np.abs(model.decision_function(X, **given))
    if close.sum() > 20:
        assert np.median(margin[close]) < np.median(margin[~close])
    # Rows in any batch are the same people.
    some = slice(0, 2000, 7)
    part = {name: column[some] for name, column in given.items()}
    assert np.array_equal(model.close_calls(X[some], **part), close[some])


def test_as_many_decisions_are_close_calls_as_another_deal_changes():
    """Within a factor of 4, in the mean of some fits."""
    said, changed = [], []
    for seed in range(3):
        X, y, groups = people(seed=3 + seed)
        new, *_ = people(5000, seed=1)
        models = [fitted(X, y, groups, random_state=k) for k in range(3)]
        said += [model.close_calls(new).mean() for model in models]
        pairs = combinations([model.predict(new) for model in models], 2)
        changed += [np.mean(one != other) for one, other in pairs]
    assert np.mean(changed) / 4 < np.mean(said) < 4 * np.mean(changed)


def test_limits_that_change_nothing_leave_no_close_calls():
    X, y, groups = people()
    model = fitted(X, y, groups, limit=0.9)
    assert model.close_call_rate_ == 0
    assert not model.close_calls(X).any()


def test_fitted_models_of_known_groups_have_no_close_calls():
    """There are no folds whose deal could matter."""
    X, y, groups = people()
    inner = FrozenEstimator(LogisticRegression().fit(*people(3000, seed=9)[:2]))
    model = fitted(X, y, groups, estimator=inner, group_aware=True)
    assert model.close_call_rate_ == 0
    assert not model.close_calls(X, sensitive_features=groups).any()


def test_where_close_calls_are_not_known_an_error_says_so():
    X, y, groups = people()
    model = fitted(X, y, groups, limit=0.2, certificate=0.9)
    assert "close calls" not in model.summary_
    with pytest.raises(ValueError, match="for limits without certificate="):
        model.close_calls(X)


def worse_for_one_group(n=4000, seed=0):
    """Columns say much of the outcome in one group, little in the other, and which group it is."""
    rng = generator(seed)
    group = (rng.random(n) < 0.4).astype(int)
    X = rng.normal(size=(n, 4))
    X[:, 1] += 2 * group
    score = np.where(group == 1, 0.3, 2.0) * X[:, 0] + X[:, 2] * (group == 0)
    y = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
    return X, y, np.array(["a", "b"])[group]


@pytest.mark.parametrize("seed", range(2))
def test_telling_the_group_never_costs(seed):
    """Thresholds by group would end at an accuracy of .51, where decisions without it have .55."""
    X, y, groups = worse_for_one_group(seed=seed)
    options = {"limit": 0.02, "constraint": "equalized_odds", "estimator": LogisticRegression()}
    aware = fitted(X, y, groups, group_aware=True, **options)
    blind = fitted(X, y, groups, **options)
    assert aware.train_objective_ > blind.train_objective_ - 2 * np.sqrt(0.5 / len(y))
    assert aware.train_disparity_ <= 0.02
    predicted = aware.train_predictions_
    counted = equalized_odds_difference(y, predicted, sensitive_features=groups)
    assert counted == pytest.approx(aware.train_disparity_)
    if aware.group_estimators_:
        assert "groups estimated from the other columns" in aware.summary_
        with pytest.raises(ValueError, match="use estimated groups"):
            aware.to_thresholds()
        again = aware.predict(X, sensitive_features=groups)
        assert np.array_equal(again, aware.predict(X, sensitive_features=groups[::-1]))


def test_thresholds_by_group_stay_where_they_are_best():
    X, y, groups = people()
    model = fitted(X, y, groups, group_aware=True)
    predicted = model.predict(X, sensitive_features=groups)
    assert not model.group_estimators_
    assert model.to_thresholds().shape[0] == 4
    assert demographic_parity_difference(None, predicted, sensitive_features=groups) < 0.12


@pytest.mark.parametrize("rate", [0.3, "as before", (0.29, 0.31)])
def test_a_selection_rate_costs_little_with_any_seed(rate):
    """Columns tell little about the group; some seeds had lost up to 20 points of accuracy."""
    X, y, people = make_loans(3000, bias=2.0, missing_rate=0, random_state=seed_of())
    X, sex = X[["income", "loan_amount", "employment_years", "age"]], people["sex"]
    trees = HistGradientBoostingClassifier(max_depth=3, max_iter=30, random_state=0)
    options = {"estimator": trees, "limit": 0.1}
    free = fitted(X, y, sex, **options)
    right, close = [], []
    for seed in range(3):
        model = fitted(X, y, sex, **options, selection_rate=rate, random_state=seed)
        predicted = model.train_predictions_
        assert demographic_parity_difference(y, predicted, sensitive_features=sex) <= 0.1
        right.append(np.mean(predicted == y))
        close.append(model.close_call_rate_)
    assert min(right) > np.mean(free.train_predictions_ == y) - 0.1
    assert max(close) < 0.35
