"""Searches of subgroups against brute force, and p-values that cover the whole search."""

from functools import partial
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

from skfair.report import audit, find_subgroups
from skfair.report.tables.subgroups import MOST_LEVELS
from tests.seeds import generator

# Searches of which 5% are wrong are wrong as often of 30 once in ten million times.
MOST_OF_30 = binom.isf(1e-7, 30, 0.05)


@pytest.fixture(scope="module")
def sample():
    rng = generator(0)
    A = pd.DataFrame({f"c{j}": rng.integers(3, size=2000) for j in range(4)})
    y = (rng.random(2000) < 0.5).astype(int)
    is_harmed = ((A["c0"] == 1) & (A["c2"] == 2)).to_numpy()
    chance = np.where(is_harmed & (y == 1), 0.2, 0.3 + 0.5 * y)
    return A, y, (rng.random(2000) < chance).astype(int)


def test_an_audit_finds_what_find_subgroups_finds(sample):
    """That search is compared with brute force below."""
    A, y, p = sample
    found = audit(y, p, sensitive_features=A, depth=3, n_simulations=100)
    every = find_subgroups(y, p, columns=A, depth=3, n_simulations=5)
    assert found.n_subgroups == every["subgroup"].nunique()
    both = found.subgroups.merge(every, on=["measure", "subgroup"])
    assert len(both) == len(found.subgroups)
    for name in ("depth", "n", "value", "rest", "difference", "standard_errors"):
        np.testing.assert_allclose(both[f"{name}_x"], both[f"{name}_y"], atol=1e-12)
    for measure in ("selection_rate", "true_positive_rate"):
        rows = found.subgroups[found.subgroups["measure"] == measure]
        beyond = rows[rows["is_beyond_chance"]]
        # The largest difference of those beyond chance stands on top.
        assert (beyond["difference"].abs().diff().dropna() <= 1e-12).all()
    rows = found.subgroups[found.subgroups["measure"] == "true_positive_rate"]
    assert rows.iloc[0]["subgroup"].startswith("c0=1")
    assert rows.iloc[0]["is_beyond_chance"]
    every = every[every["measure"] == "true_positive_rate"]
    assert every.loc[every["standard_errors"].idxmax(), "subgroup"] == "c0=1, c2=2"
    assert "c0=1, c2=2" in set(rows["subgroup"])
    few = audit(y, p, sensitive_features=A["c0"] * 3 + A["c2"], n_simulations=100)
    assert few.n_beyond_chance == few.subgroups["is_beyond_chance"].sum() > 0


def test_subgroups_are_large_enough_on_both_sides(sample):
    A, y, p = sample
    A = A.assign(rare=np.where(np.arange(2000) < 40, "few", "most"))
    found = audit(y, p, sensitive_features=A, depth=2, min_group_size=220, n_simulations=20)
    every = find_subgroups(y, p, columns=A, min_group_size=220, n_simulations=5)
    assert found.n_subgroups == every["subgroup"].nunique()


def test_the_p_value_of_two_groups_is_that_of_the_textbook():
    group = np.repeat(["a", "b"], 2000)
    p = np.r_[np.arange(2000) < 600, np.arange(2000) < 640]
    found = audit(None, p, sensitive_features=group, n_simulations=10_000)
    expected = 2 * norm.sf(found.subgroups["standard_errors"])
    assert 0.1 < expected[0] < 0.2
    assert found.gaps["p_value"].to_numpy() == pytest.approx(expected, abs=0.025)


@pytest.mark.slow
def test_noise_is_rarely_called_a_discovery():
    """No subgroup differs, and 300 are searched: few of 30 searches may find one."""
    n_found = 0
    for seed in range(30):
        rng = generator(seed)
        A = pd.DataFrame({f"c{j}": rng.integers(4, size=1500) for j in range(4)})
        p = (rng.random(1500) < 0.3).astype(int)
        found = audit(None, p, sensitive_features=A, n_simulations=99, random_state=seed)
        assert found.n_subgroups > 100
        n_found += found.n_beyond_chance > 0
    assert n_found <= MOST_OF_30


def test_nobody_stands_out_where_all_are_alike(sample):
    """Everybody is decided rightly, so no subgroup is more accurate than others."""
    A, y, _ = sample
    found = audit(y, y, sensitive_features=A, n_simulations=50).subgroups
    accuracy = found[found["measure"] == "accuracy"]
    assert len(accuracy)
    assert not accuracy[["difference", "standard_errors", "is_beyond_chance"]].to_numpy().any()


