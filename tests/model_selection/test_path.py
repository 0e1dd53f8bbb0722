import pickle
import warnings
from contextlib import nullcontext
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, mean_squared_error, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skfair import Sensitive
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.constraints import DemographicParity, EqualizedOdds, LossParity
from skfair.datasets import make_loans
from skfair.exceptions import NoFeasibleModelWarning, SelectionRateWarning
from skfair.metrics import (
    demographic_parity_difference,
    demographic_parity_ratio,
    equalized_odds_difference,
    largest_group_loss,
    loss_parity_difference,
    mean_score_difference,
    predictive_parity_difference,
)
from skfair.model_selection import FairnessPath, fairness_path, keeping_models
from skfair.regression import FairDecisionRegressor
from skfair.utils.response import get_response
from tests import naive
from tests.families import rows_of_families
from tests.seeds import generator


class Rival(ClassifierMixin, BaseEstimator):
    """Selects by the first column, shifted by group as far as the bound asks for.

    The shift needs the groups at prediction only if ``aware``; otherwise the second column of X,
    which is 1 for members of the second group, gives them away.
    """

    def __init__(
        self, max_disparity=0.1, constraint="demographic_parity", aware=False, sensitive=None
    ):
        self.max_disparity = max_disparity
        self.constraint = constraint
        self.aware = aware
        self.sensitive = sensitive

    def fit(self, X, y, *, sensitive_features=None, sample_weight=None):
        self.classes_ = np.unique(y)
        if sensitive_features is None:
            sensitive_features = np.asarray(X)[:, self.sensitive[0]]
        self.levels_ = np.unique(sensitive_features)
        self.weight_sum_ = None if sample_weight is None else float(np.sum(sample_weight))
        # From one row to the next, so that no disparity is left out.
        for self.shift_ in [0.0, *np.sort(np.abs(np.asarray(X, dtype=float)[:, 0]))]:
            selected = self.predict(X, sensitive_features) == self.classes_[-1]
            rates = [selected[np.asarray(sensitive_features) == g].mean() for g in self.levels_]
            self.train_disparity_ = max(rates) - min(rates)
            if self.train_disparity_ <= self.max_disparity:
                return self
        return self

    def predict(self, X, sensitive_features=None):
        if self.aware:
            assert sensitive_features is not None, "the groups did not arrive"
            is_second = np.asarray(sensitive_features) == self.levels_[-1]
        else:
            is_second = np.asarray(X)[:, 1] == 1
        scores = np.asarray(X, dtype=float)[:, 0] - self.shift_ * is_second
        return self.classes_[(scores > 0).astype(int)]


class Blind(Rival):
    """Its prediction does not take groups, as that of most estimators."""

    def predict(self, X, _groups=None):
        return super().predict(X)


@pytest.fixture(scope="module")
def data():
    rng = generator(0)
    is_second = rng.integers(0, 2, 400)
    X = np.column_stack([rng.normal(size=400) + 1.2 * is_second - 0.4, is_second])
    y = (X[:, 0] + 0.5 * rng.normal(size=400) > 0).astype(int)
    groups = np.array(["f", "m"])[is_second]
    return X[:250], y[:250], groups[:250], X[250:], y[250:], groups[250:]


BOUNDS = (0.05, 0.3, 0.1, 0.1)


def path_of(data, estimator=None, **options):
    X, y, groups, X_test, y_test, groups_test = data
    given = {
        "max_disparities": BOUNDS,
        "sensitive_features": groups,
        "X_test": X_test,
        "y_test": y_test,
        "sensitive_features_test": groups_test,
    }
    return fairness_path(estimator or Blind(), X, y, **(given | options))


