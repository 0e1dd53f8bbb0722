"""Objectives of decisions: compared with all thresholds, limits, the swap, bad input."""

import warnings
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score, matthews_corrcoef, precision_score

from skfair import Objective
from skfair.classification import FairDecisionClassifier
from skfair.exceptions import PositiveClassWarning
from skfair.metrics import demographic_parity_difference
from tests.seeds import generator

COSTS = [[0, 1], [3, 0]]


def youden(tn, fp, fn, tp):
    return tp / (tp + fn) + tn / (tn + fp) - 1


def table(y, predicted, weights=None):
    weights = np.ones(len(y)) if weights is None else weights
    cells = [weights[(y == a) & (predicted == b)].sum() for a, b in product([0, 1], repeat=2)]
    return np.array(cells) / weights.sum()


def f1(tn, fp, fn, tp):
    return 2 * tp / (2 * tp + fp + fn)


def mcc(tn, fp, fn, tp):
    ends = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tn * tp - fp * fn) / np.sqrt(ends) if ends > 0 else -np.inf


VALUES = {
    "accuracy": lambda tn, fp, fn, tp: tn + tp,
    "balanced_accuracy": lambda *cells: 0.5 + 0.5 * youden(*cells),
    "f1": f1,
    "mcc": mcc,
}


def people(n=1200, seed=0, share=1.5):
    rng = generator(seed)
    sex = rng.choice(["f", "m"], n)
    X = rng.normal(size=(n, 2)) + (sex == "m")[:, None] * [0.8, 0]
    y = (X.sum(axis=1) + rng.logistic(size=n) > share).astype(int)
    return X, y, sex


@pytest.mark.filterwarnings("ignore::skfair.exceptions.SmallGroupWarning")
@pytest.mark.parametrize("name", VALUES)
def test_objectives_are_best_of_all_pairs_of_thresholds(name):
    """By counts and expected shares, which count as much as 6000 rows.

    Decisions without limits are best by expected shares alone, and a constant that is better by
    counts is taken before them.
    """
    for seed in range(3):
        X, y, sex = people(70, seed)
        X = np.round(X, 1)
        inner = LogisticRegression().fit(X, y)
        chances = inner.predict_proba(X)[:, 1]
        part = 6000 / (6000 + y.size)
        slack = max(1 - part, {"mcc": 0.01}.get(name, 0.0))
        believed = (1 - part) * y + part * chances

        def value(predicted, believed=believed):
            tp, fp = np.mean(believed * predicted), np.mean((1 - believed) * predicted)
            p = believed.mean()
            return VALUES[name](1 - p - fp, fp, p - tp, tp)

        tried = []
        for low, high in product(*(np.append(np.unique(chances[sex == s]), 1.1) for s in "fm")):
            predicted = (chances >= np.where(sex == "f", low, high)).astype(int)
            if predicted.any():
                rates = [predicted[sex == s].mean() for s in "fm"]
                counted = value(predicted, y)
                tried.append((abs(rates[0] - rates[1]), value(predicted), counted))
        for limit in (0.02, 0.1):
            model = FairDecisionClassifier(
                inner,
                max_disparity=limit,
                cv="prefit",
                group_aware=True,
                objective=name,
            ).fit(X, y, sensitive_features=sex)
            best, counted = max(worths for gap, *worths in tried if gap <= limit + 1e-9)
            found = model.train_predictions_
            assert value(found) >= best - slack or value(found, y) >= counted - 1e-9
            assert model.train_disparity_ <= limit + 1e-9


