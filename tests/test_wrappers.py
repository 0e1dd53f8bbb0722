"""Estimators inside those of scikit-learn: each works, or the error says which way does.

The groups are a column that is named, a column by its position, or passed with metadata routing.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_clusterer
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
)
from sklearn.feature_selection import RFE, RFECV, SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier

from skfair import Sensitive, classification, cluster, preprocessing, regression
from skfair.metrics import demographic_parity_difference, get_scorer, group_auc_gap
from tests.families import by_families
from tests.public import discover_estimators
from tests.seeds import generator

MODELS = {
    "erm": classification.ConstrainedERMClassifier(),
    "decisions": classification.FairDecisionClassifier(),
    "decisions aware": classification.FairDecisionClassifier(group_aware=True),
    "regressor": regression.ConstrainedERMRegressor(),
    "numbers": regression.FairDecisionRegressor(),
    "numbers aware": regression.FairDecisionRegressor(group_aware=True),
    "weights": preprocessing.Reweighing(),
    **by_families("WRAPPED"),
    "assignment": cluster.FairAssignment(KMeans(3, n_init=1, random_state=0)),
}
# Models whose predictions need the groups: nothing routes them to the predictions of folds.
NEED_GROUPS = ("partial aware", "calibrator", "numbers aware", "decisions aware")
NO_PREDICTIONS = {  # of single rows, from features alone
    "ParetoFairKMeans": "has no predict",
    "FairSpectralClustering": "labels its own rows",
    "FairRanker": "ranks lists",
}


def bagging(model, X, y, **groups):
    wrapper = BaggingClassifier if is_classifier(model) else BaggingRegressor
    return wrapper(model, n_estimators=2, random_state=0).fit(X, y, **groups).predict(X)


def stacking(model, X, y, **groups):
    wrapper, last = StackingClassifier, LogisticRegression()
    if not is_classifier(model):
        wrapper, last = StackingRegressor, Ridge()
    return wrapper([("model", model)], last, cv=2).fit(X, y, **groups).predict(X)


def calibrated(model, X, y, **groups):
    return CalibratedClassifierCV(model, cv=2).fit(X, y, **groups).predict(X)


def tuned(model, X, y, **groups):
    wrapper = TunedThresholdClassifierCV(model, cv=2, thresholds=5)
    return wrapper.fit(X, y, **groups).predict(X)


def thresholder():
    """A class of the module, with the calls, that scikit-lego's Thresholder has."""
    code = """
class Thresholder:
    def __init__(self, model):
        self.model = model
    def fit(self, X, y):
        self.estimator_ = self.model.fit(X, y)
        return self
    def predict(self, X):
        return (self.estimator_.predict_proba(X)[:, 1] > 0.5).astype(int)
"""
    module = {"__name__": "sklego.meta.thresholder"}
    exec(compile(code, __file__, "exec"), module)
    return module["Thresholder"]


def by_folds(model, X, y, **groups):
    return cross_val_predict(model, X, y, cv=2, params=groups)


def cases():
    for name, model in MODELS.items():
        wrappers = [by_folds]
        wrappers += [] if is_clusterer(model) else [bagging, stacking]
        wrappers += [calibrated, tuned] if is_classifier(model) else []
        for way in ("name", "position", "routing"):
            # A name or a position: two wrappers tell whether columns keep their names.
            tried = wrappers[:2] if way == "name" else wrappers
            yield from (pytest.param(name, way, w, id=f"{name}-{way}-{w.__name__}") for w in tried)


def refusal(name, way, wrapper):
    """What the error says, where a combination cannot work."""
    if way == "name" and wrapper is bagging:
        return ValueError, "X is a ndarray without column names. Give positions"
    if way == "routing" and wrapper is stacking and name not in NEED_GROUPS[:3]:
        # Routing hands the groups to the last estimator as well, which is scikit-learn's.
        return TypeError, "unexpected keyword argument 'sensitive_features'"
    if name == "decisions aware" and wrapper in (bagging, tuned):
        return None  # these ask for probabilities, which need no group
    if way == "routing" and name in NEED_GROUPS:
        return ValueError, "group-aware: pass the groups of the rows"
    return None


@pytest.fixture(scope="module")
def sample():
    rng = generator(0)
    sex = rng.integers(0, 2, 300)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    X["a"] += sex
    return X, (X["b"] + rng.normal(size=300) > 0).astype(int).to_numpy(), sex


