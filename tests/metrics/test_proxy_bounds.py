"""Bounds on disparities where groups are known by probability: exact, and right often enough."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from skfair import GroupProbabilities
from skfair.constraints import DemographicParity
from skfair.groups.declared_rates import rate_named
from skfair.metrics import demographic_parity_difference, disparity_bounds
from tests.seeds import generator

PARITY = "demographic_parity"
FEW = {"n_bootstrap": 20, "random_state": 0}
RATES_OF = {
    PARITY: ["selection_rate"],
    "equal_opportunity": ["true_positive_rate"],
    "equalized_odds": ["true_positive_rate", "false_positive_rate"],
    "predictive_parity": ["positive_predictive_value"],
    "accuracy_parity": ["accuracy"],
}


def drawn(seed, n_groups=2, n=1200, n_cells=4):
    """Rows of some cells, and the probabilities of groups in each."""
    rng = generator(seed)
    of_cells = rng.dirichlet(np.full(n_groups, 0.6), n_cells)
    cells = np.arange(n) % n_cells
    y_pred = (rng.random(n) < rng.uniform(0.1, 0.9, n_cells)[cells]).astype(int)
    y_true = (rng.random(n) < 0.3 + 0.4 * y_pred).astype(int)
    return cells, of_cells, y_true, y_pred


class Joint:
    """All weights of (cell, group, true class, predicted class) that agree with what is seen."""

    def __init__(self, cells, of_cells, y_true, y_pred):
        self.shape = (*of_cells.shape, 2, 2)
        n_cells, n_groups = of_cells.shape
        seen = np.zeros((n_cells, 2, 2))
        np.add.at(seen, (cells, y_true, y_pred), 1 / cells.size)
        rows, values = [], []
        for b in range(n_cells):
            for y in (0, 1):
                for p in (0, 1):
                    rows.append(self.mask(cell=b, entries=np.eye(4)[2 * y + p].reshape(2, 2)))
                    values.append(seen[b, y, p])
            for u in range(n_groups):
                rows.append(self.mask(cell=b, group=u))
                values.append(of_cells[b, u] * seen[b].sum())
        self.equal, self.seen = np.array(rows), np.array(values)

    def mask(self, cell=slice(None), group=slice(None), entries=((1, 1), (1, 1))):
        found = np.zeros(self.shape)
        found[cell, group] = np.array(entries)
        return found.ravel()

    def parts(self, rate, group):
        above, below = rate_named(rate).above, rate_named(rate).below
        return self.mask(group=group, entries=above), self.mask(group=group, entries=below)

    def largest_rate(self, rate, group, sign):
        """The programme of Charnes and Cooper: a quotient is linear after division."""
        above, below = self.parts(rate, group)
        scaled = np.c_[self.equal, -self.seen]
        found = linprog(
            np.append(-sign * above, 0),
            A_eq=np.r_[scaled, [np.append(below, 0)]],
            b_eq=np.append(np.zeros(self.seen.size), 1),
        )
        return -sign * found.fun

    def allows(self, sums):
        rows = [row for row, _ in sums]
        found = linprog(
            np.zeros(self.equal.shape[1]),
            A_ub=np.r_[rows, np.negative(rows)],
            b_ub=np.r_[[v + 1e-9 for _, v in sums], [1e-9 - v for _, v in sums]],
            A_eq=self.equal,
            b_eq=self.seen,
        )
        return found.status == 0


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("metric", RATES_OF)
def test_bounds_are_those_of_a_linear_programme(metric, n_groups):
    cells, of_cells, y_true, y_pred = drawn(n_groups, n_groups)
    joint = Joint(cells, of_cells, y_true, y_pred)
    table = GroupProbabilities(of_cells[cells])
    found = disparity_bounds(metric, y_true, y_pred, sensitive_features=table, **FEW)
    assert found["rate"].unique().tolist() == RATES_OF[metric]
    assert len(found) == len(RATES_OF[metric]) * n_groups * (n_groups - 1) / 2
    for row in found.itertuples():
        i, j = int(row.first), int(row.second)
        largest = joint.largest_rate(row.rate, i, 1) - joint.largest_rate(row.rate, j, -1)
        smallest = joint.largest_rate(row.rate, i, -1) - joint.largest_rate(row.rate, j, 1)
        assert row.upper == pytest.approx(largest, abs=1e-9)
        assert row.lower == pytest.approx(smallest, abs=1e-9)
        assert row.lower <= row.weighted <= row.upper


def joint_share(q, p, kind):
    """P(group, selected | cell): as little, as much as can be, or if they do not depend."""
    return {"least": np.maximum(q + p - 1, 0), "none": q * p, "most": np.minimum(q, p)}[kind]


@pytest.mark.parametrize("n_groups", [2, 4])
@pytest.mark.parametrize("rate", ["selection_rate", "true_positive_rate", "accuracy"])
def test_both_ends_of_a_difference_are_reached_together(rate, n_groups):
    cells, of_cells, y_true, y_pred = drawn(9, n_groups)
    joint = Joint(cells, of_cells, y_true, y_pred)
    above, below = rate_named(rate).above, rate_named(rate).below
    seen = np.zeros((of_cells.shape[0], 2, 2))
    np.add.at(seen, (cells, y_true, y_pred), 1 / np.bincount(cells)[cells])
    sums = []
    for group, sign in ((0, 1), (1, -1)):
        for entries, kind in ((above, sign), (below - above, -sign)):
            p = (seen * entries).sum(axis=(1, 2))
            ends = joint_share(of_cells[:, group], p, "most" if kind > 0 else "least")
            value = float((np.bincount(cells) / cells.size) @ ends)
            sums.append((joint.mask(group=group, entries=entries), value))
    assert joint.allows(sums)


def simulated(seed, n=2000):
    """Rows of eight places, and the true difference of their population."""
    rng = generator(seed)
    q, p = rng.beta(0.6, 0.6, 8), rng.uniform(0.1, 0.9, 8)
    both = joint_share(q, p, ["least", "none", "most"][seed % 3])
    true = both.sum() / q.sum() - (p - both).sum() / (1 - q).sum()
    place = rng.integers(0, 8, n)
    is_member = rng.random(n) < q[place]
    chance = np.where(is_member, (both / q)[place], ((p - both) / (1 - q))[place])
    y_pred = (rng.random(n) < chance).astype(int)
    table = GroupProbabilities({"a": q[place], "b": 1 - q[place]})
    return table, np.where(is_member, "a", "b"), y_pred, true


@pytest.mark.parametrize("has_known", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_bounds_and_corrected_rates_hold_for_the_population(has_known):
    """In two of three tables the truth is at the very end of the bounds."""
    found = []
    for seed in range(60 if has_known else 100):
        table, groups, y_pred, true = simulated(seed)
        is_known = generator(seed).random(y_pred.size) < 0.3
        known = {"known_groups": np.where(is_known, groups, None)} if has_known else {}
        given = {"sensitive_features": table, "random_state": seed, **known}
        n_bootstrap = 100 if has_known else 40
        row = disparity_bounds(PARITY, None, y_pred, n_bootstrap=n_bootstrap, **given).iloc[0]
        found.append({**row, "true": true})
    found = pd.DataFrame(found)
    true = found["true"]

    def n_outside(low, high):
        return (~true.between(found[low], found[high])).sum()

    # Of so few resamples the ends of an interval of 95 % are known but roughly. The means of
    # other samples are 0.22 and 0.8; they vary by 0.03.
    most = binom.isf(1e-7, len(found), 0.1)
    assert n_outside("lower_low", "upper_high") <= most
    assert (found["weighted"] - true).abs().mean() > 0.08  # what weighting alone is wrong by
    assert found["width"].mean() < 1  # 2 says nothing
    if has_known:
        assert n_outside("corrected_low", "corrected_high") <= most
        assert (found["corrected"] - true).abs().mean() < 0.05


def test_certain_groups_leave_nothing_open():
    cells, _, y_true, y_pred = drawn(3)
    groups = np.where(cells % 2, "b", "a")
    table = GroupProbabilities(pd.get_dummies(pd.Series(groups)).astype(float))
    for metric in RATES_OF:
        found = disparity_bounds(metric, y_true, y_pred, sensitive_features=table, **FEW)
        np.testing.assert_allclose(found["lower"], found["weighted"], atol=1e-12)
        np.testing.assert_allclose(found["upper"], found["weighted"], atol=1e-12)
    plain = demographic_parity_difference(None, y_pred, sensitive_features=groups)
    [row] = disparity_bounds(PARITY, None, y_pred, sensitive_features=table, **FEW).itertuples()
    assert abs(row.weighted) == pytest.approx(plain, abs=1e-12)


def test_better_guesses_make_narrower_bounds():
    rng = generator(0)
    groups, y_pred = rng.choice(["a", "b"], 2000), rng.integers(0, 2, 2000)
    widths = []
    for accuracy in (0.7, 0.9, 0.99):
        guess = np.where(rng.random(2000) < accuracy, groups, np.where(groups == "a", "b", "a"))
        given = {"sensitive_features": guess, **FEW}
        found = disparity_bounds(PARITY, None, y_pred, accuracy=accuracy, **given)
        table = np.array([[accuracy, 1 - accuracy], [1 - accuracy, accuracy]])
        same = disparity_bounds(DemographicParity(), None, y_pred, accuracy=table, **given)
        pd.testing.assert_frame_equal(found, same)
        widths.append(float(found["width"].iloc[0]))
    assert widths[0] > widths[1] > widths[2]
    known = np.where(rng.random(2000) < 0.3, groups, None)
    by_part = disparity_bounds(PARITY, None, y_pred, known_groups=known, **given)
    assert abs(by_part["lower"].iloc[0] - found["lower"].iloc[0]) < 0.1  # it found the accuracy


def test_finer_proxies_make_narrower_bounds_and_few_rows_are_merged():
    rng = generator(0)
    place = rng.integers(0, 8, 4000)
    q, p = np.array([0.1, 0.9] * 4), np.array([0.02, 0.02, 0.98, 0.98] * 2)
    table = GroupProbabilities({"a": q[place], "b": 1 - q[place]})
    y_pred = (rng.random(4000) < p[place]).astype(int)
    given = {"sensitive_features": table, **FEW}
    by_chance = disparity_bounds(PARITY, None, y_pred, **given)
    by_place = disparity_bounds(PARITY, None, y_pred, proxies=place, **given)
    assert by_place["width"].iloc[0] < 0.5 * by_chance["width"].iloc[0]
    alone = disparity_bounds(PARITY, None, y_pred, proxies=np.arange(4000) % 900, **given)
    one = disparity_bounds(PARITY, None, y_pred, proxies=np.zeros(4000), **given)
    pd.testing.assert_frame_equal(alone, one)


def test_many_probabilities_are_put_into_cells():
    rng = generator(0)
    q = rng.random(3000)
    y_pred = (rng.random(3000) < q).astype(int)
    for table in ({"a": q, "b": 1 - q}, {"a": q / 2, "b": q / 2, "c": 1 - q}):
        groups = GroupProbabilities(table)
        for known in (None, np.where(np.arange(3000) % 3, None, np.array(list(table))[0])):
            found = disparity_bounds(
                PARITY, None, y_pred, sensitive_features=groups, known_groups=known, **FEW
            )
            assert (found["lower_low"] <= found["lower"]).all()
            assert (found["upper_high"] >= found["upper"]).all()
            assert found["width"].between(0.1, 2).all()


def test_weights_count_rows():
    cells, of_cells, y_true, y_pred = drawn(4)
    weights = generator(0).integers(1, 4, cells.size)
    found = []
    for rows, w in (
        (np.arange(cells.size), weights),
        (np.repeat(np.arange(cells.size), weights), None),
    ):
        given = {"sensitive_features": GroupProbabilities(of_cells[cells[rows]]), **FEW}
        bounds = disparity_bounds(
            "equal_opportunity", y_true[rows], y_pred[rows], sample_weight=w, **given
        )
        found.append(bounds[["weighted", "lower", "upper"]])
    pd.testing.assert_frame_equal(*found)


def test_seeds_decide():
    cells, of_cells, _, y_pred = drawn(4)
    given = {"sensitive_features": GroupProbabilities(of_cells[cells]), "n_bootstrap": 20}
    found = [disparity_bounds(PARITY, None, y_pred, random_state=s, **given) for s in (1, 1, 2)]
    pd.testing.assert_frame_equal(found[0], found[1])
    assert not found[0].equals(found[2])


def test_rates_without_rows_are_open():
    table = GroupProbabilities(np.tile([[0.9, 0.1], [0.2, 0.8]], (200, 1)))
    found = disparity_bounds(
        "equal_opportunity", np.zeros(400), np.zeros(400), sensitive_features=table, **FEW
    )
    assert found[["lower", "upper"]].to_numpy().tolist() == [[-1, 1]]
