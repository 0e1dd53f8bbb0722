"""Clusterings beside published ones: how they are measured, and who is ahead."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tests.seeds import generator

harness = pytest.importorskip("benchmarks.harness", reason="benchmarks come with a checkout")
from benchmarks import against_dfnmf, against_fca  # noqa: E402


def test_modularity_is_what_is_counted_by_hand(global_random_seed):
    rng = generator(global_random_seed)
    A = np.triu(rng.random((30, 30)) < 0.2, 1).astype(float)
    A[0, 1] = 1.0  # a graph without edges has none
    A, labels = A + A.T, rng.permutation(np.arange(30) % 4)
    same = labels[:, None] == labels
    degrees = A.sum(axis=1)
    expected = np.outer(degrees, degrees) / A.sum()
    by_hand = ((A - expected) * same).sum() / A.sum()
    found = against_dfnmf.modularity(sparse.csr_array(A), labels)
    assert found == pytest.approx(by_hand)
    assert against_dfnmf.modularity(sparse.csr_array(A), 0 * labels) == pytest.approx(0)


def test_a_balance_is_read_off_between_limits_and_one_that_is_not_reached_is_a_loss(
    global_random_seed,
):
    rng = generator(global_random_seed)
    own = pd.DataFrame({"balance": rng.random(8), "modularity": rng.random(8)})
    at = [against_dfnmf.at_balance(own, balance) for balance in own["balance"]]
    for balance, found in zip(own["balance"], at, strict=True):
        assert found == own["modularity"][own["balance"] >= balance].max()
    grid = np.linspace(0, own["balance"].max(), 50)
    values = [against_dfnmf.at_balance(own, balance) for balance in grid]
    assert (np.diff(values) <= 1e-12).all()  # what asks for more balance gets no more
    missed = against_dfnmf.at_balance(own, own["balance"].max() + 0.01)
    assert np.isnan(missed)
    some = [against_dfnmf.Comparison("nba", "SC", 2, lead, (0.1, 0.0)) for lead in (missed, 0.2)]
    assert against_dfnmf.tally(some)[:3] == (1, 1, 2)


@pytest.mark.parametrize(
    ("leads", "counted"),
    [((0.1, 0.1), (1, 0)), ((0.1, 0.0), (1, 0)), ((0.1, -0.1), (0, 0)), ((0.0, 0.0), (0, 0)),
     ((0.0, -0.1), (0, 1)), ((-0.1, -0.1), (0, 1))],
)  # fmt: skip
def test_the_default_limit_is_ahead_only_if_it_loses_nothing(leads, counted):
    one = against_dfnmf.Comparison("nba", "SC", 2, 0.0, leads)
    assert against_dfnmf.of_default([one])[:2] == counted


def test_no_rounding_of_fca_is_to_the_advantage_of_skfair():
    """Its figures have three digits, so a cost within half of the last one is no lead."""
    name, fca = next(iter(against_fca.FCA.items()))
    offsets = {-0.0006: (1, 0), -0.0004: (0, 0), 0.0004: (0, 0), 0.0006: (0, 1)}
    for offset, counted in offsets.items():
        row = {"balance of FCA": name, "starts": "one start", "cost": fca.costs[0] + offset}
        assert against_fca.tally([row], "one start")[:2] == counted
    for row in harness.read("against_fca")["results"]:
        assert row["balance"] >= against_fca.FCA[row["balance of FCA"]].balances[1]