def test_one_model_per_bound_from_loose_to_strict(data):
    X, y, groups, X_test, y_test, groups_test = data
    estimator = Blind(max_disparity=0.7)
    path = path_of(data, estimator)
    assert path.max_disparities.tolist() == [0.3, 0.1, 0.05]
    assert [model.max_disparity for model in path.estimators] == [0.3, 0.1, 0.05]
    assert not hasattr(estimator, "shift_")
    assert estimator.max_disparity == 0.7
    for i, bound in enumerate(path.max_disparities):
        alone = Blind(max_disparity=bound).fit(X, y, sensitive_features=groups)
        assert path.estimators[i].shift_ == alone.shift_
        labels = alone.predict(X_test)
        rates = naive.rates(y_test, labels, groups_test, np.ones(y_test.size))["selection_rate"]
        assert path.train_disparities[i] == alone.train_disparity_ <= bound
        assert path.test_disparities[i] == pytest.approx(abs(rates["f"] - rates["m"]))
        assert path.train_scores[i] == accuracy_score(y, alone.predict(X))
        assert path.test_scores[i] == accuracy_score(y_test, labels)
    assert path.score_name == "accuracy"
    again = pickle.loads(pickle.dumps(path))
    assert np.array_equal(again.test_scores, path.test_scores)


def test_without_a_test_sample(data):
    X, y, groups, *_ = data
    path = fairness_path(Blind(constraint=None), X, y, sensitive_features=groups)
    assert path.test_disparities is path.test_scores is None
    ratios = path.max_disparities[1:] / path.max_disparities[:-1]
    assert ratios == pytest.approx(0.5)  # the default bounds are geometric
    assert (path.train_disparities <= path.max_disparities).all()


@pytest.mark.parametrize("by_column", [False, True])
def test_random_splits_show_how_much_the_path_varies(data, by_column):
    X, y, groups, *_ = data
    estimator, options = Blind(), {"sensitive_features": groups}
    if by_column:
        estimator, options = Blind(sensitive=[1]), {}
    paths = [
        fairness_path(estimator, X, y, n_splits=5, random_state=seed, **options)
        for seed in (0, 0, 1)
    ]
    assert np.array_equal(paths[0].split_disparities, paths[1].split_disparities)
    assert not np.array_equal(paths[0].split_disparities, paths[2].split_disparities)
    found, alone = paths[0], fairness_path(estimator, X, y, **options)
    assert found.split_disparities.shape == found.split_scores.shape == (5, 6)
    assert found.test_disparities == pytest.approx(found.split_disparities.mean(axis=0))
    assert np.array_equal(found.train_disparities, alone.train_disparities)  # fitted to all rows
    printed = dict(zip(*(line.split() for line in repr(found).splitlines()[1:3]), strict=True))
    for name, splits in (("disparity", found.split_disparities), ("accuracy", found.split_scores)):
        spread = np.sqrt(np.mean((splits[:, 0] - splits[:, 0].mean()) ** 2))
        assert float(printed[f"test_{name}_std"]) == pytest.approx(spread, abs=5e-4)
    assert "_std" not in repr(alone)


def test_weights_reach_fits_and_training_scores(data):
    X, y, *_ = data
    weights = generator(1).uniform(0, 3, y.size)
    path = path_of(data, sample_weight=weights)
    for model, score in zip(path.estimators, path.train_scores, strict=True):
        assert model.weight_sum_ == pytest.approx(weights.sum())
        expected = accuracy_score(y, model.predict(X), sample_weight=weights)
        assert score == pytest.approx(expected)


def test_groups_reach_models_that_need_them_and_are_read_from_columns(data):
    X, y, _, X_test, y_test, _ = data
    rows = {"max_disparities": BOUNDS, "X_test": X_test, "y_test": y_test}
    paths = [fairness_path(Blind(sensitive=[1]), X, y, **rows)]
    for routing in (False, True):
        with config_context(enable_metadata_routing=routing):
            paths.append(path_of(data, Rival(aware=True)))
    expected = path_of(data)
    for path in paths:
        for name in ("train_disparities", "train_scores", "test_disparities", "test_scores"):
            assert np.array_equal(getattr(path, name), getattr(expected, name))


