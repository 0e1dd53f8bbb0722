"""``ensemble=False``: limits are found on folds, and one model of all rows predicts.

The same holds for each estimator that fits a model on folds: what is found out of fold is that of
``ensemble=True``, and the model that predicts is the one that anybody would fit to all rows.
"""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from skfair import Sensitive
from skfair.classification import FairDecisionClassifier
from skfair.model_selection import fairness_path, keeping_models
from skfair.regression import FairDecisionRegressor
from tests.families import rows_of_families
from tests.seeds import generator

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def rows(n=300, seed=0):
    rng = generator(seed)
    sex = rng.choice(["f", "m"], n)
    X = rng.normal(size=(n, 3)) + 0.8 * (sex == "m")[:, None] * [1, 0, 1]
    return X, (X[:, 0] + X[:, 1] + rng.logistic(size=n) > 0.5).astype(int), sex


class Counted:
    """A mixin that counts fits, and remembers what they got."""

    fits: list = []

    def fit(self, X, y, sample_weight=None):
        self.fits.append(len(y))
        self.n_rows_ = len(y)
        self.weights_ = sample_weight
        return super().fit(X, y, sample_weight=sample_weight)


class CountedClassifier(Counted, LogisticRegression):
    pass


class CountedRegressor(Counted, LinearRegression):
    pass


CALIBRATED = [
    kind(CountedClassifier(), (0.0, 0.5), max_disparity=0.1)
    for kind in rows_of_families("CALIBRATORS")
]
MODELS = {
    "aware": FairDecisionClassifier(CountedClassifier(), max_disparity=0.02, group_aware=True),
    "blind": FairDecisionClassifier(CountedClassifier(), max_disparity=0.02, random_state=0),
    "numbers": FairDecisionRegressor(CountedRegressor(), max_disparity=0.02, group_aware=True),
    "blind numbers": FairDecisionRegressor(CountedRegressor(), max_disparity=0.02),
    **{type(model).__name__: model for model in CALIBRATED},
}


def both(model, X, y, sex, **of_fit):
    return [
        clone(model).set_params(ensemble=ensemble).fit(X, y, sensitive_features=sex, **of_fit)
        for ensemble in (True, False)
    ]


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_what_is_found_out_of_fold_is_the_same_and_one_model_of_all_rows_predicts(model):
    X, y, sex = rows()
    weight = generator(1).uniform(0.5, 2.0, y.size)
    several, single = both(model, X, y, sex, sample_weight=weight)
    assert_array_equal(several.train_predictions_, single.train_predictions_)
    assert several.train_disparity_ == single.train_disparity_
    assert repr(several.changes_) == repr(single.changes_)
    assert len(several.estimators_) == 5
    assert single.estimators_ == [single.estimator_]
    assert single.estimator_.n_rows_ == y.size
    assert_array_equal(single.estimator_.weights_, weight)
    plain = clone(model.estimator).fit(X, y, sample_weight=weight)
    assert_allclose(single.estimator_.coef_, plain.coef_)
    with pytest.raises(AttributeError, match="mean of 5 models.*ensemble=False"):
        _ = several.estimator_
    assert "the mean of 5 models (estimators_)" in several.summary_
    assert "one model (estimator_)" in single.summary_
    groups = {"sensitive_features": sex} if single.is_group_aware_ else {}
    copied = pickle.loads(pickle.dumps(single))
    assert_array_equal(copied.predict(X, **groups), single.predict(X, **groups))


@pytest.mark.parametrize("name", ["blind", "blind numbers"])
def test_one_model_of_the_groups_of_all_rows_for_each_attribute(name):
    X, y, sex = rows(seed=1)
    age = generator(2).choice(["old", "young"], y.size)
    groups = pd.DataFrame({"sex": sex, "age": age})
    asked = Sensitive(intersectional=False)
    of_groups = {"sensitive": asked, "group_estimator": CountedClassifier()}
    several, single = both(clone(MODELS[name]).set_params(**of_groups), X, y, groups)
    assert [len(models) for models in several.group_estimators_] == [5, 5]
    assert [len(models) for models in single.group_estimators_] == [1, 1]
    assert all(model.n_rows_ == y.size for (model,) in single.group_estimators_)
    assert_array_equal(several.train_predictions_, single.train_predictions_)


