"""PartialParityClassifier: the promise, what is learned, and who may use it."""

import os
import warnings
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from skfair import Sensitive, metrics
from skfair.classification import (
    PartialParityCalibrator,
    PartialParityClassifier,
)
from skfair.constraints import FalsePositiveParity
from skfair.constraints.partial import IntervalConstraint
from skfair.datasets import load_local
from skfair.solvers import ALLBFGS
from tests import naive
from tests.naive.partial import step
from tests.public import documented_parameters
from tests.seeds import generator

CONSTRAINT_NAMES = [
    "statistical_parity",
    "demographic_parity",
    "group_auc",
    "equal_opportunity",
    "equalized_odds",
]
INTERVALS = {
    "pair": (0.3, 0.8),
    "union": [(0.0, 0.3), (0.5, 0.8)],
    "dict": {"a": (0.3, 0.8), "b": (0.2, 0.7)},
}
MODES = {
    "repair": {"group_aware": True},
    "al_lbfgs aware": {"group_aware": True, "solver": "al_lbfgs"},
    "al_lbfgs blind": {"solver": "al_lbfgs"},
}


@cache
def people(seed=0, n=400, n_groups=2, d=3, shift=1.0):
    """Scores differ by group, and so do base rates."""
    rng = generator(seed)
    group = rng.permutation(np.arange(n) % n_groups)
    X = rng.normal(size=(n, d))
    X[:, 0] += shift * group
    y = (X[:, 0] + X[:, 1] + 2 * rng.normal(size=n) > 0.55 * n_groups).astype(int)
    return X, y, np.array(["a", "b", "c"])[group]


def fit(*args, data=None, sample_weight=None, **params):
    """Fit on people; that a bound was missed is for the caller to see."""
    X, y, group = people() if data is None else data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = PartialParityClassifier(*args, **params)
        return model.fit(X, y, sample_weight, sensitive_features=group)


def scores_of(model, X, group):
    """Scores, with the group if the model uses it."""
    return model.decision_function(X, sensitive_features=group if model.is_group_aware_ else None)


def raw_scores(model, X, group):
    number = np.searchsorted(model.groups_.astype(str), group)
    own = number if model.is_group_aware_ else np.zeros_like(number)
    return np.sum(X * model.coef_[own], axis=1) + model.intercept_[own], number


def disparity(constraint, scale, y, scores, group, interval, weight=None):
    """What a user would compute with skfair.metrics."""
    given = {"sensitive_features": group, "interval": interval, "sample_weight": weight}
    if constraint == "group_auc":
        return metrics.partial_group_auc_gap(y, scores, **given)
    if constraint == "statistical_parity":
        if scale == "ccdf":
            return metrics.partial_ccdf_gap(y, scores, **given)
        return metrics.partial_statistical_parity_gap(y, scores, **given)
    if constraint == "demographic_parity":
        return metrics.partial_demographic_parity_gap(
            y, scores, **given, normalize=scale == "conditional"
        )
    one = next(iter(interval.values())) if isinstance(interval, dict) else interval
    unit = np.diff(np.atleast_2d(one)).sum() if scale == "ccdf" else 1.0
    return unit * getattr(metrics, f"partial_{constraint}_gap")(
        y, scores, **given, rank_within="class"
    )


def check_promise(model, X, y, group, weight=None):
    scores = scores_of(model, X, group)
    constraint, scale = model.constraint, model.scale
    measured = disparity(constraint, scale, y, scores, group, model.interval, weight)
    assert model.train_disparity_ == pytest.approx(measured, abs=1e-9)
    assert model.is_within_limit_ == (measured <= model.effective_disparity_ + 1e-9)
    if not model.is_within_limit_ and model.enforce == "strict":
        assert model.status_ == "infeasible"
    decided = model.predict(X, sensitive_features=group if model.is_group_aware_ else None)
    np.testing.assert_array_equal(decided == model.classes_[1], scores > 0)
    raw, number = raw_scores(model, X, group)
    np.testing.assert_array_equal(scores > 0, raw > model.thresholds_[number])
    weight = np.ones(len(y)) if weight is None else weight
    for g, share in enumerate(model.rates_):
        mine = number == g
        assert share == pytest.approx(np.average(scores[mine] > 0, weights=weight[mine]))
        in_order = scores[mine][np.argsort(raw[mine])]
        assert np.diff(in_order).min() >= -1e-12
    return measured


