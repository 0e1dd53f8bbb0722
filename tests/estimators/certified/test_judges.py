"""Certificates of models as a whole: what judges say, against public tests on the same rows."""

from functools import partial as partial_of

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skfair import Certificate, Sensitive, metrics
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.constraints import ConditionalOn, MeanScoreParity
from skfair.regression import ConstrainedERMRegressor
from tests.families import rows_of_families
from tests.seeds import generator

# Limits on small samples are tight here. tests/estimators/test_explained.py is about the warning.
pytestmark = pytest.mark.filterwarnings("ignore:The limits lower R2")

OPTIONS = {"certificate": 0.95, "random_state": 0}
SURE = 1 - 1e-7  # what is certified holds for new people, in tests with any seed


def options(level=0.95, **certificate):
    """What asks for a certificate of some kind."""
    return {**OPTIONS, "certificate": Certificate(level, **certificate)}


def people(n, seed=0, shift=0.8):
    rng = generator(seed)
    group = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3))
    X[:, 0] += shift * group
    y = (X[:, 0] + X[:, 1] + rng.normal(size=n) > 0.9).astype(int)
    return X, y, np.array(["a", "b"])[group]


TRAIN, EVERYBODY = people(8000), people(100_000, seed=1)


def amounts(X, seed=0):
    return 10 * X[:, 0] + generator(seed).normal(size=X.shape[0])


def fitted(model, y=None, n=3000, **given):
    X, labels, groups = (one[:n] for one in TRAIN)
    return model.fit(X, labels if y is None else y, sensitive_features=groups, **given)


@pytest.mark.parametrize("certify", ["cross", "split"])
@pytest.mark.parametrize(
    ("constraint", "metric", "limit"),
    [
        ("demographic_parity", metrics.demographic_parity_difference, 0.25),
        ("equalized_odds", metrics.equalized_odds_difference, 0.35),
    ],
)
def test_decisions_of_constrained_models_keep_limits_for_new_people(
    constraint, metric, limit, certify
):
    model = ConstrainedERMClassifier(constraint, limit, **options(SURE, by=certify))
    X, y, groups = people(8000, shift=1.2)
    model.fit(X, y, sensitive_features=groups)
    X, y, groups = people(100_000, seed=1, shift=1.2)
    predicted = model.predict(X)
    assert model.status_ == "certified"
    assert metric(y, predicted, sensitive_features=groups) <= limit
    assert (predicted == y).mean() > 0.6
    assert model.p_value_ <= 1 - SURE
    assert model.certified_disparity_ <= limit + 1e-6
    path = model.path_
    last = np.flatnonzero(path["is_certified"])[-1]
    assert path["p_value"][last] == model.p_value_
    assert path["bound"][last] == model.certified_disparity_
    assert (model.predict_proba(X)[:, 1] > 0.5).tolist() == (predicted == 1).tolist()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of uneven weights
def test_strata_and_weights_and_columns_are_certified():
    X, y, groups = (one[:3000] for one in TRAIN)
    job = generator(3).choice(["u", "v"], 3000)
    model = ConstrainedERMClassifier(ConditionalOn("demographic_parity"), 0.3, **OPTIONS)
    model.fit(X, y, sensitive_features=groups, control_features=job)
    assert model.status_ == "certified"
    table = np.column_stack([X, groups == "b"])
    model = ConstrainedERMClassifier(max_disparity=0.15, sensitive=3, **OPTIONS)
    model.fit(table, y)
    assert (
        model.predict(table).tolist()
        == fitted(ConstrainedERMClassifier(max_disparity=0.15, **OPTIONS)).predict(X).tolist()
    )
    uneven = np.where(np.arange(3000) % 10 == 0, 1000.0, 1.0)
    paths = []
    for weights in (None, np.ones(3000), uneven):
        model = ConstrainedERMClassifier(max_disparity=0.3, **options(by="split"))
        paths.append(model.fit(X, y, weights, sensitive_features=groups).path_)
    assert paths[0]["bound"] == pytest.approx(paths[1]["bound"], abs=1e-6)
    # 1 row of 10 counts: 750 people of a group are worth as few as 75.
    assert paths[2]["p_value"][0] > paths[0]["p_value"][0]


def test_a_split_certificate_is_that_of_the_public_test_on_the_rows_that_judge(monkeypatch):
    """A half of the rows judges, and the models of all steps are fitted on the other one."""
    seen, (X, y, groups) = [], (one[:3000] for one in TRAIN)
    predict = ConstrainedERMClassifier.predict

    def noted(self, rows):
        seen.append((rows, predict(self, rows)))
        return seen[-1][1]

    monkeypatch.setattr(ConstrainedERMClassifier, "predict", noted)
    model = fitted(ConstrainedERMClassifier(max_disparity=0.15, **options(by="split")))
    for step, (rows, predicted) in enumerate(seen):
        at = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in rows]
        assert len(at) == 1500
        given = {"sensitive_features": groups[at], "max_disparity": 0.15, "method": "melded"}
        found = metrics.disparity_test("demographic_parity", y[at], predicted, **given)
        assert found.p_value == pytest.approx(model.path_["p_value"][step], abs=1e-6)
        assert found.statistic == pytest.approx(model.path_["disparity"][step])
        assert np.mean(y[at] == predicted) == pytest.approx(model.path_["accuracy"][step])


