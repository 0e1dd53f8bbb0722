"""Arguments of fits of estimators inside others: with and without routing, by name and by fold."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair.classification import FairDecisionClassifier
from skfair.cluster import FairAssignment
from tests.messages import messages
from tests.seeds import generator

RNG = generator(0)
N = 240
SEX = RNG.choice(["f", "m"], N)
X = RNG.normal(size=(N, 2)) + (SEX == "m")[:, None]
Y = (X[:, 0] + RNG.normal(size=N) > 0.5).astype(int)
WEIGHTS = RNG.integers(1, 4, N).astype(float)
GROUPS = {"sensitive_features": SEX}


class Notes(ClassifierMixin, BaseEstimator):
    """Keeps what its fit got."""

    def fit(self, X, y, sample_weight=None, sensitive_features=None, extra=None, note=None):
        self.classes_ = np.unique(y)
        self.got_ = {"weights": sample_weight, "groups": sensitive_features}
        self.got_ |= {"extra": extra, "note": note}
        self.first_ = X[:, 0]
        return self

    def predict_proba(self, X):
        positive = 1 / (1 + np.exp(-X[:, 0]))
        return np.column_stack([1 - positive, positive])

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]


class Clusters(KMeans):
    def fit(self, X, y=None, sample_weight=None, note=None):
        self.note_ = note
        return super().fit(X, sample_weight=sample_weight)


def fitted(inner=None, *, cv=3, **given):
    model = FairDecisionClassifier(
        Notes() if inner is None else inner, max_disparity=0.5, cv=cv, group_aware=True
    )
    return model.fit(X, Y, **GROUPS, **given)


def rows_of(model):
    """The training rows of the model of a fold, known by their first column."""
    return np.array([np.flatnonzero(X[:, 0] == value)[0] for value in model.first_])


@pytest.mark.parametrize("confidence", [None, 0.5])
def test_columns_are_cut_to_the_folds_and_the_rest_is_passed_on(confidence):
    options = {"max_disparity": 0.5, "cv": 3, "group_aware": True, "certificate": confidence}
    model = FairDecisionClassifier(Notes(), random_state=0, **options)
    model.fit(X, Y, WEIGHTS, **GROUPS, extra=np.arange(N), note="a word")
    for one in model.estimators_:
        rows = rows_of(one)
        assert rows.size < N
        assert one.got_["extra"].tolist() == rows.tolist()
        assert one.got_["weights"].tolist() == WEIGHTS[rows].tolist()
        assert one.got_["note"] == "a word"
        assert one.got_["groups"] is None


def test_a_pipeline_gets_the_weights_of_its_step():
    last = LogisticRegression(C=np.inf, tol=1e-8)  # scaling changes nothing then
    pipeline = make_pipeline(StandardScaler(), last)
    name = "logisticregression__sample_weight"
    weighted, plain = fitted(pipeline, **{name: WEIGHTS}), fitted(pipeline)
    assert not np.allclose(weighted.predict_proba(X), plain.predict_proba(X))
    by_hand = fitted(last, sample_weight=WEIGHTS)
    assert np.allclose(weighted.predict_proba(X), by_hand.predict_proba(X), atol=1e-4)
    with pytest.warns(UserWarning, match="takes no sample_weight"):
        fitted(pipeline, sample_weight=WEIGHTS)


def frozen_clusters():
    return FairAssignment(FrozenEstimator(KMeans(2, n_init=1, random_state=0).fit(X)))


def with_routing(call):
    with config_context(enable_metadata_routing=True):
        call()


FROZEN = FrozenEstimator(Notes().fit(X, Y))
test_what_nobody_takes_is_refused = messages(
    (TypeError, "zzz", lambda: fitted(LogisticRegression(), zzz=1)),
    (ValueError, "takes no 'note'|takes no note", lambda: fitted(FROZEN, note="a word")),
    (ValueError, "fits no clusterer", lambda: frozen_clusters().fit(X, **GROUPS, note="a word")),
    (
        *(UnsetMetadataPassedError, "extra"),
        lambda: with_routing(lambda: fitted(extra=np.arange(N))),
    ),
    (TypeError, "zzz", lambda: with_routing(lambda: fitted(zzz=1))),
)


def test_routing_hands_over_what_is_requested():
    with config_context(enable_metadata_routing=True):
        inner = Notes().set_fit_request(sample_weight="heft", sensitive_features=True, note=True)
        model = fitted(inner, heft=WEIGHTS, note="a word")
        for one in model.estimators_:
            rows = rows_of(one)
            assert one.got_["weights"].tolist() == WEIGHTS[rows].tolist()
            assert one.got_["groups"].tolist() == SEX[rows].tolist()
            assert one.got_["note"] == "a word"
        # Weights go to a fit that takes them unless it says no.
        assert fitted(sample_weight=WEIGHTS).estimators_[0].got_["weights"] is not None
        refusing = Notes().set_fit_request(sample_weight=False)
        with pytest.warns(UserWarning, match="takes no sample_weight"):
            found = fitted(refusing, sample_weight=WEIGHTS)
        assert found.estimators_[0].got_["weights"] is None
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        last = LogisticRegression().set_fit_request(sample_weight=True)
        pipeline = fitted(make_pipeline(scaler, last), sample_weight=WEIGHTS)
        plain = fitted(make_pipeline(scaler, last))
        assert not np.allclose(pipeline.predict_proba(X), plain.predict_proba(X))


def test_a_search_routes_to_the_classifier_inside():
    with config_context(enable_metadata_routing=True):
        inner = Notes().set_fit_request(extra=True)
        model = FairDecisionClassifier(inner, max_disparity=0.5, cv=2, group_aware=True)
        search = GridSearchCV(model, {"max_disparity": [0.3, 0.5]}, cv=2, scoring=None)
        search.fit(X, Y, **GROUPS, extra=np.arange(N))
        one = search.best_estimator_.estimators_[0]
        assert one.got_["extra"].tolist() == rows_of(one).tolist()


def test_clusterers_get_theirs_too():
    model = FairAssignment(Clusters(2, n_init=1, random_state=0))
    assert model.fit(X, **GROUPS, note="a word").clusterer_.note_ == "a word"
    model.fit_predict(X, **GROUPS, note="another")
    assert model.clusterer_.note_ == "another"
    with config_context(enable_metadata_routing=True):
        asked = Clusters(2, n_init=1, random_state=0).set_fit_request(note=True)
        model = FairAssignment(asked).fit(X, **GROUPS, note="a word", sample_weight=WEIGHTS)
        assert model.clusterer_.note_ == "a word"
        by_hand = KMeans(2, n_init=1, random_state=0).fit(X, sample_weight=WEIGHTS)
        assert np.allclose(model.clusterer_.cluster_centers_, by_hand.cluster_centers_)