@pytest.mark.parametrize("is_aware", [False, True])
def test_each_objective_is_larger_than_that_of_accurate_decisions(is_aware):
    X, y, sex = people(2000, share=3.0)
    given = {"sensitive_features": sex}
    model = FairDecisionClassifier(group_aware=is_aware, cv=3, random_state=0)
    accurate = model.fit(X, y, **given).train_predictions_
    scores = {
        "balanced_accuracy": balanced_accuracy_score,
        "f1": f1_score,
        "mcc": matthews_corrcoef,
        youden: lambda y, p: youden(*table(y, p)),
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The decision of")
        for objective, score in scores.items():
            model.set_params(objective=objective).fit(X, y, **given)
            predicted = model.train_predictions_
            assert model.status_ == "converged"
            assert demographic_parity_difference(y, predicted, **given) <= 0.05 + 1e-9
            assert model.train_objective_ == pytest.approx(score(y, predicted))
            # Accurate decisions have nearly the largest MCC; the search for it ends near the best.
            least = -0.01 if objective == "mcc" else 0.02
            assert score(y, predicted) > score(y, accurate) + least
            # New rows are decided in the same way, by models that have seen them.
            again = model.predict(X, **given) if is_aware else model.predict(X)
            assert (again == predicted).mean() > 0.95


@pytest.mark.parametrize(("name", "score"), [("f1", f1_score), ("mcc", matthews_corrcoef)])
def test_the_objective_of_a_constant_answer_is_that_of_scikit_learn(name, score):
    X, y, sex = people(400)
    constant = DummyClassifier(strategy="prior").fit(X, y)
    model = FairDecisionClassifier(constant, objective=name, cv="prefit")
    predicted = model.fit(X, y, sensitive_features=sex).train_predictions_
    assert len(set(predicted)) == 1
    assert model.train_objective_ == pytest.approx(score(y, predicted))


@pytest.mark.parametrize("is_aware", [False, True])
def test_precision_at_recall_keeps_the_recall(is_aware):
    X, y, sex = people()
    model = FairDecisionClassifier(group_aware=is_aware, cv=3, random_state=0)
    found = []
    for recall in (0.4, 0.7):
        model.set_params(objective=Objective("precision_at_recall", recall=recall))
        predicted = model.fit(X, y, sensitive_features=sex).train_predictions_
        assert predicted[y == 1].mean() >= recall - 1e-9
        assert model.train_disparity_ <= 0.05 + 1e-9
        assert model.train_objective_ == pytest.approx(precision_score(y, predicted))
        found.append(model.train_objective_)
    assert found[0] > found[1]


def test_weights_count_as_copies_and_the_positive_class_is_the_one_that_is_named():
    X, y, sex = people(800)
    weights = generator(1).gamma(2.0, 0.5, 800)
    model = FairDecisionClassifier(objective="f1", cv=3, random_state=0)
    model.fit(X, y, weights, sensitive_features=sex)
    cells = table(y, model.train_predictions_, weights)
    assert model.train_objective_ == pytest.approx(f1(*cells))
    names = np.where(y == 1, "accepted", "refused")
    with pytest.warns(PositiveClassWarning, match="objective depends"):
        model.fit(X, names, sensitive_features=sex)
    model.set_params(pos_label="accepted").fit(X, names, sensitive_features=sex)
    first = f1(*table(y, (model.train_predictions_ == "accepted").astype(int)))
    assert model.train_objective_ == pytest.approx(first)
    plain = clone(model).set_params(pos_label=None).fit(X, y, sensitive_features=sex)
    assert np.array_equal(plain.train_predictions_ == 1, model.train_predictions_ == "accepted")


@pytest.mark.parametrize("is_aware", [False, True])
@pytest.mark.parametrize("name", ["accuracy", "f1"])
def test_the_smallest_disparity_at_an_objective(is_aware, name):
    X, y, sex = people()
    given = {"sensitive_features": sex}
    model = FairDecisionClassifier(group_aware=is_aware, cv=3, random_state=0, objective=name)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The decision of")
        limited = clone(model).set_params(max_disparity=0.06).fit(X, y, **given)
        wanted = Objective(name, at_least=limited.train_objective_)
        model.set_params(max_disparity=None, objective=wanted).fit(X, y, **given)
        assert model.train_objective_ >= limited.train_objective_ - 1e-9
        assert model.train_disparity_ <= 0.06 + 0.01
        disparity = demographic_parity_difference(y, model.train_predictions_, **given)
        assert disparity == pytest.approx(model.train_disparity_, abs=1e-9)
        model.set_params(objective=Objective(name, at_least=0.999))
        with pytest.warns(ConvergenceWarning, match="at_least=0.999"):
            model.fit(X, y, **given)
        assert model.status_ == "infeasible"


def test_constant_answers_have_the_worst_of_undefined_objectives():
    X, y, sex = people(600)
    model = FairDecisionClassifier(
        objective=lambda tn, fp, fn, tp: tp / (tp + fp) if tp + fp else float("nan"),
        cv=3,
        max_disparity=0.3,
    )
    predicted = model.fit(X, y, sensitive_features=sex).train_predictions_
    assert predicted.any()
    assert np.isfinite(model.train_objective_)


def test_several_classes_have_linear_objectives():
    X, _, sex = people(900)
    y = np.digitize(X[:, 0] + generator(0).normal(size=900), [0.3, 2.0])
    model = FairDecisionClassifier(cv=3, random_state=0, group_aware=True, max_disparity=0.1)
    accurate = model.fit(X, y, sensitive_features=sex).train_predictions_
    model.set_params(objective="balanced_accuracy").fit(X, y, sensitive_features=sex)
    score = balanced_accuracy_score(y, model.train_predictions_)
    assert model.train_objective_ == pytest.approx(score)
    assert score > balanced_accuracy_score(y, accurate)
    for objective in ("f1", "mcc", youden):
        with pytest.raises(ValueError, match="is for two classes, and y has 3"):
            model.set_params(objective=objective).fit(X, y, sensitive_features=sex)


def test_certified_balanced_accuracy_is_larger_than_that_of_accurate_decisions():
    X, y, sex = people(3000, share=2.5)
    found = []
    for objective in ("accuracy", "balanced_accuracy"):
        model = FairDecisionClassifier(
            max_disparity=0.2,
            objective=objective,
            certificate=0.9,
            group_aware=True,
            random_state=0,
        ).fit(X, y, sensitive_features=sex)
        assert model.status_ == "certified"
        found.append(balanced_accuracy_score(y, model.train_predictions_))
    assert found[1] > found[0] + 0.02
