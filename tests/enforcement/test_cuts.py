"""Blocks of tied scores, and the best cuts of groups against all combinations of cuts."""

from itertools import product

import numpy as np
import pytest

from skfair._kernels import cuts as kernels
from skfair.enforcement.cuts import GroupCuts, Rate, best_cuts, score_blocks
from tests.python_kernels import as_python
from tests.seeds import generator


def test_scores_closer_than_the_gap_are_one_block():
    scores = np.array([3.0, 2.95, 2.0, 1.9, 1.0])
    codes = np.zeros(5, np.int64)
    (block,) = score_blocks(scores, codes, 1, np.ones(5), min_gap=0.1 + 1e-9)
    assert np.array_equal(block.scores, [2.95, 1.9, 1.0])
    assert block.ends == pytest.approx([0, 0.4, 0.8, 1])


def groups_of(rng, n_windows, length, cap):
    """A few cuts of three groups; the last group is in the first window only."""
    groups = []
    for g in range(3):
        n_cuts = int(rng.integers(2, 7))
        windows = range(n_windows if g < 2 else min(n_windows, 1))
        rates = [Rate(k, np.sort(rng.random(n_cuts)), length) for k in windows]
        caps = [Rate(-1, np.sort(rng.random(n_cuts)), cap)] * (cap < 1)
        groups.append(GroupCuts(rng.normal(size=n_cuts), (*rates, *caps)))
    return groups


def keeps_the_limits(groups, cuts):
    rates = [(rate, cut) for group, cut in zip(groups, cuts, strict=True) for rate in group.rates]
    if any(rate.rising[cut] > rate.length for rate, cut in rates if rate.window < 0):
        return False
    for window in range(2):
        inside = [(rate.rising[cut], rate.length) for rate, cut in rates if rate.window == window]
        if inside and np.ptp([level for level, _ in inside]) > inside[0][1]:
            return False
    return True


@pytest.mark.parametrize("kernel", ["compiled", "python"])
@pytest.mark.parametrize("cap", [0.3, 1.0])
@pytest.mark.parametrize("length", [0.02, 0.2, 0.6])
@pytest.mark.parametrize("n_windows", [0, 1, 2])
def test_no_cuts_within_the_limits_gain_more(n_windows, length, cap, kernel, monkeypatch):
    if kernel == "python":
        monkeypatch.setattr(kernels, "best_cuts", as_python(kernels.best_cuts))
    for seed in range(10):
        groups = groups_of(generator(seed), n_windows, length, cap)
        every = product(*(range(group.gains.size) for group in groups))
        kept = [cuts for cuts in every if keeps_the_limits(groups, cuts)]
        gains = [
            sum(group.gains[cut] for group, cut in zip(groups, cuts, strict=True)) for cuts in kept
        ]
        found = best_cuts(groups)
        assert (found is None) == (not kept)
        if kept:
            assert tuple(found) in kept
            assert gains[kept.index(tuple(found))] == pytest.approx(max(gains), abs=1e-12)
