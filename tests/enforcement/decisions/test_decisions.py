"""The parts of the search for fair decisions, against counting and trying."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from skfair._kernels.decisions import soft_decisions
from skfair.constraints import DemographicParity, EqualizedOdds
from skfair.constraints.base import TrainingRows
from skfair.enforcement.decisions.dual import SoftRows, soft_values, solve_dual
from skfair.enforcement.decisions.judge import ClassRule, Judge
from skfair.enforcement.decisions.lines import Candidate, lines
from skfair.enforcement.decisions.rows import Features, linear_rows
from skfair.enforcement.decisions.shares import known_shares, margins
from skfair.groups.encoding import encode_groups
from skfair.losses import make_loss


def small(rule, limit, n=80, n_classes=2, seed=0):
    """A judge, features, kinds, probabilities and shares of simulated rows."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(["a", "b"], n)
    chances = softmax(
        rng.normal(size=(n, n_classes)) + (groups == "a")[:, None] * [[1, 0, 0][:n_classes]], axis=1
    )
    y = (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    encoding, loss = encode_groups(groups), make_loss("log_loss", "classification")
    rules = []
    for label in range(1, 2) if n_classes == 2 else range(n_classes):
        targets = np.where(y == label, 1.0, -1.0)
        rows = TrainingRows(encoding, targets, None, loss, ("no", "yes"))
        rules.append(ClassRule(rule.prepare(rows, limit), label))
    judge = Judge(rules, y, np.full(n, 1 / n), np.eye(n_classes))
    shares = known_shares(encoding.codes, 2, None, 1, chances)
    return judge, Features(2, 1, n_classes, np.arange(2)), groups, chances, shares


def test_soft_decisions_are_a_softmax():
    rng = np.random.default_rng(0)
    given, weights = rng.normal(size=(20, 3)), rng.random(20)
    soft = given.copy()
    value = soft_decisions(soft, weights, 0.3)
    assert value == pytest.approx(weights @ (0.3 * logsumexp(given / 0.3, axis=1)))
    assert np.allclose(soft, weights[:, None] * softmax(given / 0.3, axis=1))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_judge_counts(n_classes):
    judge, _, groups, chances, _ = small(DemographicParity(), 0.1, n_classes=n_classes)
    predicted = chances.argmax(axis=1)
    expected = [
        abs(np.mean(predicted[groups == "a"] == c) - np.mean(predicted[groups == "b"] == c))
        for c in ([1] if n_classes == 2 else range(3))
    ]
    assert judge.disparities(predicted) == pytest.approx(expected)
    verdict = judge(predicted)
    assert verdict.worth == pytest.approx(np.mean(predicted == judge.classes))
    assert verdict.excess == pytest.approx(max(expected) - 0.1)


@pytest.mark.parametrize("rule", [DemographicParity(), EqualizedOdds()])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_prices_keep_the_rules_in_expectation(rule, n_classes):
    judge, features, _, chances, shares = small(rule, 0.05, n=400, n_classes=n_classes)
    predicted = chances.argmax(axis=1)
    rows = linear_rows(judge, features, judge.classes, judge.means(predicted))
    data = SoftRows(chances, shares, judge.weights)
    multipliers = solve_dual(data, rows, np.zeros(rows.upper.size), 0.05, 200)
    prices = (rows.matrix.T @ multipliers).reshape(features.size, n_classes)
    values = soft_values(data, rows, prices, 0.05)
    assert (values <= rows.upper + 1e-3).all()
    assert (values >= rows.lower - 1e-3).all()
    free = soft_values(data, rows, 0 * prices, 0.05)
    assert (free > rows.upper + 0.01).any() or (free < rows.lower - 0.01).any()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_line_search_finds_the_best_of_all_shifts(n_classes):
    judge, features, _, chances, shares = small(
        DemographicParity(), 0.15, n=60, n_classes=n_classes
    )
    rng = np.random.default_rng(1)
    start = Candidate(judge, chances, shares, rng.normal(size=(features.size, n_classes)) * 0.1)
    for label, which in lines(judge, features):
        found = start.along(label, which).verdict
        best = start.verdict
        for shift in np.linspace(-3, 3, 1501):
            prices = start.prices.copy()
            prices[which, label] += shift
            predicted = margins(chances, shares, prices).argmax(axis=1)
            other = judge(predicted)
            best = other if other.is_better_than(best) else best
        assert not best.is_better_than(found)
