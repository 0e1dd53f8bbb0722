"""The parts of the search for fair decisions, against counting and trying."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

from skfair.constraints import (
    AccuracyParity,
    BoundedSelectionRate,
    DemographicParity,
    EqualizedOdds,
)
from skfair.constraints.base import TrainingRows
from skfair.enforcement.decisions.dual import SoftRows, solve_dual
from skfair.enforcement.decisions.lines import Candidate, lines, passing_points
from skfair.enforcement.decisions.offsets import OffsetSearch
from skfair.enforcement.decisions.rows import Features, linear_rows
from skfair.enforcement.decisions.search import search_decisions
from skfair.enforcement.decisions.shares import known_shares, margins, with_ties_broken
from skfair.enforcement.strict_evaluation import (
    TRUE_CLASS,
    ClassConstraint,
    Decisions,
    StrictEvaluation,
)
from skfair.groups.encoding import encode_groups
from skfair.losses import make_loss
from tests.naive import decisions as naive
from tests.seeds import generator


def small(constraint, limit, n=80, n_classes=2, seed=0, names=("a", "b")):
    """A strict evaluation, features, kinds, probabilities and shares of simulated rows."""
    rng = generator(seed)
    groups = rng.choice(names, n)
    chances = softmax(
        rng.normal(size=(n, n_classes)) + (groups == "a")[:, None] * [[1, 0, 0][:n_classes]], axis=1
    )
    y = (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    encoding, loss = encode_groups(groups), make_loss("log_loss", "classification")
    constraints = []
    for label in range(1, 2) if n_classes == 2 else range(n_classes):
        targets = np.where(y == label, 1.0, -1.0)
        rows = TrainingRows(encoding, targets, None, loss, ("no", "yes"))
        constraints.append(ClassConstraint(constraint.prepare(rows, limit), label))
    strict = StrictEvaluation.of(constraints, y, np.full(n, 1 / n), np.eye(n_classes))
    n_groups = len(names)
    shares = known_shares(encoding.codes, n_groups, None, 1, chances)
    return strict, Features(n_groups, 1, n_classes, np.arange(n_groups)), groups, chances, shares


def rows_near(strict, features, predicted, data):
    """The constraints as linear rows near decisions."""
    rates = strict.rates
    return linear_rows(strict, features, rates.classes, rates.means(predicted), data.totals)


@pytest.mark.parametrize("temperature", [1e-3, 0.03, 1.0])
def test_soft_decisions_are_as_exact_as_their_numbers(temperature):
    """Leads from far below to far above a tie."""
    rng = generator(0)
    n = 400
    values, weights = rng.normal(size=(n, 4)), rng.random(n)
    values[:200] *= 10 ** rng.uniform(-9, 2, size=(200, 1))
    shares, offsets = rng.random((n, 6)), 0.1 * rng.normal(size=(6, 4))
    shares[rng.random(shares.shape) < 0.5] = 0
    total, table = naive.soft_table(values, shares, offsets, weights, temperature)
    for given in (shares, sparse.csr_array(shares)):
        found, found_table = SoftRows(values, given, weights).soft_table(offsets, temperature)
        assert found == pytest.approx(total, rel=1e-13)
        assert np.allclose(found_table, table, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_points_where_a_line_passes_rows(n_classes):
    rng = generator(0)
    given = rng.integers(0, 3, size=(30, n_classes)) / 2  # with ties
    rows, direction = np.arange(0, 30, 2), rng.random(15) + 0.1
    for label in range(n_classes):
        others, points = passing_points(given, rows, direction, label)
        expected = naive.passing_points(given, rows, direction, label)
        assert others.tolist() == expected[0]
        assert points == pytest.approx(expected[1])


@pytest.mark.parametrize("constraint", [EqualizedOdds(), AccuracyParity()])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_line_is_cut_where_counting_says(constraint, n_classes):
    """Each cut is made by hand, and its decisions are counted."""
    strict = small(constraint, 0.2, n_classes=n_classes)[0]
    if isinstance(constraint, AccuracyParity):
        limits = [ClassConstraint(bound, TRUE_CLASS) for bound in strict.rates.bounds]
        strict = StrictEvaluation.of(limits, strict.rates.classes, strict.weights, strict.utility)
    rng, n, label = generator(0), strict.weights.size, n_classes - 1
    predicted, rows = rng.integers(0, n_classes, n), np.arange(1, n, 3)
    others, points = rng.integers(0, label, rows.size), rng.normal(size=rows.size)
    now = Decisions(predicted, strict.rates.means(predicted), strict(predicted))
    found = strict.scan(rows, label, others, points, now)
    every = []
    for n_above in range(rows.size + 1):
        decisions = predicted.copy()
        decisions[rows] = np.where(np.argsort(np.argsort(-points)) < n_above, label, others)
        every.append(decisions)
    best = min((strict(decisions) for decisions in every), key=lambda verdict: verdict.rank)
    there = strict(every[found.n_above])
    assert (found.verdict.merit, found.verdict.excess) == pytest.approx((there.merit, there.excess))
    # If no cut satisfies the limits, the highest one of those that violate them least is taken.
    n_compared = 2 if best.is_feasible else 1
    assert there.rank[:n_compared] == pytest.approx(best.rank[:n_compared])
    counted = zip(found.means_there(), strict.rates.means(every[found.n_above]), strict=True)
    assert all(np.allclose(means, expected) for means, expected in counted)


@pytest.mark.parametrize("constraint", [DemographicParity(), EqualizedOdds()])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_offsets_keep_the_constraints_in_expectation(constraint, n_classes):
    strict, features, _, chances, shares = small(constraint, 0.05, n=400, n_classes=n_classes)
    predicted = chances.argmax(axis=1)
    data = SoftRows(chances, shares, strict.weights)
    rows = rows_near(strict, features, predicted, data)
    multipliers = solve_dual(data, rows, np.zeros(rows.upper.size), 0.05, 200)
    offsets = (rows.matrix.T @ multipliers).reshape(features.size, n_classes)
    values = rows.matrix @ data.soft_table(offsets, 0.05)[1].ravel()
    assert (values <= rows.upper + 1e-3).all()
    assert (values >= rows.lower - 1e-3).all()
    free = rows.matrix @ data.soft_table(0 * offsets, 0.05)[1].ravel()
    assert (free > rows.upper + 0.01).any() or (free < rows.lower - 0.01).any()


@pytest.mark.parametrize(
    ("constraint", "n_centers"),
    [(DemographicParity(), 1), (EqualizedOdds(), 2), (BoundedSelectionRate(), 0)],
)
def test_rates_that_are_compared_have_one_centre(constraint, n_centers):
    strict, features, _, chances, shares = small(constraint, 0.05, names=("a", "b", "c"))
    data = SoftRows(chances, shares, strict.weights)
    centers = rows_near(strict, features, chances.argmax(axis=1), data).centers.toarray()
    assert centers.sum(axis=0).tolist() == [3.0] * n_centers  # a line for each group
    assert centers.sum(axis=1).tolist() == [float(n_centers > 0)] * centers.shape[0]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_line_search_finds_the_best_of_all_shifts(n_classes):
    strict, features, _, chances, shares = small(
        DemographicParity(), 0.15, n=60, n_classes=n_classes
    )
    rng = generator(1)
    start = Candidate(strict, chances, shares, rng.normal(size=(features.size, n_classes)) * 0.1)
    for label, which in lines(strict, features):
        best, before = start.verdict, start.offsets.copy()
        start.exchange(label, which)
        found = start.verdict
        assert found.rank == pytest.approx(strict(start.predicted).rank, abs=1e-12)
        again = margins(chances, shares, start.offsets).argmax(axis=1)
        assert np.array_equal(start.predicted, again)
        decisions = set()  # 1501 shifts, but few that decide otherwise than the one before
        for shift in np.linspace(-3, 3, 1501):
            offsets = before.copy()
            offsets[which, label] += shift
            decisions.add(tuple(margins(chances, shares, offsets).argmax(axis=1)))
        for predicted in decisions:
            other = strict(np.array(predicted))
            best = other if other.is_better_than(best) else best
        assert not best.is_better_than(found)


def unlike(n=3000, seed=0):
    """A search for three classes that are easy to tell in one group, and hardly in the other."""
    rng = generator(seed)
    codes = rng.integers(0, 2, n)
    chances = np.where(
        (codes == 0)[:, None], rng.dirichlet(np.full(3, 0.5), n), rng.dirichlet(np.full(3, 9.0), n)
    )
    y = np.minimum((chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), 2)
    encoding, loss = encode_groups(codes), make_loss("log_loss", "classification")
    constraints = []
    for label in range(3):
        rows = TrainingRows(encoding, np.where(y == label, 1.0, -1.0), None, loss, ("no", "yes"))
        constraints.append(ClassConstraint(EqualizedOdds().prepare(rows, 0.05), label))
    strict = StrictEvaluation.of(constraints, y, np.full(n, 1 / n), np.eye(3))
    shares = known_shares(encoding.codes, 2, None, 1, chances)
    features = Features(2, 1, 3, np.arange(2))
    return OffsetSearch(strict, features, y, chances, shares, np.random.RandomState(0)), codes


@pytest.mark.parametrize("seed", range(2))
def test_rows_that_offsets_leave_tied_are_parted(seed):
    search, codes = unlike(seed=seed)
    chosen = search_decisions(search, codes)
    assert chosen.tie_weight > 0
    assert chosen.verdict.is_feasible
    plain, best = search.search().verdict, best_random(search, codes)
    assert not plain.is_feasible or chosen.verdict.merit > plain.merit
    assert chosen.verdict.merit > best - 0.06
    values = with_ties_broken(search.values, chosen.tie_weight)
    again = margins(values, search.shares, chosen.offsets).argmax(axis=1)
    assert np.array_equal(chosen.predicted, again)
    assert search_decisions(search, None).tie_weight == 0  # groups that are not known


def best_random(search, codes):
    return naive.best_random_decisions(search.values, search.kinds, codes, 0.05)


def test_a_sample_keeps_the_weight_of_every_stratum():
    rng = generator(0)
    strata = rng.choice(4, 3000, p=[0.6, 0.3, 0.099, 0.001])
    weights = rng.random(3000)
    weights /= weights.sum()
    rows = np.arange(3000.0)
    data = SoftRows(np.column_stack([rows, rows]), np.zeros((3000, 1)), weights)
    few, own = data.sample(400, strata, np.random.RandomState(0))
    chosen = strata[few.values[:, 0].astype(int)]
    assert own.tolist() == chosen.tolist()
    assert 350 <= chosen.size <= 420
    assert np.count_nonzero(chosen == 3) == np.count_nonzero(strata == 3)  # all of a small one
    kept = np.bincount(chosen, few.weights)
    assert kept == pytest.approx(np.bincount(strata, weights))


def test_what_everybody_gets_has_the_effect_that_was_counted():
    """Although the probabilities of classes are off."""
    strict, features, names, chances, _ = small(EqualizedOdds(), 0.05, n=200, n_classes=3)
    wrong = chances**2 + [0.0, 0.1, 0.3]
    groups = encode_groups(names).codes
    shares = known_shares(groups, 2, None, 1, wrong / wrong.sum(axis=1, keepdims=True))
    data = SoftRows(chances, shares, strict.weights)
    rows = rows_near(strict, features, strict.rates.classes, data)
    for label in range(3):
        everybody = np.full(200, label)
        table = np.zeros((features.size, 3))
        table[:, label] = data.totals
        counted = [
            bound.row_values(mean)
            for bound, mean in zip(strict.rates.bounds, strict.rates.means(everybody), strict=True)
        ]
        expected = rows.matrix @ table.ravel() + rows.fixed
        assert expected == pytest.approx(np.concatenate(counted), abs=1e-9)