# --- the promise ------------------------------------------------------------------------------


# Pairs of rows have one scale. Blind models on unions are slow, so they are tried on one scale.
CASES = [
    case
    for case in product(CONSTRAINT_NAMES, ["conditional", "ccdf"], INTERVALS, MODES)
    if case[:2] != ("group_auc", "ccdf") and case[1:] != ("ccdf", "union", "al_lbfgs blind")
]


@pytest.mark.parametrize(("constraint", "scale", "kind", "mode"), CASES)
def test_the_promise_is_kept(constraint, scale, kind, mode):
    # Blind models may miss statistical parity and then stop late: fewer steps say the same.
    steps = (
        {"max_iter": 20} if mode == "al_lbfgs blind" and constraint == "statistical_parity" else {}
    )
    interval, bound = INTERVALS[kind], 0.1 if scale == "conditional" else 0.05
    X, y, group = data = people(n=600, shift=2.0)  # the bound is 5.5 standard errors off, or more
    free = LogisticRegression().fit(X, y).decision_function(X)
    assert disparity(constraint, scale, y, free, group, interval) > bound
    model = fit(interval, constraint, bound, scale=scale, data=data, **MODES[mode], **steps)
    measured = check_promise(model, X, y, group)
    assert model.effective_disparity_ == bound
    if mode != "al_lbfgs blind":
        assert model.is_within_limit_
        assert measured <= model.effective_disparity_ + 1e-9


@pytest.mark.parametrize("constraint", CONSTRAINT_NAMES)
@pytest.mark.parametrize("aware", [True, False])
def test_three_groups_and_weights(constraint, aware):
    X, y, group = data = people(seed=1, n=700, n_groups=3)
    weight = generator(2).uniform(0.5, 2.0, len(y))
    model = fit((0.0, 0.5), constraint, 0.2, group_aware=aware, data=data, sample_weight=weight)
    check_promise(model, X, y, group, weight)
    assert model.is_within_limit_
    right = np.average(model.predict(X, sensitive_features=group) == y, weights=weight)
    share = np.average(y, weights=weight)
    assert right > max(share, 1 - share) - 0.02  # as good as a constant, or nearly


def test_what_was_not_reached_is_said():
    X, y, group = people()
    model = PartialParityClassifier((0.1, 0.6), max_disparity=0.02, max_iter=1)
    with pytest.warns(ConvergenceWarning, match=r"at most 0\.02; the smallest reached is 0\.\d+"):
        model.fit(X, y, sensitive_features=group)
    assert not model.is_within_limit_
    assert check_promise(model, X, y, group) > 0.02


@pytest.mark.filterwarnings("ignore:No model was found")
def test_what_smooth_constraints_miss_by_little_is_made_up_for():
    """Few directions keep the limit here, and rounds of smooth problems end beside them."""
    reached = []
    for seed in range(8):
        data = people(seed=seed, n=1000)
        model = fit((0.1, 0.6), max_disparity=0.05, data=data)
        reached.append(check_promise(model, *data))
        assert model.is_within_limit_ == (reached[-1] <= 0.05 + 1e-9)
    # It is missed in 1 of 60 samples: by chance in more than five of eight once in 1e8 runs.
    assert np.sum(np.array(reached) <= 0.05 + 1e-9) >= 3
    again = fit((0.1, 0.6), max_disparity=0.05, data=data)
    np.testing.assert_array_equal(again.coef_, model.coef_)


