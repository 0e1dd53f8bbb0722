import itertools

import numpy as np
import pytest
from sklearn.cluster import KMeans

from skfair.cluster import FairAssignment
from skfair.cluster.assignment import whole_rows
from skfair.cluster.assignment.by_prices import assign
from skfair.cluster.assignment.counts import balance_constraints
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.assignment.whole_rows import nearest_feasible_counts
from skfair.groups.encoding import encode_groups
from tests.seeds import generator


def problem_of(n_first, n_second, beta, n_clusters=2, weights=None, seed=0):
    rng = generator(seed)
    codes = np.repeat([0, 1], [n_first, n_second])
    groups = encode_groups(codes)
    constraints = balance_constraints(groups, np.array([beta]))
    return RepresentationProblem(
        rng.normal(size=(codes.size, 2)), groups, constraints, n_clusters, weights
    )


def exists(problem):
    """Whether any counts of two clusters and two cells meet the constraints, by enumeration."""
    totals = np.bincount(problem.cells)
    return any(
        problem.constraints.violation(
            np.array([[a, b], [totals[0] - a, totals[1] - b]], dtype=float)
        ).sum()
        <= 1e-9
        for a, b in itertools.product(range(totals[0] + 1), range(totals[1] + 1))
    )


@pytest.mark.parametrize("sizes", [(7, 9), (10, 13), (6, 12), (11, 11), (5, 18), (13, 17)])
@pytest.mark.parametrize("share", [0.8, 0.95, 1.0])
def test_counts_are_found_exactly_when_they_exist(sizes, share):
    problem = problem_of(*sizes, share * min(sizes) / max(sizes))
    start = np.array([[totals, 0.0] for totals in np.bincount(problem.cells)]).T
    found = nearest_feasible_counts(problem, start)
    assert found is not None
    missed = problem.constraints.violation(found.astype(float)).sum()
    if exists(problem):
        assert missed <= 1e-9
    else:  # each constraint is missed by less than one person
        assert missed > 0
        assert problem.constraints.violation_beyond(found, 1.0) == 0
    assert found.sum(axis=0).tolist() == np.bincount(problem.cells).tolist()
    assert found.min() >= 1


def test_empty_clusters_are_filled_by_several_people_at_once():
    """One person alone makes the balance of an empty cluster worse; six together do not."""
    codes = np.repeat(np.arange(6), [30, 60, 80, 40, 35, 70])
    groups = encode_groups(codes)
    constraints = balance_constraints(groups, np.array([30 / 80]))
    X = generator(0).normal(size=(codes.size, 2))
    problem = RepresentationProblem(X, groups, constraints, 5)
    far = np.array([[0.0, 0.0], [50, 0], [0, 50], [50, 50], [-50, -50]])
    found = assign(problem, far)
    assert problem.constraints.violation_beyond(problem.counts(found.labels), 1.0) == 0


def test_it_helps_where_single_moves_get_stuck():
    """Strict limits on few points: the greedy repair alone fails on some of these."""
    helped = 0
    for seed in range(30):
        rng = generator(seed)
        n = int(rng.integers(20, 40))
        problem = problem_of(n, n + int(rng.integers(0, 4)), 0.9, 4, seed=seed)
        centers = problem.scaled(rng.choice(2 * n, 4, replace=False)).astype(float)
        greedy = assign(problem, centers, search_counts=False)
        whole = assign(problem, centers)
        assert whole.violation <= greedy.violation
        helped += whole.violation < greedy.violation - 1e-9
        if greedy.violation > 1e-9 >= whole.violation:
            counts = problem.counts(whole.labels)
            assert (counts.min(axis=1) / counts.max(axis=1)).min() >= 0.9 - 1e-9
    assert helped >= 1


@pytest.mark.parametrize("n", [300, 150_000])
def test_a_sample_of_rows_is_drawn_evenly_and_again(n):
    """Of many rows it is drawn another way."""
    problem, tenth = problem_of(n // 2, n - n // 2, 0.5), n // 10
    drawn = [problem.sample_rows(tenth, seed) for seed in (0, 0, 1)]
    for rows in drawn:
        assert rows.size == np.unique(rows).size == tenth
        assert (np.diff(rows) > 0).all()
        assert rows[0] >= 0
        assert rows[-1] < n
        low = np.sum(rows < n // 2)
        assert abs(low - tenth / 2) < 4 * np.sqrt(tenth / 4)
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    assert np.array_equal(problem.sample_rows(n, 0), np.arange(n))


def tied_rows(seed, n=60):
    """Rows on a grid, with weights that need not fit."""
    rng = generator(seed)
    X = np.round(rng.normal(size=(n, 2)))
    return X, np.arange(n) % 2, rng.lognormal(0, 1.5, n)


def test_searches_end_after_a_number_of_programmes(monkeypatch):
    """Sixty rows take no seconds, whatever their weights."""
    n_solved, real = [], whole_rows.linprog
    monkeypatch.setattr(whole_rows, "linprog", lambda *a, **k: n_solved.append(0) or real(*a, **k))
    for seed in range(3):
        X, groups, weights = tied_rows(seed)
        inner = KMeans(4, n_init=1, random_state=0)
        model = FairAssignment(inner, min_balance=0.95)
        fit = {"sensitive_features": groups, "sample_weight": weights}
        n_solved.clear()
        model.fit(X, **fit)
        assert len(n_solved) <= 2 * whole_rows.MOST_PROGRAMMES
        n_solved.clear()
        model.assign(X, **fit)
        # Any labels within the limits, if single moves found none, and then the cheapest.
        assert len(n_solved) <= 2 * whole_rows.MOST_PROGRAMMES


@pytest.mark.parametrize("sizes", [(86, 98), (30, 70), (41, 65), (60, 60)])
@pytest.mark.parametrize("share", [0.98, 1.0])
def test_near_exact_proportion_rows_move_in_blocks(sizes, share):
    """No exchange of one or two rows keeps a ratio such as 43 to 49."""
    problem = problem_of(*sizes, share * min(sizes) / max(sizes))
    totals = np.bincount(problem.cells)
    for first in (0.3, 0.5):
        start = np.rint(np.outer([first, 1 - first], totals))
        start[1] = totals - start[0]
        found = nearest_feasible_counts(problem, start)
        assert found is None or found.sum(axis=0).tolist() == totals.tolist()
        if exists(problem):
            assert problem.constraints.violation(found.astype(float)).sum() <= 1e-9


def test_a_search_can_be_interrupted(monkeypatch):
    """Between two linear programmes, each of which takes milliseconds."""
    n_solved = []

    def interrupted(*args, **kwargs):
        n_solved.append(0)
        raise KeyboardInterrupt

    for key in range(4, 34):  # until there are rows that need a search
        X, groups, weights = tied_rows(key)
        inner = KMeans(4, n_init=1, random_state=0)
        model = FairAssignment(inner, min_balance=0.95)
        fit = {"sensitive_features": groups, "sample_weight": weights}
        model.fit(X, **fit)
        with monkeypatch.context() as patched:
            patched.setattr(whole_rows, "linprog", interrupted)
            try:
                model.assign(X, **fit)
            except KeyboardInterrupt:
                break
    assert len(n_solved) == 1
