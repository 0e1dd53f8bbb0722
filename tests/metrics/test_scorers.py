import pickle
from functools import partial
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import (
    GridSearchCV,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skfair import Sensitive, metrics
from skfair.classification import FairDecisionClassifier
from skfair.constraints import ConditionalOn
from skfair.metrics import get_scorer, get_scorer_names, make_fairness_scorer
from tests.older import ScoringMonitor, needs_callbacks
from tests.prototypes import GroupAwareClassifier, SeedClusterer
from tests.seeds import generator

GAP = "neg_demographic_parity_difference"


@pytest.fixture(scope="module")
def numbers():
    """Numeric features whose first column gives the group away."""
    rng = generator(0)
    groups = np.repeat(["f", "m"], [80, 120])
    X = np.column_stack(((groups == "m") + rng.normal(size=200), rng.normal(size=200)))
    y = (X.sum(axis=1) + rng.normal(size=200) > 0.5).astype(int)
    order = rng.permutation(200)
    return X[order], y[order], groups[order]


@pytest.fixture(scope="module")
def frame(numbers):
    X, y, groups = numbers
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "sex": groups}), y


def keep_numbers():
    return make_column_transformer(("passthrough", ["a", "b"]), verbose_feature_names_out=False)


def metric_of(name):
    return getattr(metrics, name.removeprefix("neg_"))


def folds(model, X, y=None, *, scoring, **params):
    """Return the scores of three folds; what else is passed are arguments of rows."""
    return cross_validate(model, X, y, scoring=scoring, params=params, cv=3, error_score="raise")


@pytest.mark.parametrize("name", sorted({*get_scorer_names()} - {"accuracy"}))
def test_every_scorer_equals_its_metric(name, numbers):
    X, y, groups = numbers
    options = {"interval": (0.1, 0.5)} if "_partial_" in name else {}
    metric = metric_of(name)
    taken = signature(metric).parameters
    if "query_id" in taken:
        options = {"query_id": np.arange(y.size) % 5}
    scorer = get_scorer(name, **options)
    sign = -1 if name.startswith("neg_") else 1
    if "labels" in taken:
        model = KMeans(3, n_init=1, random_state=0).fit(X)
        expected = metric(model.labels_, sensitive_features=groups)
    else:
        model = LogisticRegression().fit(X, y)
        response = model.predict(X) if "y_pred" in taken else model.decision_function(X)
        if name == "neg_calibration_difference":
            response = model.predict_proba(X)[:, 1]
        expected = metric(y, response, sensitive_features=groups, **options)
    assert scorer(model, X, y, sensitive_features=groups) == sign * expected
    again = pickle.loads(pickle.dumps(scorer))
    assert again(model, X, y, sensitive_features=groups) == sign * expected
    assert repr(again) == repr(scorer)
    assert clone(scorer, safe=False)(model, X, y, sensitive_features=groups) == sign * expected


def test_routing_on_needs_no_request(numbers):
    X, y, groups = numbers
    scorer = get_scorer(GAP)  # made while routing is off
    model = LogisticRegression()
    with config_context(enable_metadata_routing=True):
        params = {"sensitive_features": groups}
        one = cross_val_score(model, X, y, scoring=scorer, params=params)
        both = cross_validate(
            model, X, y, scoring={"accuracy": "accuracy", "gap": scorer}, params=params
        )
        search = GridSearchCV(
            model, {"C": [1e-6, 1]}, scoring={"accuracy": "accuracy", "gap": scorer}, refit="gap"
        ).fit(X, y, sensitive_features=groups)
        pipeline = make_pipeline(StandardScaler(), model)
        piped = cross_val_score(pipeline, X, y, scoring=scorer, params=params)
    assert np.array_equal(one, both["test_gap"])
    assert (one <= 0).all()
    assert one.min() < 0
    assert np.isfinite(piped).all()
    assert search.best_params_ == {"C": 1e-6}
    assert search.cv_results_["mean_test_gap"].max() == search.best_score_