@pytest.mark.filterwarnings("ignore:.* decides by the (probabilities|scores):UserWarning")
@pytest.mark.parametrize(("name", "way", "wrapper"), cases())
def test_estimators_inside_others(name, way, wrapper, sample):
    X, y, sex = sample
    model, groups = clone(MODELS[name]), {}
    if way == "routing":
        groups = {"sensitive_features": sex}
    else:
        X = X.assign(sex=sex)
        model.set_params(sensitive="sex" if way == "name" else 3)
        X = X if way == "name" else X.to_numpy()
    expected = refusal(name, way, wrapper)
    with config_context(enable_metadata_routing=way == "routing"):
        if expected is None:
            assert wrapper(model, X, y, **groups).shape == (300,)
        else:
            with pytest.raises(expected[0], match=expected[1]):
                wrapper(model, X, y, **groups)


def of_columns(model, **options):
    return BaggingClassifier(model, 2, random_state=0, **options)


SELECTORS = {
    "backward": lambda m: SequentialFeatureSelector(
        make_pipeline(m), n_features_to_select=2, direction="backward", cv=2
    ),
    "forward": lambda m: SequentialFeatureSelector(m, n_features_to_select=1, cv=2),
    "elimination": lambda m: RFE(m, n_features_to_select=1),
    "elimination by folds": lambda m: RFECV(m, cv=2),
    "bagging": lambda m: of_columns(make_pipeline(m), max_features=0.7),
    "bagging of copies": lambda m: of_columns(m, bootstrap_features=True),
    "search": lambda m: GridSearchCV(RFE(m), {"step": [1]}, cv=2, error_score="raise"),
}


@pytest.mark.parametrize("wrapper", SELECTORS)
@pytest.mark.parametrize("sensitive", [0, ["a", -1], Sensitive("a", control_features=np.int64(1))])
def test_positions_are_refused_where_columns_are_dropped(sensitive, wrapper, sample):
    # Columns of two values each: in another one no value would look wrong.
    X = (sample[0].to_numpy() > 0).astype(float)
    for name in ("erm", "decisions"):
        model = SELECTORS[wrapper](clone(MODELS[name]).set_params(sensitive=sensitive))
        with pytest.raises(ValueError, match="some columns of X only, where the positions"):
            model.fit(X, sample[1])


def test_a_scorer_by_position_is_refused_where_columns_are_dropped(sample):
    scorer = get_scorer("neg_demographic_parity_difference", sensitive=0)
    X, y = sample[0].to_numpy() > 0, sample[1]
    assert GridSearchCV(LogisticRegression(), {}, scoring=scorer, cv=2).fit(X, y).best_score_ <= 0
    with pytest.raises(ValueError, match=r"positions 0, given to a scorer"):
        RFECV(LogisticRegression(), scoring=scorer, cv=2).fit(X, y)


def test_a_search_of_thresholds_says_how_a_scorer_gets_the_groups(sample):
    X, y, sex = sample
    X = X.assign(sex=sex)
    for columns in ({}, {"sensitive": "sex"}):
        scorer = get_scorer("neg_demographic_parity_difference", **columns)
        with pytest.raises(ValueError, match="Enable metadata routing .* without sensitive="):
            TunedThresholdClassifierCV(LogisticRegression(), scoring=scorer, cv=2).fit(X, y)
    scorer = get_scorer("neg_demographic_parity_difference")
    model = TunedThresholdClassifierCV(LogisticRegression(), scoring=scorer, cv=2)
    with config_context(enable_metadata_routing=True):
        model.fit(X, y, sensitive_features=sex)
    assert demographic_parity_difference(y, model.predict(X), sensitive_features=sex) < 0.1


@pytest.mark.parametrize("way", ["name", "position", "routing"])
@pytest.mark.parametrize(
    ("wrapper", "works"),
    [
        (SELECTORS["forward"], ["routing"]),
        (SELECTORS["elimination"], ["routing"]),
        (SelfTrainingClassifier, ["position"]),
        (lambda m: AdaBoostClassifier(m, n_estimators=2), ["position"]),
    ],
    ids=["selector", "elimination", "self-training", "boosting"],
)
def test_the_rows_of_the_page_on_selectors_and_boosting_are_true(wrapper, works, way, sample):
    X, y, sex = sample
    model = clone(MODELS["erm"]).set_params(max_disparity=0.9)
    groups, labels = {"sensitive_features": sex}, y.copy()
    labels[::9] = -1 if wrapper is SelfTrainingClassifier else labels[::9]
    if way != "routing":
        groups, X = {}, X.assign(sex=sex)
        model.set_params(sensitive="sex" if way == "name" else 3)
        X = X if way == "name" else X.to_numpy()
    with config_context(enable_metadata_routing=way == "routing"):
        if way in works:
            wrapper(model).fit(X, labels, **groups)
        else:
            with pytest.raises((TypeError, ValueError)):
                wrapper(model).fit(X, labels, **groups)