def test_too_many_subgroups_are_refused(sample, monkeypatch):
    A, y, p = sample
    monkeypatch.setattr("skfair.report.tables.subgroups.MOST_SUBGROUPS", 100)
    for search in (partial(audit, sensitive_features=A), partial(find_subgroups, columns=A)):
        with pytest.raises(ValueError, match="depth=2"):
            search(y, p, depth=3)


def brute_force(levels, measures, depth, min_size):
    """Every subgroup by loops over levels; ``levels`` is a table of their names."""
    found = {}
    for size in range(1, depth + 1):
        for columns in combinations(levels.columns, size):
            for row in product(*(levels[column].unique() for column in columns)):
                is_in = np.ones(len(levels), bool)
                for column, level in zip(columns, row, strict=True):
                    is_in &= (levels[column] == level).to_numpy()
                if min(is_in.sum(), (~is_in).sum()) < min_size:
                    continue
                name = ", ".join(f"{c}={v}" for c, v in zip(columns, row, strict=True))
                name = name if size > 1 else f"{columns[0]}={row[0]}"
                for measure, (values, counted, weights) in measures.items():
                    inside, outside = counted & is_in, counted & ~is_in
                    if min(inside.sum(), outside.sum()) < min_size:
                        continue
                    means = [
                        np.average(values[one], weights=weights[one]) for one in (inside, outside)
                    ]
                    spread = values[counted].std(ddof=int(values.dtype.kind == "f"))
                    error = spread * np.sqrt(1 / inside.sum() + 1 / outside.sum())
                    found[measure, name] = (is_in.sum(), *means, abs(np.diff(means)[0]) / error)
    return found


@pytest.fixture(scope="module")
def rows():
    rng = generator(0)
    columns = pd.DataFrame(
        {
            "age": rng.normal(40, 12, 2500).round(1),
            "children": rng.integers(0, 3, 2500),
            "region": rng.choice(["n", "s", "w"], 2500),
            "is_new": rng.random(2500) < 0.3,
        }
    )
    columns.loc[::50, "age"] = np.nan
    score = rng.random(2500)
    y = (rng.random(2500) < score).astype(int)
    is_hard = ((columns["region"] == "s") & columns["is_new"]).to_numpy()
    score = np.where(is_hard, score**3, score)
    p = (score > 0.5).astype(int)
    edges = np.quantile(columns["age"].dropna(), [0.25, 0.5, 0.75])
    texts = [f"{edge:.3g}" for edge in edges]
    names = [f"under {texts[0]}", f"{texts[0]} to under {texts[1]}"]
    names += [f"{texts[1]} to under {texts[2]}", f"{texts[2]} and over"]
    bins = pd.cut(columns["age"], [-np.inf, *edges, np.inf], right=False, labels=names)
    levels = columns.assign(age=bins.astype(object).fillna("missing")).astype(str)
    return columns, levels, y, p, score


@pytest.mark.parametrize("weighted", [False, True])
def test_search_is_brute_force(rows, weighted):
    columns, levels, y, p, score = rows
    w = generator(1).uniform(0.8, 1.2, y.size) if weighted else np.ones(y.size)
    found = find_subgroups(
        y, p, y_score=score, columns=columns, depth=2, n_simulations=20,
        sample_weight=w if weighted else None,
    )  # fmt: skip
    every = np.ones(y.size, bool)
    measures = {
        "selection_rate": (p == 1, every, w),
        "true_positive_rate": (p == 1, y == 1, w),
        "false_positive_rate": (p == 1, y == 0, w),
        "accuracy": (p == y, every, w),
        "mean_residual": (y - score, every, w),
    }
    expected = brute_force(levels, measures, 2, 30)
    own = {(row.measure, row.subgroup): row for row in found.itertuples()}
    if not weighted:  # weights make the effective number of rows of a few smaller
        assert set(own) == set(expected)
    assert len(own) > 0.9 * len(expected)
    for key, row in own.items():
        n, value, rest, z = expected[key]
        assert row.n == n
        assert (row.value, row.rest) == pytest.approx((value, rest))
        assert row.difference == pytest.approx(value - rest)
        assert weighted or row.standard_errors == pytest.approx(z)


