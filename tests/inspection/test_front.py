from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skfair.inspection import FairnessFrontDisplay
from skfair.metrics import (
    demographic_parity_difference,
    demographic_parity_ratio,
    equalized_odds_difference,
)
from tests import naive
from tests.seeds import generator

COSTS = [5.0, 1.0, 3.0, 2.0, 4.0]
BALANCES = [0.9, 0.1, 0.8, 0.5, 0.6]


def test_clusterings(legend_of):
    display = FairnessFrontDisplay.from_clusterings(COSTS, BALANCES)
    assert_array_equal(display.is_nondominated, [True, True, True, True, False])
    # From the best cost to the best balance: straight to the next cost, then up.
    corners = [[1, 0.1], [1, 0.1], [2, 0.1], [2, 0.5], [3, 0.5], [3, 0.8], [5, 0.8], [5, 0.9]]
    assert_allclose(display.staircase[:-1], corners)
    assert_allclose(display.staircase[-1], [5, 0.9])
    assert_allclose(display.line_.get_xydata(), display.staircase)
    drawn = display.points_.get_xydata()
    assert_allclose(drawn, [[5, 0.9], [1, 0.1], [3, 0.8], [2, 0.5]])
    assert_allclose(display.dominated_.get_xydata(), [[4, 0.6]])
    assert display.dominated_.get_fillstyle() == "none"
    assert legend_of(display.ax_) == ["nondominated", "dominated"]
    assert display.ax_.get_xlabel() == "Clustering cost (lower is better)"
    assert display.ax_.get_ylabel() == "Balance (higher is better)"


@pytest.mark.parametrize("x_better", ["lower", "higher"])
@pytest.mark.parametrize("y_better", ["lower", "higher"])
def test_every_direction(x_better, y_better):
    rng = generator(0)
    x, y = np.round(rng.random((2, 40)), 1)
    display = FairnessFrontDisplay(
        x=x, y=y, x_label="u", y_label="v", x_better=x_better, y_better=y_better
    ).plot()
    x_sign, y_sign = ({"lower": -1, "higher": 1}[better] for better in (x_better, y_better))
    expected = naive.nondominated(-x_sign * x, y_sign * y)
    assert_array_equal(display.is_nondominated, expected)
    # Every point of the front is a corner of a monotone line made of upright and lying pieces.
    corners = display.staircase
    for point in np.column_stack([x, y])[expected]:
        assert (corners == point).all(axis=1).any()
    steps = np.diff(corners, axis=0)
    assert np.all((steps == 0).any(axis=1))
    assert np.all(steps[:, 0] * x_sign <= 0)
    assert np.all(steps[:, 1] * y_sign >= 0)
    # No point lies on the better side of it.
    for u, v in zip(x, y, strict=True):
        at_least_as_good = corners[corners[:, 0] * x_sign >= u * x_sign, 1]
        assert np.max(at_least_as_good * y_sign) >= v * y_sign
    # It spans the data.
    assert corners[-1, 0] * x_sign == (x * x_sign).min()
    assert corners[0, 1] * y_sign == (y * y_sign).min()
    assert display.ax_.get_xlabel() == f"u ({x_better} is better)"


def test_classifiers_by_difference_and_by_ratio():
    accuracies, gaps = [0.9, 0.8, 0.85], [0.2, 0.0, 0.3]
    display = FairnessFrontDisplay.from_classifiers(accuracies, gaps)
    assert_array_equal(display.is_nondominated, [True, True, False])
    assert_array_equal(display.x, gaps)
    assert display.ax_.get_ylabel() == "Accuracy (higher is better)"
    ratios = FairnessFrontDisplay.from_classifiers(
        accuracies, 1 - np.array(gaps), larger_is_fairer=True
    )
    assert_array_equal(ratios.is_nondominated, display.is_nondominated)
    assert ratios.ax_.get_xlabel() == "Fairness (higher is better)"