def by_hand(model, constraint, data):
    """The disparity on the second sample, constraint by constraint."""
    *_, X_test, y_test, groups_test = data
    given = {"sensitive_features": groups_test}
    labels, scores = model.predict(X_test), model.decision_function(X_test)
    return {
        "loss": lambda: loss_parity_difference(y_test, scores, loss="hinge", **given),
        "positive": lambda: loss_parity_difference(
            y_test, scores, loss="hinge", subset="positive", **given
        ),
        "worst": lambda: largest_group_loss(y_test, scores, loss="hinge", **given),
        "score": lambda: mean_score_difference(y_test, scores, **given),
        "ratio": lambda: 1 - demographic_parity_ratio(y_test, labels, **given),
        "overall": lambda: demographic_parity_difference(
            y_test, labels, reference="overall", **given
        ),
        "several": lambda: max(
            demographic_parity_difference(y_test, labels, **given),
            equalized_odds_difference(y_test, labels, **given),
        ),
        "one": lambda: demographic_parity_difference(y_test, labels, **given),
        "precision": lambda: predictive_parity_difference(y_test, labels, **given),
        "odds": lambda: equalized_odds_difference(y_test, labels, **given),
    }[constraint]()


class WithScores(Blind):
    """It has a decision function, and a loss."""

    def __init__(self, max_disparity=0.1, constraint="demographic_parity", loss="hinge"):
        super().__init__(max_disparity, constraint)
        self.loss = loss

    def decision_function(self, X):
        return np.asarray(X, dtype=float)[:, 0] - self.shift_ * (np.asarray(X)[:, 1] == 1)


@pytest.mark.parametrize(
    ("constraint", "measured"),
    [
        ("loss_parity", "loss"),
        (LossParity(subset="positive"), "positive"),
        ("bounded_group_loss", "worst"),
        ("mean_score_parity", "score"),
        ("predictive_parity", "precision"),
        ("equalized_odds", "odds"),
        (DemographicParity(), "one"),
        (["demographic_parity"], "one"),
        (DemographicParity(max_disparity=0.3, reference="overall"), "overall"),
        (DemographicParity(comparison="ratio"), "ratio"),
        (["demographic_parity", EqualizedOdds()], "several"),
    ],
    ids=str,
)
def test_every_constraint_is_measured_by_its_metric(data, constraint, measured):
    path = path_of(data, WithScores(constraint=constraint))
    for model, gap in zip(path.estimators, path.test_disparities, strict=True):
        assert gap == pytest.approx(by_hand(model, measured, data), abs=1e-12)


def test_the_last_class_is_the_positive_one(data):
    X, y, groups, X_test, y_test, groups_test = data
    expected = path_of(data, Blind(constraint="equal_opportunity"))
    for classes in (["a", "b"], [1, 2]):
        names = np.array(classes)
        path = path_of(
            (X, names[y], groups, X_test, names[y_test], groups_test),
            Blind(constraint="equal_opportunity"),
        )
        assert np.array_equal(path.test_disparities, expected.test_disparities)


def test_attributes_are_read_as_the_estimator_reads_them(data):
    *_, X_test, y_test, groups_test = data
    other = np.arange(y_test.size) % 3
    frame = pd.DataFrame({"a": groups_test, "b": other})
    apart = path_of(
        data, Blind(sensitive=Sensitive(intersectional=False)), sensitive_features_test=frame
    )
    crossed = path_of(data, sensitive_features_test=frame)
    for path, intersectional in ((apart, False), (crossed, True)):
        labels = path.estimators[0].predict(X_test)
        assert path.test_disparities[0] == demographic_parity_difference(
            y_test, labels, sensitive_features=frame, intersectional=intersectional
        )
    assert (apart.test_disparities < crossed.test_disparities).any()


