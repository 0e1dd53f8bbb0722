import matplotlib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

matplotlib.use("Agg")

import matplotlib.image
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def close_figures():
    settings = dict(matplotlib.rcParams)
    yield
    plt.close("all")
    assert dict(matplotlib.rcParams) == settings, "a display changed matplotlib's settings"


@pytest.fixture
def render(tmp_path):
    """Draw a display into a file and return the pixels."""

    def draw(display):
        path = tmp_path / f"{type(display).__name__}.png"
        display.figure_.savefig(path, dpi=50)
        pixels = matplotlib.image.imread(path)
        assert pixels.min() < pixels.max()
        return pixels

    return draw


class GroupAware(ClassifierMixin, BaseEstimator):
    """Selects the members of one group; without the groups it refuses."""

    def __init__(self, favourite="f"):
        self.favourite = favourite

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X, sensitive_features=None):
        assert sensitive_features is not None, "the groups did not arrive"
        is_favourite = np.ravel(np.asarray(sensitive_features)) == self.favourite
        return np.asarray(X, dtype=float)[:, 0] + 10.0 * is_favourite

    def predict(self, X, sensitive_features=None):
        is_selected = self.decision_function(X, sensitive_features) > 5
        return self.classes_[is_selected.astype(int)]


@pytest.fixture
def group_aware():
    return GroupAware


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.fixture
def legend_of():
    return legend_texts


@pytest.fixture
def no_matplotlib(monkeypatch):
    """Make every import of matplotlib fail."""
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