@pytest.mark.parametrize("constraint", ["statistical_parity", "demographic_parity", "group_auc"])
@pytest.mark.filterwarnings("ignore")  # that limits are below noise, or missed
def test_nothing_ranks_worse_than_chance_or_decides_worse_than_a_constant(constraint):
    """Random moves that looked at the limit alone ended with rankings of AUC .34 to .49."""
    for seed in range(3):
        X, _, group = people(seed=seed, n=150, n_groups=3)
        rng = generator(seed)
        y = X[:, 0] + 0.3 * X[:, 1] + rng.logistic(size=150) > (seed % 3) - 1
        given = {"loss": "auc" if seed == 2 else "log_loss", "max_disparity": 0.01}
        model = PartialParityClassifier((0.1, 0.5), constraint, **given)
        scores = model.fit(X, y, sensitive_features=group).decision_function(X)
        assert roc_auc_score(y, scores) >= 0.5 - 1e-9
        if seed != 2:
            free = LogisticRegression().fit(X, y).score(X, y)
            assert np.mean((scores > 0) == y) >= min(free, max(y.mean(), 1 - y.mean())) - 1e-9


@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("scale", ["conditional", "ccdf"])
def test_constraints_are_objects_with_limits_of_their_own(aware, scale):
    X, y, group = data = people(n=600, shift=2.0)
    own = {"scale": scale, "group_aware": aware, "data": data}
    model = fit((0.1, 0.6), FalsePositiveParity(0.05), None, **own)
    named = fit((0.1, 0.6), "false_positive_parity", 0.05, **own)
    np.testing.assert_array_equal(scores_of(model, X, group), scores_of(named, X, group))
    assert model.effective_disparity_ == 0.05
    covered = []
    for one in "ab":
        rank = np.mean(scores_of(model, X, group)[(group == one) & (y == 0)] > 0)
        covered.append((np.clip(rank, 0.1, 0.6) - 0.1) / (0.5 if scale == "conditional" else 1))
    assert model.train_disparity_ == pytest.approx(abs(np.subtract(*covered)), abs=1e-9)
    assert model.is_within_limit_
    unlimited = fit((0.1, 0.6), IntervalConstraint(FalsePositiveParity()), 1.0, **own)
    assert unlimited.train_disparity_ > 0.1 * (1 if scale == "conditional" else 0.5)
    assert 0 < model.noise_floor_ < 0.25
    held_out = model.disparity_upper_bound(X, y, sensitive_features=group)
    assert held_out > model.train_disparity_
    with pytest.raises(ValueError, match="looks at classes: pass y"):
        model.disparity_upper_bound(X, sensitive_features=group)
    calibrator = PartialParityCalibrator(None, (0.1, 0.6), FalsePositiveParity(0.05))
    assert calibrator.fit(X, y, sensitive_features=group).is_within_limit_
    assert calibrator.effective_disparity_ == 0.05


@pytest.mark.parametrize("limit", [0.1, 0.15])
def test_of_all_forms_and_rounds_the_best_solution_is_kept(limit):
    """The most accurate one within the limit, and each round goes on from the last one."""
    X, y, group = data = people(shift=2.0)
    seen, last = [], {}

    class Recorder(ALLBFGS):
        def solve(self, problem, theta, multipliers=None, **params):
            begins_anew, model_part = multipliers is None, problem.model_part(theta)
            assert begins_anew or np.array_equal(theta, last["theta"])
            if begins_anew:  # from the model without limits
                assert np.array_equal(model_part, last.setdefault("free", model_part))
            else:  # as much stricter or looser as the last round says
                change = np.clip(0.96 * limit / max(last["gap"], 1e-3 * limit), 0.5, 1.5)
                assert problem.tolerance == pytest.approx(change * last["tolerance"])
            result = super().solve(problem, theta, multipliers, **params)
            last["theta"] = result.theta
            coef, intercept = problem.model.raw(problem.model_part(result.theta))
            ranges = np.ptp(problem.model.X, axis=0)  # of columns, which the fit has sorted
            order = [int(np.abs(np.ptp(X, axis=0) - each).argmin()) for each in ranges]
            scores = X[:, order] @ coef + intercept
            gap = disparity("equalized_odds", "conditional", y, scores, group, (0.1, 0.6))
            last.update(gap=gap, tolerance=problem.tolerance)
            seen.append((begins_anew, gap <= limit + 1e-9, np.mean((scores > 0) == y)))
            return result

    model = fit((0.1, 0.6), "equalized_odds", limit, data=data, solver=Recorder())
    assert sum(begins_anew for begins_anew, *_ in seen) == 4  # forms
    assert model.n_solves_ == len(seen) > 4
    within = [accuracy for _, is_within, accuracy in seen if is_within]
    assert min(within) < max(within) - 0.01
    assert model.is_within_limit_
    assert model.score(X, y) == pytest.approx(max(within), abs=1e-12)


