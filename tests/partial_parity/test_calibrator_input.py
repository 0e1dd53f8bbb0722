"""The calibrator inside scikit-learn, with bad input, and what it says of new rows."""

from contextlib import nullcontext

import numpy as np
import pytest
import sklearn
from scipy.stats import binom
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair.classification import PartialParityCalibrator
from skfair.exceptions import MissingGroupsWarning
from skfair.metrics import noise_floor, partial_statistical_parity_gap
from tests.partial_parity.test_calibrator import (
    CONSTRAINT_NAMES,
    EXACT,
    INTERVAL,
    FirstColumn,
    each_constraint,
    measure,
    sample,
)
from tests.seeds import generator

# --- inside scikit-learn ------------------------------------------------------------------------


class Weighed(LogisticRegression):
    """Writes down whether its fit got weights."""

    def fit(self, X, y, sample_weight=None):
        self.got_weights_ = sample_weight is not None
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("is_wanted", [True, False])
def test_the_estimator_gets_what_it_requested(is_wanted):
    X, y, sex = sample()
    with sklearn.config_context(enable_metadata_routing=True):
        last = Weighed().set_fit_request(sample_weight=is_wanted)
        inner = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), last)
        for scorer in (inner, last):
            model = PartialParityCalibrator(scorer, INTERVAL)
            warned = pytest.warns(UserWarning, match="count in the limits only")
            with nullcontext() if is_wanted else warned:
                model.fit(X, y, np.ones(len(y)), sensitive_features=sex)
            found = [getattr(one, "steps", [("", one)])[-1][1] for one in model.estimators_]
            assert [one.got_weights_ for one in found] == 5 * [is_wanted]


# --- bad input ----------------------------------------------------------------------------------


def test_one_group_is_the_plain_scorer():
    X, y, _ = sample()
    plain = LogisticRegression().fit(X, y)
    model = PartialParityCalibrator(None, INTERVAL, cv=None)
    with pytest.warns(UserWarning, match="single group"):
        model.fit(X, y, sensitive_features=np.zeros(len(y), int))
    assert np.array_equal(
        model.predict(X, sensitive_features=np.zeros(len(y), int)), plain.predict(X)
    )
    with pytest.warns(MissingGroupsWarning):
        model.fit(X, y)
    assert np.array_equal(model.predict(X), plain.predict(X))
    assert model.train_disparity_ == 0


@pytest.mark.parametrize("constraint", ["statistical_parity", "demographic_parity"])
def test_a_bound_below_one_row_is_raised_to_it(constraint):
    X, y, _ = sample()
    sex = np.repeat(["f", "m"], [40, 360])
    model = PartialParityCalibrator(None, INTERVAL, constraint, max_disparity=0.0, cv=None)
    with pytest.warns(UserWarning, match="less than one row"):
        model.fit(X, y, sensitive_features=sex)
    assert model.effective_disparity_ == pytest.approx(1 / (40 * 0.3))
    scores = model.decision_function(X, sensitive_features=sex)
    assert measure(constraint, "conditional", scores, y, sex) <= model.effective_disparity_ + EXACT


@pytest.mark.parametrize(
    ("constraint", "bad"),
    [(constraint, bad) for constraint in CONSTRAINT_NAMES for bad in (-np.inf, np.inf, np.nan)],
)
def test_scores_that_are_no_numbers_are_refused(constraint, bad):
    X, y, sex = sample()
    X[0, 0] = bad
    model = PartialParityCalibrator(FirstColumn(), INTERVAL, constraint, 0.1)
    with pytest.raises(ValueError, match=r"(?i)infinit|nan|finite"):
        model.fit(X, y, sensitive_features=sex)


# --- what to expect of new rows -----------------------------------------------------------------


