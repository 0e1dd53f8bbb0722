import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skfair.inspection import CCDFCurveDisplay
from tests.seeds import generator


@pytest.fixture
def sample():
    rng = generator(0)
    group = np.repeat(["a", "b", "c"], [50, 40, 30])
    scores = np.round(rng.normal(size=120) + (group == "a"), 1)  # ties within and across groups
    return scores, group


def draw(scores, group, **options):
    return CCDFCurveDisplay.from_predictions(None, scores, sensitive_features=group, **options)


def naive_curve(scores, weights, first, second):
    """Count the rows above every threshold, one threshold at a time."""
    thresholds = [np.inf, *np.unique(scores[first | second])[::-1], -np.inf]
    return np.array(
        [
            [np.sum(weights[m] * (scores[m] > t)) / np.sum(weights[m]) for m in (first, second)]
            for t in thresholds
        ]
    )


def assert_same_path(drawn, points):
    """Every point that is drawn is a threshold, and every threshold lies on the line."""
    assert all(np.isclose(points, point).all(axis=1).any() for point in drawn)
    for axis in (0, 1):  # both coordinates grow, so their sum runs along the line
        on_line = np.interp(points.sum(axis=1), drawn.sum(axis=1), drawn[:, axis])
        assert_allclose(on_line, points[:, axis], atol=1e-12)


def test_curves_equal_plain_counts(sample, legend_of):
    scores, group = sample
    display = draw(scores, group)
    # The largest group is the reference; every other one has a curve.
    assert display.reference_name == "a"
    assert display.group_names == ["b", "c"]
    assert len(display.lines_) == 2
    for name, line in zip(["b", "c"], display.lines_, strict=True):
        points = naive_curve(scores, np.ones(120), group == "a", group == name)
        assert_same_path(line.get_xydata(), points)
    assert legend_of(display.ax_) == ["parity", "b", "c"]
    assert display.ax_.get_xlabel() == "Share of a selected"
    assert display.ax_.get_ylabel() == "Share of other groups selected"
    assert display.ax_.get_xlim() == display.ax_.get_ylim() == (-0.01, 1.01)
    assert_array_equal(display.diagonal_.get_xydata(), [[0, 0], [1, 1]])
    assert not display.bands_


def test_weights(sample):
    scores, group = sample
    weights = generator(1).integers(1, 4, 120)
    display = draw(scores, group, sample_weight=weights)
    repeated = draw(np.repeat(scores, weights), np.repeat(group, weights))
    for one, other in zip(display.lines_, repeated.lines_, strict=True):
        assert_allclose(one.get_xydata(), other.get_xydata())


def test_reference_by_level_name_or_tuple(sample):
    scores, group = sample
    display = draw(scores, group, reference="c")
    assert (display.reference_name, display.group_names) == ("c", ["a", "b"])
    both = pd.DataFrame({"sex": np.resize(["f", "m"], 120), "origin": group})
    for reference in (("m", "b"), "sex=m, origin=b"):
        display = draw(scores, both, reference=reference)
        assert display.reference_name == "sex=m, origin=b"
        assert len(display.lines_) == 5
    apart = draw(scores, both, intersectional=False, reference=("origin", "b"))
    # Groups of other attributes overlap with the reference and are not compared.
    assert apart.group_names == ["origin=a", "origin=c"]
    alone = draw(scores, group, reference="b")
    for one, other in zip(apart.lines_, alone.lines_, strict=True):
        assert_array_equal(one.get_xydata(), other.get_xydata())


def test_interval_is_marked_on_both_axes(sample, legend_of):
    scores, group = sample
    display = draw(scores, group, interval=(0.05, 0.3))
    upright, lying = display.bands_
    assert_allclose([upright.get_x(), upright.get_width()], [0.05, 0.25])
    assert_allclose([lying.get_y(), lying.get_height()], [0.05, 0.25])
    bars = [line for line in display.ax_.lines if line.get_linewidth() == 5]
    assert [bar.get_xydata().tolist() for bar in bars] == [
        [[0.05, 0], [0.3, 0]],
        [[0, 0.05], [0, 0.3]],
    ]
    assert legend_of(display.ax_)[0] == "ranks 5% to 30%"


def test_unions_and_intervals_of_each_group(sample, legend_of):
    scores, group = sample
    display = draw(scores, group, interval=[(0, 0.1), (0.5, 0.7)])
    assert len(display.bands_) == 4
    assert legend_of(display.ax_)[0] == "ranks 0% to 10% and 50% to 70%"
    display = draw(scores, group, interval={"a": (0, 0.1), "b": (0.2, 0.3), "c": (0.2, 0.3)})
    upright, lying = display.bands_
    assert upright.get_width() == 0.1
    assert lying.get_y() == 0.2
    assert legend_of(display.ax_)[0] == "ranks in the group's own interval"


def test_the_diagonal_and_equal_intervals_are_drawn_once(sample):
    scores, group = sample
    options = {"sensitive_features": group, "interval": (0.05, 0.3)}
    first = CCDFCurveDisplay.from_predictions(None, scores, name="one", **options)
    n_lines = len(first.ax_.lines)
    second = CCDFCurveDisplay.from_predictions(None, -scores, name="two", ax=first.ax_, **options)
    assert len(second.ax_.lines) == n_lines + 2
    assert second.diagonal_ is None
    assert not second.bands_


@pytest.mark.parametrize(("shift", "corner"), [(3.0, "lower right"), (-3.0, "upper left")])
def test_legend_stands_in_the_free_corner(shift, corner):
    rng = generator(0)
    group = np.repeat(["a", "b"], [60, 40])
    scores = rng.normal(size=100) + shift * (group == "b")
    display = draw(scores, group)
    codes = {"upper left": 2, "lower right": 4}
    assert display.ax_.get_legend()._loc == codes[corner]


def test_equal_and_constant_scores_follow_the_diagonal():
    group = np.repeat(["a", "b"], 10)
    for scores in (np.zeros(20), np.tile(np.arange(10), 2)):
        display = draw(scores, group)
        assert_allclose(display.lines_[0].get_xydata(), [[0, 0], [1, 1]])