@pytest.mark.parametrize("constraint", ["statistical_parity", "group_auc"])
@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
def test_scores_of_any_spread_need_few_rounds(constraint, alpha):
    """Steps are as wide as scores are spread, so a strong penalty makes a problem no harder."""
    models = [
        fit((0.1, 0.6), constraint, 0.1, alpha=alpha, data=people(seed=seed, n=1000))
        for seed in range(8)
    ]
    # All were, in 240 samples, and rounds were 2.4 +- 0.7.
    assert sum(model.is_within_limit_ for model in models) >= 6
    assert np.mean([model.n_solves_ for model in models]) <= 3.7


@pytest.mark.parametrize("constraint", ["statistical_parity", "equalized_odds"])
def test_a_row_of_weight_two_is_two_rows_in_all_rounds(constraint):
    """In short rounds: long ones end where rounding decides. So do 1% of short ones (of 300)."""
    n_same = 0
    for seed in range(8):
        X, y, group = people(seed=seed, n=500, shift=2.0)
        times = generator(seed).integers(0, 4, y.size)
        again = np.repeat(np.arange(y.size), times)
        own = {"alpha": 0.01, "random_state": 0, "max_iter": 10}
        one, two = (
            fit((0.1, 0.6), constraint, 0.3, data=(X[rows], y[rows], group[rows]), **weights, **own)
            for rows, weights in ((slice(None), {"sample_weight": times * 1.0}), (again, {}))
        )
        is_same = np.allclose(one.coef_, two.coef_, rtol=0, atol=1e-6)
        n_same += is_same and one.n_solves_ == two.n_solves_ > 1
    assert n_same >= 4


def test_nothing_is_solved_after_a_problem_that_was_stopped():
    calls = []

    class Impatient(ALLBFGS):
        def solve(self, problem, theta, multipliers=None, **params):
            params["callback"] = lambda theta: calls.append(theta) or True
            return super().solve(problem, theta, multipliers, **params)

    model = fit((0.1, 0.6), "demographic_parity", 0.02, solver=Impatient())
    assert model.n_solves_ == len(calls) == 1


def test_residuals_are_largest_entries():
    """As those of ConstrainedERMClassifier, which are compared with ``tol`` too."""
    X, y, _ = people()
    model = fit((0.1, 0.6), max_disparity=1.0, alpha=0.0, max_iter=2)
    slopes = -np.where(y, 1, -1) / (1 + np.exp(np.where(y, 1, -1) * model.decision_function(X)))
    columns = np.c_[(X - X.mean(0)) / X.std(0), np.ones(len(y))]
    largest = np.abs(columns.T @ slopes / len(y)).max()
    assert largest > 1e-6
    assert model.kkt_residual_ == pytest.approx(largest, rel=1e-6)


# --- the smooth problem -----------------------------------------------------------------------


