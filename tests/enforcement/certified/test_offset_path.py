"""Paths of offsets: from few decisions without disparity to free ones."""

import numpy as np
import pytest
from scipy import optimize, sparse, special

from skfair._kernels.path_points import WANTED, point_of_sums
from skfair.enforcement.certified import offset_path as module
from skfair.enforcement.certified.gap_solver import PathRows
from skfair.enforcement.certified.offset_path import (
    N_LAST,
    N_TRANSITION,
    SHARES,
    SLACKS,
    full_step,
    near_rows,
    offset_path,
    starts_with_few,
)
from skfair.enforcement.certified.walk import Peers
from skfair.enforcement.decisions.shares import known_shares
from tests.enforcement.certified.test_walk import rates_of, row_rates_of
from tests.python_kernels import as_python
from tests.seeds import generator


def path_rows(rates, groups, y, chance, from_few=True):
    """What a path is made of: rows with their chance to be positive."""
    chances = np.column_stack([1 - chance, chance])
    shares = known_shares(groups[None], groups.max() + 1, None, 1, chances)
    everyone = np.arange(2 * (groups.max() + 1))
    return PathRows(rates, 2 * chance - 1, shares, y, 2, everyone, from_few, None)


def rates_of_cells(cells, pairs, limit):
    """Selection rates of the cells that are in pairs, each of which is compared."""
    number = np.arange(np.max(pairs) + 1)
    members = sparse.csr_array((cells == number[:, None]).astype(float))
    sums = members, (sparse.csr_array(members.shape), members)
    compared = tuple(Peers(np.array(pair), limit, False, False) for pair in pairs)
    return row_rates_of(sums, number % 2, compared, np.full(cells.size, 1 / cells.size))


def rows(n=4000, n_groups=2, ratio=False, limit=0.05):
    rng = generator(0)
    groups = rng.integers(0, n_groups, n)
    y = (rng.normal(size=n) + 0.5 * groups > 0.6).astype(int)
    chance = 0.35 * y + 0.08 * groups + 0.3 * rng.random(n) + 0.02
    return path_rows(rates_of(groups, limit, ratio=ratio), groups, y, chance), groups


def decided(path, given):
    """Return the decisions on all rows at every step."""
    return given.gains[:, None] - np.asarray(given.shares @ path.T) > 0


def gaps(selected, groups):
    rate = [selected[groups == g].mean(axis=0) for g in range(groups.max() + 1)]
    return np.ptp(rate, axis=0)


@pytest.mark.parametrize("n_groups", [2, 4])
def test_a_path_selects_more_and_more_then_lets_gaps_grow(n_groups):
    given, groups = rows(n_groups=n_groups, limit=0.15)
    path = offset_path(given)
    selected = decided(path, given)
    first = full_step(len(path))
    share = selected.mean(axis=0)
    n_shares = len(SHARES)
    assert path.shape[0] == n_shares + N_TRANSITION - 1 + N_LAST
    assert share[:n_shares] == pytest.approx(SHARES * share[first], abs=0.04)
    found = gaps(selected, groups)
    assert found[: first + 1].max() < 0.05
    assert found[-1] == pytest.approx(1.1 * 0.15, abs=0.03)
    assert found[-1] > found[first]


def test_ratios_have_no_steps_that_select_few():
    path = offset_path(rows(ratio=True, limit=0.2)[0])
    assert full_step(len(path)) == 0
    assert path.shape[0] == N_LAST


def test_a_path_may_begin_with_few_refused_people():
    given, groups = rows()
    path = offset_path(given._replace(from_few=False))
    selected = decided(path, given)
    first = full_step(len(path))
    share = selected.mean(axis=0)
    wanted = 1 - SHARES * (1 - share[first])
    assert share[: len(SHARES)] == pytest.approx(wanted, abs=0.04)
    assert gaps(selected, groups)[:first].max() < 0.1


