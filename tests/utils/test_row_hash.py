"""Numbers that go with rows: the same for the same values, whatever holds them."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

from skfair.utils.row_hash import row_draws
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
        from skfair.utils.row_hash import row_draws
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