def test_surrogate_enforcement_solves_the_smooth_problem():
    X, y, group = people()
    model = fit((0.1, 0.6), max_disparity=0.1, enforce="surrogate", alpha=0.01)
    assert (model.n_solves_, model.status_) == (1, "converged")
    assert model.kkt_residual_ <= 1e-3
    scores, shares = model.decision_function(X), (np.arange(10) + 0.5) / 10 * 0.9
    signs = set()
    for name, lam in zip(model.constraint_names_, model.multipliers_, strict=True):
        k, share = name.split(" at ")
        p = int(np.argmin(np.abs(shares - float(share))))
        soft = step(scores - model.percentile_thresholds_[p], "smoothstep", 0.6)
        rank = soft[group == k].mean()
        low = 0.1 + 0.5 * shares[p]
        assert low - 1e-3 <= rank <= low + 0.5 * 0.1 + 1e-3
        if abs(lam) > 1e-3:  # a positive multiplier presses on the upper bound
            assert rank == pytest.approx(low + 0.5 * 0.1 * (lam > 0), abs=1e-3)
            signs.add(np.sign(lam))
    assert signs == {-1, 1}
    np.testing.assert_allclose(model.objective_, objective(model, X, y, "log_loss"), rtol=1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_all_documented_attributes_are_set(mode):
    model = fit((0.1, 0.6), max_disparity=0.2, **MODES[mode])
    documented = documented_parameters(PartialParityClassifier.__doc__, "Attributes")
    elsewhere = {"summary_", "model_", "parameters_", "feature_names_in_", "path_"}
    elsewhere |= {n for n in documented if n.startswith(("p_value", "certified_dis"))}
    assert set(documented) - elsewhere == {name for name in vars(model) if name.endswith("_")}


LOSSES = {
    "log_loss": lambda m: np.logaddexp(0, -m),
    "squared_error": lambda m: (1 - m) ** 2 / 2,
    "squared_hinge": lambda m: np.maximum(0, 1 - m) ** 2,
}


def objective(model, X, y, loss, move=0.0, shift=0.0):
    w = model.coef_[0] + move
    margins = (2 * y - 1) * (X @ w + model.intercept_[0] + shift)
    alpha = 1 / len(y) if model.alpha is None else model.alpha
    return LOSSES[loss](margins).mean() + alpha / 2 * w @ w


@pytest.mark.parametrize("loss", LOSSES)
def test_a_constraint_that_does_not_bind_leaves_the_best_model(loss):
    X, y, _ = people()
    model = fit(max_disparity=1.0, loss=loss, tol=1e-8)
    best = objective(model, X, y, loss)
    assert model.objective_ == pytest.approx(best)
    rng = generator(0)
    for size in np.repeat([1e-2, 0.3], 20):
        moved = objective(model, X, y, loss, *(size * rng.normal(size=2)))
        assert moved > best
        moved = objective(model, X, y, loss, size * rng.normal(size=3))
        assert moved > best


@pytest.mark.parametrize("loss", ["hinge", "auc", "partial_auc"])
def test_other_losses_rank_as_well(loss):
    X, y, group = people(n=1000)
    half = slice(500)
    plain = LogisticRegression().fit(X[half], y[half]).decision_function(X[500:])
    model = fit((0.1, 0.5), max_disparity=1.0, loss=loss, data=(X[half], y[half], group[half]))
    check_promise(model, X[half], y[half], group[half])
    ranking = roc_auc_score(y[500:], model.decision_function(X[500:]))
    assert ranking > roc_auc_score(y[500:], plain) - 0.02
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as caught:
        model.predict_proba(X)
    assert "needs loss='log_loss'" in str(caught.value.__cause__)


@pytest.mark.parametrize("constraint", ["demographic_parity", "equal_opportunity"])
def test_smooth_problems_are_compared_by_themselves(constraint):
    """Whichever form has the least loss within its smooth constraint wins; so can the paper's."""
    models = {
        enforce: fit((0.05, 0.3), constraint, 0.1, solver="al_lbfgs", enforce=enforce)
        for enforce in ("surrogate", "paper")
    }
    assert models["paper"].n_solves_ == 1
    assert models["surrogate"].n_solves_ == 4
    reached = {name: model.history_["max_violation"][-1] for name, model in models.items()}
    if reached["paper"] <= 1e-3:
        assert reached["surrogate"] <= 1e-3
        assert models["surrogate"].objective_ <= models["paper"].objective_ + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_partial_auc_is_no_worse_than_log_loss_or_constant_scores(seed):
    rng = generator(seed)
    X, y, group = people(seed, n=300)
    X = np.c_[X.round(), rng.integers(0, 2, (300, 2))]  # ties: blocks of rows
    check_partial_auc(X, y, group)


@pytest.mark.skipif(not os.environ.get("SKFAIR_DATA"), reason="needs the folder of data sets")
@pytest.mark.data
@pytest.mark.parametrize("seed", range(6))
def test_partial_auc_on_compas(seed):
    data = load_local("compas")
    rows = generator(seed).choice(len(data.data), 1000, replace=False)
    X = pd.get_dummies(data.data).to_numpy(dtype=float)[rows]
    X = StandardScaler().fit_transform(X[:, X.std(axis=0) > 0])
    check_partial_auc(X, data.target.to_numpy()[rows], data.sensitive_features["sex"].iloc[rows])


def check_partial_auc(X, y, group):
    """By all pairs: the loss, and the share of pairs in the right order."""
    found, objectives = {}, {}
    for loss in ("partial_auc", "log_loss"):
        model = fit((0.1, 0.5), max_disparity=0.1, loss=loss, data=(X, y, np.asarray(group)))
        scores = model.decision_function(X)
        gap = disparity("statistical_parity", "conditional", y, scores, group, (0.1, 0.5))
        assert gap <= 0.1 + 1e-9
        negatives = scores[y == 0]
        masses = naive.overlap_masses(negatives, np.ones(negatives.size), [(0.1, 0.5)])
        above = scores[y == 1][:, None] - negatives
        found[loss] = np.heaviside(above, 0.5).mean(axis=0) @ masses
        objectives[loss] = (np.maximum(1 - above, 0.0) ** 2).mean(axis=0) @ masses
    assert found["partial_auc"] >= found["log_loss"] - 1e-9
    assert objectives["partial_auc"] <= 1.0 + 1e-3  # that of constant scores, or nearly


# --- weights of groups ------------------------------------------------------------------------


def test_small_groups_share_weights():
    rng = generator(0)
    X, y, _ = people(n=500)
    group = np.repeat(["a", "b", "c"], [456, 22, 22])
    y = np.where(group == "a", y, rng.integers(0, 2, 500))
    data = (X, y, group)

    with pytest.warns(UserWarning, match="fewer than 30"):
        model = fit(group_aware=True, max_disparity=1.0, data=data)
    np.testing.assert_array_equal(model.coef_[1], model.coef_[2])
    assert not np.allclose(model.coef_[0], model.coef_[1])
    assert len(set(model.intercept_)) == 3


@pytest.mark.parametrize("mode", ["repair", "al_lbfgs blind"])
def test_displays(mode):
    plt = pytest.importorskip("matplotlib.pyplot")
    inspection = pytest.importorskip("skfair.inspection")
    plt.switch_backend("Agg")
    X, y, group = people()
    model = fit((0.1, 0.6), max_disparity=0.2, **MODES[mode])
    scores, given = (
        scores_of(model, X, group),
        {"sensitive_features": group, "interval": (0.1, 0.6)},
    )
    densities = inspection.GroupScoreDisplay.from_estimator(model, X, y, **given)
    for name, shown in zip(densities.group_names, densities.scores, strict=True):
        np.testing.assert_array_equal(np.sort(shown), np.sort(scores[group == name]))
    curves = inspection.CCDFCurveDisplay.from_estimator(model, X, y, **given)
    expected = inspection.CCDFCurveDisplay.from_predictions(y, scores, **given)
    np.testing.assert_array_equal(curves.group_rates, expected.group_rates)
    assert len(curves.bands_) == 2
    plt.close("all")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # at so tight a limit
def test_limits_of_attributes_and_few_rows():
    X, y, sex = people(n=800)
    both = pd.DataFrame({"sex": sex, "age": np.arange(y.size) % 2})
    with pytest.warns(UserWarning, match=r"max_disparity\['age'\]=0.0001 is less than one row"):
        model = PartialParityClassifier(
            max_disparity={"sex": 0.2, "age": 0.0001},
            sensitive=Sensitive(intersectional=False),
            enforce="surrogate",
        ).fit(X, y, sensitive_features=both)
    assert model.effective_disparity_["sex"] == 0.2
    assert 0.0001 < model.effective_disparity_["age"] < 0.2
    with pytest.raises(ValueError, match=r"Sensitive\(intersectional=False\)"):
        PartialParityClassifier(max_disparity={"sex": 0.2, "age": 0.1}).fit(
            X, y, sensitive_features=both
        )
    own = pd.DataFrame({"sex": sex})
    one = PartialParityCalibrator(max_disparity={"sex": 0.1}).fit(X, y, sensitive_features=own)
    same = PartialParityCalibrator(max_disparity=0.1).fit(X, y, sensitive_features=own)
    assert one.is_within_limit_
    assert one.effective_disparity_ == same.effective_disparity_
    given = {"sensitive_features": own}
    assert one.decision_function(X, **given) == pytest.approx(same.decision_function(X, **given))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("constraint", "limit"), [("statistical_parity", 0.05), ("group_auc", 0.02)]
)
def test_scores_have_the_size_of_least_loss_however_the_model_was_found(constraint, limit, seed):
    """Random moves and rounds that end early leave scores of any size; the limit is on ranks."""
    rng = generator(seed)
    group = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 3))
    X[:, 0] += 0.7 * group
    y = (X[:, 0] + X[:, 1] + rng.normal(size=300) > 0.9).astype(int)
    model = PartialParityClassifier((0.1, 0.6), constraint, limit, random_state=0)
    scores = model.fit(X, y, sensitive_features=group).decision_function(X)
    norm = model.coef_[0] @ model.coef_[0]

    def objective(factor):
        loss = np.logaddexp(0, np.where(y == 1, -1, 1) * factor * scores).mean()
        return loss + 0.5 / 300 * factor**2 * norm

    # The least factor that is tried leaves this much of scores that are worth nothing.
    room = 2**-8 * np.abs(scores).max() + 1e-9
    assert objective(1) <= min(objective(0.25), objective(0.5), objective(2), objective(4)) + room
    assert objective(1) == pytest.approx(model.objective_)


