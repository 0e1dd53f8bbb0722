"""What limits do to predicted numbers: what ``changes_`` holds, and when R2 is warned of."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair import Certificate, Sensitive
from skfair.constraints import ConditionalOn
from skfair.exceptions import ExplainedVarianceWarning
from skfair.model_selection import fairness_path
from skfair.regression import ConstrainedERMRegressor, FairDecisionRegressor
from tests.seeds import generator

ANY_R2 = pytest.mark.filterwarnings("ignore::skfair.exceptions.ExplainedVarianceWarning")


def shifted(n=2000, unit=1.0):
    """Return rows whose groups differ in a useful column, so that equal means cost much."""
    rng = generator()
    sex = np.where(np.arange(n) % 2 == 0, "f", "m")
    X = rng.normal(size=(n, 3))
    X[:, 0] += 1.5 * (sex == "m")
    return X, unit * (X[:, 0] + X[:, 1] + 0.7 * rng.normal(size=n)), sex


def noisy(n=600, unit=1.0):
    """Return rows of two groups, of which one has 16 times the squared error of the other."""
    rng = generator()
    group = np.where(np.arange(n) % 2 == 0, "calm", "wild")
    X = rng.normal(size=(n, 3))
    noise = np.where(group == "wild", 2.0, 0.5) * rng.normal(size=n)
    return X, unit * (X[:, 0] + X[:, 1] + noise), group


def said_by(model, X, y, groups, **options):
    """Fit a model; return it with what it said of R2."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sensitive_features=groups, **options)
    return model, [str(w.message) for w in caught if w.category is ExplainedVarianceWarning]


def predictions(model, X):
    return model.train_predictions_ if hasattr(model, "train_predictions_") else model.predict(X)


def mean(y, predicted, sample_weight):
    return np.average(predicted, weights=sample_weight)


APART = Sensitive(intersectional=False)
MODELS = {
    "means": ConstrainedERMRegressor(),
    "losses": ConstrainedERMRegressor("loss_parity"),
    "absolute errors": ConstrainedERMRegressor(loss="absolute_error"),
    "attributes": ConstrainedERMRegressor(sensitive=APART),
    "strata": ConstrainedERMRegressor(ConditionalOn("mean_score_parity")),
    "blind": FairDecisionRegressor(),
    "aware": FairDecisionRegressor(group_aware=True),
    "maps of attributes": FairDecisionRegressor(sensitive=APART, group_aware=True),
}


@ANY_R2
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("kind", MODELS)
def test_changes_are_those_of_means_errors_and_r2_for_all_and_for_each_group(kind, is_weighted):
    X, y, sex = shifted(400)
    rng, model = generator(1), MODELS[kind]
    table = pd.DataFrame({"sex": sex, "age": rng.choice(["new", "old"], y.size)})
    weights = rng.integers(1, 4, y.size) if is_weighted else None
    is_single = model.sensitive is None
    given = {"sensitive_features": table["sex"] if is_single else table, "sample_weight": weights}
    if kind == "strata":
        given["control_features"] = table["age"]
    free, own = (clone(model).set_params(max_disparity=limit) for limit in (1e6, 0.2))
    before, after = (predictions(one.fit(X, y, **given), X) for one in (free, own))
    name, error = "mean squared error", mean_squared_error
    if kind == "absolute errors":
        name, error = "mean absolute error", mean_absolute_error
    measures = {"mean prediction": mean, name: error, "R2": r2_score}
    assert list(own.changes_) == list(measures)
    groups = {label if is_single else f"sex={label}": sex == label for label in ("f", "m")}
    for key, measure in measures.items():
        change = own.changes_[key]
        assert groups.keys() <= change.by_group.keys()
        for group, rows in {None: np.full(y.size, True), **groups}.items():
            stages = change if group is None else change.by_group[group]
            found = stages.before, stages.without_limits, stages.after
            of = {"sample_weight": None if weights is None else weights[rows]}
            wanted = [measure(y[rows], p[rows], **of) for p in (before, before, after)]
            assert found == pytest.approx(wanted, rel=1e-4, abs=1e-5)
    r2, means = own.changes_["R2"], own.changes_["mean prediction"]
    assert f"R2 {r2.before:.2f} -> {r2.after:.2f}" in own.summary_
    assert f"mean prediction {means.before:.4g} -> {means.after:.4g}" in own.summary_
    grown = np.abs(after - y) - np.abs(before - y)
    is_clear = np.abs(grown) > 1e-4  # two solutions without limits differ by less
    assert (grown[is_clear] > 0).sum() <= own.changes_[name].rows_up <= y.size