def two_rates(seed, limit, n, chance_of):
    """Equalized odds of two groups, whose chances are ``chance_of(noise, groups)``."""
    rng = generator(seed)
    groups = (rng.random(n) > 0.3).astype(int)
    chance = special.expit(chance_of(rng.normal(size=n), groups))
    y = (rng.random(n) < chance).astype(int)
    rates = rates_of_cells(groups + 2 * (1 - y), ([0, 1], [2, 3]), limit)
    return path_rows(rates, groups, y, chance), groups, y, chance


@pytest.mark.parametrize("seed", range(4))
def test_decided_rows_have_no_gaps_of_equalized_odds(seed):
    """Soft decisions can be without gaps while decided ones have gaps of .16."""
    given, groups, y, _ = two_rates(seed, 0.1, 4000, lambda noise, group: 2.5 * noise - group + 1.5)
    selected = decided(offset_path(given), given)[:, : len(SHARES)]
    for label in (0, 1):
        assert gaps(selected[y == label], groups[y == label]).max() < 0.1


def slack_of(selected, groups, y, limit):
    """Return by how many standard errors the larger gap is below the limit, at every step."""
    found = []
    for label in (0, 1):
        cells = [selected[(groups == g) & (y == label)] for g in (0, 1)]
        one, other = (cell.mean(axis=0) for cell in cells)
        variance = sum(r * (1 - r) / len(c) for r, c in zip((one, other), cells, strict=True))
        found.append((limit - abs(one - other)) / np.sqrt(np.maximum(variance, 1e-9)))
    return np.minimum(*found)


@pytest.mark.parametrize("surer", [0.0, 3.0])
def test_a_surer_path_begins_further_below_the_limits(surer):
    """By as much as the test of a larger confidence asks for: or no walk could begin."""
    limit = 0.15
    given, groups, y, _ = two_rates(0, limit, 12_000, lambda z, group: 2 * z + group - 1)
    path = offset_path(given._replace(surer=surer))
    selected = decided(path, given)[:, full_step(len(path)) :]
    slack = slack_of(selected, groups, y, limit)
    assert slack[0] == pytest.approx(SLACKS[-1] + surer, abs=1.0)


# Of accuracy, .001 to .007 is lost in 16 such samples; a standard error is .006.
LOST = 0.015


