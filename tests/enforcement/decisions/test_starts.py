"""Further starts of prices: what they mend, and what they leave alone."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from skfair.classification import FairDecisionClassifier
from skfair.constraints import DemographicParity, EqualizedOdds
from skfair.constraints.base import TrainingRows
from skfair.enforcement.decisions import dual
from skfair.enforcement.decisions.choose import choose
from skfair.enforcement.decisions.dual import solve_dual
from skfair.enforcement.decisions.judge import ClassRule, Judge
from skfair.enforcement.decisions.prices import PriceSearch
from skfair.enforcement.decisions.rows import Features
from skfair.enforcement.decisions.starts import restarted
from skfair.groups.encoding import encode_groups
from skfair.losses import make_loss
from tests.enforcement.decisions.test_decisions import small


def search_of(rule, limit, n=900, n_classes=2, names=("a", "b")):
    """A search whose groups are known by halves."""
    judge, features, groups, chances, _ = small(rule, limit, n, n_classes, names=names)
    of_group = np.where(groups[:, None] == names, 0.8, 0.2 / (len(names) - 1))
    joint = of_group[:, :, None] * chances[:, None, :]
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


@pytest.mark.parametrize("seed", [0, 3, 4])
def test_limits_below_chance_cost_little_where_groups_are_alike(seed):
    """Groups drawn by lot differ by chance only, but more than a quarter of the rows were lost."""
    rng = np.random.default_rng(seed)
    n, group = 1500, rng.integers(0, 3, 1500)
    X = rng.normal(size=(n, 6))
    y = (X.sum(axis=1) + rng.normal(size=n) > 0).astype(int)
    model = FairDecisionClassifier(None, EqualizedOdds(), 0.01, group_aware=False, random_state=0)
    decided = model.fit(X, y, sensitive_features=group).train_predictions_
    rates = [[decided[(group == g) & (y == c)].mean() for g in range(3)] for c in range(2)]
    assert np.ptp(rates, axis=1).max() <= 0.01
    free = cross_val_predict(LogisticRegression(), X, y)
    assert np.mean(decided == y) > np.mean(free == y) - 0.1


@pytest.mark.parametrize(
    ("n", "names", "is_moved"), [(900, "abc", True), (900, "ab", False), (10_050, "abc", False)]
)
def test_prices_of_many_rows_or_two_groups_are_not_moved_at_random(n, names, is_moved):
    search = search_of(DemographicParity(), 0.05, n, names=tuple(names))
    nobody = np.zeros((search.features.size, 2))
    nobody[:, 1] = 10.0
    poor = search.candidate(nobody)
    found = restarted(search, poor)
    assert found.verdict.is_feasible
    assert (found.verdict.worth > poor.verdict.worth) == is_moved


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


def many_prices(seed, n=3000, n_groups=3, n_classes=4):
    """A search with exact estimates of groups, and prices of 12 pairs for each of 4 classes."""
    rng = np.random.default_rng(seed)
    scores = 0.8 * rng.normal(size=(n, 2)) @ rng.normal(size=(2, n_groups * n_classes))
    scores += 0.5 * rng.normal(size=n_groups * n_classes)
    joint = softmax(scores + 0.2 * rng.normal(size=scores.shape), axis=1)
    drawn = (joint.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    pair = np.minimum(drawn, joint.shape[1] - 1)
    encoding, y = encode_groups(pair // n_classes), pair % n_classes
    loss, rules = make_loss("log_loss", "classification"), []
    for label in range(n_classes):
        rows = TrainingRows(encoding, np.where(y == label, 1.0, -1.0), None, loss, ("no", "yes"))
        rules.append(ClassRule(EqualizedOdds().prepare(rows, 0.05), label))
    judge = Judge(rules, y, np.full(n, 1 / n), np.eye(n_classes))
    features = Features(n_groups, 1, n_classes, np.arange(n_groups))
    chances = joint.reshape(n, n_groups, n_classes).sum(axis=1)
    return PriceSearch(judge, features, y, chances, joint, np.random.RandomState(0))


# Where a search ends depends on how a processor rounds; these gain on every kind that was tried.
@pytest.mark.parametrize("seed", [4, 35])
def test_soft_prices_that_end_far_from_the_rules_are_sought_thoroughly(seed):
    search = many_prices(seed)
    plain, chosen = search.run().verdict, choose(search, None, "auto").verdict
    assert chosen.is_feasible
    assert chosen.worth > plain.worth + 0.005
    _, data, _ = search._soft
    rows = search._rows_near(search.free(), data)

    def missed(is_thorough):
        found = solve_dual(data, rows, 0 * rows.upper, 0.002, 15, is_thorough=is_thorough)
        whole = dual._Dual(data, rows, 0.002)
        return whole.missed(whole.evaluate(whole.point(found)).slope)

    assert missed(True) < 0.5 * missed(False)
