"""Losses of pairs against loops over all pairs; slopes, invariances."""

import numpy as np
import pytest

from skfair.classification import PairLoss
from skfair.partial_parity.objectives import Objective
from skfair.partial_parity.pair_losses import PAIR_LOSSES, PairwiseLoss
from tests.naive import row_pairs
from tests.seeds import generator

KINDS = list(row_pairs.LOSSES)


def close(expected, kind):
    """Exact, or within the error of a spline."""
    return pytest.approx(expected, rel=row_pairs.EXACT, abs=row_pairs.ERRORS.get(kind, 0.0))


INTERVALS = {
    "all": None,
    "top": [(0.0, 0.4)],
    "pair": [(0.13, 0.61)],
    "union": [(0.05, 0.3), (0.5, 0.71)],
}
each_kind = pytest.mark.parametrize("kind", KINDS)
each_interval = pytest.mark.parametrize("interval", INTERVALS.values(), ids=list(INTERVALS))


def some_rows(seed=0, n=40):
    rng = generator(seed)
    targets = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    targets[:2] = 1.0, -1.0
    return targets, rng.uniform(0.2, 2.0, n), rng.normal(size=n)


@each_kind
@each_interval
def test_values_are_those_of_all_pairs(kind, interval):
    for seed in range(3):
        targets, weights, scores = some_rows(seed)
        scores = scores.round(1) if seed == 2 else scores
        found, _ = PairwiseLoss(targets, weights, interval, kind=kind).evaluate(scores)
        expected = row_pairs.pairwise_loss(
            scores, targets, weights, interval or [(0, 1)], row_pairs.LOSSES[kind]
        )
        assert found == close(expected, kind)


@each_kind
@each_interval
def test_slopes_are_those_of_the_values(kind, interval):
    targets, weights, scores = some_rows(3)
    check_slopes(PairwiseLoss(targets, weights, interval, kind=kind), scores)


def check_slopes(objective, scores):
    _, slopes = objective.evaluate(scores)
    for i in range(scores.size):
        up, down = scores.copy(), scores.copy()
        up[i] += 1e-6
        down[i] -= 1e-6
        rise = objective.evaluate(up)[0] - objective.evaluate(down)[0]
        assert slopes[i] == pytest.approx(rise / 2e-6, abs=1e-7)


@each_kind
def test_precise_with_rows_far_away(kind):
    targets, weights, scores = some_rows(7)
    negatives = np.flatnonzero(targets < 0)
    scores[negatives[0]] = -1e7  # loses every pair: costs nothing, unless sums cancel
    scores = scores + 1e6
    found, _ = PairwiseLoss(targets, weights, kind=kind).evaluate(scores)
    expected = row_pairs.pairwise_loss(scores, targets, weights, [(0, 1)], row_pairs.LOSSES[kind])
    assert found == close(expected, kind)


def test_named_and_what_is_refused():
    targets, weights, _ = some_rows(9)
    for name, loss in PAIR_LOSSES.items():
        assert not loss.prepare(targets, weights).uses_interval
        assert loss.kind == (name.removeprefix("auc_") if "_" in name[:4] else "squared_hinge")
    part = PairLoss("hinge", (0, 0.5)).prepare(targets, weights)
    assert part.uses_interval
    with pytest.raises(ValueError, match="no negative row"):
        PairwiseLoss(np.ones(3), np.ones(3))
    with pytest.raises(ValueError, match="kind must be one of"):
        PairwiseLoss(targets, weights, kind="cubic")


def test_the_spline_is_the_logistic_loss():
    rng = generator(0)
    for x in np.concatenate([rng.uniform(-20, 20, 200), [0.0, 50.0, -50.0, 1e4]]):
        objective = PairwiseLoss(np.array([1.0, -1.0]), np.ones(2), kind="logistic")
        value, slopes = objective.evaluate(np.array([x, 0.0]))
        assert value == pytest.approx(np.logaddexp(0.0, -x), abs=2e-6, rel=1e-9)
        assert slopes[0] == pytest.approx(-1 / (1 + np.exp(min(x, 700.0))), abs=2e-5)


def test_slopes_of_the_wrong_length_are_named():
    class Wrong(Objective):
        def evaluate(self, scores, targets, weights):
            return 0.0, np.zeros(3)

    targets, weights, scores = some_rows(3)
    with pytest.raises(ValueError, match=r"Wrong.evaluate must return .* 40 rows, got .* \(3,\)"):
        Wrong().prepare(targets, weights).evaluate(scores)


@each_interval
def test_the_share_in_the_right_order_is_that_of_all_pairs(interval):
    targets, weights, scores = some_rows(4)
    for given in (scores, scores.round(1), np.zeros(scores.size)):
        found = PairwiseLoss(targets, weights, interval).share_right(given)
        expected = row_pairs.pairwise_loss(
            given, targets, weights, interval or [(0, 1)], lambda x: np.heaviside(x, 0.5)
        )
        assert found == pytest.approx(expected, abs=1e-12)