@pytest.mark.parametrize("own", ["sex", ["sex", "age"]])
def test_a_model_that_reads_its_groups_from_columns_is_measured_by_any(frame, own):
    X, y = frame
    # The levels of one attribute are those of the other.
    X = X.assign(sex=(X["sex"] == "m").astype(float), age=(X["b"] > 0).astype(float))
    inner = FairDecisionClassifier(sensitive=own, max_disparity=0.1, cv=2)
    for model in (inner, make_pipeline(StandardScaler().set_output(transform="pandas"), inner)):
        found = model.fit(X, y).predict(X)
        for measured in ("sex", "age", ["sex", "age"]):
            gap = metrics.demographic_parity_difference(y, found, sensitive_features=X[measured])
            assert get_scorer(GAP, sensitive=measured)(model, X, y) == -gap
    gap = metrics.demographic_parity_difference(y, found, sensitive_features=X["age"])
    audit = pytest.importorskip("skfair.report").Audit
    report = audit.from_estimator(model, X, y, sensitive_features=X["age"])
    assert report.value("demographic_parity_difference") == pytest.approx(gap)


@pytest.fixture(scope="module")
def jobs(frame):
    """A frame with jobs, and the gap within them of a model of two columns."""
    X, y = frame
    X = X.assign(job=np.where(np.arange(len(X)) % 3, "x", "y"))
    model = make_pipeline(keep_numbers(), LogisticRegression()).fit(X, y)
    gap = metrics.demographic_parity_difference(
        y, model.predict(X), sensitive_features=X["sex"], control_features=X["job"]
    )
    return X, y, model, gap


COLUMNS = [
    ({"sensitive": ["sex"]}, "sensitive=['sex']"),
    ({"sensitive": 2}, "sensitive=2"),
    ({"sensitive": "sex", "control_columns": "job"}, "sensitive='sex', control_columns='job'"),
]


@pytest.mark.parametrize(("columns", "said"), COLUMNS)
def test_columns_are_read_with_routing_off_and_on(jobs, columns, said):
    X, y, model, gap = jobs
    plain = metrics.demographic_parity_difference(y, model.predict(X), sensitive_features=X["sex"])
    expected = -gap if "control_columns" in columns else -plain
    scorer = get_scorer(GAP, **columns)
    assert said in repr(scorer)
    for one in (scorer, pickle.loads(pickle.dumps(scorer))):
        assert one(model, X, y) == expected
    scores = folds(model, X, y, scoring={"accuracy": "accuracy", "gap": scorer})["test_gap"]
    with config_context(enable_metadata_routing=True):
        assert np.array_equal(folds(model, X, y, scoring=scorer)["test_score"], scores)
    search = GridSearchCV(model, {"logisticregression__C": [1e-6, 1]}, scoring=scorer).fit(X, y)
    assert search.best_params_ == {"logisticregression__C": 1e-6}


def test_groups_that_are_passed_go_with_strata_from_a_column(jobs):
    X, y, model, gap = jobs
    assert get_scorer(GAP, control_columns="job")(model, X, y, sensitive_features=X["sex"]) == -gap


def test_control_features_are_requested_like_groups(numbers, jobs):
    X, y, groups = numbers
    table, _, model, gap = jobs
    scorer, job = get_scorer(GAP), table["job"].to_numpy()  # made while routing is off
    found = scorer(model, table, y, sensitive_features=groups, control_features=job)
    assert found == -gap != scorer(model, table, y, sensitive_features=groups)
    with config_context(enable_metadata_routing=True):
        known, scoring = {"sensitive_features": groups}, {"within": get_scorer(GAP)}
        plain, within = (
            folds(LogisticRegression(), X, y, scoring=scoring, **known, **more)["test_within"]
            for more in ({}, {"control_features": job})
        )
        assert not np.allclose(plain, within)
        scoring["plain"] = get_scorer(GAP).set_score_request(control_features=False)
        known["control_features"] = job
        both = folds(LogisticRegression(), X, y, scoring=scoring, **known)
    assert np.array_equal(both["test_within"], within)
    assert np.array_equal(both["test_plain"], plain)


