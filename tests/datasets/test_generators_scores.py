"""Group scores: the laws asked for, and distances close to their formulas."""

import numpy as np
import pytest
from scipy.stats import ks_2samp, norm, wasserstein_distance

from skfair.datasets import make_group_scores
from tests.seeds import seed_of

FAR = norm.isf(1e-8)  # standard errors


def test_default():
    y_true, y_score, groups = make_group_scores(random_state=seed_of())
    assert y_true.shape == y_score.shape == groups.shape == (1000,)
    assert y_true.dtype == np.int64
    assert set(y_true) == {0, 1}
    assert y_score.dtype == np.float64
    assert np.unique(groups).tolist() == ["a", "b"]
    # Rows are in random order.
    assert (groups[1:] != groups[:-1]).sum() > 300


def test_moments_and_counts_are_those_asked_for():
    laws = {"x": (2.0, 0.5), "y": (-1.0, 3.0), "z": (0.0, 1.0)}
    _, score, groups = make_group_scores(
        10_000, distributions=laws, group_shares=[0.5, 0.3, 0.2], random_state=seed_of()
    )
    for (name, (mean, deviation)), count in zip(laws.items(), (5000, 3000, 2000), strict=True):
        own = score[groups == name]
        assert len(own) == count
        assert abs(own.mean() - mean) < FAR * deviation / np.sqrt(count)
        assert own.std() == pytest.approx(deviation, rel=FAR / np.sqrt(2 * count))


def test_group_names_keep_their_type():
    _, _, groups = make_group_scores(10, distributions={0: (0, 1), 7: (1, 1)})
    assert np.unique(groups).tolist() == [0, 7]


@pytest.mark.parametrize(("delta", "s"), [(1.0, 0.0), (0.8, 0.5), (0.0, 1.5), (-1.2, -0.4)])
def test_distances_are_close_to_the_formulas_of_the_docstring(delta, s):
    n, sigma = 400_000, 2.0  # the distances have a standard error of 0.01
    laws = {"one": (delta, sigma + s), "two": (0.0, sigma)}
    _, score, groups = make_group_scores(n, distributions=laws, random_state=seed_of())
    one, two = np.sort(score[groups == "one"]), np.sort(score[groups == "two"])
    first = abs(delta)
    if s != 0:
        first = abs(s) * np.sqrt(2 / np.pi) * np.exp(-(delta**2) / (2 * s**2)) + delta * (
            1 - 2 * norm.cdf(-delta / abs(s))
        )
    assert wasserstein_distance(one, two) == pytest.approx(first, abs=0.06)
    second = np.sqrt(((one - two) ** 2).mean())
    assert second == pytest.approx(np.hypot(delta, s), abs=0.08)


@pytest.mark.parametrize("delta", [0.0, 0.5, 2.0])
def test_ks_gap_is_close_to_the_formula_of_the_docstring(delta):
    sigma, n = 1.5, 200_000
    laws = {"one": (delta, sigma), "two": (0.0, sigma)}
    _, score, groups = make_group_scores(n, distributions=laws, random_state=seed_of())
    gap = ks_2samp(score[groups == "one"], score[groups == "two"]).statistic
    expected = 2 * norm.cdf(delta / (2 * sigma)) - 1
    # Each empirical distribution is further away than half of this at most once in 1e7 samples.
    assert abs(gap - expected) < 2 * np.sqrt(np.log(2e7) / n)


def test_labels_are_calibrated_in_every_group():
    y_true, score, groups = make_group_scores(100_000, random_state=seed_of())
    probability = 1 / (1 + np.exp(-score))
    for name in "ab":
        for low in (0.2, 0.4, 0.6):
            rows = (groups == name) & (probability > low) & (probability < low + 0.2)
            difference = y_true[rows].mean() - probability[rows].mean()
            assert abs(difference) < np.sqrt(np.log(2e7) / (2 * rows.sum()))  # by Hoeffding