def test_metrics_and_scores_of_ones_own(data):
    *_, X_test, y_test, groups_test = data
    overall = partial(demographic_parity_difference, reference="overall")
    path = path_of(data, metric=overall, scoring="balanced_accuracy")
    labels = path.estimators[0].predict(X_test)
    assert path.test_disparities[0] == overall(y_test, labels, sensitive_features=groups_test)
    assert path.test_scores[0] == balanced_accuracy_score(y_test, labels)
    assert path.score_name == "balanced_accuracy"

    def rows_selected(estimator, X, y):
        return estimator.predict(X).sum()

    path = path_of(data, scoring=rows_selected)
    assert path.test_scores[0] == labels.sum()
    assert path.score_name == "score"


class Regressor(RegressorMixin, BaseEstimator):
    """Moves the predictions of both groups towards each other."""

    def __init__(self, max_disparity=0.1):
        self.max_disparity = max_disparity

    def fit(self, X, y, *, sensitive_features):
        apart = np.mean(X[X[:, 1] == 1, 0]) - np.mean(X[X[:, 1] == 0, 0])
        self.train_disparity_ = min(apart, self.max_disparity)
        self.shift_ = apart - self.train_disparity_
        return self

    def predict(self, X):
        return X[:, 0] - self.shift_ * X[:, 1]


def test_regressors(data):
    *_, X_test, y_test, groups_test = data
    path = path_of(
        data, Regressor(), metric=mean_score_difference, scoring="neg_mean_squared_error"
    )
    for i, model in enumerate(path.estimators):
        predictions = model.predict(X_test)
        means = [predictions[groups_test == g].mean() for g in "fm"]
        assert path.test_disparities[i] == pytest.approx(abs(means[0] - means[1]))
        assert path.test_scores[i] == -mean_squared_error(y_test, predictions)


def made_path(disparities, scores, **test):
    disparities, scores = np.array(disparities), np.array(scores)
    names = [f"model {i}" for i in range(scores.size)]
    return FairnessPath(np.linspace(1, 0.1, scores.size), names, disparities, scores, **test)


@pytest.mark.parametrize(
    ("limit", "chosen"), [(0.3, "model 0"), (0.25, "model 2"), (0.2, "model 2"), (0.1, "model 3")]
)
def test_select_takes_the_best_score_within_the_limit(limit, chosen):
    # Models 1 and 2 score alike; the stricter one is taken.
    path = made_path([0.3, 0.25, 0.2, 0.1], [0.9, 0.8, 0.8, 0.7])
    assert path.select(max_disparity=limit) == chosen


def test_select_goes_by_the_test_sample_and_says_if_none_is_within():
    gaps, scores = [0.3, 0.2, 0.1], [0.9, 0.8, 0.7]
    tested = {"test_disparities": np.array([0.1, 0.4, np.nan]), "test_scores": np.array([6, 7, 8])}
    path = made_path(gaps, scores, **tested)
    assert path.select(max_disparity=0.2) == "model 0"
    assert path.select(max_disparity=0.4) == "model 1"
    with pytest.warns(NoFeasibleModelWarning, match=r"None of 3.*exceeds a limit by 0.05"):
        assert made_path(gaps, scores).select(max_disparity=0.05) == "model 2"


def test_nondominated_models():
    rng = generator(0)
    gaps, scores, test_gaps, test_scores = np.round(rng.random((4, 30)), 1)
    expected = naive.nondominated(gaps, scores)
    assert made_path(gaps, scores).nondominated.tolist() == expected
    tested = made_path(gaps, scores, test_disparities=test_gaps, test_scores=test_scores)
    assert tested.nondominated.tolist() == naive.nondominated(test_gaps, test_scores)