@pytest.mark.parametrize("is_held", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_rates_whose_gaps_cannot_all_be_closed_share_what_is_left(seed, is_held, monkeypatch):
    """No thresholds close both gaps, nor are clearly more accurate than steps that relax."""
    limit = 0.1
    given, groups, y, chance = two_rates(seed, limit, 8000, lambda z, group: 2 * z + 3 * group - 2)
    grid = np.linspace(0.05, 0.95, 91)
    if not is_held:
        monkeypatch.setattr(module, "_is_worth_more", lambda *_: True)
    path = offset_path(given)
    selected = decided(path, given)[:, full_step(len(path)) :]
    slack = slack_of(selected, groups, y, limit)
    assert slack[0] > slack.max() - 0.6  # steps between two points need not be in order
    assert -4 < slack[-1] < 0.3  # mostly half a standard error beyond the limit
    assert (np.diff(slack) < 0.5).all()
    pairs = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    chosen = chance[:, None] > pairs.T[groups]
    reached = slack_of(chosen, groups, y, limit)
    right = (chosen == y[:, None]).mean(axis=0)
    ours = (selected == y[:, None]).mean(axis=0)
    for step in range(len(slack)):
        assert ours[step] > right[reached >= slack[step]].max(initial=0.0) - LOST


@pytest.mark.parametrize("flipped", [False, True])
def test_the_end_is_that_from_which_rates_do_not_pass_one_half(flipped):
    """Free rates are .8 or .2; 300 rows do not show a limit of .1 for rates near .5."""
    groups = np.arange(600) % 2
    gains = np.linspace(-0.2, 0.8, 600) * (-1 if flipped else 1)
    for is_rare in (True, False):
        found = starts_with_few(rates_of(groups, 0.1), gains, is_rare, 0.95)
        assert found is flipped
    # Of very many rows all steps pass, so the rarer decision remains.
    many, worth = np.tile(groups, 100), np.tile(gains, 100)
    for is_rare in (True, False):
        assert starts_with_few(rates_of(many, 0.1), worth, is_rare, 0.95) is is_rare


def test_everybody_may_be_selected():
    """Rounded, the weights of all rows may add up to more than 1: no level of a quantile."""
    sizes = [n for n in range(50, 200) if np.full(n, 1 / n) @ np.ones(n) > 1]
    assert sizes
    for n in sizes[:5]:
        rates, gains = rates_of(np.arange(n) % 2), np.linspace(0.1, 0.8, n)
        assert starts_with_few(rates, gains, False, 0.95) in (True, False)
        assert starts_with_few(rates, -gains, False, 0.95) in (True, False)


def test_rows_that_are_alike_may_be_one():
    given, groups = rows(n=20_000)
    alike = near_rows(groups, (given.gains + 1) / 2)
    assert np.unique(alike).size < 2000
    one_by_one = decided(offset_path(given), given)
    together = decided(offset_path(given._replace(alike=alike)), given)
    # Of two shares of selected rows that are worth nearly the same, each may take another one.
    assert np.mean(one_by_one != together) < 0.05
    assert gaps(together, groups) == pytest.approx(gaps(one_by_one, groups), abs=0.02)


def soft_case(seed, free=0.0):
    """Rows, what their sums should be, and a start; the third unknown is not to be moved."""
    rng, n = generator(seed), 300
    gains, directions = rng.uniform(-1, 1, n), rng.uniform(0, 1, (3, n))
    effects = directions[:2] * rng.uniform(0.5, 1.5, (2, n)) / n
    wanted = np.array([(0.15, 0.01, 0.3, free), (0.2, 0.02, 0.1, 0.0)], WANTED)
    return gains, directions, effects, wanted, np.array([0.0, 0.0, 0.1])


def missed_squares(sums, wanted, point):
    outside = np.maximum(np.abs(sums - wanted["target"]) - wanted["tolerance"], 0)
    return ((outside / wanted["error"]) ** 2 + wanted["ridge"] * point[:2] ** 2).sum()


@pytest.mark.parametrize("source", ["compiled", "python"])
@pytest.mark.parametrize("free", [0.0, 0.03])
@pytest.mark.parametrize("seed", range(3))
def test_points_are_those_of_least_squares(seed, free, source):
    gains, directions, effects, wanted, start = soft_case(seed, free)

    def cost(first):
        point = np.append(first, start[2:])
        soft = special.expit((gains - point @ directions) / 0.1)
        return missed_squares(effects @ soft, wanted, point)

    least = optimize.minimize(cost, start[:2], method="Nelder-Mead", options={"fatol": 1e-9}).fun
    run = point_of_sums if source == "compiled" else as_python(point_of_sums)
    found = start.copy()
    run(gains, directions, effects, wanted, np.array([0.1]), np.inf, found)
    assert found[2] == start[2]
    # It stops when a step gains less than .01, of squared standard errors. The next steps could
    # gain as much again, and more where sums become free: .07 is the most of 600 such problems.
    assert cost(found[:2]) <= least + 0.5
    assert cost(found[:2]) < 0.2 * cost(start[:2])


@pytest.mark.parametrize("seed", range(3))
def test_points_whose_decided_rows_miss_clearly_less_are_preferred(seed):
    gains, directions, effects, wanted, start = soft_case(seed)
    temperatures, costs = np.array([0.3]), []
    for clearer in (np.inf, 0.0):
        point = start.copy()
        point_of_sums(gains, directions, effects, wanted, temperatures, clearer, point)
        sums = effects @ (gains - point @ directions > 0)
        costs.append(missed_squares(sums, wanted, point))
    assert costs[1] <= costs[0]
