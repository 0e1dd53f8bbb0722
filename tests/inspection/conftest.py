import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin


@pytest.fixture(autouse=True)
def _drawn(every_figure_is_drawn):
    """Draw the figures of each test of this folder."""


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


@pytest.fixture
def no_matplotlib(monkeypatch):
    """Make every import of matplotlib fail."""
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
