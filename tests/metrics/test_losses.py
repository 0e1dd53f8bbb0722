from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair.metrics import (
    excess_loss,
    get_scorer,
    largest_group_loss,
    loss_parity_difference,
    make_fairness_scorer,
    mean_score_difference,
)
from tests import naive
from tests.metrics.test_scores import random_case as random_scores
from tests.naive.erm import EXACT_LOSSES
from tests.seeds import generator

few = settings(deadline=None, max_examples=8)
by_seed = given(seed=st.integers(0, 2**31))
CASES = [
    (task, loss, which)
    for task, losses, slices in (
        (
            "classification",
            ("log_loss", "hinge", "squared_hinge", "squared_error"),
            ("all", "positive", "class"),
        ),
        ("regression", ("squared_error", "absolute_error"), ("all",)),
    )
    for loss in losses
    for which in slices
]
each_case = pytest.mark.parametrize(("task", "loss", "which"), CASES)


def random_case(seed, task="classification"):
    """Rows in which every group has both classes, with scores that depend on them."""
    y, z, groups, weights, rng = random_scores(seed, n=30)
    noise = rng.normal(size=y.size) if task == "regression" else 0
    return y + noise, z + y, groups, weights, rng


def naive_mean(values, counts, groups, level, weights):
    """Mean over the rows of a group that count; over all groups if ``level`` is None."""
    above = below = 0.0
    for v, c, g, w in zip(values, counts, groups, weights, strict=True):
        if c and level in (None, g):
            above += w * v
            below += w
    return above / below


def naive_gaps(values, slices, groups, weights, reference):
    gaps = []
    for counts in slices:
        mean = {g: naive_mean(values, counts, groups, g, weights) for g in (None, *groups)}
        pairs = naive.pairs(groups) if reference == "pairwise" else [(g, None) for g in set(groups)]
        gaps += [abs(mean[a] - mean[b]) for a, b in pairs]
    return gaps


def naive_slices(y, which):
    every, positive, negative = np.ones(len(y), bool), y == 1, y == 0
    return {"all": [every], "positive": [positive], "class": [positive, negative]}[which]


@each_case
@few
@by_seed
def test_losses_equal_plain_loops(task, loss, which, seed):
    y, z, g, w, _ = random_case(seed, task)
    losses = EXACT_LOSSES[loss](z, y if task == "regression" else 2 * y - 1)
    slices = naive_slices(y, which)
    options = {"sensitive_features": g, "loss": loss, "task": task, "subset": which}
    for weights in (None, w):
        plain = np.ones(y.size) if weights is None else weights
        options["sample_weight"] = weights
        for reference in ("pairwise", "overall"):
            gaps = naive_gaps(losses, slices, g, plain, reference)
            for agg, expected in (("worst", max(gaps)), ("mean", np.mean(gaps))):
                value = loss_parity_difference(y, z, reference=reference, agg=agg, **options)
                assert value == pytest.approx(expected, abs=1e-12)
        means = [naive_mean(losses, rows, g, k, plain) for rows in slices for k in set(g)]
        assert largest_group_loss(y, z, **options) == pytest.approx(max(means), rel=1e-12)
        if which == "all":
            given = {key: option for key, option in options.items() if key != "subset"}
            excess = np.array(means) - naive_mean(losses, slices[0], g, None, plain)
            for agg, expected in (("worst", excess.max()), ("mean", excess.mean())):
                assert excess_loss(y, z, agg=agg, **given) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("reference", ["pairwise", "overall"])
def test_mean_losses_of_both_classes_are_added_up_before_groups_are_compared(reference):
    y, z, g, w, _ = random_case(3)
    losses = EXACT_LOSSES["log_loss"](z, 2 * y - 1)
    levels = [None, *sorted(set(g))]
    mean = {k: sum(naive_mean(losses, y == c, g, k, w) for c in (0, 1)) for k in levels}
    pairs = naive.pairs(g) if reference == "pairwise" else [(k, None) for k in levels[1:]]
    given = {"sensitive_features": g, "sample_weight": w, "reference": reference}
    value = loss_parity_difference(y, z, subset="class", sum_classes=True, **given)
    assert value == pytest.approx(max(abs(mean[a] - mean[b]) for a, b in pairs), abs=1e-12)


@few
@by_seed
def test_mean_scores_equal_plain_loops(seed):
    _, z, g, w, _ = random_case(seed)
    every = [np.ones(z.size, bool)]
    for reference in ("pairwise", "overall"):
        gaps = naive_gaps(z, every, g, w, reference)
        for agg, expected in (("worst", max(gaps)), ("mean", np.mean(gaps))):
            value = mean_score_difference(
                None, z, sensitive_features=g, sample_weight=w, reference=reference, agg=agg
            )
            assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("which", ["all", "class"])