@pytest.mark.parametrize("label", [0, 1, 2, 1.0])
def test_of_several_classes_each_is_scored(numbers, label):
    X, y, groups = numbers
    y = y + (X[:, 1] > 1)
    model = LogisticRegression().fit(X, y)
    found = model.predict(X)
    gap = metrics.demographic_parity_difference(
        y == label, found == label, sensitive_features=groups
    )
    scorer = get_scorer(GAP, pos_label=label)
    assert scorer(model, X, y, sensitive_features=groups) == -gap
    assert pickle.loads(pickle.dumps(scorer))(model, X, y, sensitive_features=groups) == -gap


def test_strata_reach_models_that_decide_by_them(jobs):
    X, y, *_ = jobs
    numbers, given = X[["a", "b"]], {"sensitive_features": X["sex"], "control_features": X["job"]}
    inner = FairDecisionClassifier(constraint=ConditionalOn("demographic_parity"), cv=2)
    for aware in (False, True):
        model = clone(inner).set_params(group_aware=aware).fit(numbers, y, **given)
        known = given if aware else {"control_features": X["job"]}
        found = model.predict(numbers, **known)
        gap = metrics.demographic_parity_difference(y, found, **given)
        assert get_scorer(GAP)(model, numbers, y, **given) == -gap
        # A model that reads its strata from X keeps them when it is measured within others.
        coded = X.assign(job=np.where(X["job"] == "x", 0.0, 1.0)).drop(columns="sex")
        model.set_params(sensitive=Sensitive(control_features="job")).fit(
            coded, y, sensitive_features=X["sex"]
        )
        halves = {"sensitive_features": X["sex"], "control_features": np.arange(len(y)) % 2}
        found = model.predict(coded, sensitive_features=X["sex"])
        gap = metrics.demographic_parity_difference(y, found, **halves)
        assert get_scorer(GAP)(model, coded, y, **halves) == -gap
    with config_context(enable_metadata_routing=True):
        scores = cross_val_score(
            inner, numbers, y, scoring=get_scorer(GAP), params=given, error_score="raise", cv=2
        )
    assert np.isfinite(scores).all()


def test_sample_weight_can_be_requested(numbers):
    X, y, groups = numbers
    weights = generator(0).uniform(0.1, 3, y.size)
    scorer = get_scorer(GAP).set_score_request(sample_weight=True)
    model = LogisticRegression().fit(X, y)
    expected = -metrics.demographic_parity_difference(
        y, model.predict(X), sensitive_features=groups, sample_weight=weights
    )
    assert scorer(model, X, y, sensitive_features=groups, sample_weight=weights) == expected
    with config_context(enable_metadata_routing=True):
        known = {"sensitive_features": groups, "sample_weight": weights}
        model.set_fit_request(sample_weight=False)
        weighted = folds(model, X, y, scoring=scorer, **known)
        plain = folds(model, X, y, scoring=get_scorer(GAP), sensitive_features=groups)
    assert not np.allclose(weighted["test_score"], plain["test_score"])


def test_group_aware_models_get_the_groups(numbers, frame):
    X, y, groups = numbers
    model = GroupAwareClassifier().fit(X, y, sensitive_features=groups)
    scorer = get_scorer(GAP)
    expected = -metrics.demographic_parity_difference(
        y, model.predict(X, sensitive_features=groups), sensitive_features=groups
    )
    assert scorer(model, X, y, sensitive_features=groups) == expected
    piped = make_pipeline(StandardScaler(), GroupAwareClassifier())
    piped.fit(X, y, groupawareclassifier__sensitive_features=groups)
    assert scorer(piped, X, y, sensitive_features=groups) < 0
    with config_context(enable_metadata_routing=True):
        for estimator in (GroupAwareClassifier(), piped):
            scoring = {"gap": scorer, "odds": get_scorer("equalized_odds_ratio")}
            scores = folds(estimator, X, y, scoring=scoring, sensitive_features=groups)
            assert scores["test_gap"].min() < 0
        search = GridSearchCV(GroupAwareClassifier(), {"max_iter": [1, 2]}, scoring=scorer)
        search.fit(X, y, sensitive_features=groups)
        assert scorer(search, X, y, sensitive_features=groups) == expected
    table, _ = frame
    aware = GroupAwareClassifier(sensitive=["sex"])
    scores = cross_val_score(
        aware, table, y, scoring=get_scorer(GAP, sensitive=["sex"]), error_score="raise"
    )
    assert scores.min() < 0