@pytest.mark.parametrize("constraint", ["demographic_parity", "accuracy_parity"])
@pytest.mark.parametrize("classes", [["a", "b", "c"], [0, 1, 2], [1, 2, 3], [-1, 0, 1]])
def test_of_several_classes_the_largest_disparity_counts(constraint, classes):
    rng = generator(0)
    groups, y = rng.integers(0, 2, 900), rng.choice(classes, 900)
    X = rng.normal(size=(900, 3)) + np.stack([y == classes[0], y == classes[1], 0 * groups], axis=1)
    X[:, 1] += 2 * ((y == classes[1]) & (groups == 0))
    model = FairDecisionClassifier(LogisticRegression(), constraint)
    path = path_of((X, y, groups) * 2, model, max_disparities=[0.6, 0.1])
    for model, gap in zip(path.estimators, path.test_disparities, strict=True):
        labels = model.predict(X, sensitive_features=groups)
        counted = [labels == label for label in classes]
        if constraint == "accuracy_parity":
            counted = [labels == y]
        rates = [[is_counted[groups == g].mean() for g in (0, 1)] for is_counted in counted]
        assert gap == pytest.approx(np.ptp(rates, axis=1).max(), abs=1e-12)


@pytest.mark.parametrize("classes", [[-3, 1], [1, 7], ["no", "yes"]])
def test_predictions_may_all_be_the_negative_class(classes):
    rng = generator(0)
    groups, y = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    X = np.column_stack([y + groups, rng.normal(size=300)])
    model = ConstrainedERMClassifier("bounded_selection_rate", pos_label=classes[1])
    with pytest.warns(SelectionRateWarning):
        path = path_of((X, np.array(classes)[y], groups) * 2, model, max_disparities=[0.0])
    assert set(path.estimators[0].predict(X)) == {classes[0]}
    assert path.test_disparities.tolist() == [0.0]


def test_a_printed_path_is_a_table():
    numbers = np.array([0.5, 0.25])
    path = FairnessPath(numbers, ["loose", "strict"], numbers / 2, 1 - numbers, score_name="r2")
    said = repr(path).split()
    assert said[:4] == ["FairnessPath", "of", "2", "models"]
    assert said[4:7] == ["max_disparity", "train_disparity", "train_r2"]
    found = np.array(said[7:], dtype=float).reshape(2, 3)
    np.testing.assert_allclose(
        found, np.column_stack([numbers, numbers / 2, 1 - numbers]), atol=5e-4
    )
    tested = FairnessPath(numbers, ["a", "b"], numbers, numbers, numbers, numbers)
    assert "test_disparity" in repr(tested)


class Counted(LogisticRegression):
    fits = 0

    def fit(self, *args, **kwargs):
        type(self).fits += 1
        return super().fit(*args, **kwargs)


@pytest.mark.parametrize("n_splits", [None, 2])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        partial(FairDecisionClassifier, Counted(), group_aware=True),
        partial(FairDecisionClassifier, Counted(), "equalized_odds", group_estimator=Counted()),
    ],
    ids=["aware", "blind"],
)
@pytest.mark.filterwarnings("ignore")  # that limits are loose, or groups small
def test_models_of_folds_are_fitted_once_and_are_those_of_separate_fits(make, scaled, n_splits):
    rng = generator(0)
    groups = rng.choice(["f", "m"], 300)
    X = rng.normal(size=(300, 3)) + (groups == "m")[:, None]
    y = (X[:, 0] + rng.normal(size=300) > 0.5).astype(int)
    model = make(cv=3, random_state=0)
    model = make_pipeline(StandardScaler(), model) if scaled else model
    limits, prefix = [0.9, 0.3, 0.1], f"{type(model[-1]).__name__.lower()}__" if scaled else ""
    Counted.fits = 0
    options = {"scoring": lambda model, X, y: 0.0, "n_splits": n_splits, "random_state": 0}
    path = fairness_path(model, X, y, max_disparities=limits, sensitive_features=groups, **options)
    assert Counted.fits <= (1 + (n_splits or 0)) * (6 if "group_estimator" in str(model) else 3)
    given = {f"{prefix}sensitive_features": groups}
    for limit, found in zip(limits, path.estimators, strict=True):
        alone = clone(model).set_params(**{f"{prefix}max_disparity": limit}).fit(X, y, **given)
        one, other = (vars(fitted[-1] if scaled else fitted) for fitted in (alone, found))
        assert one.keys() == other.keys()
        for name in ("train_predictions_", "train_disparity_"):
            assert np.array_equal(one[name], other[name])