def test_targets_that_are_all_equal_have_no_r2():
    X, _, sex = shifted(200)
    for model in (ConstrainedERMRegressor(), FairDecisionRegressor()):
        model.fit(X, np.full(200, 50_000.1), sensitive_features=sex)
        assert np.isnan(model.changes_["R2"].after)
        assert "R2" not in model.summary_
        y = np.where(sex == "m", 3.0, X[:, 1])
        said_by(model, X, y, sex)
        r2 = model.changes_["R2"]
        assert np.isfinite([*r2.by_group["f"], r2.after]).all()
        assert np.isnan(r2.by_group["m"]).all()


@pytest.mark.parametrize("unit", [1.0, 50_000.0])
@pytest.mark.parametrize("constraint", ["loss_parity", "excess_loss"])
def test_a_limit_kept_by_larger_errors_is_said_and_its_remedy_runs(constraint, unit):
    X, y, group = noisy(unit=unit)
    weights = generator(1).integers(1, 3, y.size)
    model = ConstrainedERMRegressor(constraint, 0.1 * unit**2)
    model, said = said_by(model, X, y, group, sample_weight=weights)
    errors, r2 = model.changes_["mean squared error"].by_group, model.changes_["R2"]
    assert r2.after < 2 / 3 * r2.before
    assert errors["calm"].after > 3 * errors["calm"].before
    (text,) = said
    assert f"from {r2.before:.2f} to {r2.after:.2f}" in text
    grown = f"{errors['calm'].before:.4g} -> {errors['calm'].after:.4g}"
    assert f"errors of group 'calm' larger (mean squared error {grown})" in text
    kept_by = f"limit kept by larger errors of group 'calm' (mean squared error {grown})"
    assert kept_by in model.summary_
    # What the warning says to write is written.
    limit = float(re.search(r"'bounded_group_loss' and max_disparity=([\d.e+-]+\d)", text)[1])
    mended = ConstrainedERMRegressor("bounded_group_loss", limit)
    mended.fit(X, y, weights, sensitive_features=group)  # no warning
    assert mended.status_ == "converged"
    assert mended.changes_["R2"].after > 0.9 * r2.before
    assert "limit kept" not in mended.summary_
    # Another fit of the same object forgets it, and so does one in which the limit does not bind.
    model.set_params(max_disparity=1e6 * unit**2).fit(X, y, sensitive_features=group)
    assert "limit kept" not in model.summary_


