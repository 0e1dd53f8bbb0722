"""Matrix, bounds and centres: a point is feasible exactly when its disparity is small enough."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from tests.naive import erm as naive
from tests.small_problems import make_constraint, people, references_of, trained_constraints

MEAN = "mean_excess_loss"  # one row, which may be negative
SIDES = [(name, reference) for name in trained_constraints() for reference in references_of(name)]
each_side = pytest.mark.parametrize(("name", "reference"), SIDES)
KINDS = {n_levels: people(seed=2, n=60, n_levels=n_levels) for n_levels in [(2,), (5,), (3, 2)]}
each_kind = pytest.mark.parametrize("n_levels", list(KINDS))


def who_of(n_levels, name):
    who = KINDS[n_levels]
    if name == MEAN:  # groups of equal weight have no mean excess
        who = who._replace(weights=1.0 + (who.columns[-1] == "a"))
    return who


def prepare(n_levels, name, reference, bound=0.1):
    return make_constraint(name, reference).prepare(who_of(n_levels, name).training_rows(), bound)


def excess(bound, means, centers):
    """How far each constraint row is beyond its bounds."""
    values = bound.row_values(means)
    values = values - np.where(bound.centers >= 0, np.append(centers, 0)[bound.centers], 0)
    return np.maximum(bound.lower - values, values - bound.upper)


def best_centers(bound, means):
    """Minimise the worst row of each centre; rows of different centres have nothing in common."""
    centers, values = [], bound.row_values(means)
    for c in range(bound.n_centers):
        mine = values[bound.centers == c]
        found = minimize_scalar(
            lambda center, mine=mine: np.abs(mine - center).max(),
            bounds=(mine.min() - 1, mine.max() + 1),
            method="bounded",
            options={"xatol": 1e-12},
        )
        middle = (mine.min() + mine.max()) / 2
        assert found.x == pytest.approx(middle, abs=1e-6)
        centers.append(middle)
    return np.array(centers)


@each_kind
@each_side
def test_feasible_means_disparity_within_the_bound(n_levels, name, reference):
    any_constraint = prepare(n_levels, name, reference)
    for seed in range(3):
        means = np.random.default_rng(seed).uniform(size=any_constraint.n_cells)
        if name == MEAN:  # so that groups with large weights in the mean of all have small losses
            means = np.argsort(np.argsort(any_constraint.matrix.toarray()[0])) / means.size
        disparity, centers = (
            any_constraint.disparity_of_means(means),
            best_centers(any_constraint, means),
        )
        assert disparity > 0.01
        for bound, is_feasible in ((1 + 1e-9, True), (1 - 1e-6, False), (0.5, False), (2, True)):
            constraint = any_constraint.scaled(bound * disparity / 0.1)
            assert (excess(constraint, means, centers).max() <= 0) == is_feasible


@each_kind
@each_side
def test_the_worst_row_of_smooth_means_is_the_worst_comparison(n_levels, name, reference):
    """Of the linear rows that solvers see; where rates are quotients, the disparity is another."""
    who, constraint = who_of(n_levels, name), prepare(n_levels, name, reference)
    scores = np.random.default_rng(1).normal(size=who.signs.size)
    table = naive.constraint_table(name, reference, who.signs, who.columns, who.weights)
    values = naive.smooth_values(
        naive.CONSTRAINT_NAMES[name][1], scores, who.signs, "log_loss", 3.0
    )
    means = constraint.means(constraint.moment.parts(scores, 3.0)[0])
    worst = (table @ values).max()
    linear = replace(constraint, quotients=None)
    assert linear.disparity_of_means(means) == pytest.approx(worst, abs=1e-12)
    if name not in naive.PRECISE:
        assert constraint.disparity_of_means(means) == pytest.approx(worst, abs=1e-12)


@each_kind
@each_side
def test_rows_grow_with_the_groups_and_not_with_their_pairs(n_levels, name, reference):
    constraint = prepare(n_levels, name, reference)
    n_classes = 2 if naive.CONSTRAINT_NAMES[name][0] == "class" else 1
    if reference == "pairwise":  # two groups need one difference and no centre
        n_rows = sum(1 if levels == 2 else levels for levels in n_levels)
        n_centers = sum(levels > 2 for levels in n_levels)
    else:
        n_rows, n_centers = sum(n_levels), 0
    if name == MEAN:
        n_rows = 1
    assert constraint.matrix.shape == (n_classes * n_rows, constraint.n_cells)
    assert (
        constraint.lower.shape
        == constraint.upper.shape
        == constraint.centers.shape
        == (n_classes * n_rows,)
    )
    assert constraint.n_centers == n_classes * n_centers
    assert set(constraint.centers[constraint.centers >= 0]) == set(range(constraint.n_centers))


@each_kind
@each_side
def test_rows_are_what_their_names_say(n_levels, name, reference):
    constraint = prepare(n_levels, name, reference)
    means = np.random.default_rng(0).uniform(size=constraint.n_cells)
    (rates, _), (overall, _) = constraint.rates_between(means, means)
    rates = dict(zip(constraint.rate_names, rates, strict=True))
    overall = dict(zip(constraint.rate_names, overall, strict=True))
    assert len(constraint.row_names) == constraint.upper.size
    for words, value, center in zip(
        constraint.row_names, constraint.row_values(means), constraint.centers, strict=True
    ):
        first, _, second = words.partition(" - ")
        if name == MEAN:
            expected = np.mean(list(rates.values())) - np.mean(list(overall.values()))
            assert value == pytest.approx(expected, abs=1e-12)
            continue
        assert (second == "middle") == (center >= 0)
        if second == "overall":
            expected = rates[first] - overall[first]
        else:
            expected = rates[first] - rates.get(second, 0)
        assert value == pytest.approx(expected, abs=1e-12)


@each_kind
@each_side
def test_a_bound_of_zero_asks_for_equality(n_levels, name, reference):
    constraint = prepare(n_levels, name, reference, 0.0)
    means = np.full(constraint.n_cells, 0.0 if reference is None or name in naive.PRECISE else 0.37)
    assert excess(constraint, means, best_centers(constraint, means)).max() <= 1e-15
    assert constraint.disparity_of_means(means) <= 1e-15


@each_kind
def test_a_largest_loss_has_no_lower_bound(n_levels):
    constraint = prepare(n_levels, "bounded_group_loss", None, 0.7)
    assert (constraint.lower == -np.inf).all()
    assert (constraint.upper == 0.7).all()
    assert (constraint.matrix.toarray() == constraint.rates.toarray()).all()


@each_kind
@pytest.mark.parametrize("name", sorted(set(trained_constraints()) - set(naive.PRECISE)))
def test_rates_are_means_of_cells(n_levels, name):
    """Lines of both matrices are averages: entries >= 0 that add up to 1."""
    constraint = prepare(n_levels, name, "overall")
    for matrix in (constraint.rates.toarray(), constraint.overall.toarray()):
        assert matrix.min() >= 0
        assert matrix.sum(axis=1) == pytest.approx(np.ones(len(constraint.rate_names)))
