"""Certificates of models as a whole: what judges say, against public tests on the same rows."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skfair import Certificate, Sensitive, metrics
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
    PartialParityCalibrator,
    PartialParityClassifier,
)
from skfair.constraints import ConditionalOn, DemographicParity, MeanScoreParity
from skfair.constraints.partial import IntervalConstraint
from skfair.regression import ConstrainedERMRegressor

OPTIONS = {"confidence": 0.95, "random_state": 0}


def options(**certificate):
    """What asks for a certificate of some kind."""
    return {**OPTIONS, "confidence": Certificate(0.95, **certificate)}


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3))
    X[:, 0] += 0.8 * group
    y = (X[:, 0] + X[:, 1] + rng.normal(size=n) > 0.9).astype(int)
    return X, y, np.array(["a", "b"])[group]


TRAIN, EVERYBODY = people(3000), people(100_000, seed=1)


def amounts(X, seed=0):
    return 10 * X[:, 0] + np.random.default_rng(seed).normal(size=X.shape[0])


def fitted(model, y=None, n=3000, **given):
    X, labels, groups = (one[:n] for one in TRAIN)
    return model.fit(X, labels if y is None else y, sensitive_features=groups, **given)


@pytest.mark.parametrize("certify", ["cross", "split"])
@pytest.mark.parametrize(
    ("constraint", "metric"),
    [
        ("demographic_parity", metrics.demographic_parity_difference),
        ("equalized_odds", metrics.equalized_odds_difference),
    ],
)
def test_decisions_of_constrained_models_keep_limits_for_new_people(constraint, metric, certify):
    model = fitted(ConstrainedERMClassifier(constraint, 0.15, **options(by=certify)))
    X, y, groups = EVERYBODY
    predicted = model.predict(X)
    assert model.status_ == "certified"
    assert metric(y, predicted, sensitive_features=groups) <= 0.15
    assert (predicted == y).mean() > 0.65
    assert model.p_value_ <= 0.05
    assert model.certified_disparity_ <= 0.15 + 1e-6
    path = model.path_
    last = np.flatnonzero(path["is_certified"])[-1]
    assert path["p_value"][last] == model.p_value_
    assert path["bound"][last] == model.certified_disparity_
    assert (model.predict_proba(X)[:, 1] > 0.5).tolist() == (predicted == 1).tolist()


def test_strata_and_weights_and_columns_are_certified():
    X, y, groups = TRAIN
    job = np.random.default_rng(3).choice(["u", "v"], 3000)
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
    weights = np.exp(np.random.default_rng(0).normal(size=3000))
    reached = []
    for w in (None, np.ones(3000), weights):
        model = ConstrainedERMClassifier(max_disparity=0.15, **options(by="split"))
        reached.append(model.fit(X, y, w, sensitive_features=groups).path_["p_value"])
    assert reached[0] == pytest.approx(reached[1], abs=1e-6)
    assert reached[2][0] > reached[0][0]  # weighted rows are worth fewer


def test_a_split_certificate_is_that_of_the_public_test_on_the_rows_that_judge(monkeypatch):
    """A half of the rows judges, and the models of all steps are fitted on the other one."""
    seen, X = [], TRAIN[0]
    predict = ConstrainedERMClassifier.predict

    def noted(self, rows):
        seen.append((rows, predict(self, rows)))
        return seen[-1][1]

    monkeypatch.setattr(ConstrainedERMClassifier, "predict", noted)
    model = fitted(ConstrainedERMClassifier(max_disparity=0.15, **options(by="split")))
    _, y, groups = TRAIN
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
    y = amounts(TRAIN[0])
    model = fitted(ConstrainedERMRegressor(max_disparity=3.0, **options(by=certify)), y)
    gap = metrics.mean_score_difference(None, model.predict(X), sensitive_features=groups)
    assert model.status_ == "certified"
    assert 1.5 < gap <= 3.0
    assert model.certified_disparity_ <= 3.0 + 1e-5
    path = model.path_
    assert (np.diff(path["disparity"]) > 0).all()
    assert (path["bound"] >= path["disparity"]).all()
    assert path["r2"][-1] > path["r2"][0]


@pytest.mark.parametrize("aware", [False, True])
def test_scores_within_an_interval_keep_a_limit_for_new_people(aware):
    model = PartialParityClassifier((0, 0.5), "group_auc", 0.3, group_aware=aware, **OPTIONS)
    model = fitted(model)
    X, y, groups = EVERYBODY
    scores = model.decision_function(X, sensitive_features=groups if aware else None)
    gap = metrics.partial_group_auc_gap(y, scores, sensitive_features=groups, interval=(0, 0.5))
    assert model.status_ == "certified"
    assert gap <= 0.3
    assert model.certified_disparity_ <= 0.3 + 1e-6


def test_the_limit_of_a_constraint_within_strata_is_judged():
    X, *_ = TRAIN
    job = np.random.default_rng(3).choice(["u", "v"], 3000)
    found = [
        fitted(
            ConstrainedERMRegressor(constraint, **limit, **OPTIONS),
            amounts(X),
            control_features=job,
        )
        for constraint, limit in [
            (ConditionalOn(MeanScoreParity(max_disparity=2.0)), {}),
            (ConditionalOn("mean_score_parity"), {"max_disparity": 2.0}),
        ]
    ]
    assert found[0].status_ == found[1].status_
    assert found[0].p_value_ == found[1].p_value_
    assert found[0].path_["p_value"].tolist() == found[1].path_["p_value"].tolist()


def test_a_calibrator_keeps_statistical_parity_for_new_people():
    X, y, groups = (one[:1600] for one in TRAIN)
    base = LogisticRegression().fit(*people(500, seed=3)[:2])
    model = PartialParityCalibrator(FrozenEstimator(base), (0, 0.5), max_disparity=0.3)
    model.set_params(confidence=0.9).fit(X, y, sensitive_features=groups)
    X, y, groups = (one[:20_000] for one in EVERYBODY)
    scores = model.decision_function(X, sensitive_features=groups)
    gap = metrics.partial_statistical_parity_gap(
        y, scores, sensitive_features=groups, interval=(0, 0.5)
    )
    assert model.status_ == "certified"
    assert gap <= 0.3
    assert model.p_value_ <= 0.1


def partial(make, constraint, interval=(0, 0.5), **options):
    """A model of scores within an interval, the classifier or the calibrator."""
    given = {name: options.pop(name) for name in ("share", "shift") if name in options}
    options = {"max_disparity": 0.4, "confidence": Certificate(0.9, **given)} | options
    if make is PartialParityClassifier:
        return make(interval, constraint, group_aware=True, random_state=0, **options)
    base = FrozenEstimator(LogisticRegression().fit(*people(500, seed=3)[:2]))
    return make(base, interval, constraint, **options)


CLASSIFIER, CALIBRATOR = PartialParityClassifier, PartialParityCalibrator
PARITY, BY_GROUP = "statistical_parity", {"a": (0, 0.5), "b": (0, 0.8)}


@pytest.mark.parametrize(
    ("make", "constraint", "interval", "width"),
    [
        (CLASSIFIER, PARITY, (0, 0.5), 0.02 / 0.5),
        (CALIBRATOR, PARITY, (0, 0.5), 0.02 / 0.5),
        (CALIBRATOR, PARITY, BY_GROUP, 0.02 * (2 + 1.25)),
        (CLASSIFIER, "group_auc", (0, 0.5), 2 * 0.02 / 0.5),
        (CALIBRATOR, "equal_opportunity", (0, 0.8), 0.02 / 0.8),
    ],
)
@pytest.mark.filterwarnings("ignore:With 800 people")  # a certificate is not asked for here
def test_a_shift_costs_the_stated_width_of_scores(make, constraint, interval, width):
    first = []
    for shift in (0.0, 0.02):
        model = partial(make, constraint, interval, shift=shift)
        first.append(fitted(model, n=800).path_["bound"][0])
    assert first[1] - first[0] == pytest.approx(width, abs=1e-6)


@pytest.mark.parametrize("make", [CLASSIFIER, CALIBRATOR])
@pytest.mark.parametrize(
    ("constraint", "interval"),
    [
        ("demographic_parity", (0.2, 0.7)),
        ("equal_opportunity", (0.2, 0.7)),
        ("equalized_odds", (0, 1)),
    ],
)
def test_decisions_within_an_interval_keep_a_narrow_limit_for_new_people(
    make, constraint, interval
):
    X, y, groups = people(8000)
    model = partial(make, constraint, interval, max_disparity=0.15)
    model = model.fit(X, y, sensitive_features=groups)
    X, y, groups = EVERYBODY
    given = {} if constraint == "demographic_parity" else {"rank_within": "class"}
    gap = getattr(metrics, f"partial_{constraint}_gap")(
        y,
        model.decision_function(X, sensitive_features=groups),
        sensitive_features=groups,
        interval=interval,
        **given,
    )
    assert model.status_ == "certified"
    assert gap <= model.certified_disparity_ <= 0.15


@pytest.mark.parametrize("wrapped", [lambda one: one, IntervalConstraint])
def test_a_limit_of_the_constraint_is_certified_like_that_of_the_estimator(wrapped):
    own = wrapped(DemographicParity(0.3)), 0.05
    (first, second) = (
        fitted(partial(CLASSIFIER, constraint, max_disparity=limit))
        for constraint, limit in (own, ("demographic_parity", 0.3))
    )
    assert first.status_ == "certified"
    assert first.p_value_ == second.p_value_
    assert first.certified_disparity_ == second.certified_disparity_


@pytest.mark.filterwarnings("ignore")  # of small groups, and of no solution
def test_one_row_of_a_group_and_class_shows_nothing():
    X, y, groups = (one[:800].copy() for one in TRAIN)
    groups[np.r_[np.flatnonzero(y == 1)[:2], np.flatnonzero(y == 0)[:30]]] = "c"
    model = partial(CALIBRATOR, "equal_opportunity", (0, 1), max_disparity=0.9)
    model.fit(X, y, sensitive_features=groups)
    assert model.status_ == "no_solution"
    assert model.p_value_ == model.certified_disparity_ == 1.0


def test_a_shift_of_shares_of_the_whole_group_costs_twice_the_shift_or_more():
    first = [
        fitted(partial(CALIBRATOR, PARITY, scale="ccdf", shift=shift)).path_["bound"][0]
        for shift in (0.0, 0.02)
    ]
    assert 0.04 - 1e-9 <= first[1] - first[0] < 0.1


def test_statistical_parity_of_scores_holds_after_a_shift():
    """A share of each group is replaced by people whose scores are the worst for the limit."""
    X, _, groups = (one[:5000] for one in EVERYBODY)
    model = fitted(partial(CALIBRATOR, PARITY, (0, 1), max_disparity=0.15, shift=0.05))
    assert model.status_ == "certified"
    scores = model.decision_function(X, sensitive_features=groups)
    parts = {name: np.sort(scores[groups == name]) for name in ("a", "b")}
    for low, high in (("a", "b"), ("b", "a")):
        lower, higher = parts[low].copy(), parts[high].copy()
        lower[-int(0.05 * lower.size) :] = scores.min() - 1
        higher[: int(0.05 * higher.size)] = scores.max() + 1
        names = np.repeat([low, high], [lower.size, higher.size])
        gap = metrics.statistical_parity_gap(None, np.r_[lower, higher], sensitive_features=names)
        assert 0.05 < gap <= 0.15


def test_means_keep_their_limit_after_a_shift_within_the_range_of_predictions():
    X, _, groups = EVERYBODY
    y, gaps = amounts(TRAIN[0]), []
    for shift in (0.0, 0.02):
        model = ConstrainedERMRegressor(max_disparity=3.0, **options(shift=shift))
        model = fitted(model, y)
        assert model.status_ == "certified"
        ends = model.predict(TRAIN[0])
        means = [model.predict(X[groups == name]).mean() for name in ("a", "b")]
        gaps.append(0.98 * (means[1] - means[0]) + 0.02 * float(np.ptp(ends)))
    assert gaps[1] <= 3.0 + 0.05 < gaps[0]


def test_scores_of_rows_of_huge_weight_are_as_few_as_they_are():
    weights = np.ones(800)
    weights[::50] = 1e9
    X, y, groups = people(800)
    with pytest.warns(ConvergenceWarning, match="more people|larger max_disparity"):
        model = partial(CALIBRATOR, "equal_opportunity").fit(
            X, y, sensitive_features=groups, sample_weight=weights
        )
    assert model.status_ == "no_solution"
    assert model.certified_disparity_ > 0.9


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (partial(CLASSIFIER, "group_auc", shift=0.2), "grow by 0.8"),
        (partial(CALIBRATOR, "statistical_parity", shift=0.3), "grow by 0.6"),
        (partial(CALIBRATOR, "group_auc", share=1e-4), "one side only"),
        (ConstrainedERMRegressor(**options(by="split", share=1e-4)), "one side only"),
        (
            ConstrainedERMRegressor(model=(3,), **options(by="cross")),
            r"Use Certificate\(by='split'\)",
        ),
    ],
)
def test_shares_that_cannot_be_are_named(model, said):
    with pytest.raises(ValueError, match=said):
        fitted(model)


def test_a_shift_that_leaves_nothing_of_the_limit_on_means_is_no_solution():
    model = ConstrainedERMRegressor(max_disparity=0.5, **options(shift=0.3))
    with pytest.warns(ConvergenceWarning, match="more people|larger max_disparity"):
        fitted(model, amounts(TRAIN[0]))
    assert model.status_ == "no_solution"
    assert model.p_value_ == 1.0


@pytest.mark.parametrize(("constraint", "limit"), [("group_auc", 0.4), ("equal_opportunity", 0.09)])
def test_p_values_of_bounds_are_the_level_at_which_they_are_shown(constraint, limit):
    constraint = PartialParityCalibrator(None, (0, 0.6), constraint, limit, confidence=0.9)
    model = fitted(constraint)
    first = model.path_["p_value"][0]
    assert 1e-8 < first < 1
    assert (model.path_["bound"][0] <= limit) == (first <= 0.1)
    with pytest.warns(ConvergenceWarning, match="more people"):
        stricter = fitted(constraint.set_params(confidence=1 - first * 0.9))
    assert stricter.path_["bound"][0] > limit


def test_a_larger_confidence_certifies_less():
    y = amounts(TRAIN[0])
    for make, target in (
        (
            lambda c: ConstrainedERMClassifier(max_disparity=0.15, confidence=c, random_state=0),
            None,
        ),
        (
            lambda c: ConstrainedERMClassifier(
                max_disparity=0.15, confidence=Certificate(c, by="split"), random_state=0
            ),
            None,
        ),
        (lambda c: ConstrainedERMRegressor(max_disparity=1.0, confidence=c, random_state=0), y),
    ):
        reached = [fitted(make(c), target).path_["is_certified"].sum() for c in (0.5, 0.9999)]
        assert reached[0] > reached[1]


@pytest.mark.parametrize("certify", ["cross", "split"])
def test_too_few_people_are_told_how_many_more(certify):
    X, y, groups = (one[:200] for one in TRAIN)
    model = ConstrainedERMClassifier(max_disparity=0.02, **options(by=certify))
    with pytest.warns(ConvergenceWarning, match=r"About \d+ more people"):
        model.fit(X, y, sensitive_features=groups)
    assert model.status_ == "no_solution"
    assert model.certified_disparity_ > 0.02
    assert model.predict(X).shape == (200,)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (ConstrainedERMClassifier(min_rate=0.1, **OPTIONS), "min_rate"),
        (ConstrainedERMClassifier(selection_rate=0.1, **options(by="split")), "selection_rate"),
        (ConstrainedERMClassifier("loss_parity", **OPTIONS), "not on rates"),
        (ConstrainedERMClassifier("loss_parity", **options(by="split")), "not on rates"),
        (ConstrainedERMClassifier(confidence=1.0), "confidence"),
        (ConstrainedERMClassifier(confidence=0.0), "confidence"),
        (ConstrainedERMClassifier(confidence=2.0), "confidence"),
        (ConstrainedERMRegressor("loss_parity", **OPTIONS), "has no test of"),
        (ConstrainedERMRegressor(MeanScoreParity(reference="overall"), **OPTIONS), "has no test"),
        (ConstrainedERMRegressor(confidence=1), "confidence"),
        (
            PartialParityClassifier(
                constraint=IntervalConstraint("equal_opportunity", rank_within="group"), **OPTIONS
            ),
            "has no test",
        ),
        (PartialParityCalibrator(confidence=0), "confidence"),
        (
            ConstrainedERMClassifier(
                DemographicParity(comparison="ratio", reference="overall"), 0.2, **OPTIONS
            ),
            "ratios to the overall",
        ),
    ],
)
def test_bad_input_is_named(model, said):
    with pytest.raises(ValueError, match=said):
        fitted(model)


def test_means_of_weighted_rows_have_no_test():
    with pytest.raises(ValueError, match="weighted rows"):
        fitted(ConstrainedERMRegressor(**OPTIONS), amounts(TRAIN[0]), sample_weight=np.ones(3000))


def test_dask_collections_are_refused():
    da = pytest.importorskip("dask.array")
    X, y, groups = (da.from_array(one[:400], chunks=200) for one in TRAIN)
    for model in (
        ConstrainedERMClassifier(**OPTIONS),
        PartialParityCalibrator(
            FrozenEstimator(LogisticRegression().fit(*TRAIN[:2])), confidence=0.9
        ),
    ):
        with pytest.raises(ValueError, match="rows in memory"):
            model.fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize(
    "model",
    [
        ConstrainedERMClassifier(**OPTIONS),
        ConstrainedERMRegressor(confidence=0.9),
        FairDecisionClassifier(confidence=0.9),
        PartialParityClassifier(confidence=0.9),
        PartialParityCalibrator(confidence=0.9),
    ],
)
def test_a_single_group_has_nothing_to_certify(model):
    X, y, _ = (part[:300] for part in TRAIN)
    with pytest.warns(UserWarning, match="single group") as warned:
        model.fit(X, y, sensitive_features=["a"] * 300)
    assert len(warned) == 1
    assert model.status_ == "converged"
    assert not hasattr(model, "path_")


@pytest.mark.parametrize("certify", ["cross", "split"])
@pytest.mark.parametrize("limit", [{"sex": None, "age": None}, {"sex": None, "job": 0.1}])
def test_no_limit_has_nothing_to_certify(certify, limit):
    """As without confidence; these were a KeyError and errors about arrays."""
    X, y, sex = (part[:400] for part in TRAIN)
    other = {"age": np.arange(400) % 2, "job": np.zeros(400, int)}
    columns = {"sex": sex, **{name: one for name, one in other.items() if name in limit}}
    apart = Sensitive(crossed=False)
    model = ConstrainedERMClassifier(max_disparity=limit, sensitive=apart, **options(by=certify))
    model = model.fit(X, y, sensitive_features=columns)
    assert model.status_ == "converged"
    assert not hasattr(model, "path_")


def test_a_limit_of_0_within_an_interval_is_no_solution():
    """It was an error about a shift of 0."""
    X, y, groups = (part[:400] for part in TRAIN)
    model = PartialParityClassifier(
        (0, 0.5), max_disparity=0.0, confidence=0.9, random_state=0, max_iter=5
    )
    with pytest.warns(ConvergenceWarning, match="what can be shown"):
        model.fit(X, y, sensitive_features=groups)
    assert model.status_ == "no_solution"
