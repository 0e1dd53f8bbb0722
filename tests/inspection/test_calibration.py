import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair.inspection import GroupCalibrationDisplay
from tests.seeds import generator

few = settings(deadline=None, max_examples=10)
by_seed = given(seed=st.integers(0, 2**31))


def people(seed, n=200):
    rng = generator(seed)
    group = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    p = rng.random(n)
    return (rng.random(n) < np.where(group == "a", p, p**2)).astype(int), p, group, rng


def curves(y, p, group, **options):
    """What is drawn of each group: mean probabilities, shares and both ends of their intervals."""
    display = GroupCalibrationDisplay.from_predictions(y, p, sensitive_features=group, **options)
    lines = [line.get_xydata() for line in display.lines_]
    ends = [np.array([own[:, 1] for own in all_.get_segments()]) for all_ in display.intervals_]
    drawn = [np.column_stack(pair) for pair in zip(lines, ends, strict=True)]
    return dict(zip(display.group_names, drawn, strict=True))


@few
@by_seed
def test_points_are_plain_counts_with_wilsons_interval(seed):
    y, p, group, rng = people(seed)
    n_bins = int(rng.integers(1, 8))
    for name, drawn in curves(y, p, group, n_bins=n_bins, confidence=0.9).items():
        order = np.flatnonzero(group == name)[np.argsort(p[group == name])]
        bins = n_bins * (2 * np.arange(order.size) + 1) // (2 * order.size)
        assert len(drawn) == np.unique(bins).size <= n_bins
        for point, number in zip(drawn, np.unique(bins), strict=True):
            own = order[bins == number]
            ends = binomtest(int(y[own].sum()), own.size).proportion_ci(0.9, method="wilson")
            assert_allclose(point, [p[own].mean(), y[own].mean(), *ends], atol=1e-9)


@few
@by_seed
def test_weights_are_copies_in_any_order_and_equal_scores_stay_together(seed):
    y, p, group, rng = people(seed)
    p, w = p.round(1), rng.integers(0, 4, p.size)
    weighted = curves(y, p, group, sample_weight=w)
    order = rng.permutation(np.repeat(np.arange(p.size), w))
    copied = curves(y[order], p[order], group[order])
    for name, drawn in weighted.items():
        assert_allclose(drawn[:, :2], copied[name][:, :2], atol=1e-12)
        inside = (group == name) & (w > 0)
        assert len(drawn) <= np.unique(p[inside]).size


def test_from_a_pipeline_with_names_of_classes(legend_of):
    y, p, group, _ = people(0, 600)
    X = pd.DataFrame({"p": p, "other": 1 - p, "sex": group})
    labels = np.where(y, "good", "bad")
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[["p", "other"]], labels)
    given = {"sensitive_features": X["sex"]}
    display = GroupCalibrationDisplay.from_estimator(model, X[["p", "other"]], labels, **given)
    score = model.predict_proba(X[["p", "other"]])[:, 1]
    assert legend_of(display.ax_) == ["calibrated", "a", "b", "c"]
    turned = GroupCalibrationDisplay.from_estimator(
        model, X[["p", "other"]], labels, pos_label="bad", **given
    )
    for found, expected in (
        (display, curves(y, score, group)),
        (turned, curves(1 - y, 1 - score, group)),
    ):
        for name, line in zip(found.group_names, found.lines_, strict=True):
            assert_allclose(line.get_xydata(), expected[name][:, :2])