def test_clusterers_without_y(numbers):
    X, _, groups = numbers
    with config_context(enable_metadata_routing=True):
        for model in (KMeans(3, n_init=1, random_state=0), SeedClusterer(3, random_state=0)):
            known, scoring = {"sensitive_features": groups}, get_scorer("balance_score")
            scores = folds(model, X, scoring=scoring, **known)["test_score"]
            assert ((scores >= 0) & (scores <= 1)).all()
            assert scores.max() > 0
            both = folds(model, X, scoring={"a": scoring, "b": get_scorer("share_ratio")}, **known)
            assert np.array_equal(both["test_a"], scores)


def test_probabilities_and_decisions(numbers):
    X, y, groups = numbers
    names = np.array(["no", "yes"])[y]
    model = LogisticRegression().fit(X, names)
    gap = get_scorer("neg_wasserstein_gap", response_method="predict_proba")
    expected = -metrics.wasserstein_gap(
        None, model.predict_proba(X)[:, 1], sensitive_features=groups
    )
    assert gap(model, X, names, sensitive_features=groups) == expected
    negative = get_scorer("neg_intra_group_pairwise_gap", pos_label="no")
    positive = get_scorer("neg_intra_group_pairwise_gap", pos_label="yes")
    assert negative(model, X, names, sensitive_features=groups) == pytest.approx(
        positive(model, X, names, sensitive_features=groups)
    )
    svm = LinearSVC().fit(X, y)
    assert get_scorer("neg_statistical_parity_gap")(svm, X, y, sensitive_features=groups) < 0


def test_predictions_are_shared_between_scorers(numbers):
    X, y, groups = numbers

    class Counting(LogisticRegression):
        calls = 0

        def predict(self, X):
            Counting.calls += 1
            return super().predict(X)

    with config_context(enable_metadata_routing=True):
        scoring = {"a": get_scorer(GAP), "b": "accuracy", "c": get_scorer("equalized_odds_ratio")}
        folds(Counting(), X, y, scoring=scoring, sensitive_features=groups)
    assert Counting.calls == 3


@needs_callbacks
def test_monitors_score_with_it(numbers):
    X, y, groups = numbers
    fixed = get_scorer(GAP, sensitive_features=groups)
    monitor = ScoringMonitor(scoring=fixed)
    LogisticRegression(max_iter=50).set_callbacks(monitor).fit(X, y)
    logged = [row["score"] for row in monitor.get_logs().data if "score" in row]
    assert len(logged) > 1
    assert max(logged) <= 0


def test_thresholds_are_tuned_by_it(numbers):
    X, y, groups = numbers
    with config_context(enable_metadata_routing=True):
        tuned = TunedThresholdClassifierCV(
            LogisticRegression(), scoring=get_scorer(GAP), cv=3, thresholds=5
        ).fit(X, y, sensitive_features=groups)
    assert 0 <= tuned.best_threshold_ <= 1


def test_the_least_fair_model_is_not_the_best():
    ratio, difference = metrics.demographic_parity_ratio, metrics.demographic_parity_difference
    for metric, wrong in ((difference, True), (ratio, False)):
        for one in (metric, partial(metric, pos_label=1)):
            with pytest.raises(ValueError, match="choose the least fair model") as error:
                make_fairness_scorer(one, greater_is_better=wrong)
            assert str(error.value).endswith("Leave greater_is_better out.")
            scorer = make_fairness_scorer(one)  # the remedy
            assert repr(scorer) == repr(make_fairness_scorer(one, greater_is_better=not wrong))


