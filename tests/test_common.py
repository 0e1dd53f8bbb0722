"""scikit-learn's checks and our own, on every estimator that the package offers."""

import copy
import functools
import inspect
import pickle
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from html import escape
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_clusterer
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import Interval, InvalidParameterError
from sklearn.utils.estimator_checks import parametrize_with_checks

from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.cluster import FairAssignment
from skfair.regression import FairDecisionRegressor
from tests.families import rows_of_families
from tests.older import MIXED_UP, ROUTES_TO_SCORE
from tests.prototypes import CentroidClassifier, SeedClusterer
from tests.public import discover_estimators, documented_parameters
from tests.seeds import generator

# Every estimator of the package is tested without editing this file. Settings that make a check
# fast, or that an estimator cannot do without, are added here, beside the class name.
SETTINGS: dict[str, dict] = {
    "FairAssignment": {"clusterer": KMeans(3, n_init=1, random_state=0)},
    "ParetoFairKMeans": {"n_clusters": 3, "balances": 5, "n_init": 1},
    # Both ways to pass the groups give the same model; 24 rows of each group in the interval.
    "PartialParityClassifier": {"group_aware": True, "max_disparity": 0.1},
    "PartialParityCalibrator": {"max_disparity": 0.1},
    "FairDecisionRegressor": {"group_aware": True},
}
# Defaults that the settings above hide.
TRAINED = [kind() for kind in rows_of_families("TRAINED")]
AS_THEY_ARE = [*TRAINED, FairDecisionRegressor()]
# Checks that scikit-learn itself lists as expected failures for the estimator's own twin.
SEEDS = {
    "check_sample_weight_equivalence_on_dense_data": "seeds are drawn by weight, as in KMeans",
    "check_sample_weight_equivalence_on_sparse_data": "seeds are drawn by weight, as in KMeans",
}
EXPECTED_FAILURES = {
    "SeedClusterer": SEEDS,
    "FairKMeans": SEEDS,
    "FairAssignment": SEEDS,
} | dict.fromkeys(
    ("ConstrainedERMClassifier", "PartialParityClassifier", "PartialParityCalibrator"), MIXED_UP
)

DISCOVERED = discover_estimators()
CLASSES = [*DISCOVERED.values(), CentroidClassifier, SeedClusterer]


def outcome(estimator, X, groups):
    """What a fitted estimator says of rows: predictions (with their groups), or its labels."""
    if not hasattr(estimator, "predict"):
        return estimator.labels_
    takes_groups = "sensitive_features" in inspect.signature(estimator.predict).parameters
    extra = {"sensitive_features": groups} if takes_groups else {}
    return estimator.predict(X, **extra)


def make(estimator_class):
    return estimator_class(**SETTINGS.get(estimator_class.__name__, {}))


def test_the_readme_lists_what_is_there():
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    rows = re.findall(r"^\| (`[^|]*)\|", readme, re.M)
    assert rows, "the README has a table of estimators"
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(DISCOVERED)


