"""FairDecisionRegressor: limits on predictions of any regressor, against an exact barycentre."""

import itertools
import os
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from skfair import constraints, metrics
from skfair.datasets import load_local
from skfair.metrics import get_scorer, mean_residual_difference, wasserstein_gap
from skfair.regression import ConstrainedERMRegressor, FairDecisionRegressor
from tests.messages import messages
from tests.seeds import generator

# Limits on small samples are tight here. tests/estimators/test_explained.py is about the warning.
pytestmark = pytest.mark.filterwarnings("ignore:The limits lower R2")


def people(n=600, seed=0, k=2, curve=0.0):
    rng = generator(seed)
    group = rng.choice(list("abcd")[:k], n, p=np.arange(1, k + 1) / np.arange(1, k + 1).sum())
    number = np.searchsorted(list("abcd"), group)
    X = rng.normal(size=(n, 4)) * (1 + 0.3 * number)[:, None]
    X += number[:, None] * [1, 0.5, 0, 0]
    y = X @ [1, 0.5, 1, 0] + curve * np.sin(2 * X[:, 0]) + rng.normal(size=n) * (1 + number / 2)
    return X, y, group


def exact_barycentre(values, group, new_values, new_group):
    """Quantiles of all groups at the rank of a row within its own: Chzhen et al. (2020)."""
    known = {one: np.sort(values[group == one]) for one in np.unique(group)}
    out = np.empty(new_values.size)
    for one, own in known.items():
        rows = new_group == one
        rank = np.searchsorted(own, new_values[rows], side="right") / own.size
        out[rows] = sum(np.mean(group == g) * np.quantile(z, rank) for g, z in known.items())
    return out


MEASURES = {
    "wasserstein": metrics.wasserstein_gap,
    "kolmogorov": metrics.statistical_parity_gap,
    "mean_score_parity": metrics.mean_score_difference,
    "mean_residual_parity": metrics.mean_residual_difference,
    "loss_parity": partial(metrics.loss_parity_difference, task="regression", loss="squared_error"),
}


def gap(model, constraint, y, predictions, group, **kwargs):
    return MEASURES[constraint](y, predictions, sensitive_features=group, **kwargs)


@pytest.mark.parametrize("is_aware", [True, False])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("constraint", sorted(MEASURES))
def test_limits_hold_on_the_training_rows_as_the_metrics_count_them(constraint, k, is_aware):
    X, y, group = people(1200, k=k)
    weights = generator(1).integers(0, 4, y.size)
    free = FairDecisionRegressor(max_disparity=1e9).fit(X, y, weights, sensitive_features=group)
    before = gap(free, constraint, y, free.train_predictions_, group, sample_weight=weights)
    for share in (0.1, 0.3, 0.9):
        model = FairDecisionRegressor(
            constraint=constraint, max_disparity=share * before, group_aware=is_aware
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y, weights, sensitive_features=group)
        found = gap(model, constraint, y, model.train_predictions_, group, sample_weight=weights)
        assert model.train_disparity_ == found
        is_kept = found <= share * before
        assert (model.status_ == "converged") is is_kept
        assert any(one.category is ConvergenceWarning for one in caught) is not is_kept
        # Losses can be levelled only as far as shrinking goes.
        assert is_kept or constraint == "loss_parity"


def test_objects_of_constraints_are_taken_with_limits_of_their_own():
    X, y, group = people()
    for name, constraint in {
        "wasserstein": constraints.Wasserstein,
        "mean_residual_parity": constraints.MeanResidualParity,
        "mean_score_parity": constraints.MeanScoreParity,
    }.items():
        named = FairDecisionRegressor(constraint=name, max_disparity=0.3)
        own = FairDecisionRegressor(constraint=constraint(max_disparity=0.3))
        for model in (named, own):
            model.fit(X, y, sensitive_features=group)
        np.testing.assert_array_equal(own.train_predictions_, named.train_predictions_)


