"""The search over subgroups of an audit, and its p-values under no difference."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from skfair.report import audit, find_subgroups


@pytest.fixture(scope="module")
def sample():
    rng = np.random.RandomState(0)
    A = pd.DataFrame({f"c{j}": rng.randint(3, size=2000) for j in range(4)})
    y = (rng.rand(2000) < 0.5).astype(int)
    is_harmed = ((A["c0"] == 1) & (A["c2"] == 2)).to_numpy()
    p = np.where(is_harmed & (y == 1), rng.rand(2000) < 0.3, rng.rand(2000) < 0.3 + 0.4 * y)
    return A, y, p.astype(int)


def test_an_audit_finds_what_find_subgroups_finds(sample):
    """That search is compared with brute force in ``test_slices``."""
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
    every = find_subgroups(y, p, columns=A, min_size=220, n_simulations=5)
    assert found.n_subgroups == every["subgroup"].nunique()


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
    rows = found.subgroups[found.subgroups["measure"] == "true_positive_rate"]
    every = find_subgroups(y, p, columns=A, n_simulations=5)
    every = every[every["measure"] == "true_positive_rate"]
    worst = every.loc[every["standard_errors"].idxmax(), "subgroup"]
    assert worst in set(rows["subgroup"])
    assert worst == "c0=1, c2=2"


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