def rows_of_loans(seed):
    X, y, people = make_loans(600, bias=2.0, missing_rate=0.0, random_state=seed)
    return X.select_dtypes("number"), y, people["sex"]


MODELS = {
    "boosters": HistGradientBoostingClassifier(max_iter=20, random_state=0),
    "forest": RandomForestClassifier(10, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0)),
}


@pytest.mark.parametrize("group_aware", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_a_row_shows_one_set_of_decisions(name, group_aware, global_random_seed):
    """Disparity and score are of the same decisions: out-of-fold ones, or those of other rows."""
    (X, y, sex), (X_new, y_new, sex_new) = (
        rows_of_loans(2 * global_random_seed + half) for half in (0, 1)
    )
    model = FairDecisionClassifier(MODELS[name], group_aware=group_aware, cv=3, random_state=0)
    given = {"sensitive_features": sex, "max_disparities": [0.3, 0.05]}
    path = fairness_path(model, X, y, **given)
    balanced = fairness_path(model, X, y, **given, scoring="balanced_accuracy")
    plain = fairness_path(model, X, y, **given, scoring=None)
    new = {"X_test": X_new, "y_test": y_new, "sensitive_features_test": sex_new}
    tested = fairness_path(model, X, y, **given, **new)
    for k, one in enumerate(path.estimators):
        out_of_fold = one.train_predictions_
        gap = demographic_parity_difference(y, out_of_fold, sensitive_features=sex)
        assert path.train_disparities[k] == pytest.approx(gap)
        right = accuracy_score(y, out_of_fold)
        assert path.train_scores[k] == tested.train_scores[k] == plain.train_scores[k] == right
        assert f"{gap:.3f}" in repr(path)
        assert f"{right:.3f}" in repr(path)
        assert balanced.train_scores[k] == balanced_accuracy_score(y, out_of_fold)
        by_group = {"sensitive_features": sex_new} if group_aware else {}
        predicted = one.predict(X_new, **by_group)
        assert tested.test_scores[k] == accuracy_score(y_new, predicted)
        gap = demographic_parity_difference(y_new, predicted, sensitive_features=sex_new)
        assert tested.test_disparities[k] == pytest.approx(gap)
    for rows, decisions in (
        ((X, y, sex), [one.train_predictions_ for one in path.estimators]),
        ((X_new, y_new, sex_new), [get_response(o, X_new, "predict", sensitive_features=sex_new)
                                   for o in path.estimators]),
    ):  # fmt: skip
        names = zip(("X", "y", "sensitive_features"), rows, strict=True)
        for step, own in zip(path._choice(dict(names)).steps, decisions, strict=True):
            (gap,) = step["numbers"]["attributes"]["sex"]["disparities"].values()
            if np.ptp(own):
                expected = demographic_parity_difference(None, own, sensitive_features=rows[2])
                assert gap["value"] == pytest.approx(expected, abs=1e-6)
            else:  # with one decision only, nothing is compared
                assert gap["value"] is gap["is_kept"] is None
                assert "every decision is" in gap["not_compared"]
            right = accuracy_score(rows[1], own)
            assert step["numbers"]["accuracy"][0] == pytest.approx(right, abs=1e-6)


@pytest.mark.parametrize("model", [FairDecisionRegressor, *rows_of_families("OUT_OF_FOLD")])
def test_scores_of_out_of_fold_predictions(model, global_random_seed):
    X, y, sex = rows_of_loans(global_random_seed)
    is_regressor = model is FairDecisionRegressor
    tree = RandomForestRegressor if is_regressor else RandomForestClassifier
    target = X.iloc[:, 0] if is_regressor else y
    limits = [1e9] if is_regressor else [1.0]
    path = fairness_path(
        model(tree(10, random_state=0), cv=3), X.iloc[:, 1:], target, sensitive_features=sex,
        max_disparities=limits, scoring="r2" if is_regressor else "accuracy",
    )  # fmt: skip
    (fitted,) = path.estimators
    measure = r2_score if is_regressor else accuracy_score
    assert path.train_scores[0] == pytest.approx(measure(target, fitted.train_predictions_))
    if not is_regressor:
        assert fitted.train_predictions_.mean() == pytest.approx(
            np.average(fitted.rates_, weights=sex.value_counts().sort_index())
        )


def test_what_out_of_fold_predictions_do_not_score_is_undefined():
    X, y, sex = rows_of_loans(0)
    model = FairDecisionClassifier(MODELS["forest"], group_aware=True, cv=3, random_state=0)
    given = {"sensitive_features": sex, "max_disparities": [0.3], "scoring": "roc_auc"}
    with pytest.warns(UserWarning, match="training scores of scoring='roc_auc' are undefined"):
        path = fairness_path(model, X, y, **given)
    assert np.isnan(path.train_scores).all()
    with pytest.raises(ValueError, match="Pass X_test or n_splits"):
        path.select(max_disparity=0.3)


def test_a_page_where_audits_are_not_installed_is_refused_in_a_sentence(monkeypatch):
    monkeypatch.setattr("skfair.model_selection.path.functions_of_wings", lambda name: [])
    path = FairnessPath(np.array([0.1]), [None], np.zeros(1), np.zeros(1))
    with pytest.raises(
        ImportError, match=r"^to_html makes a page of audits, a part .* installed\.$"
    ):
        path.to_html(X=np.zeros((2, 1)), y=[0, 1], sensitive_features=["f", "m"])


def test_models_that_cannot_be_pickled_have_a_path():
    """A step of a lambda has no hash, so each fit is made anew."""
    rng = generator(0)
    groups = rng.choice(["f", "m"], 200)
    X = rng.normal(size=(200, 3)) + (groups == "m")[:, None]
    y = (X[:, 0] + rng.normal(size=200) > 0.5).astype(int)
    paths = []
    for function in (None, lambda rows: rows):
        inner = make_pipeline(FunctionTransformer(function), LogisticRegression())
        model = FairDecisionClassifier(inner, cv=3, random_state=0)
        given = {"max_disparities": [0.9, 0.2], "sensitive_features": groups}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that limits move many decisions
            paths.append(fairness_path(model, X, y, **given))
    for one, other in zip(*(path.estimators for path in paths), strict=True):
        assert np.array_equal(one.train_predictions_, other.train_predictions_)


def test_a_search_over_limits_fits_models_once_and_finds_the_same():
    rng = generator(0)
    groups = rng.choice(["f", "m"], 300)
    X = rng.normal(size=(300, 3)) + (groups == "m")[:, None]
    y = (X[:, 0] + rng.normal(size=300) > 0.5).astype(int)
    model = FairDecisionClassifier(Counted(), cv=3, random_state=0)
    results = {}
    for name, block in (("alone", nullcontext()), ("kept", keeping_models())):
        Counted.fits = 0
        search = GridSearchCV(model, {"max_disparity": [0.9, 0.3, 0.1]}, cv=2)
        with config_context(enable_metadata_routing=True), block, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that limits are loose
            search.fit(X, y, sensitive_features=groups)
        results[name] = Counted.fits, search.cv_results_["mean_test_score"].tolist()
    assert results["alone"] == (21, results["kept"][1])  # three limits in two folds, and the best
    assert results["kept"][0] == 9
