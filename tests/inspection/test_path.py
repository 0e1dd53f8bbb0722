from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skfair.inspection import FairnessPathDisplay
from skfair.model_selection import FairnessPath


def path_of(tested=True):
    bounds = np.array([0.3, 0.1, 0.05])
    test = {"test_disparities": bounds + 0.02, "test_scores": np.array([0.84, 0.85, 0.78])}
    return FairnessPath(
        max_disparities=bounds,
        estimators=[None] * 3,
        train_disparities=bounds - 0.01,
        train_scores=np.array([0.9, 0.86, 0.8]),
        score_name="balanced_accuracy",
        **(test if tested else {}),
    )


def test_train_and_test(legend_of):
    path = path_of()
    display = FairnessPathDisplay.from_path(path)
    # In the order of the path, whatever the disparities.
    expected = np.column_stack([path.train_disparities, path.train_scores])
    assert_array_equal(display.train_line_.get_xydata(), expected)
    expected = np.column_stack([path.test_disparities, path.test_scores])
    assert_array_equal(display.test_line_.get_xydata(), expected)
    assert display.train_line_.get_fillstyle() == "full"
    assert display.test_line_.get_fillstyle() == "none"
    assert display.test_line_.get_color() == display.train_line_.get_color()
    assert display.test_line_.get_linewidth() < display.train_line_.get_linewidth()
    assert display.bounds_ is None
    assert legend_of(display.ax_) == ["train", "test"]
    assert display.ax_.get_xlabel() == "Disparity (lower is better)"
    assert display.ax_.get_ylabel() == "Balanced accuracy (higher is better)"


def test_multiples_of_limits_are_called_so():
    path = replace(path_of(), limits={"sex": 0.05, "age": None})
    display = FairnessPathDisplay.from_path(path)
    assert display.ax_.get_xlabel() == "Disparity as a multiple of the limits (lower is better)"
    assert_array_equal(display.train_line_.get_xdata(), path.train_disparities)


def test_bounds_are_upright_and_leave_the_scale_alone(legend_of):
    path = path_of()
    plain = FairnessPathDisplay.from_path(path)
    display = FairnessPathDisplay.from_path(path, show_bounds=True)
    drawn = display.bounds_.get_segments()
    assert_allclose([segment[:, 0] for segment in drawn], [[b, b] for b in path.max_disparities])
    assert_allclose([segment[:, 1] for segment in drawn], [[0, 1]] * 3)
    assert display.bounds_.get_transform() == display.ax_.get_xaxis_transform()
    assert display.ax_.get_ylim() == plain.ax_.get_ylim()
    assert legend_of(display.ax_) == ["train", "test", "bounds"]


def test_options_are_those_of_both_lines():
    display = FairnessPathDisplay.from_path(path_of(), lw=4, c="red")
    for line, width in ((display.train_line_, 4), (display.test_line_, 2)):
        assert (line.get_linewidth(), line.get_color()) == (width, "red")


def test_wrong_arguments():
    train = {"train_disparities": [0.2, 0.1], "train_scores": [0.9, 0.8]}
    with pytest.raises(ValueError, match="test_disparities and test_scores go together"):
        FairnessPathDisplay(**train, test_scores=[0.9, 0.8])
    with pytest.raises(ValueError, match="train_disparities has 2, train_scores has 2, test_disp"):
        FairnessPathDisplay(**train, test_disparities=[0.1], test_scores=[0.1])
    with pytest.raises(ValueError, match="train_scores has 1 value"):
        FairnessPathDisplay(train_disparities=[0.2, 0.1], train_scores=[0.9, np.nan])
    with pytest.raises(ValueError, match="train_disparities is empty"):
        FairnessPathDisplay(train_disparities=[], train_scores=[])
    display = FairnessPathDisplay(**train)
    with pytest.raises(ValueError, match="show_bounds=True needs the bounds"):
        display.plot(show_bounds=True)