def test_what_a_model_does_wrong_is_on_top(rows):
    columns, _, y, p, score = rows
    found, again = (
        find_subgroups(y, p, y_score=score, columns=columns, n_simulations=200) for _ in range(2)
    )
    top = found[found["measure"] == "mean_residual"].iloc[0]
    assert top["subgroup"] == "region=s, is_new=True"
    assert top["is_beyond_chance"]
    assert top["difference"] > 0.1  # scores are too low for them
    pd.testing.assert_frame_equal(again, found)


def test_residuals_of_numbers():
    rng = generator(0)
    x, y = rng.normal(size=3000), rng.normal(size=3000)
    found = find_subgroups(y, y - 0.5 * (x > 1), columns={"x": x}, task="numbers", n_bins=10)
    top = found.groupby("measure").first()
    assert (top["subgroup"].str.endswith("and over")).all()
    assert top["is_beyond_chance"].all()


@pytest.mark.parametrize("rate", [0.3, 0.03])
@pytest.mark.parametrize("most", [10**6, 1000])
def test_noise_is_rarely_called_a_discovery_in_any_columns(rate, most, monkeypatch):
    """By dealing out all values, and by a sample of the rows; also where outcomes are rare."""
    monkeypatch.setitem(find_subgroups.__globals__, "MOST_SAMPLED", most)
    n_found = 0
    for seed in range(30):
        rng = generator(seed)
        columns = {f"c{j}": rng.integers(0, 4, 2000) for j in range(3)}
        columns["x"] = rng.normal(size=2000)
        p = (rng.random(2000) < rate).astype(int)
        found = find_subgroups(None, p, columns=columns, n_simulations=99, random_state=seed)
        assert len(found) > 80
        n_found += found["is_beyond_chance"].any()
    assert n_found <= MOST_OF_30


@pytest.mark.parametrize("most", [10**6, 500])
def test_p_values_of_an_audit_cover_the_differences_between_groups_as_well(most, monkeypatch):
    rng = generator(0)
    columns = pd.DataFrame({f"c{j}": rng.integers(0, 3, 3000) for j in range(6)})
    p = (rng.random(3000) < 0.3 + 0.06 * (columns["c0"] == 1)).astype(int)
    found = find_subgroups(None, p, columns=columns, n_simulations=2000)
    monkeypatch.setitem(find_subgroups.__globals__, "MOST_SAMPLED", most)
    other = audit(None, p, sensitive_features=columns, depth=2, n_simulations=2000).subgroups
    both = other.merge(found, on="subgroup")
    assert len(both) > 10
    assert (both["p_value_x"] > both["p_value_y"] - 0.1).all()


def test_a_sample_says_the_same_as_all_rows(rows, monkeypatch):
    columns, _, y, p, score = rows
    options = {"columns": columns, "n_simulations": 1000}
    every = find_subgroups(y, p, y_score=score, **options).set_index(["measure", "subgroup"])
    monkeypatch.setitem(find_subgroups.__globals__, "MOST_SAMPLED", 1200)
    sampled = find_subgroups(y, p, y_score=score, **options).set_index(["measure", "subgroup"])
    both = every.join(sampled.add_suffix("_sampled"))
    assert len(both) == len(every) == len(sampled)
    clear = both["p_value"] < 0.02
    assert clear.any()
    np.testing.assert_allclose(both["p_value"][clear], both["p_value_sampled"][clear], atol=0.1)


def test_rare_levels_are_put_together():
    names = np.array([f"town {j}" for j in range(40)])
    town = np.repeat(names, 200 - 3 * np.arange(40))
    decided = np.arange(town.size) % 2
    found = find_subgroups(None, decided, columns={"town": town}, n_simulations=9)
    levels = found["subgroup"].str.removeprefix("town=")
    assert len(levels) == MOST_LEVELS
    assert set(levels) == {*names[: MOST_LEVELS - 1], "others"}


def test_equal_subgroups_of_an_audit_keep_their_order():
    """Sums of weights are rounded in the order of the rows, and two groups differ as much."""
    rng, n = generator(), 400
    groups, weights, chosen = rng.choice(["f", "m"], n), rng.random(n), rng.random(n) < 0.5
    orders = set()
    for _ in range(40):
        rows = rng.permutation(n)
        found = audit(
            None, chosen[rows], sensitive_features={"sex": groups[rows]},
            sample_weight=weights[rows], n_simulations=5,
        )  # fmt: skip
        orders.add(tuple(found.subgroups["subgroup"]))
    assert orders == {("sex=f", "sex=m")}