def test_neutral_models_of_groups_read_rows_as_the_one_model_does():
    X, y, sex = rows(seed=3)
    table = pd.DataFrame(X, columns=list("abc"))
    model = FairDecisionClassifier(
        HistGradientBoostingClassifier(max_iter=5, random_state=0), max_disparity=0.02
    )
    _, single = both(model, table, y, sex)
    ((of_groups,),) = single.group_estimators_
    chances = single.estimator_.predict_proba(table)
    joint = single._decider.group_models.joint(table, chances)
    assert_allclose(joint.sum(axis=1), chances)
    assert of_groups.predict_proba(table).shape == (y.size, 4)


def test_thresholds_are_those_of_the_one_model():
    X, y, sex = rows(seed=4)
    _, single = both(MODELS["aware"], X, y, sex)
    new, _, group = rows(seed=5)
    cuts = single.to_thresholds()["threshold"].to_numpy()[(group == "m").astype(int)]
    selected = single.estimator_.predict_proba(new)[:, 1] > cuts
    assert_array_equal(single.predict(new, sensitive_features=group), selected.astype(int))


def test_scores_without_probabilities_are_calibrated_in_the_one_model_too():
    X, y, sex = rows(seed=6)
    _, single = both(FairDecisionClassifier(LinearSVC(), group_aware=True), X, y, sex)
    chances = single.predict_proba(X)
    assert_allclose(chances, single.estimator_.predict_proba(X))
    assert_allclose(chances.sum(axis=1), 1.0)


def test_groups_as_probabilities_and_rows_without_a_group():
    X, y, sex = rows(seed=7)
    of_women = np.clip(0.8 * (sex == "f") + 0.1, 0, 1)
    chances = pd.DataFrame({"f": of_women, "m": 1 - of_women})
    model = clone(MODELS["blind"]).set_params(sensitive=Sensitive(probabilities=True))
    _, single = both(model, X, y, chances)
    assert single.estimator_.n_rows_ == y.size
    some = np.where(np.arange(y.size) % 10 == 0, None, sex)
    model = clone(MODELS["aware"]).set_params(unseen="overall", sensitive=Sensitive(missing="loss"))
    _, single = both(model, X, y, some)
    assert single.estimator_.n_rows_ == y.size


def test_a_fitted_model_is_the_one_model_and_only_models_of_groups_are_fitted():
    X, y, sex = rows(seed=8)
    fitted = FrozenEstimator(GaussianNB().fit(*rows(seed=9)[:2]))
    several, single = both(FairDecisionClassifier(fitted, max_disparity=0.02), X, y, sex)
    assert several.estimator_ is several.estimators_[0]
    assert len(several.group_estimators_[0]) == 5
    assert len(single.group_estimators_[0]) == 1
    assert_array_equal(several.train_predictions_, single.train_predictions_)


def test_a_path_and_a_search_fit_the_one_model_once():
    X, y, sex = rows(seed=10)
    model = clone(MODELS["aware"]).set_params(ensemble=False)
    Counted.fits.clear()
    path = fairness_path(model, X, y, max_disparities=[0.3, 0.1, 0.02], sensitive_features=sex)
    assert len(Counted.fits) == 6
    alone = clone(model).set_params(max_disparity=0.02).fit(X, y, sensitive_features=sex)
    assert_array_equal(
        path.estimators[-1].predict(X, sensitive_features=sex),
        alone.predict(X, sensitive_features=sex),
    )
    table = pd.DataFrame(X, columns=list("abc")).assign(sex=sex)
    search = GridSearchCV(
        model.set_params(sensitive=["sex"]), {"max_disparity": [0.1, 0.02]}, cv=2, refit=False
    )
    Counted.fits.clear()
    with keeping_models():
        search.fit(table, y)
    assert len(Counted.fits) == 12  # in each half five folds, and all of its rows


def test_a_single_model_is_not_certified():
    X, y, sex = rows(seed=11)
    model = FairDecisionClassifier(max_disparity=0.3, certificate=0.9, ensemble=False)
    with pytest.raises(ValueError, match="is none of them. Leave ensemble=False out"):
        model.fit(X, y, sensitive_features=sex)
    fitted = FrozenEstimator(LogisticRegression().fit(*rows(seed=12)[:2]))
    model.set_params(estimator=fitted, group_aware=True).fit(X, y, sensitive_features=sex)
    assert model.estimator_ is fitted


def test_it_is_the_same_in_several_processes():
    X, y, sex = rows(seed=13)
    model = clone(MODELS["blind"]).set_params(estimator=LogisticRegression(), ensemble=False)
    one, two = (clone(model).set_params(n_jobs=n).fit(X, y, sensitive_features=sex) for n in (1, 2))
    assert_array_equal(one.decision_function(X), two.decision_function(X))