@pytest.mark.filterwarnings("ignore::skfair.exceptions.MissingGroupsWarning")
@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")  # before 1.8
@pytest.mark.filterwarnings("ignore:.* clusters are empty:sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [*(make(c) for c in CLASSES), *AS_THEY_ARE],
    expected_failed_checks=lambda e: EXPECTED_FAILURES.get(type(e).__name__, {}),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    rng = generator(0)
    n = 160
    groups = np.repeat(["f", "m"], n // 2)
    X = rng.normal(size=(n, 3)) + (groups == "m")[:, None] * [1.0, 0, 0]
    y = (X[:, 1] + rng.normal(size=n) > 0).astype(int)
    order = rng.permutation(n)
    return X[order], y[order], groups[order]


def fit(estimator, X, y, **kwargs):
    return estimator.fit(X, y if not is_clusterer(estimator) else None, **kwargs)


def seeded(estimator_class):
    estimator = make(estimator_class)
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    return estimator


# The ranker takes the rows of these tests as one query.
pytestmark = pytest.mark.filterwarnings("ignore:All rows are taken as one query:UserWarning")
each = pytest.mark.parametrize("estimator_class", CLASSES, ids=lambda c: c.__name__)


@each
def test_names_of_groups_do_not_matter(estimator_class, data):
    X, y, groups = data
    renamed = np.where(groups == "f", 7, 3)  # their order is reversed
    one = fit(seeded(estimator_class), X, y, sensitive_features=groups)
    other = fit(seeded(estimator_class), X, y, sensitive_features=renamed)
    if hasattr(one, "costs_"):  # a front: sums in another order may settle a tie otherwise
        assert one.hypervolume() == pytest.approx(other.hypervolume(), abs=0.02)
    else:
        assert np.array_equal(outcome(one, X, groups), outcome(other, X, renamed))


@each
def test_routing_on_and_off(estimator_class, data):
    X, y, groups = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # 160 rows are few for an interval, so these warnings are right here.
        warnings.filterwarnings("ignore", "max_disparity=.* is below the noise floor")
        warnings.filterwarnings("ignore", "max_disparity=.* is less than one row")
        warnings.filterwarnings("ignore", "The limits change the")
        warnings.filterwarnings("ignore", "All rows are taken as one query")
        step = estimator_class.__name__.lower()
        pipeline = make_pipeline(StandardScaler(), seeded(estimator_class))
        fit(pipeline, X, y, **{f"{step}__sensitive_features": groups})
        with config_context(enable_metadata_routing=True):
            fit(pipeline, X, y, sensitive_features=groups)
            needs_groups = getattr(pipeline[-1], "is_group_aware_", False)
            if is_classifier(pipeline) and (ROUTES_TO_SCORE or not needs_groups):
                GridSearchCV(pipeline, {}, cv=2).fit(X, y, sensitive_features=groups)
        if is_classifier(pipeline):
            if not needs_groups:  # score(X, y) has no groups
                GridSearchCV(seeded(estimator_class), {}, cv=2).fit(X, y, sensitive_features=groups)
            by_columns = seeded(estimator_class).set_params(sensitive=["sex"])
            frame = pd.DataFrame(X, columns=list("abc")).assign(sex=groups)
            GridSearchCV(by_columns, {}, cv=2).fit(frame, y)


@each
def test_a_fit_leaves_parameters_and_a_failed_one_everything(estimator_class, data):
    X, y, groups = data
    parameters = (estimator := seeded(estimator_class)).get_params()
    assert fit(estimator, X, y, sensitive_features=groups).get_params() == parameters
    with ThreadPoolExecutor(2) as pool:
        one_fit = functools.partial(fit, X=X, y=y, sensitive_features=groups)
        twins = list(pool.map(one_fit, [seeded(estimator_class), seeded(estimator_class)]))
    for other in (*twins, copy.deepcopy(estimator), pickle.loads(pickle.dumps(estimator))):
        assert np.array_equal(outcome(other, X, groups), outcome(estimator, X, groups))
    assert len({(joblib.hash(twin), pickle.dumps(twin)) for twin in twins}) == 1
    before = vars(estimator).copy()
    with pytest.raises(ValueError, match="missing value"):
        fit(estimator, X, y, sensitive_features=[None, *groups[1:]])
    assert vars(estimator) == before


@each
def test_a_subclass_may_have_parameters_of_its_own(estimator_class, data):
    """It sets those of its parent in ``__init__``, so that get_params does not know them."""
    X, y, groups = data
    plain = seeded(estimator_class)

    class Mine(estimator_class):
        def __init__(self, level=1):
            super().__init__(**plain.get_params(deep=False))
            self.level = level

    model = clone(Mine(level=2))
    assert model.get_params() == {"level": 2}
    for one in (model, plain):
        fit(one, X, y, sensitive_features=groups)
    assert np.array_equal(outcome(model, X, groups), outcome(plain, X, groups))
    assert repr(model) == "Mine(level=2)"
    if hasattr(plain, "summary_"):
        assert model.summary_ == plain.summary_
        assert escape(model.summary_) in model._repr_html_()


@pytest.mark.parametrize(
    "name", [n for n, c in DISCOVERED.items() if "certificate" in inspect.signature(c).parameters]
)
@pytest.mark.filterwarnings("ignore:.*no_solution:UserWarning")
def test_a_subclass_may_ask_for_a_certificate(name):
    """Its refits set parameters that its get_params does not know."""
    rng = generator(0)
    X, groups = rng.normal(size=(400, 2)), rng.choice(["f", "m"], 400)
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    plain = seeded(DISCOVERED[name]).set_params(certificate=0.8, max_disparity=0.3)

    class Mine(DISCOVERED[name]):
        def __init__(self):
            super().__init__(**plain.get_params(deep=False))

    model = Mine().fit(X, y, sensitive_features=groups)
    assert model.status_ == plain.fit(X, y, sensitive_features=groups).status_
    assert vars(model).keys() == vars(plain).keys()
    assert (model.certificate, model.max_disparity) == (0.8, 0.3)
    assert np.array_equal(outcome(model, X, groups), outcome(plain, X, groups))


@pytest.mark.parametrize("name", sorted(DISCOVERED))
def test_weights_and_labels_that_nothing_can_be_done_with_are_named(name, data):
    """Once they blamed a loss of the user's own, a linear programme, or a regression target."""
    X, y, groups = data
    estimator = seeded(DISCOVERED[name])
    if "sample_weight" in inspect.signature(estimator.fit).parameters:
        tiny = {"sensitive_features": groups, "sample_weight": np.full(len(X), 5e-324)}
        with pytest.raises(ValueError, match=r"sample_weight is at most 4\.9.*Multiply"):
            fit(estimator, X, y, **tiny)
    if is_classifier(estimator):
        mixed = np.array(["1" if one else 0 for one in y], object)
        with pytest.raises(ValueError, match=r"y has labels that are text and others that are not"):
            fit(estimator, X, mixed, sensitive_features=groups)


@pytest.mark.parametrize("name", sorted(DISCOVERED))
def test_true_is_no_number(name, data):
    """As a limit it was 1, so that nothing was limited."""
    X, y, groups = data
    for parameter, kinds in DISCOVERED[name]._parameter_constraints.items():
        if "boolean" not in kinds and any(isinstance(kind, Interval) for kind in kinds):
            estimator = make(DISCOVERED[name]).set_params(**{parameter: True})
            said = f"'{parameter}' parameter of {name} must be a number, got True"
            with pytest.raises(InvalidParameterError, match=said):
                fit(estimator, X, y, sensitive_features=groups)


@pytest.mark.parametrize(
    "estimator", [FairAssignment(KMeans(0)), FairDecisionClassifier(LogisticRegression(C=-1))]
)
def test_parameters_of_a_model_inside_are_looked_at(estimator, data):
    X, y, groups = data
    with pytest.raises(InvalidParameterError, match="parameter of"):
        estimator.fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("model", [ConstrainedERMClassifier(), *TRAINED])
def test_columns_whose_squares_vanish_are_named(model, data):
    X, y, groups = data
    with pytest.raises(ValueError, match="squares vanish, the first of them is column 0"):
        model.fit(X * 1e-160, y, sensitive_features=groups)


def test_fitted_attributes_are_documented(data):
    X, y, groups = data
    for estimator_class in DISCOVERED.values():
        estimator = fit(seeded(estimator_class), X, y, sensitive_features=groups)
        fitted = {name for name in vars(estimator) if name.endswith("_") and name[0] != "_"}
        documented = set(documented_parameters(estimator_class.__doc__, "Attributes"))
        assert fitted <= documented | {"feature_names_in_"}, estimator_class
        assert f"rows {len(X)}" in (summary := estimator.summary_)
        assert summary.isprintable()
        assert estimator._repr_html_().count(escape(summary)) == 1
        assert repr(estimator) == repr(unfitted := clone(estimator))
        assert not hasattr(unfitted, "summary_")
        for name in fitted & {"train_disparity_", "balance_"}:
            assert f"{getattr(estimator, name):.4g}" in summary