def test_metrics_of_ones_own(numbers):
    X, y, groups = numbers
    model = LogisticRegression().fit(X, y)

    def smallest_rate(y_pred, *, sensitive_features, floor=0.0):
        rates = [np.mean(y_pred[sensitive_features == g]) for g in set(sensitive_features)]
        return max(floor, min(rates))

    scorer = make_fairness_scorer(smallest_rate, greater_is_better=True, floor=0.01)
    expected = smallest_rate(model.predict(X), sensitive_features=groups)
    assert scorer(model, X, sensitive_features=groups) == expected
    assert repr(scorer) == "make_fairness_scorer(smallest_rate, greater_is_better=True, floor=0.01)"

    def cost_per_group(X, labels, *, sensitive_features):
        return metrics.kmeans_cost(X, labels) / len(set(sensitive_features))

    clusters = KMeans(2, n_init=1, random_state=0).fit(X)
    scorer = make_fairness_scorer(cost_per_group, greater_is_better=False)
    assert (
        scorer(clusters, X, sensitive_features=groups)
        == -metrics.kmeans_cost(X, clusters.labels_) / 2
    )
    overall = partial(metrics.demographic_parity_difference, reference="overall")
    scorer = make_fairness_scorer(overall)
    assert scorer(model, X, y, sensitive_features=groups) == -overall(
        y, model.predict(X), sensitive_features=groups
    )


def test_accuracy_of_group_aware_models(frame):
    X, y = frame
    numbers, sex = X[["a", "b"]], X["sex"]
    aware = FairDecisionClassifier(group_aware=True, cv=2)
    with config_context(enable_metadata_routing=True):
        scoring = {"accuracy": get_scorer("accuracy"), "gap": get_scorer(GAP)}
        scores = folds(aware, numbers, y, scoring=scoring, sensitive_features=sex)
    assert (scores["test_accuracy"] > 0.5).all()
    aware.fit(numbers, y, sensitive_features=sex)
    found = get_scorer("accuracy")(aware, numbers, y, sensitive_features=sex)
    assert found == aware.score(numbers, y, sensitive_features=sex)
    blind = LogisticRegression().fit(numbers, y)
    assert get_scorer("accuracy")(blind, numbers, y) == blind.score(numbers, y)
    scorer = make_fairness_scorer(f1_score, greater_is_better=True, sensitive="sex")
    assert scorer(make_pipeline(keep_numbers(), LogisticRegression()).fit(X, y), X, y) == f1_score(
        y, blind.predict(numbers)
    )


@pytest.mark.parametrize("name", [GAP, "neg_equalized_odds_difference", "equal_opportunity_ratio"])
def test_worst_class_against_the_rest(numbers, name):
    X, _, groups = numbers
    three = np.array(["low", "mid", "high"])[np.digitize(X.sum(axis=1), [0, 1.2])]
    model = LogisticRegression().fit(X, three)
    predicted, metric = model.predict(X), metric_of(name)
    values = [
        metric(three == label, predicted == label, sensitive_features=groups)
        for label in set(three)
    ]
    expected = -max(values) if name.startswith("neg_") else min(values)
    scorer = get_scorer(name, worst_class=True)
    assert scorer(model, X, three, sensitive_features=groups) == expected
    again = pickle.loads(pickle.dumps(scorer))
    assert again(model, X, three, sensitive_features=groups) == expected
    assert repr(again).endswith(", worst_class=True)")
    shuffled = pd.Series(groups).sample(frac=1, random_state=0)
    table = pd.DataFrame(X, columns=["a", "b"])
    model = LogisticRegression().fit(table, three)
    with pytest.raises(ValueError, match="index labels in a different order"):
        scorer(model, table, pd.Series(three), sensitive_features=shuffled)
    # The target goes by position, as in scikit-learn, whatever its index says.
    moved = pd.Series(three, index=shuffled.index)
    assert scorer(model, table, moved, sensitive_features=groups) == expected


def test_each_attribute_has_a_scorer_of_its_own_with_routing_on(frame):
    X, y = frame
    numbers, age = X[["a", "b"]], (X["b"] > 0).to_numpy()
    with config_context(enable_metadata_routing=True):
        scoring = {
            name: get_scorer(GAP).set_score_request(sensitive_features=name)
            for name in ("sex", "age")
        }
        params = {"sex": X["sex"], "age": age}
        both = cross_validate(LogisticRegression(), numbers, y, scoring=scoring, params=params)
        for name, groups in params.items():
            alone = {"sensitive_features": groups}
            expected = cross_val_score(
                LogisticRegression(), numbers, y, scoring=get_scorer(GAP), params=alone
            )
            assert np.array_equal(both[f"test_{name}"], expected)
