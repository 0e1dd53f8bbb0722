"""Thresholds and formulas say what offsets decide."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from skfair.enforcement.decisions.shares import estimated_shares, known_shares, margins
from skfair.estimators.decisions.prediction import Decider, linear_of
from tests.seeds import generator

# Gains of the second decision where the true class is certainly the first, or the second.
GAINS = {
    "usual": (-1.0, 1.0),
    "turned": (0.3, -0.2),  # those with low probabilities are selected
    "steep": (-0.9, 0.1),
    "everybody": (0.2, 0.2),
    "nobody": (-0.2, -0.2),
    "no difference": (0.0, 0.0),
    "always above": (0.1, 0.4),
    "never above": (-0.4, -0.1),
    "turned and always": (0.4, 0.1),
    "turned and never": (-0.1, -0.4),
}


@pytest.fixture
def table():
    """Thresholds of a group for each kind of gains."""
    offsets, worth = np.zeros((len(GAINS), 1, 2, 2)), np.eye(2)
    offsets[:, 0, :, 1] = worth[:, 1] - worth[:, 0] - list(GAINS.values())
    groups = SimpleNamespace(offsets=np.array([0, len(GAINS)]))
    decider = Decider(groups, None, None, worth, offsets, None, None)
    return decider.thresholds(np.array(list(GAINS)))


@pytest.mark.parametrize("kind", GAINS)
def test_offsets_select_where_thresholds_say(table, kind):
    low, high = GAINS[kind]
    chances = np.linspace(0.005, 0.995, 100)
    expected = (1 - chances) * low + chances * high > 0
    threshold, side = table.loc[kind]
    assert side == ("below" if high < low else "above")
    found = chances > threshold if side == "above" else chances < threshold
    assert np.array_equal(found, expected)


def test_formulas_decide_as_thresholds(table):
    rng = generator(1)
    X = rng.normal(size=(200, 3))
    model = LogisticRegression().fit(X, X[:, 0] + rng.normal(size=200) > 0.3)
    formulas = linear_of(table, [model], np.array(["a", "b", "c"]), 1.0)
    assert isinstance(formulas, pd.DataFrame)
    assert formulas.columns.tolist() == ["a", "b", "c", "intercept"]
    chances = expit(X @ model.coef_[0] + model.intercept_[0])
    for kind, (low, high) in GAINS.items():
        own = formulas.loc[kind].to_numpy()
        expected = (1 - chances) * low + chances * high > 0
        assert np.array_equal(X @ own[:3] + own[3] > 0, expected)


@pytest.mark.parametrize("seed", range(10))
def test_rows_of_known_groups_pay_the_offsets_of_their_shares(seed):
    """``margins`` of the search reads shares; the decider reads offsets of the groups directly."""
    rng = generator(seed)
    sizes, n, n_strata, n_classes = rng.integers(1, 5, 1 + seed % 3), 60, 1 + seed % 2, 2 + seed % 4
    starts = np.append(0, np.cumsum(sizes))
    offsets = rng.normal(size=(starts[-1], n_strata, n_classes, n_classes))
    marginals = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes])
    groups = np.stack([rng.integers(*ends, n) for ends in pairwise(starts)])
    strata = None if n_strata == 1 else rng.integers(0, n_strata, n)
    chances = rng.dirichlet(np.ones(n_classes), n)
    decider = Decider(
        SimpleNamespace(offsets=starts, n_groups=starts[-1]),
        *(None, marginals, np.eye(n_classes), offsets, None, None),
    )
    flat = offsets.reshape(-1, n_classes)
    shares = known_shares(groups, starts[-1], strata, n_strata, chances)
    found = decider.margins(None, chances, groups, strata)
    np.testing.assert_array_equal(found, margins(chances, shares, flat))
    groups[rng.integers(0, sizes.size, n), np.arange(n)] = -1  # one attribute is not known
    average = estimated_shares(marginals[:, None] * chances[:, None, :], strata, n_strata)
    unknown = decider.margins(None, chances, groups, strata)
    np.testing.assert_allclose(unknown, margins(chances, average, flat))
