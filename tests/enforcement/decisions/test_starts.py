"""Further starts of prices: what they mend, and what they leave alone."""

import numpy as np
import pytest

from skfair.constraints import DemographicParity, EqualizedOdds
from skfair.enforcement.decisions.choose import choose
from skfair.enforcement.decisions.prices import PriceSearch
from skfair.enforcement.decisions.starts import can_restart, restarted
from tests.enforcement.decisions.test_decisions import small


def search_of(rule, limit, n=900, n_classes=2):
    """A search whose groups are known by halves."""
    judge, features, groups, chances, _ = small(rule, limit, n, n_classes)
    of_group = np.where(groups == "a", 0.8, 0.2)
    joint = np.stack([of_group, 1 - of_group], axis=1)[:, :, None] * chances[:, None, :]
    rng = np.random.RandomState(0)
    return PriceSearch(judge, features, judge.classes, chances, joint.reshape(n, -1), rng)


def test_a_search_that_selects_nobody_is_mended():
    search = search_of(EqualizedOdds(), 0.05)
    nobody = np.zeros((search.features.size, 2))
    nobody[:, 1] = 10.0
    poor = search.candidate(nobody)
    assert poor.verdict.is_feasible
    found = restarted(search, poor)
    assert found.predicted.any()
    assert search.judge(found.predicted).is_feasible
    assert found.verdict.worth > poor.verdict.worth + 1 / np.sqrt(900)
    assert choose(search, None, "auto").verdict.worth >= search.run().verdict.worth


def test_small_gains_are_left_to_chance():
    search = search_of(EqualizedOdds(), 0.1)
    best = search.run()
    worse = search.candidate(best.prices)
    assert restarted(search, worse) is worse
    infeasible = search.free()
    assert not infeasible.verdict.is_feasible
    assert restarted(search, infeasible).verdict.is_feasible


def test_only_several_rates_of_two_groups_are_restarted():
    assert can_restart(search_of(EqualizedOdds(), 0.1))
    assert not can_restart(search_of(DemographicParity(), 0.1))
    assert not can_restart(search_of(EqualizedOdds(), 0.1, n_classes=3))


@pytest.mark.parametrize("n_rows", [900, 300])
def test_a_part_of_the_rows_stands_for_all(n_rows):
    judge = search_of(EqualizedOdds(), 0.1).judge
    rows = np.random.default_rng(0).permutation(900)[:n_rows]
    part = judge.part(rows)
    everybody = np.ones(n_rows, dtype=np.int64)
    for found, expected in zip(part.means(everybody), judge.means(np.ones(900, int)), strict=True):
        assert np.allclose(found, expected)
    assert part.weights.sum() == pytest.approx(1)
    if n_rows == 900:
        some = (np.arange(900) % 3 == 0).astype(np.int64)
        assert part(some[rows]).excess == pytest.approx(judge(some).excess)
        assert part(some[rows]).worth == pytest.approx(judge(some).worth)
