"""The search over subgroups against brute force, and its p-values under no difference."""

from functools import partial
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from skfair.report import audit, find_subgroups


def brute_force(A, y, p, depth, min_size):
    """Every subgroup by loops over levels, with its rates inside and outside."""
    measures = {
        "selection_rate": (p == 1, np.ones(y.size, bool)),
        "true_positive_rate": (p == 1, y == 1),
        "false_positive_rate": (p == 1, y == 0),
        "accuracy": (p == y, np.ones(y.size, bool)),
    }
    found, names = {}, set()
    for size in range(1, depth + 1):
        for columns in combinations(A.columns, size):
            for levels in product(*(sorted(A[column].unique()) for column in columns)):
                is_in = np.ones(y.size, bool)
                for column, level in zip(columns, levels, strict=True):
                    is_in &= (A[column] == level).to_numpy()
                if is_in.sum() < min_size or (~is_in).sum() < min_size:
                    continue
                name = ", ".join(f"{c}={v}" for c, v in zip(columns, levels, strict=True))
                names.add(name)
                for measure, (hit, counted) in measures.items():
                    inside, outside = counted & is_in, counted & ~is_in
                    if inside.sum() < min_size or outside.sum() < min_size:
                        continue
                    a, b, r = hit[inside].mean(), hit[outside].mean(), hit[counted].mean()
                    error = np.sqrt(r * (1 - r) * (1 / inside.sum() + 1 / outside.sum()))
                    found[measure, name] = (is_in.sum(), a, b, abs(a - b) / error)
    return found, names


@pytest.fixture(scope="module")
def sample():
    rng = np.random.RandomState(0)
    A = pd.DataFrame({f"c{j}": rng.randint(3, size=2000) for j in range(4)})
    y = (rng.rand(2000) < 0.5).astype(int)
    is_harmed = ((A["c0"] == 1) & (A["c2"] == 2)).to_numpy()
    p = np.where(is_harmed & (y == 1), rng.rand(2000) < 0.3, rng.rand(2000) < 0.3 + 0.4 * y)
    return A, y, p.astype(int)


def test_search_is_brute_force(sample):
    A, y, p = sample
    found = audit(y, p, sensitive_features=A, depth=3, n_simulations=100)
    expected, names = brute_force(A, y, p, 3, 30)
    assert found.n_subgroups == len(names)
    for row in found.subgroups.itertuples():
        n, inside, outside, z = expected[row.measure, row.subgroup]
        assert row.n == n
        assert (row.value, row.rest) == pytest.approx((inside, outside))
        assert row.standard_errors == pytest.approx(z)
    for measure in ("selection_rate", "true_positive_rate"):
        rows = found.subgroups[found.subgroups["measure"] == measure]
        beyond = rows[rows["is_beyond_chance"]]
        if len(beyond):  # the largest difference of those beyond chance stands on top
            sizes = beyond["difference"].abs()
            assert (sizes.diff().dropna() <= 1e-12).all()
    top = found.subgroups[found.subgroups["measure"] == "true_positive_rate"].iloc[0]
    assert top["subgroup"].startswith("c0=1, c2=2") or "c0=1" in top["subgroup"]
    assert top["is_beyond_chance"]
    beyond = found.subgroups.groupby("measure")["is_beyond_chance"]
    assert not beyond.all().any()  # so all of them are shown
    assert found.n_beyond_chance == beyond.sum().sum() > 0


def test_subgroups_are_large_enough_on_both_sides(sample):
    A, y, p = sample
    A = A.assign(rare=np.where(np.arange(2000) < 40, "few", "most"))
    found = audit(y, p, sensitive_features=A, depth=2, min_size=220, n_simulations=20)
    assert found.n_subgroups == len(brute_force(A, y, p, 2, 220)[1])


def test_the_p_value_of_two_groups_is_that_of_the_textbook():
    group = np.repeat(["a", "b"], 2000)
    p = np.r_[np.arange(2000) < 600, np.arange(2000) < 640]
    found = audit(None, p, sensitive_features=group, n_simulations=4000)
    expected = 2 * norm.sf(found.subgroups["standard_errors"])
    assert 0.1 < expected[0] < 0.2
    assert found.gaps["p_value"].to_numpy() == pytest.approx(expected, abs=0.025)


def test_the_most_extreme_is_searched_not_the_first(sample):
    A, y, p = sample
    found = audit(y, p, sensitive_features=A, depth=2, n_simulations=100)
    expected, _ = brute_force(A, y, p, 2, 30)
    rows = found.subgroups[found.subgroups["measure"] == "true_positive_rate"]
    worst = max(
        (key for key in expected if key[0] == "true_positive_rate"),
        key=lambda key: expected[key][3],
    )
    assert worst[1] in set(rows["subgroup"])
    assert worst[1] == "c0=1, c2=2"


def test_noise_is_rarely_called_a_discovery():
    """No subgroup differs, and 300 are searched: few of 60 searches may find one."""
    n_found = 0
    for seed in range(60):
        rng = np.random.RandomState(seed)
        A = pd.DataFrame({f"c{j}": rng.randint(4, size=1500) for j in range(4)})
        p = (rng.rand(1500) < 0.3).astype(int)
        found = audit(None, p, sensitive_features=A, n_simulations=99, random_state=seed)
        assert found.n_subgroups > 100
        n_found += found.n_beyond_chance > 0
    assert n_found <= 9  # 3 expected; above 9 has a probability of 0.001


def test_nobody_stands_out_where_all_are_alike(sample):
    """Everybody is decided rightly, so no subgroup is more accurate than others."""
    A, y, _ = sample
    found = audit(y, y, sensitive_features=A, n_simulations=50).subgroups
    accuracy = found[found["measure"] == "accuracy"]
    assert len(accuracy)
    assert not accuracy[["difference", "standard_errors", "is_beyond_chance"]].to_numpy().any()


def test_weights_of_two_are_two_rows(sample):
    A, y, p = sample
    twice = audit(
        np.tile(y, 2), np.tile(p, 2), sensitive_features=pd.concat([A, A]), n_simulations=20
    )
    w = np.full(y.size, 2.0)
    weighted = audit(y, p, sensitive_features=A, sample_weight=w, n_simulations=20)
    both = twice.rates.merge(weighted.rates, on=["view", "group", "measure"])
    np.testing.assert_allclose(both["value_x"], both["value_y"], atol=1e-12)


def test_too_many_subgroups_are_refused(sample, monkeypatch):
    A, y, p = sample
    monkeypatch.setattr("skfair.report.subgroups.MOST_SUBGROUPS", 100)
    for search in (partial(audit, sensitive_features=A), partial(find_subgroups, columns=A)):
        with pytest.raises(ValueError, match="depth=2"):
            search(y, p, depth=3)