def test_a_looser_limit_costs_no_more():
    X, y, group = people(1000, k=3)
    for constraint in ("wasserstein", "kolmogorov", "mean_score_parity"):
        limits = {"kolmogorov": (0.01, 0.05, 0.2, 0.5)}.get(constraint, (0.05, 0.2, 0.5, 1.5))
        offsets = [
            FairDecisionRegressor(constraint=constraint, max_disparity=limit, group_aware=True)
            .fit(X, y, sensitive_features=group)
            .price_of_fairness_
            for limit in limits
        ]
        assert offsets == sorted(offsets, reverse=True)


def tables(source):
    """Rows and new rows of six draws, or of six splits."""
    for seed in range(6):
        if source != "communities_crime":
            k, curve = {"two groups": (2, 0), "three groups": (3, 2)}[source]
            yield people(4000, seed, k, curve), people(20000, 100 + seed, k, curve)
            continue
        if not os.environ.get("SKFAIR_DATA"):
            pytest.skip("the data set is not at hand")
        known = load_local(source)
        rates = pd.read_parquet(Path(os.environ["SKFAIR_DATA"]) / f"{source}.parquet")
        group = known.sensitive_features["black_median"].astype(str).to_numpy()
        whole = np.asarray(known.data, float), rates["ViolentCrimesPerPop"].to_numpy(), group
        split = train_test_split(*whole, test_size=0.3, random_state=seed)
        yield split[::2], split[1::2]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("source", ["two groups", "three groups", "communities_crime"])
def test_as_near_as_an_exact_barycentre_on_new_rows(source):
    """On the rows of the exact one, and by default on all rows."""
    linear = make_pipeline(SimpleImputer(), StandardScaler(), Ridge())
    found = []
    for (X, y, group), (new, new_y, new_group) in tables(source):
        first, rows = train_test_split(np.arange(y.size), test_size=0.5, random_state=0)
        base = clone(linear).fit(X[first], y[first])
        known = base.predict(X[rows])
        exact = exact_barycentre(known, group[rows], base.predict(new), new_group)
        model = FairDecisionRegressor(base, max_disparity=0.0, group_aware=True, cv="prefit")
        model.fit(X[rows], y[rows], sensitive_features=group[rows])
        whole = FairDecisionRegressor(linear, max_disparity=0.0, group_aware=True)
        whole.fit(X, y, sensitive_features=group)
        both = (one.predict(new, sensitive_features=new_group) for one in (model, whole))
        found.append(
            [
                (wasserstein_gap(None, z, sensitive_features=new_group), np.mean((z - new_y) ** 2))
                for z in (exact, *both)
            ]
        )
    (most, least), (apart, error), (apart_of_whole, error_of_whole) = np.mean(found, axis=0)
    assert apart <= 1.03 * most
    assert error <= 1.01 * least
    # Other rows, so chance comes in: single ratios vary by 0.3 and by 0.008 of themselves.
    assert apart_of_whole <= 1.7 * most
    assert error_of_whole <= 1.02 * least


def test_the_maps_of_calibration_rows_are_those_of_the_exact_barycentre():
    X, y, group = people(3000, k=3)
    base = LinearRegression().fit(X[:1000], y[:1000])
    X, y, group = X[1000:], y[1000:], group[1000:]
    model = FairDecisionRegressor(base, max_disparity=0.0, group_aware=True, cv="prefit")
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y, sensitive_features=group)
    z = base.predict(X)
    exact = exact_barycentre(z, group, z, group)
    assert np.sqrt(np.mean((model.train_predictions_ - exact) ** 2)) < 0.03 * z.std()
    again = model.predict(X, sensitive_features=group)
    assert np.allclose(again, model.train_predictions_, rtol=1e-9, atol=1e-9)


def test_order_within_a_group_stays():
    X, y, group = people()
    base = LinearRegression().fit(X, y)
    z = base.predict(X)
    for constraint in MEASURES:
        model = FairDecisionRegressor(base, constraint, 0.1, group_aware=True, cv="prefit").fit(
            X, y, sensitive_features=group
        )
        for one in "ab":
            order = np.argsort(z[group == one])
            assert (np.diff(model.train_predictions_[group == one][order]) >= -1e-12).all()