@pytest.mark.parametrize("certify", ["cross", "split"])
def test_a_regressor_keeps_limits_on_means_for_new_people(certify):
    X, _, groups = EVERYBODY
    model = ConstrainedERMRegressor(max_disparity=3.0, **options(SURE, by=certify))
    model = fitted(model, amounts(TRAIN[0]), n=8000)
    gap = metrics.mean_score_difference(None, model.predict(X), sensitive_features=groups)
    assert model.status_ == "certified"
    assert 1.5 < gap <= 3.0
    assert model.certified_disparity_ <= 3.0 + 1e-5
    path = model.path_
    assert (np.diff(path["disparity"]) > 0).all()
    assert (path["bound"] >= path["disparity"]).all()
    assert path["r2"][-1] > path["r2"][0]


def test_the_limit_of_a_constraint_within_strata_is_judged():
    y, job = amounts(TRAIN[0])[:3000], generator(3).choice(["u", "v"], 3000)
    own, other = (
        fitted(ConstrainedERMRegressor(constraint, **limit, **OPTIONS), y, control_features=job)
        for constraint, limit in [
            (ConditionalOn(MeanScoreParity(max_disparity=2.0)), {}),
            (ConditionalOn("mean_score_parity"), {"max_disparity": 2.0}),
        ]
    )
    assert own.status_ == other.status_
    assert own.p_value_ == other.p_value_
    assert own.path_["p_value"].tolist() == other.path_["p_value"].tolist()


def test_means_keep_their_limit_after_a_shift_within_the_range_of_predictions():
    X, _, groups = EVERYBODY
    y, gaps = amounts(TRAIN[0]), []
    for shift in (0.0, 0.05):
        model = ConstrainedERMRegressor(max_disparity=4.0, **options(SURE, shift=shift))
        model = fitted(model, y, n=8000)
        assert model.status_ == "certified"
        ends = model.predict(TRAIN[0])
        means = [model.predict(X[groups == name]).mean() for name in ("a", "b")]
        gaps.append(0.95 * (means[1] - means[0]) + 0.05 * float(np.ptp(ends)))
    assert gaps[1] <= 4.0 < gaps[0]


NOTHING = {
    "shift": (
        ConstrainedERMRegressor(max_disparity=0.5, **options(shift=0.3)),
        {"y": amounts(TRAIN[0])[:3000]},
        "more people|larger max_disparity",
    ),
    **{
        f"few, {certify}": (
            ConstrainedERMClassifier(max_disparity=0.02, **options(by=certify)),
            {"n": 200},
            r"[Aa]bout \d+ more people",
        )
        for certify in ("cross", "split")
    },
}


@pytest.mark.parametrize(("model", "given", "said"), NOTHING.values(), ids=NOTHING)
def test_what_cannot_be_shown_is_no_solution(model, given, said):
    with pytest.warns(ConvergenceWarning, match=said):
        model = fitted(model, **given)
    assert model.status_ == "no_solution"
    assert model.p_value_ > 0.05
    assert model.certified_disparity_ > model.max_disparity


@pytest.mark.parametrize(
    "model",
    [
        ConstrainedERMClassifier(**OPTIONS),
        ConstrainedERMRegressor(certificate=0.9),
        FairDecisionClassifier(certificate=0.9),
        *(
            kind(certificate=0.9)
            for kind in rows_of_families("TRAINED") + rows_of_families("CALIBRATORS")
        ),
    ],
)
def test_a_single_group_has_nothing_to_certify(model):
    X, y, _ = (part[:300] for part in TRAIN)
    with pytest.warns(UserWarning, match="single group") as warned:
        model.fit(X, y, sensitive_features=["a"] * 300)
    assert len(warned) == 1
    assert model.status_ == "converged"
    assert not hasattr(model, "path_")


@pytest.mark.parametrize(
    ("make", "n_classes"),
    [
        (partial_of(ConstrainedERMClassifier, **options(by="cross")), 2),
        (partial_of(ConstrainedERMClassifier, **options(by="split")), 2),
        (partial_of(FairDecisionClassifier, **OPTIONS), 2),
        (partial_of(FairDecisionClassifier, **OPTIONS), 3),
    ],
)
@pytest.mark.parametrize("limit", [{"sex": None, "age": None}, {"sex": None, "job": 0.1}])
def test_no_limit_has_nothing_to_certify(make, n_classes, limit):
    """As without confidence; these were a KeyError, "no_solution" and errors about arrays."""
    X, y, sex = (part[:400] for part in TRAIN)
    other = {"age": np.arange(400) % 2, "job": np.zeros(400, int)}
    columns = {"sex": sex, **{name: one for name, one in other.items() if name in limit}}
    y = y if n_classes == 2 else y + (X[:, 1] > 1)
    model = make(max_disparity=limit, sensitive=Sensitive(intersectional=False))
    model = model.fit(X, y, sensitive_features=columns)
    assert model.status_ == "converged"
    assert not hasattr(model, "path_")