@pytest.mark.filterwarnings("ignore:Bagging decides by the probabilities:UserWarning")
@pytest.mark.parametrize("name", ["decisions aware", "partial aware"])
def test_bagged_models_are_measured_without_routing(name, sample):
    X, y, sex = sample
    X = np.column_stack([X, sex])
    model = clone(MODELS[name]).set_params(sensitive=3)
    bagged = BaggingClassifier(model, n_estimators=2, random_state=0).fit(X, y)
    gap = demographic_parity_difference(y, bagged.predict(X), sensitive_features=sex)
    scorer = get_scorer("neg_demographic_parity_difference", sensitive=3)
    assert scorer(bagged, X, y) == -gap
    gap = group_auc_gap(y, bagged.decision_function(X), sensitive_features=sex)
    assert get_scorer("neg_group_auc_gap", sensitive=3)(bagged, X, y) == -gap


@pytest.fixture(scope="module")
def decisions_that_limits_change():
    rng = generator(0)
    X = rng.normal(size=(600, 4))
    X[:, 3] = rng.integers(0, 2, 600)
    X[:, 0] += 1.5 * X[:, 3]
    y = (X[:, 0] + rng.normal(size=600) > 1).astype(int)
    return classification.FairDecisionClassifier(max_disparity=0.1, cv=2, sensitive=3), X, y


@pytest.mark.parametrize(
    ("decider", "wrap"),
    [
        ("A classifier with a threshold", lambda m: TunedThresholdClassifierCV(m, cv=2)),
        ("A classifier with a threshold", FixedThresholdClassifier),
        (
            "A classifier with a threshold",
            lambda m: FixedThresholdClassifier(GridSearchCV(make_pipeline(m), {}, cv=2)),
        ),
        ("Soft voting", lambda m: VotingClassifier([("a", m), ("b", m)], voting="soft")),
        ("Bagging", lambda m: BaggingClassifier(m, n_estimators=2, random_state=0)),
        ("A classifier with a threshold", lambda m: thresholder()(m)),
        ("A calibrated classifier", lambda m: CalibratedClassifierCV(m, cv=2)),
    ],
)
def test_who_discards_the_limits_of_decisions_is_warned_of(
    decider, wrap, decisions_that_limits_change
):
    model, X, y = decisions_that_limits_change
    with pytest.warns(UserWarning, match=f"{decider} decides by the (prob|sc)") as caught:
        predicted = wrap(clone(model)).fit(X, y).predict(X)
    decided = clone(model).fit(X, y).predict(X)
    assert np.mean(predicted != decided) > 0.01
    gap = demographic_parity_difference(y, predicted, sensitive_features=X[:, 3])
    assert gap > 0.1 or decider == "A calibrated classifier"  # whose threshold is fitted anew
    assert Path(caught[-1].filename) == Path(__file__)


def test_who_keeps_decisions_or_only_reads_probabilities_is_not(decisions_that_limits_change):
    """Decisions stay those of the estimator; a stack only reads its probabilities."""
    model, X, y = decisions_that_limits_change
    decided = clone(model).fit(X, y).predict(X)
    voting = VotingClassifier([("a", model), ("b", model)])
    for wrapper in (
        voting,
        FixedThresholdClassifier(model, response_method="decision_function"),
        StackingClassifier([("a", model)], cv=2),
        OneVsRestClassifier(model),  # of two classes
        MultiOutputClassifier(model),
    ):
        labels = y[:, None] if isinstance(wrapper, MultiOutputClassifier) else y
        found = clone(wrapper).fit(X, labels).predict(X)
        assert np.array_equal(found.ravel(), decided) or isinstance(wrapper, StackingClassifier)
    assert CalibratedClassifierCV(model, cv=2).fit(X, y).predict_proba(X).shape == (len(y), 2)
    assert cross_val_score(model, X, y, cv=2, scoring="neg_log_loss").shape == (2,)
    free = clone(model).set_params(max_disparity=1.0)
    assert FixedThresholdClassifier(free).fit(X, y).predict(X).shape == y.shape


@pytest.mark.parametrize("wrapper", [OneVsRestClassifier, OneVsOneClassifier, OutputCodeClassifier])
@pytest.mark.parametrize("name", ["erm", "decisions"])
def test_several_classes_chosen_from_binary_limits_are_warned_of(
    name, wrapper, decisions_that_limits_change
):
    _, X, _ = decisions_that_limits_change
    y = np.digitize(X[:, 0] + X[:, 1], [0, 1.5])
    inside = make_pipeline(clone(MODELS[name]).set_params(sensitive=3))
    # A code of few columns may by chance tell no classes apart.
    codes = {"code_size": 5, "random_state": 0} if wrapper is OutputCodeClassifier else {}
    model = wrapper(inside, **codes).fit(X, y)
    with pytest.warns(
        UserWarning, match="of several classes made of binary ones decides"
    ) as caught:
        model.predict(X)
    assert Path(caught[-1].filename) == Path(__file__)


