"""Decisions that nearly keep the limits: what penalties and small steps make of them."""

import numpy as np
import pytest
from scipy.special import softmax

from skfair.constraints import EqualizedOdds, EqualOpportunity, PredictiveParity
from skfair.constraints.base import TrainingRows
from skfair.enforcement.decisions.lines import Candidate
from skfair.enforcement.decisions.mending import mended
from skfair.enforcement.decisions.offsets import OffsetSearch
from skfair.enforcement.decisions.rows import Features
from skfair.enforcement.decisions.shares import known_shares
from skfair.enforcement.truth import ClassConstraint, Truth
from skfair.groups.encoding import encode_groups
from skfair.losses import make_loss


def search_of(constraint, limit, seed, n, n_groups=4, n_classes=4):
    """A search with the true probabilities of classes, whose offsets differ between groups."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(n_groups, size=n)
    scores = 1.2 * rng.normal(size=(n, 3)) @ rng.normal(size=(3, n_classes))
    chances = softmax(scores + 0.6 * rng.normal(size=(n_groups, n_classes))[groups], axis=1)
    drawn = (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    y, encoding = np.minimum(drawn, n_classes - 1), encode_groups(groups)
    loss, constraints = make_loss("log_loss", "classification"), []
    for label in range(n_classes):
        rows = TrainingRows(encoding, np.where(y == label, 1.0, -1.0), None, loss, ("no", "yes"))
        constraints.append(ClassConstraint(constraint.prepare(rows, limit), label))
    truth = Truth(constraints, y, np.full(n, 1 / n), np.eye(n_classes))
    features = Features(n_groups, 1, n_classes, np.arange(n_groups))
    shares = known_shares(groups[None], n_groups, None, 1, chances)
    return OffsetSearch(truth, features, y, chances, shares, np.random.RandomState(0))


def random_offsets(search, seed):
    shape = search.features.size, search.truth.n_classes
    return search.candidate(0.1 * np.random.default_rng(seed).normal(size=shape))


@pytest.mark.parametrize("penalty", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("constraint", [EqualizedOdds(), PredictiveParity()])
def test_a_line_ends_where_worth_minus_penalties_is_largest(constraint, penalty):
    search = search_of(constraint, 0.05, 0, n=150, n_groups=2, n_classes=3)
    truth, start = search.truth.penalising(penalty), random_offsets(search, 1)
    one = Candidate(truth, start.values, start.shares, start.offsets)
    which = np.arange(3)

    def value(shift):
        offsets = start.offsets.copy()
        offsets[which, 1] -= shift
        predicted = (start.values - start.shares @ offsets).argmax(axis=1)
        missed = np.array(truth.disparities(predicted)) - 0.05
        worth = np.mean(predicted == truth.classes)
        return worth - penalty * np.maximum(missed, 0).sum()

    with_group = start.shares[:, which].sum(axis=1) > 0
    others = start.margins.copy()
    others[:, 1] = -np.inf
    passes = (others.max(axis=1) - start.margins[:, 1])[with_group]
    places = np.sort(np.concatenate([passes - 1e-9, passes + 1e-9]))
    best = max(value(shift) for shift in places)
    one.improve(1, which)
    verdict = one.verdict
    assert verdict.merit - verdict.penalty == pytest.approx(best, abs=1e-8)
    assert truth(one.predicted).penalty == pytest.approx(verdict.penalty, abs=1e-9)


def test_limits_below_what_chance_does_are_kept_at_little_cost():
    """The first decisions that keep all limits decide for one class nearly everywhere."""
    gains = []
    for seed in range(4):
        search = search_of(EqualOpportunity(), 0.02, seed, n=3000)
        plain, soft = search.run(), search.soft()
        assert soft.verdict.excess > 0.01
        found = mended(search, soft, plain)
        assert found.verdict.is_feasible
        assert found.verdict.merit >= plain.verdict.merit
        assert max(search.truth.disparities(found.predicted)) <= 0.02
        gains.append(found.verdict.merit - plain.verdict.merit)
    assert max(gains) > 0.05