def test_either_class_may_be_the_positive_one(which):
    y, z, g, _, _ = random_case(3)
    names = np.array(["no", "yes"])[y]
    for metric in (loss_parity_difference, largest_group_loss):
        options = {"sensitive_features": g, "subset": which}
        value = metric(y, z, **options)
        assert metric(names, -z, pos_label="no", **options) == pytest.approx(value)


def cube(y_true, y_score):
    """A loss that no table of names has."""
    return np.abs(y_true - y_score) ** 3


class Cube:
    """The same loss, as an object."""

    def exact(self, scores, targets):
        return np.abs(scores - targets) ** 3


@pytest.mark.parametrize("loss", [cube, Cube(), Cube().exact], ids=["function", "object", "method"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_any_loss_can_be_measured(loss, task):
    y, z, g, w, _ = random_case(2, task)
    t = y if task == "regression" else 2 * y - 1
    means = [np.average(np.abs(t - z)[g == k] ** 3, weights=w[g == k]) for k in sorted(set(g))]
    options = {"sensitive_features": g, "sample_weight": w, "loss": loss, "task": task}
    assert largest_group_loss(y, z, **options) == pytest.approx(max(means))
    assert loss_parity_difference(y, z, **options) == pytest.approx(max(means) - min(means))


def test_every_loss_of_the_package_can_be_measured():
    from skfair.losses import LOSSES

    y, z, g, w, _ = random_case(3)
    for name in LOSSES:
        tasks = LOSSES[name].tasks
        task = "classification" if "classification" in tasks else "regression"
        options = {"sensitive_features": g, "sample_weight": w, "task": task}
        for metric in (largest_group_loss, loss_parity_difference):
            named, passed = (metric(y, z, loss=loss, **options) for loss in (name, LOSSES[name]()))
            assert passed == pytest.approx(named, rel=1e-12)


def test_large_scores_do_not_overflow():
    value = loss_parity_difference([1, 1], [-1e5, 1e5], sensitive_features=["a", "b"])
    assert value == pytest.approx(1e5)


@pytest.fixture(scope="module")
def data():
    rng = generator(0)
    groups = np.repeat(["f", "m"], 60)
    X = rng.normal(size=(120, 2)) + (groups == "m")[:, None]
    target = X @ [1.0, 0.5] + rng.normal(size=120)
    order = rng.permutation(120)
    return X[order], target[order], groups[order]


def test_scorers_ask_classifiers_for_decisions(data):
    X, target, groups = data
    y = np.where(target > 0.5, "yes", "no")
    model = LogisticRegression().fit(X, y)
    z = model.decision_function(X)
    for pos_label, turned in (("yes", z), ("no", -z)):
        options = {"pos_label": pos_label, "subset": "positive"}
        expected = -loss_parity_difference(y, turned, sensitive_features=groups, **options)
        scorer = get_scorer("neg_loss_parity_difference", **options)
        assert scorer(model, X, y, sensitive_features=groups) == expected
    own = get_scorer("neg_largest_group_loss", loss=cube, pos_label="yes")
    expected = -largest_group_loss(y == "yes", z, sensitive_features=groups, loss=cube)
    assert own(model, X, y, sensitive_features=groups) == expected
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    scorer = make_fairness_scorer(partial(largest_group_loss, loss="hinge"), pos_label="yes")
    with pytest.raises(AttributeError, match="none of the methods decision_function"):
        scorer(forest, X, y, sensitive_features=groups)
    probabilities = forest.predict_proba(X)[:, 1]
    assert get_scorer("neg_mean_score_difference")(
        forest, X, y, sensitive_features=groups
    ) == -mean_score_difference(None, probabilities, sensitive_features=groups)


def test_scorers_ask_regressors_for_predictions(data):
    X, target, groups = data
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(X, target)
    options = {"loss": "absolute_error", "task": "regression"}
    scorers = {
        loss_parity_difference: get_scorer("neg_loss_parity_difference", **options),
        largest_group_loss: make_fairness_scorer(largest_group_loss, **options),
        mean_score_difference: get_scorer("neg_mean_score_difference"),
    }
    for metric, scorer in scorers.items():
        extra = {} if metric is mean_score_difference else options
        expected = -metric(target, model.predict(X), sensitive_features=groups, **extra)
        assert scorer(model, X, target, sensitive_features=groups) == expected