@pytest.mark.parametrize(
    "metric", [demographic_parity_difference, demographic_parity_ratio, equalized_odds_difference]
)
def test_predictions_of_several_models(metric):
    rng = generator(0)
    y, p, sex, w = *rng.integers(0, 2, (2, 200)), rng.choice(["f", "m"], 200), rng.random(200)
    y_preds = {"most": (np.arange(200) % 20 > 0).astype(int), "true": y, "drawn": p}
    given = {"sensitive_features": sex, "sample_weight": w}
    display = FairnessFrontDisplay.from_predictions(y, y_preds, metric=metric, **given)
    assert display.point_names == list(y_preds)
    for own, x, accuracy in zip(y_preds.values(), display.x, display.y, strict=True):
        assert x == metric(y, own, **given)
        assert accuracy == np.average(own == y, weights=w)
    assert display.x_better == ("higher" if metric.__name__.endswith("ratio") else "lower")
    labels = {name: np.array(["no", "yes"])[own] for name, own in y_preds.items()}
    named = FairnessFrontDisplay.from_predictions(
        labels["true"], labels, metric=partial(metric, pos_label="yes"), **given
    )
    assert_array_equal(named.x, display.x)
    assert named.x_better == display.x_better


def test_a_model_with_one_decision_warns():
    rng = generator(0)
    y, sex = rng.integers(0, 2, 200), rng.choice(["f", "m"], 200)
    given = {"sensitive_features": sex, "metric": equalized_odds_difference}
    with pytest.warns(UserWarning, match="every decision is positive"):
        display = FairnessFrontDisplay.from_predictions(
            y, {"all": np.ones(200, int), "true": y}, **given
        )
    assert display.point_names == ["all", "true"]


def test_names_and_marks(legend_of):
    names = ["five", "one", "", "two", "four"]
    display = FairnessFrontDisplay.from_clusterings(
        COSTS, BALANCES, point_names=names, selected="two", show_knee=True
    )
    assert [text.get_text() for text in display.texts_] == ["five", "one", "two", "four"]
    assert display.texts_[0].xy == (5, 0.9)
    # Names stand on the better side: to the left and above; farther from a mark.
    assert [text.get_position() for text in display.texts_][1:3] == [(-5, 5), (-9, 9)]
    assert {text.get_ha() for text in display.texts_} == {"right"}
    assert_array_equal(display.marks_["selected"].get_xydata(), [[2, 0.5]])
    # Scaled by the ends (1, 0.1) and (5, 0.9): rises 0.25 and 0.375 above the line.
    assert display.knee == 2
    assert_array_equal(display.marks_["knee"].get_xydata(), [[3, 0.8]])
    assert legend_of(display.ax_) == ["nondominated", "dominated", "selected", "knee"]
    ratios = FairnessFrontDisplay.from_classifiers(
        [0.9, 0.8], [0.5, 0.6], larger_is_fairer=True, point_names=["u", "v"], selected=-1
    )
    assert ratios.texts_[0].get_position() == (5, 5)
    assert ratios.selected == 1
    lower = FairnessFrontDisplay(
        x=[1], y=[1], x_label="", y_label="", y_better="lower", point_names=["p"]
    ).plot()
    assert lower.texts_[0].get_position() == (-5, -5)


@pytest.mark.parametrize(
    ("costs", "balances", "knee"),
    [
        ([1], [0.5], None),
        ([1, 2], [0.1, 0.9], None),  # two points have no bend
        ([1, 2, 3], [0.1, 0.2, 0.9], None),  # bent to the wrong side
        ([1, 2, 3], [0.1, 0.5, 0.9], None),  # straight
        ([3, 2, 1], [0.9, 0.8, 0.1], 1),
    ],
)
def test_knee(costs, balances, knee):
    display = FairnessFrontDisplay.from_clusterings(costs, balances, show_knee=True)
    assert display.knee == knee
    assert ("knee" in display.marks_) == (knee is not None)
    assert display.dominated_ is None
    if len(costs) == 1:
        assert_array_equal(np.unique(display.staircase, axis=0), [[1, 0.5]])


def test_short_option_names_replace_long_defaults():
    line = FairnessFrontDisplay.from_clusterings([1, 2], [0, 1], lw=7, c="red", ls=":").line_
    assert (line.get_linewidth(), line.get_color(), line.get_linestyle()) == (7, "red", ":")