@pytest.mark.filterwarnings("ignore::UserWarning")  # the limit is violated
@pytest.mark.parametrize("holder", [np.asarray, sparse.csr_array])
def test_no_order_matters_where_the_limit_is_violated(holder):
    rng = generator(0)
    group = rng.integers(0, 3, 150)
    X = rng.normal(size=(150, 3)) + 0.7 * group[:, None]
    y = (X[:, 0] + X[:, 1] + rng.normal(size=150) > 1.5).astype(int)
    rows, columns = rng.permutation(150), np.array([2, 0, 1])
    how = {"max_disparity": 0.05, "max_iter": 10}
    models = [PartialParityClassifier((0.1, 0.6), **how) for _ in range(3)]
    models[0].fit(holder(X), y, sensitive_features=group)
    models[1].fit(holder(X[rows]), y[rows], sensitive_features=group[rows])
    models[2].fit(holder(X[:, columns]), y, sensitive_features=group)
    assert models[0].status_ == "infeasible"
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert np.array_equal(models[0].coef_[:, columns], models[2].coef_)


@pytest.mark.filterwarnings("ignore:.*fewer than 30 rows")
def test_rows_of_weight_0_give_no_group_weights_of_its_own():
    X, y, group = people()
    kept = (group == "a") | (np.cumsum(group == "b") <= 20)  # too few for weights of their own
    params = {"group_aware": True, "max_disparity": 0.3}
    few = fit(data=(X[kept], y[kept], group[kept]), **params)
    padded = fit(data=(X, y, group), sample_weight=kept.astype(float), **params)
    np.testing.assert_allclose(padded.coef_, few.coef_, atol=1e-6)
