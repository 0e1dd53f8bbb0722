"""Numbers that go with rows: the same for the same values, whatever holds them."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

from skfair.utils.row_hash import deal_draws, row_draws
from tests.processes import run
from tests.seeds import generator, seed_of

NAMES = ["age", "income"]


def table(n=500, seed=0):
    rng = generator(seed)
    return rng.normal(size=(n, 2)).astype(np.float32).astype(np.float64)


def are_unrelated(draws, other):
    return stats.pearsonr(draws, other).pvalue > 1e-7


def test_draws_are_uniform_and_differ_by_key_and_column():
    X = table(20_000)
    draws = row_draws(X, NAMES, 1)
    assert draws.min() >= 0
    assert draws.max() < 1
    assert stats.kstest(draws, "uniform").pvalue > 1e-7
    others = [row_draws(X, NAMES, 2), row_draws(X[:, ::-1], NAMES, 1), row_draws(X, ["a", "b"], 1)]
    assert all(are_unrelated(draws, other) for other in others)


def test_close_values_have_draws_that_have_nothing_to_do_with_each_other():
    X = np.column_stack([np.arange(20_000.0), np.zeros(20_000)])
    draws = row_draws(X, NAMES, seed_of())
    assert are_unrelated(draws[1:], draws[:-1])
    assert np.unique(draws).size == draws.size


def frame_of(X):
    return pd.DataFrame(X, columns=NAMES)


@pytest.mark.parametrize(
    "same",
    [
        frame_of,
        lambda X: frame_of(X)[NAMES[::-1]],
        lambda X: X.astype(np.float32),
        lambda X: frame_of(X).astype(np.float32),
        lambda X: frame_of(X).astype(object),
        lambda X: frame_of(X).astype({"age": "Float64"}),
        lambda X: frame_of(X).astype({"age": "category"}),
        sparse.csr_array,
        sparse.coo_matrix,
        np.asfortranarray,
        lambda X: frame_of(X).set_index(np.arange(len(X))[::-1]),
    ],
)
def test_the_same_values_in_another_form_draw_the_same(same):
    X = table()
    X[::7, 0], X[::5, 1] = 0.0, -0.0
    assert np.array_equal(row_draws(same(X), NAMES, 3), row_draws(X, NAMES, 3))


def test_values_that_compare_equal_draw_the_same():
    missing = pd.DataFrame({"age": [1.0, np.nan], "income": ["low", None]})
    forms = [
        missing,
        missing.astype({"age": "Int64"}),
        missing.astype({"income": "category"}),
        missing.astype({"income": "string"}),
        missing.astype({"age": object}),
        pd.DataFrame({"age": [True, None], "income": ["low", np.nan]}),
    ]
    draws = [row_draws(form, NAMES, 0) for form in forms]
    assert all(np.array_equal(one, draws[0]) for one in draws)
    wide = np.array([["1", "a"], ["2", "bcd"]], dtype="U40")
    assert np.array_equal(row_draws(wide, NAMES, 0), row_draws(wide.astype("U3"), NAMES, 0))
    assert not np.array_equal(row_draws(wide, NAMES, 0), row_draws(wide[::-1], NAMES, 0))


def test_batches_single_rows_and_other_processes_draw_the_same():
    X = table(60)
    draws = row_draws(X, NAMES, 5)
    assert np.array_equal(np.concatenate([row_draws(X[[i]], NAMES, 5) for i in range(60)]), draws)
    code = """
        import pandas as pd
        from skfair.utils.row_hash import deal_draws, row_draws
        print(row_draws(pd.DataFrame({'age': ['x', 'y'], 'income': [1, 2]}), [], 5).tolist())
    """
    here = row_draws(pd.DataFrame({"age": ["x", "y"], "income": [1, 2]}), [], 5)
    assert run(code) == f"{here.tolist()}"


def test_texts_are_rows_of_one_column():
    texts = ["a b", "c", "a b"]
    draws = row_draws(texts, [], 0)
    assert draws[0] == draws[2] != draws[1]
    assert np.array_equal(row_draws(pd.Series(texts), [], 0), draws)


def test_columns_without_names_and_values_without_a_hash():
    X = table(50)
    forms = [X, frame_of(X), frame_of(X).set_axis(["u", "v"], axis=1), sparse.csc_array(X)]
    draws = [row_draws(form, None, 3) for form in forms]
    assert all(np.array_equal(one, draws[0]) for one in draws)
    lists = row_draws(pd.DataFrame({"a": [[1], [2], [1]]}), None, 0)
    assert lists[0] == lists[2] != lists[1]


def dealt_table(n=2000):
    """Columns of numbers with zeros, of few whole numbers, and of texts."""
    rng = generator(7)
    numbers = rng.normal(size=(n, 2)) * (rng.random((n, 2)) < 0.7)
    whole, words = rng.integers(-2, 3, n), rng.choice(["x", "y", ""], n)
    return pd.DataFrame({"a": numbers[:, 0], "b": numbers[:, 1], "c": whole, "d": words})


@pytest.mark.parametrize(
    "same",
    [
        lambda X: X[["d", "b", "a", "c"]],
        lambda X: X.rename(columns={"a": "d", "d": "a"}),
        lambda X: X.assign(a=2.54 * X["a"], b=1e-6 * X["b"], c=3 * X["c"]),
        lambda X: X.assign(e=0.0),
        lambda X: X.astype({"c": "Int64", "d": "category"}),
        lambda X: X.astype({"d": object}).to_numpy(),
    ],
)
def test_rows_are_dealt_the_same_whatever_the_order_and_units_of_columns(same):
    X = dealt_table()
    draws = deal_draws(X, 3)
    other = deal_draws(same(X), 3)
    if isinstance(same(X), np.ndarray):  # numbers among texts have no common unit
        assert np.unique(other).size > 1000
        return
    assert np.array_equal(draws, other)


@pytest.mark.parametrize("holder", [sparse.csr_array, sparse.csc_matrix, pd.DataFrame, np.asarray])
def test_numbers_are_dealt_the_same_in_any_container(holder):
    X = dealt_table()[["a", "b", "c"]].to_numpy()
    assert np.array_equal(deal_draws(holder(X), 1), deal_draws(X, 1))
    order = generator(8).permutation(len(X))
    assert np.array_equal(deal_draws(holder(X[order]), 1), deal_draws(X, 1)[order])
    twice = np.repeat(np.arange(len(X)), 2)
    assert np.array_equal(deal_draws(holder(X[twice]), 1), deal_draws(X, 1)[twice])


def test_dealt_rows_are_uniform_and_differ_by_key():
    X = generator(9).normal(size=(20_000, 2))
    draws = deal_draws(X, 1)
    assert stats.kstest(draws, "uniform").pvalue > 1e-7
    assert are_unrelated(draws, deal_draws(X, 2))
    assert are_unrelated(draws[1:], draws[:-1])
    assert np.unique(draws).size > 19_990
    # A number counts by its place only, so monotone columns say the same.
    assert np.array_equal(draws, deal_draws(np.sign(X) * np.abs(X) ** 3, 1))


def test_infinite_and_missing_numbers_have_places():
    X = dealt_table()[["a", "b"]].to_numpy().copy()
    X[::7, 0], X[::11, 0], X[::13, 1] = np.inf, -np.inf, np.nan
    draws = deal_draws(X, 1)
    assert np.isfinite(draws).all()
    assert np.array_equal(deal_draws(X * [3.0, 0.1], 1), draws)
    assert np.array_equal(deal_draws(sparse.csr_array(X), 1), draws)


def test_rows_of_polars_are_dealt_like_those_of_pandas():
    polars = pytest.importorskip("polars")
    X = dealt_table()
    same = polars.DataFrame({name: X[name].tolist() for name in ("d", "c", "b", "a")})
    assert np.array_equal(deal_draws(same, 2), deal_draws(X, 2))
