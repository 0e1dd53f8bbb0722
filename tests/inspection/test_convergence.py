import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair.classification import ConstrainedERMClassifier
from skfair.inspection import ConvergenceDisplay
from skfair.utils.history import History
from tests.seeds import seed_of


@pytest.fixture
def history():
    steps = np.arange(60.0)
    return {
        "objective": 1 + np.exp(-steps / 8),
        "max_violation": 0.3 * np.exp(-steps / 5),
        "seconds": 0.01 * steps,
        "n_active": steps[::-1],
    }


def test_objective_and_violation_by_iteration(history):
    display = ConvergenceDisplay(history=history).plot()
    assert display.columns_ == ["objective", "max_violation"]
    assert len(display.ax_) == len(display.lines_) == 2
    for line, column in zip(display.lines_, display.columns_, strict=True):
        assert_array_equal(line.get_xdata(), np.arange(1, 61))
        assert_array_equal(line.get_ydata(), history[column])
    assert [ax.get_yscale() for ax in display.ax_] == ["linear", "log"]
    assert [ax.get_ylabel() for ax in display.ax_] == ["Objective", "Max violation"]
    assert [ax.get_xlabel() for ax in display.ax_] == ["", "Iteration"]
    assert display.ax_[0].get_legend() is None
    assert display.ax_[0].get_shared_x_axes().joined(*display.ax_)


def test_one_column_by_seconds(history):
    display = ConvergenceDisplay(history=history).plot(x="seconds", columns="n_active")
    assert isinstance(display.ax_, plt.Axes)
    assert_array_equal(display.lines_[0].get_xydata().T, [history["seconds"], history["n_active"]])
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("CPU seconds", "N active")


def test_zero_has_a_place_on_the_scale(history):
    history["max_violation"][30:] = 0.0
    display = ConvergenceDisplay(history=history).plot()
    axis = display.ax_[1].yaxis
    assert axis.get_scale() == "symlog"
    # Logarithmic down to the smallest positive value.
    assert_allclose(axis.get_transform().linthresh, history["max_violation"][29])
    low, high = display.ax_[1].get_ylim()
    assert low < 0 < history["max_violation"][0] < high
    # Rounding errors do not stretch the scale.
    history["max_violation"][30:40] = 1e-17
    display = ConvergenceDisplay(history=history).plot()
    assert_allclose(display.ax_[1].yaxis.get_transform().linthresh, 0.3e-8)
    history["max_violation"][:] = 0
    assert ConvergenceDisplay(history=history).plot().ax_[1].get_yscale() == "linear"


def test_two_histories_have_one_scale(history):
    first = ConvergenceDisplay(history=history, name="alm").plot()
    feasible = {"objective": [2.0, 1.5, 1.2], "max_violation": [0.2, 0.0, 0.0]}
    second = ConvergenceDisplay(history=feasible).plot(ax=first.ax_, name="repair")
    assert_array_equal(second.ax_, first.ax_)
    # The scale suits both: the second one reaches 0.
    assert first.ax_[1].get_yscale() == "symlog"
    assert_allclose(first.ax_[1].yaxis.get_transform().linthresh, history["max_violation"][-1])


def test_values_that_were_not_recorded_are_skipped():
    recorder = History()
    for i in range(6):
        recorder.record(objective=6 - i, **({"max_violation": 1 / (i + 1)} if i % 2 else {}))
    display = ConvergenceDisplay(history=recorder.as_dict()).plot()
    assert_array_equal(display.lines_[0].get_xdata(), [1, 2, 3, 4, 5, 6])
    assert_array_equal(display.lines_[1].get_xdata(), [2, 4, 6])
    assert_allclose(display.lines_[1].get_ydata(), [1 / 2, 1 / 4, 1 / 6])


def test_columns_by_default(history):
    assert ConvergenceDisplay(history={"objective": [1.0]}).plot().columns_ == ["objective"]
    other = {"balance": [0.1, 0.2], "seconds": [1.0, 2.0], "duality_gap": [0.1, 0.01]}
    display = ConvergenceDisplay(history=other).plot()
    assert display.columns_ == ["balance", "duality_gap"]
    assert display.ax_[1].get_yscale() == "log"


def test_short_histories_mark_every_iteration(history):
    long = ConvergenceDisplay(history=history).plot()
    assert long.lines_[0].get_markevery() == 7
    short = ConvergenceDisplay(history={"objective": [2.0]}).plot()
    assert short.lines_[0].get_markevery() is None
    assert short.lines_[0].get_marker() == "o"


class Solver(BaseEstimator):
    def fit(self, X, y=None):
        self.history_ = {"objective": np.array([2.0, 1.0])}
        return self


def test_fitted_estimators():
    X = np.zeros((3, 1))
    solver = Solver().fit(X)
    display = ConvergenceDisplay.from_estimator(solver, name="solver", lw=3)
    assert_array_equal(display.history["objective"], [2, 1])
    assert display.lines_[0].get_label() == "solver"
    assert display.lines_[0].get_linewidth() == 3
    pipeline = make_pipeline(StandardScaler(), Solver()).fit(X)
    inside = ConvergenceDisplay.from_estimator(pipeline, X, columns="objective", ax=display.ax_)
    assert inside.ax_ is display.ax_


def test_iterations_and_passes_are_those_of_the_solver():
    X, y = make_classification(600, random_state=seed_of(0))
    sex = np.arange(600) % 2
    model = ConstrainedERMClassifier(solver="alm", max_iter=100, enforce="surrogate")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, sensitive_features=sex)
    drawn = ConvergenceDisplay.from_estimator(model, columns="objective")
    assert_array_equal(drawn.lines_[0].get_xdata(), [20, 40, 60, 80, 100])
    # All rows at the start and at each check, between them 20 steps on 128 rows of each group
    # (which serve the loss as well).
    drawn = ConvergenceDisplay.from_estimator(model, x="passes", columns="objective")
    assert drawn.ax_.get_xlabel() == "Passes over the rows"
    passes = drawn.lines_[0].get_xdata()
    assert_allclose(passes, 1 + np.arange(1, 6) * (1 + 20 * 2 * 128 / 600))