@each_constraint
def test_an_upper_bound_is_above_the_disparity_and_mostly_above_the_true_one(constraint):
    def draw(seed, n):
        X, y, sex = sample(seed, n)
        return X[:, [0]], y, sex

    X, y, sex = draw(0, 400)
    model = PartialParityCalibrator(FirstColumn(), INTERVAL, constraint, 0.1)
    model.fit(X, y, sensitive_features=sex)

    def gap_of(X, y, sex):
        scores = model.decision_function(X, sensitive_features=sex)
        return measure(constraint, "conditional", scores, y, sex)

    true = gap_of(*draw(1, 20_000))
    is_above = []
    for seed in range(2, 42):
        X, y, sex = draw(seed, 2000)
        bound = model.disparity_upper_bound(X, y, sensitive_features=sex)
        assert min(1, gap_of(X, y, sex)) <= bound <= 1
        is_above.append(bound >= true)
    assert 40 - np.sum(is_above) <= binom.isf(1e-7, 40, 0.05)
    assert bound < 1  # or it would say nothing
    surer = model.disparity_upper_bound(X, y, sensitive_features=sex, confidence=0.999)
    assert surer > bound


@each_constraint
def test_the_noise_floor_is_that_of_shuffled_groups(constraint):
    X, y, sex = sample()
    model = PartialParityCalibrator(FirstColumn(), INTERVAL, constraint, 0.1)
    model.fit(X, y, sensitive_features=sex)
    floor = model.noise_floor_
    rng = generator(0)
    # Scores alike in both groups; within classes, where the constraint compares these.
    values = []
    for _ in range(100):
        scores = rng.permutation(np.linspace(-1, 1, len(y)))
        values.append(measure(constraint, "conditional", scores, y, sex))
    error = np.std(values) * np.sqrt(1 / 20 + 1 / 100)
    assert abs(floor - np.mean(values)) <= 6 * error
    if constraint == "statistical_parity":
        found = noise_floor(
            partial_statistical_parity_gap,
            None,
            X[:, 0],
            sensitive_features=sex,
            interval=INTERVAL,
            random_state=0,
        )
        assert abs(floor - found.mean) <= 6 * error


@pytest.mark.filterwarnings("error:max_disparity=.* is below the noise floor")
def test_limits_below_the_noise_floor_are_warned_of():
    X, y, sex = sample()
    floor = PartialParityCalibrator(FirstColumn(), INTERVAL, max_disparity=1.0)
    floor = floor.fit(X, y, sensitive_features=sex).noise_floor_
    above = PartialParityCalibrator(FirstColumn(), INTERVAL, max_disparity=1.05 * floor)
    above.fit(X, y, sensitive_features=sex)  # no warning
    below = clone(above).set_params(max_disparity=0.95 * floor)
    message = rf"max_disparity={0.95 * floor:.3g} is below the noise floor.* show {floor:.3g} on"
    with pytest.warns(UserWarning, match=message):
        below.fit(X, y, sensitive_features=sex)


@pytest.mark.filterwarnings("error:max_disparity=.* is below the noise floor")
def test_many_rows_take_the_noise_floor_down():
    rng = generator(0)
    for n, is_noise in ((300, True), (20_000, False)):
        X, sex = rng.normal(size=(n, 1)), rng.integers(0, 2, n)
        y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
        model = PartialParityCalibrator(FirstColumn(), INTERVAL, max_disparity=0.06)
        expected = pytest.warns(UserWarning, match="noise") if is_noise else nullcontext()
        with expected:
            model.fit(X, y, sensitive_features=sex)
        assert (model.noise_floor_ > 0.06) == is_noise


@pytest.mark.filterwarnings("error:max_disparity=.* is below the noise floor")
def test_a_few_people_among_many_make_noise():
    """The noise is that of the small group, however many others there are."""
    rng = generator(0)
    n = 100_000
    X, sex = rng.normal(size=(n, 1)), np.where(np.arange(n) < 40, "f", "m")
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    whole = PartialParityCalibrator(FirstColumn(), (0, 1), max_disparity=1.0)
    floor = whole.fit(X, y, sensitive_features=sex).noise_floor_
    with pytest.warns(UserWarning, match="noise"):
        clone(whole).set_params(max_disparity=0.9 * floor).fit(X, y, sensitive_features=sex)
    clone(whole).set_params(max_disparity=1.1 * floor).fit(X, y, sensitive_features=sex)