@pytest.mark.parametrize("group_aware", [False, True])
@pytest.mark.parametrize("unit", [1.0, 50_000.0])
def test_equal_losses_by_maps_are_said_and_the_remedy_runs(group_aware, unit):
    X, y, group = noisy(unit=unit)
    X = np.column_stack([X, group == "wild"])  # blind predictions know the group as well
    free = FairDecisionRegressor(constraint="loss_parity", max_disparity=1e9 * unit**2)
    free.fit(X, y, sensitive_features=group)
    limit = 0.6 * free.train_disparity_
    model = FairDecisionRegressor(
        constraint="loss_parity", max_disparity=limit, group_aware=group_aware
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Columns of X tell", UserWarning)
        model, said = said_by(model, X, y, group)
    errors = model.changes_["mean squared error"].by_group["calm"]
    assert model.status_ == "converged"
    change = f"(mean squared error {errors.before:.4g} -> {errors.after:.4g})"
    assert f"limit kept by larger errors of group 'calm' {change}" in model.summary_
    for text in said:  # whether a third is lost depends on the draw
        assert f"errors of group 'calm' larger {change}" in text
        call = re.search(r"ConstrainedERMRegressor\(.*?\)", text)[0]
        mended = eval(call, {"ConstrainedERMRegressor": ConstrainedERMRegressor})
        assert mended.fit(X, y, sensitive_features=group).status_ == "converged"


@pytest.mark.parametrize("unit", [1.0, 50_000.0])
def test_equal_means_are_warned_of_and_the_group_makes_them_cheap(unit):
    X, y, sex = shifted(unit=unit)
    order = generator(1).permutation(y.size)
    trained = ConstrainedERMRegressor(max_disparity=0.05 * unit)
    maps = FairDecisionRegressor(constraint="mean_score_parity", max_disparity=0.05 * unit)
    for model in (trained, maps):
        model, (text,) = said_by(model, X, y, sex)
        r2 = model.changes_["R2"]
        assert r2.after < 2 / 3 * r2.before
        assert f"R2 on the training rows from {r2.before:.2f} to {r2.after:.2f}." in text
        assert "larger" not in text
        assert "Raise max_disparity, or let predictions use the group" in text
        _, (again,) = said_by(clone(model), X[order], y[order], sex[order])
        assert re.sub(r"\d", "", again) == re.sub(r"\d", "", text)
        mended = clone(maps).set_params(group_aware=True)
        if model is trained:
            call = re.search(r"FairDecisionRegressor\(.*\)", text)[0]
            mended = eval(call, {"FairDecisionRegressor": FairDecisionRegressor})
        mended.fit(X, y, sensitive_features=sex)  # no warning
        assert mended.changes_["R2"].after > 0.75 * r2.before
        assert mended.train_disparity_ <= 0.05 * unit * (1 + 1e-5)


QUIET = {
    "a limit that binds nothing": (shifted, "mean_score_parity", 1e3),
    "a limit that costs little": (shifted, "mean_score_parity", 1.0),
    "equal losses that are equal already": (shifted, "loss_parity", 0.5),
}


@pytest.mark.parametrize("case", QUIET)
@pytest.mark.parametrize("kind", [ConstrainedERMRegressor, FairDecisionRegressor])
def test_limits_that_cost_little_are_not_warned_of(kind, case):
    rows, constraint, limit = QUIET[case]
    X, y, sex = rows()
    model = kind(constraint=constraint, max_disparity=limit).fit(X, y, sensitive_features=sex)
    assert model.changes_["R2"].after > 0.7
    assert "limit kept" not in model.summary_


@pytest.mark.parametrize("kind", [ConstrainedERMRegressor, FairDecisionRegressor])
@pytest.mark.parametrize("constraint", ["mean_score_parity", "loss_parity"])
def test_a_model_that_explains_nothing_has_nothing_to_lose(kind, constraint):
    X, _, sex = shifted(600)
    y = generator(1).normal(size=600)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # FairDecisionRegressor misses losses
        warnings.filterwarnings("ignore", ".*nearly constant")
        model, said = said_by(kind(constraint=constraint, max_disparity=0.01), X, y, sex)
    assert said == [] or model.changes_["R2"].after < -1


def test_a_weak_model_that_becomes_worse_than_the_mean_is_warned_of():
    X, y, group = noisy()
    y -= 0.9 * (X[:, 0] + X[:, 1])  # R2 is 0.01
    model, (text,) = said_by(ConstrainedERMRegressor("loss_parity", 0.1), X, y, group)
    assert model.changes_["R2"].before < 0.1
    assert model.changes_["R2"].after < -1
    assert "the mean of y would predict them better" in text


@pytest.mark.filterwarnings("ignore:Columns of X tell:UserWarning")
def test_a_call_warns_once():
    X, y, sex = shifted(400)
    rows = pd.DataFrame(X, columns=list("abc")).assign(sex=sex)
    inner = ConstrainedERMRegressor(max_disparity=0.05, sensitive="sex")
    around = FairDecisionRegressor(inner, "mean_score_parity", 1e3)
    _, said = said_by(around, rows, y, sex)
    assert len(said) == 1
    piped = make_pipeline(StandardScaler(), ConstrainedERMRegressor(max_disparity=0.05))
    with pytest.warns(ExplainedVarianceWarning) as caught:
        piped.fit(X, y, constrainedermregressor__sensitive_features=sex)
    assert len(caught) == 1
    limits = [1.0, 0.1, 0.05]
    path = fairness_path(  # its scores show what the limits cost, so no fit warns
        ConstrainedERMRegressor(),
        X,
        y,
        sensitive_features=sex,
        max_disparities=limits,
        scoring="r2",
    )
    assert path.train_scores[-1] < 2 / 3 * path.train_scores[0]


@pytest.mark.parametrize("by", ["cross", "split"])
def test_a_certified_model_that_explains_little_warns_once(by):
    X, y, sex = shifted(1000)
    certificate = Certificate(0.95, by=by)
    model = ConstrainedERMRegressor(max_disparity=0.3, certificate=certificate, random_state=0)
    model, said = said_by(model, X, y, sex)
    r2 = model.changes_["R2"]
    assert r2.after < 2 / 3 * r2.before
    assert len(said) == (model.status_ == "certified")


def test_predictions_that_are_nearly_constant_are_warned_of_once():
    """The only column tells the group, so that equal distributions leave nothing."""
    _, y, sex = shifted(600)
    X = (sex == "m")[:, None] * 1.0
    model = FairDecisionRegressor(LinearRegression(), "kolmogorov", 0.01)
    with pytest.warns(ExplainedVarianceWarning, match="nearly constant") as caught:
        model.fit(X, y, sensitive_features=sex)
    assert len([w for w in caught if "Columns of X" not in str(w.message)]) == 1