def test_without_the_group_predictions_need_none_and_differ_less():
    X, y, group = people(12_000)
    new, new_y, new_group = people(12_000, seed=1)
    free = FairDecisionRegressor(max_disparity=1e9).fit(X, y, sensitive_features=group)
    model = FairDecisionRegressor(max_disparity=0.5).fit(X, y, sensitive_features=group)
    before, after = (
        wasserstein_gap(None, one.predict(new), sensitive_features=new_group)
        for one in (free, model)
    )
    # Means of groups differ by 1.25, with a standard error of 0.03 on either sample.
    assert before > 1.05
    assert after < 0.5 + 0.2
    assert model.group_estimators_
    # What little the columns say of the group must not make predictions worse than none.
    model.set_params(constraint="kolmogorov", max_disparity=0.005)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*nearly constant")
        model.fit(X, y, sensitive_features=group)
    assert np.mean((model.predict(new) - new_y) ** 2) < 1.01 * new_y.var()


def test_groups_that_are_new_at_prediction():
    X, y, group = people()
    model = FairDecisionRegressor(max_disparity=0.1, group_aware=True, unseen="overall")
    model.fit(X, y, sensitive_features=group)
    unseen = np.where(np.arange(y.size) < 5, "z", group)
    found = model.predict(X, sensitive_features=unseen)
    assert np.array_equal(found[5:], model.predict(X, sensitive_features=group)[5:])
    as_each = [model.predict(X[:5], sensitive_features=np.full(5, one)) for one in "ab"]
    shares = [np.mean(group == one) for one in "ab"]
    assert np.allclose(found[:5], np.transpose(as_each) @ shares)