def test_every_estimator_is_here():
    here = {type(model).__name__ for model in MODELS.values()}
    assert here | set(NO_PREDICTIONS) == set(discover_estimators())


@pytest.mark.parametrize("dispatch", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_arrays_of_other_libraries_are_converted(name, dispatch):
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    rng = generator(0)
    sex, X = rng.integers(0, 2, 200), rng.normal(size=(200, 3))
    y = (X[:, 0] + sex > 0.5).astype(int)
    model, again = clone(MODELS[name]), clone(MODELS[name])
    if "random_state" in model.get_params():
        model, again = (one.set_params(random_state=0) for one in (model, again))
    model.fit(X, y, sensitive_features=sex)
    foreign = {key: xp.asarray(values) for key, values in {"X": X, "y": y, "sex": sex}.items()}
    with config_context(array_api_dispatch=dispatch):
        again.fit(foreign["X"], foreign["y"], sensitive_features=foreign["sex"])
        given = {"sensitive_features": foreign["sex"]} if name in NEED_GROUPS else {}
        found = again.predict(foreign["X"], **given)
    given = {"sensitive_features": sex} if name in NEED_GROUPS else {}
    assert np.array_equal(found, model.predict(X, **given))


def test_errors_name_the_columns_that_hold_dates():
    rng = generator(0)
    since = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 60), "D")
    table = pd.DataFrame({"a": rng.normal(size=60), "since": since})
    groups = np.tile(["f", "m"], 30)
    for model in (MODELS["erm"], MODELS["decisions"], MODELS["k-means"]):
        with pytest.raises(TypeError) as caught:
            clone(model).fit(table, np.arange(60) % 3 % 2, sensitive_features=groups)
        assert "dates or times in 'since'" in " ".join(caught.value.__notes__)


@pytest.mark.parametrize("name", MODELS)
def test_an_array_after_a_frame_is_warned_of_once(name, recwarn):
    """Not once for the model of each fold, and predictions are those of the frame."""
    rng = generator(0)
    rows = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    y = (rows["a"] + rng.logistic(size=200) > 0).astype(int)
    sex = rng.choice(["f", "m"], 200)
    model = clone(MODELS[name]).fit(rows, y, sensitive_features=sex)
    given = {"sensitive_features": sex} if name in NEED_GROUPS else {}
    expected = model.predict(rows, **given)
    recwarn.clear()
    found = model.predict(rows.to_numpy(), **given)
    (message,) = [str(w.message) for w in recwarn]
    assert f"names, but {type(model).__name__} was fitted with" in message
    assert np.array_equal(found, expected)


ALONE = {name: (model, {}) for name, model in MODELS.items()} | by_families("OF_ONE_GROUP")


@pytest.mark.parametrize("name", ALONE)
def test_a_single_group_is_said_once_by_all(name, recwarn):
    rng = generator(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + rng.logistic(size=200) > 0).astype(int)
    for group in (["f"] * 200, [True] * 100 + [1] * 100):
        model, given = ALONE[name]
        clone(model).fit(X, y, sensitive_features=np.array(group, object), **given)
        said = [str(w.message) for w in recwarn if "single group" in str(w.message)]
        assert len(said) == 1
        assert "no limit between groups is active" in said[0]
        recwarn.clear()


@pytest.mark.parametrize("name", MODELS)
def test_what_no_fit_can_use_is_said_in_its_own_words(name):
    rng = generator(0)
    X, sex = rng.normal(size=(200, 2)), rng.choice(["f", "m"], 200)
    y, model = (X[:, 0] + rng.logistic(size=200) > 0).astype(int), clone(MODELS[name])
    twice = pd.DataFrame(X, columns=["x", "x"])
    with pytest.raises(ValueError, match="several columns with the name 'x'.*duplicated"):
        model.fit(twice, y, sensitive_features=sex)
    twice = twice.loc[:, ~twice.columns.duplicated()]  # the remedy
    assert clone(model).fit(twice, y, sensitive_features=sex).feature_names_in_.tolist() == ["x"]
    with pytest.raises(ValueError, match="too large to be squared and added. Divide all of it"):
        model.fit(X, y, sensitive_features=sex, sample_weight=np.full(200, 1e300))
    with pytest.raises(TypeError, match=r"fit.* 'sensitive_feature'. Did you mean 'sensitive_fea"):
        model.fit(X, y, sensitive_feature=sex)
    with pytest.raises(TypeError, match="'groups'. Sensitive attributes are passed as sensitive_"):
        model.fit(X, y, groups=sex)
    if is_classifier(model):
        with pytest.raises(ValueError, match=r"All rows with y=0 have sample_weight 0"):
            model.fit(X, y, sensitive_features=sex, sample_weight=1.0 * y)
