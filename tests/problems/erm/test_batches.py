"""Random batches: unbiased, as many rows for every cell, and no more rows than needed."""

import numpy as np
import pytest

from skfair.constraints import DemographicParity, EqualizedOdds
from tests.small_problems import (
    build,
    people,
    random_multipliers,
    random_point,
)

each_storage = pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])


@pytest.mark.parametrize("is_weighted", [False, True])
@each_storage
def test_a_batch_is_an_unbiased_sample(is_weighted, is_sparse):
    who = people(5, n=60, n_levels=(3, 2), weighted=is_weighted)
    problem = build(
        who, [DemographicParity(), EqualizedOdds(reference="overall")], is_sparse=is_sparse
    )
    theta, rng, n_draws = random_point(problem), np.random.RandomState(0), 400
    at = problem.evaluate(theta)
    multipliers = random_multipliers(problem)
    full = np.concatenate([[at.objective], at.constraints, at.gradient(multipliers)])
    drawn = []
    for _ in range(n_draws):
        sample = problem.evaluate(theta, problem.draw(rng, 8, 3))
        gradient = sample.gradient(multipliers)
        drawn.append(np.concatenate([[sample.objective], sample.constraints, gradient]))
    error = np.std(drawn, axis=0) / np.sqrt(n_draws)
    assert (np.abs(np.mean(drawn, axis=0) - full) <= 4 * error + 1e-12).all()
    assert error[: 1 + problem.n_constraints].min() > 0


@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_batch_has_as_many_rows_for_every_cell(is_weighted):
    who = people(5, n=60, n_levels=(3, 2), weighted=is_weighted)
    problem = build(who, ["demographic_parity", "equal_opportunity"])
    batch = problem.draw(np.random.RandomState(0), 70, 4)
    n_rows = 70 + 4 * sum(constraint.n_cells for constraint in problem.constraints)
    assert batch.rows.shape == batch.loss_weights.shape == (n_rows,)
    assert batch.loss_weights.sum() == pytest.approx(1)
    for constraint, weights in zip(problem.constraints, batch.cell_weights, strict=True):
        stands = weights > 0
        assert (
            np.bincount(constraint.cells[batch.rows[stands]]).tolist() == [4] * constraint.n_cells
        )
        assert (constraint.row_weights[batch.rows[stands]] > 0).all()
        assert np.bincount(constraint.cells[batch.rows], weights) == pytest.approx(
            np.ones(constraint.n_cells)
        )


@pytest.mark.parametrize("is_weighted", [False, True])
def test_rows_of_the_cells_stand_for_the_loss_where_they_can(is_weighted):
    """They do if every row is in a cell, and if they say as much as rows of their own would."""
    who = people(5, n=60, n_levels=(3,), weighted=is_weighted)
    problem = build(who, ["equal_opportunity", "demographic_parity"])
    n_cells = [constraint.n_cells for constraint in problem.constraints]
    batch = problem.draw(np.random.RandomState(0), 7, 4)
    assert batch.rows.size == 4 * sum(n_cells)
    stands = batch.loss_weights > 0
    assert np.array_equal(stands, batch.cell_weights[1] > 0)  # not the positives alone
    share = np.bincount(who.groups().codes[0], who.weights)
    found = np.bincount(who.groups().codes[0][batch.rows], batch.loss_weights)
    assert found == pytest.approx(share / share.sum())


def test_every_row_with_weight_is_drawn_and_no_other():
    who, rng = people(5, n=60), np.random.RandomState(0)
    weights = np.where(np.arange(60) % 3 == 0, 0.0, 1 + np.arange(60) / 10)
    for these, expected in ((None, range(60)), (weights, np.flatnonzero(weights))):
        problem = build(who._replace(weights=these), "demographic_parity")
        for n_loss, n_per_cell in ((2000, 0), (0, 1000)):
            assert set(problem.draw(rng, n_loss, n_per_cell).rows) == set(expected)


@pytest.mark.parametrize(("n_loss", "n_per_cell"), [(0, 5), (5, 0), (0, 0)])
def test_a_batch_may_lack_either_part(n_loss, n_per_cell):
    problem = build(people(5), "demographic_parity")
    batch = problem.draw(np.random.RandomState(0), n_loss, n_per_cell)
    at = problem.evaluate(random_point(problem), batch)
    assert batch.rows.size == n_loss + 2 * n_per_cell
    assert batch.loss_weights.sum() == pytest.approx(float(n_loss > 0))
    assert np.isfinite(at.gradient(np.ones(1))).all()