@pytest.mark.filterwarnings("ignore::skfair.exceptions.SmallGroupWarning")
def test_folds_prefit_and_frozen():
    X, y, group = people(200)
    one = FairDecisionRegressor(cv=GroupKFold(4), max_disparity=0.5, group_aware=True)
    one.fit(X, y, sensitive_features=group, units=np.arange(200) // 10)
    assert len(one.estimators_) == 4
    frozen = FrozenEstimator(LinearRegression().fit(X, y))
    model = FairDecisionRegressor(frozen, max_disparity=0.5).fit(X, y, sensitive_features=group)
    assert model.estimators_ == [frozen]


def test_sorted_rows_are_spread_over_the_folds():
    X, y, group = people(1000)
    order = np.lexsort((y, group))
    errors = [
        np.mean(
            (
                FairDecisionRegressor(max_disparity=1e9)
                .fit(X[rows], y[rows], sensitive_features=group[rows])
                .train_predictions_
                - y[rows]
            )
            ** 2
        )
        for rows in (np.arange(1000), order)
    ]
    assert errors[1] == pytest.approx(errors[0], rel=0.01)


def test_constant_predictions_and_huge_units():
    X, y, group = people(200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for constraint in ("wasserstein", "kolmogorov", "mean_score_parity"):
            model = FairDecisionRegressor(DummyRegressor(), constraint, 0.5, group_aware=True)
            model.fit(X, y, sensitive_features=group)
            assert model.train_disparity_ <= 0.5
        for unit in (1e-100, 1e100):
            model = FairDecisionRegressor(max_disparity=0.1 * unit, group_aware=True)
            model.fit(X, unit * y, sensitive_features=group)
            assert model.train_disparity_ <= 0.1 * unit


def test_mean_residuals():
    X, y, group = people(300)
    z = X[:, 0]
    residuals = [(z - y)[group == one].mean() for one in "ab"]
    found = mean_residual_difference(y, z, sensitive_features=group)
    assert found == pytest.approx(abs(residuals[0] - residuals[1]))
    model = LinearRegression().fit(X, y)
    scorer = get_scorer("neg_mean_residual_difference")
    expected = mean_residual_difference(y, model.predict(X), sensitive_features=group)
    assert scorer(model, X, y, sensitive_features=group) == -expected


@pytest.mark.parametrize("is_aware", [True, False])
def test_maps_are_stored_and_rows_stand_for_themselves(is_aware, tmp_path):
    sio = pytest.importorskip("skops.io")
    X, y, group = people(300)
    model = FairDecisionRegressor(max_disparity=0.5, group_aware=is_aware)
    model.fit(X, y, sensitive_features=group)
    assert model.steps_
    file = tmp_path / "model.skops"
    sio.dump(model, file)
    again = sio.load(file, trusted=sorted(sio.get_untrusted_types(file=file)))

    def predicted(one, rows):
        given = {"sensitive_features": group[rows]} if is_aware else {}
        return one.predict(X[rows], **given)

    every = predicted(model, np.arange(300))
    assert np.array_equal(predicted(again, np.arange(300)), every)
    single = [predicted(model, [k])[0] for k in range(20)]
    assert np.allclose(single, every[:20], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("constraint", ["wasserstein", "kolmogorov", "mean_score_parity"])
@pytest.mark.filterwarnings("ignore")  # that groups are small, or predictions nearly constant
def test_no_maps_are_worse_than_the_mean(constraint, aware):
    """Where the columns say little of the groups, shifts had a hundred times the variance of y."""
    n_steps = 0
    for seed in range(8):
        rng = generator(seed)
        group = rng.choice(list("ab"), 60)
        X = rng.normal(size=(60, 4)) + 0.3 * (group == "a")[:, None]
        y = X[:, 0] + (3 if seed % 2 else 0.3) * rng.normal(size=60)
        model = FairDecisionRegressor(DecisionTreeRegressor(random_state=0), constraint, 0.01)
        model.set_params(group_aware=aware, cv=3).fit(X, y, sensitive_features=group)
        n_steps += len(model.steps_)
        # Predictions that satisfy the limit as they are stay, however bad the trees are.
        if len(model.steps_):
            assert np.mean((model.train_predictions_ - y) ** 2) <= y.var() * (1 + 1e-9)
    assert n_steps >= 4


# At a limit of 0.05, far below the noise of so few rows, one search in fifty ends at a constant.
@pytest.mark.parametrize("limit", [0.3, 0.2, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_distributions_become_alike_without_the_group_and_without_a_constant(seed, limit):
    """One column says nothing of the group, so a constant is never all that is left."""
    rng = generator(seed)
    group = rng.choice(["f", "m"], 500, p=[0.3, 0.7])
    X = rng.normal(size=(500, 3)) + (group == "m")[:, None] * [1, 0, 0]
    y = X[:, 0] + np.where(group == "m", X[:, 1], X[:, 2]) + rng.normal(size=500)
    model = FairDecisionRegressor(constraint="kolmogorov", max_disparity=limit)
    model.fit(X, y, sensitive_features=group)
    own, other = (model.predict(X[group == label]) for label in ("f", "m"))
    assert ks_2samp(own, other).statistic < limit + 0.05  # the rest of three folds was seen
    assert model.train_disparity_ <= limit
    assert model.score(X, y) > 0.1


def r2_of_best_two_values(free, y, group, limit):
    """Cut each of two groups at any of its values: the most that two values within a limit explain.

    Both parts get the mean of their own targets.
    """
    is_first, best = group == group[0], 0.0
    cuts = [np.unique(free[rows])[:-1] for rows in (is_first, ~is_first)]
    for first, second in itertools.product(*cuts):
        is_low = free <= np.where(is_first, first, second)
        if abs(is_low[is_first].mean() - is_low[~is_first].mean()) <= limit:
            values = np.where(is_low, y[is_low].mean(), y[~is_low].mean())
            best = max(best, 1 - np.mean((values - y) ** 2) / y.var())
    return best


@pytest.mark.parametrize(("depth", "k"), [(2, 2), (3, 2), (2, 3)])
@pytest.mark.filterwarnings("ignore:.*nearly constant")
def test_tied_predictions_are_merged_until_their_distributions_are_alike(depth, k):
    """A shallow tree has few values, and a block of rows with one value cannot be divided."""
    X, y, group = people(600, depth, k)
    tree = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=5, random_state=0)
    model = FairDecisionRegressor(tree, "kolmogorov", 0.05, group_aware=True)
    found = model.fit(X, y, sensitive_features=group).train_predictions_
    own = [found[group == label] for label in np.unique(group)]
    assert model.status_ == "converged"
    assert max(ks_2samp(a, b).statistic for a in own for b in own) <= 0.05 + 1e-9
    if k == 2:
        model.set_params(max_disparity=1.0).fit(X, y, sensitive_features=group)
        least = r2_of_best_two_values(model.train_predictions_, y, group, 0.05)
        # Maps do not see the targets, whose means explain a little more.
        assert 1 - np.mean((found - y) ** 2) / y.var() > least - 0.05


def fit(model):
    X, y, group = people(200)
    return model.fit(X, y, sensitive_features=group)


def within(constraint):
    return fit(FairDecisionRegressor(constraint=constraint))


def only_the_group_is_known():
    _, y, group = people(200)
    model = FairDecisionRegressor(constraint="kolmogorov", max_disparity=0.01)
    return model.fit((group == "a")[:, None] * 1.0, y, sensitive_features=group)


test_wrong_calls_say_what_to_do = messages(
    (
        ValueError,
        "is not for predictions. Choose from .*wasserstein",
        lambda: within("equalized_odds"),
    ),
    (ValueError, "Did you mean 'mean_score_parity'", lambda: within("mean_scores")),
    (
        ValueError,
        "with reference='pairwise'",
        lambda: within(constraints.MeanScoreParity(reference="overall")),
    ),
    (
        ValueError,
        "max_disparity of the constraint must",
        lambda: within(constraints.Kolmogorov(-1)),
    ),
    (
        ValueError,
        "not for regression. FairDecisionRegressor takes it",
        lambda: fit(ConstrainedERMRegressor(constraints.Wasserstein())),
    ),
    (
        NotFittedError,
        "this LinearRegression is not fitted",
        lambda: fit(FairDecisionRegressor(LinearRegression(), cv="prefit")),
    ),
    (
        TypeError,
        "LogisticRegression is a classifier. Pass a regressor",
        lambda: fit(FairDecisionRegressor(LogisticRegression())),
    ),
    (ValueError, "n_samples=200", lambda: fit(FairDecisionRegressor(cv=201))),
    (UserWarning, "nearly constant", lambda: only_the_group_is_known()),
)


@pytest.mark.filterwarnings("error:.*unit of y", "ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::skfair.exceptions.ExplainedVarianceWarning")
@pytest.mark.parametrize(
    "model",
    [
        FairDecisionRegressor(constraint="mean_score_parity", group_aware=True),
        ConstrainedERMRegressor("mean_score_parity"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_percentage_for_salaries_asks_for_the_unit(model):
    """A limit of 0.05 on salaries of 50,000 was taken for 5 cents without a word."""
    rng = generator(11)
    sex = rng.permutation(np.resize(["f", "m"], 300))
    X = rng.normal(size=(300, 2)) + (sex == "m")[:, None] * [0.3, 0.0]
    salary = 50_000 + 15_000 * (X[:, 0] + 0.3 * rng.normal(size=300))

    def fit(limit, y):
        clone(model).set_params(max_disparity=limit).fit(X, y, sensitive_features=sex)

    for limit in (0.05, None):
        with pytest.warns(UserWarning, match="If 5% was meant, pass 5% of this") as caught:
            fit(limit, salary)
        said = [str(one.message) for one in caught if "unit of y" in str(one.message)]
        assert len(said) == 1
        meant = float(said[0].split("max_disparity=")[2].split(". ")[0])
        assert meant == pytest.approx(0.05 * salary.std(), rel=0.01)
    fit(meant, salary)
    fit(0.05, salary / 50_000)
    for limit in (0.0, 1e-6):  # no percentages
        fit(limit, salary)


def test_a_kolmogorov_limit_above_every_distance_is_refused():
    X, groups = generator(9).normal(size=(200, 2)), np.arange(200) % 2
    model = FairDecisionRegressor(LinearRegression(), "kolmogorov", 5)
    with pytest.raises(ValueError, match="max_disparity=5 limits nothing"):
        model.fit(X, X.sum(axis=1), sensitive_features=groups)
