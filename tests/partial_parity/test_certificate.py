"""Certificates within intervals, against public tests on the same rows and on new people."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skfair import Certificate, metrics
from skfair.classification import PartialParityCalibrator, PartialParityClassifier
from skfair.constraints import DemographicParity
from skfair.constraints.partial import IntervalConstraint
from tests.estimators.certified.test_judges import EVERYBODY, SURE, TRAIN, fitted, people


def partial(make, constraint, interval=(0, 0.5), **options):
    """A model of scores within an interval, the classifier or the calibrator."""
    given = {name: options.pop(name) for name in ("share", "shift") if name in options}
    options = {"max_disparity": 0.4, "certificate": Certificate(0.9, **given)} | options
    if make is PartialParityClassifier:
        options = {"group_aware": True, "random_state": 0} | options
        return make(interval, constraint, **options)
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


INTERVALS = [
    ("demographic_parity", (0.2, 0.7), 0.4),
    ("equal_opportunity", (0.2, 0.7), 0.6),
    ("equalized_odds", (0, 1), 0.4),
    (PARITY, (0, 0.5), 0.5),
    ("group_auc", (0, 0.5), 0.8),
]


@pytest.mark.parametrize(
    ("make", "aware", "constraint", "interval", "limit"),
    [
        *((CLASSIFIER, True, *one) for one in INTERVALS),
        *((CALIBRATOR, True, *one) for one in INTERVALS),
        (CLASSIFIER, False, *INTERVALS[-1]),
    ],
)
def test_limits_within_an_interval_hold_for_new_people(make, aware, constraint, interval, limit):
    given = {} if aware else {"group_aware": False}
    model = partial(make, constraint, interval, max_disparity=limit, certificate=SURE, **given)
    model = fitted(model, n=8000)
    X, y, groups = EVERYBODY
    given = {"rank_within": "class"} if constraint.startswith("equal") else {}
    scores = model.decision_function(X, sensitive_features=groups if aware else None)
    gap = getattr(metrics, f"partial_{constraint}_gap")(
        y, scores, sensitive_features=groups, interval=interval, **given
    )
    assert model.status_ == "certified"
    assert gap <= model.certified_disparity_ <= limit
    assert model.p_value_ <= 1 - SURE


@pytest.mark.parametrize("wrapped", [lambda one: one, IntervalConstraint])
def test_a_limit_of_the_constraint_is_certified_like_that_of_the_estimator(wrapped):
    own = wrapped(DemographicParity(0.3)), None
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
    X, _, groups = EVERYBODY
    given = {"max_disparity": 0.25, "certificate": Certificate(SURE, shift=0.05)}
    model = fitted(partial(CALIBRATOR, PARITY, (0, 1), **given), n=8000)
    assert model.status_ == "certified"
    scores = model.decision_function(X, sensitive_features=groups)
    parts = {name: np.sort(scores[groups == name]) for name in ("a", "b")}
    for low, high in (("a", "b"), ("b", "a")):
        lower, higher = parts[low].copy(), parts[high].copy()
        lower[-int(0.05 * lower.size) :] = scores.min() - 1
        higher[: int(0.05 * higher.size)] = scores.max() + 1
        names = np.repeat([low, high], [lower.size, higher.size])
        gap = metrics.statistical_parity_gap(None, np.r_[lower, higher], sensitive_features=names)
        assert 0.05 < gap <= 0.25


HUGE = np.where(np.arange(800) % 50, 1.0, 1e9)  # as few people as have this weight
NOTHING = {
    "huge weights": (
        partial(CALIBRATOR, "equal_opportunity"),
        {"n": 800, "sample_weight": HUGE},
        "more people|larger max_disparity",
    ),
    # It was an error about a shift of 0.
    "no disparity at all": (
        PartialParityClassifier((0, 0.5), max_disparity=0.0, certificate=0.9, max_iter=5),
        {"n": 400},
        "what can be shown",
    ),
}


@pytest.mark.parametrize(("model", "given", "said"), NOTHING.values(), ids=NOTHING)
def test_what_cannot_be_shown_is_no_solution(model, given, said):
    with pytest.warns(ConvergenceWarning, match=said):
        model = fitted(model, **given)
    assert model.status_ == "no_solution"
    assert model.p_value_ > 0.05
    assert model.certified_disparity_ > model.max_disparity


@pytest.mark.parametrize(
    "constraint", ["group_auc", pytest.param("equal_opportunity", marks=pytest.mark.slow)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_p_values_of_bounds_are_the_level_at_which_they_are_shown(constraint):
    model = PartialParityCalibrator(None, (0, 0.6), constraint, 0.3, certificate=0.98)
    # A limit that the first step nearly reaches; its p-value is near .02.
    limit = fitted(model).path_["bound"][0]
    path = fitted(model.set_params(max_disparity=limit, certificate=0.9)).path_
    first = path["p_value"][0]
    assert 1e-6 < first < 0.5
    assert (path["bound"][0] <= limit) == (first <= 0.1)
    for share in (0.9, 1.1):
        bound = fitted(model.set_params(certificate=1 - share * first)).path_["bound"][0]
        assert (bound <= limit) == (share > 1)


def test_one_limit_for_all_attributes_within_intervals():
    X, y, sex = (part[:600] for part in TRAIN)
    model = PartialParityClassifier(max_disparity={"sensitive_feature": 0.2}, certificate=0.95)
    with pytest.raises(ValueError, match="one max_disparity for all attributes"):
        model.fit(X, y, sensitive_features=sex)
