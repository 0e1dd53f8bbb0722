"""Audits of data: every number is counted anew by pandas, and chance finds nothing."""

import functools
import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from skfair.datasets import make_loans
from skfair.report import DataAudit, audit_data
from skfair.report.data_sets.proxies import N_FOLDS, count_rows, deal_folds, held_out_auc
from tests.report.schema import breaches
from tests.seeds import generator, seed_of


@pytest.mark.parametrize("shares", [{"f": 0.333, "m": 0.66}, {"f": 33, "m": 67}, {"f": 1, "m": 1}])
def test_shares_are_rounded_or_numbers_of_people(shares):
    sex = np.repeat(["f", "m"], [40, 60])
    given = {"sensitive_features": {"sex": sex}, "reference_shares": {"sex": shares}}
    found = audit_data({"a": generator(0).normal(size=100)}, suppress_below=1, **given)
    own = found.shares.set_index("group")["reference"][["f", "m"]]
    wanted = np.array([shares["f"], shares["m"]])
    assert own.tolist() == pytest.approx((wanted / wanted.sum()).tolist())


def table(seed, n=900):
    """Return columns of every kind, groups of two attributes, and labels with gaps."""
    rng = generator(seed)
    groups = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "race": rng.choice([*"abc"], n)})
    X = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "text": rng.choice(["u", "v", None], n, p=[0.5, 0.4, 0.1]),
            "whole": rng.integers(0, 5, n),
            "flag": rng.random(n) < 0.5,
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 99, n), "D"),
            "same": 1.0,
            "empty": np.nan,
        }
    )
    X.loc[rng.random(n) < 0.2, "number"] = np.nan
    y = pd.Series(rng.choice([0.0, 1.0, np.nan], n, p=[0.5, 0.4, 0.1]), name="granted")
    return X, groups, y


def wilson(k, n):
    """The interval as in textbooks."""
    interval = stats.binomtest(int(k), int(n)).proportion_ci(0.95, method="wilson")
    return interval.low, interval.high


@pytest.mark.parametrize("seed", range(4))
def test_every_number_is_what_pandas_counts(seed):
    X, groups, y = table(seed)
    old_X, old_groups, old_y = table(seed + 100, 500)
    reference = {"sex": {"f": 3, "m": 2}, "race": {"a": 0.5, "b": 0.25, "c": 0.25}}
    earlier = {"X": old_X, "sensitive_features": old_groups, "y": old_y}
    found = audit_data(
        X, sensitive_features=groups, y=y, reference_shares=reference, earlier=earlier
    )
    for view, shares in found.shares.groupby("view"):
        counts = groups[view].value_counts()
        expected = {
            name: own / sum(reference[view].values()) for name, own in reference[view].items()
        }
        raw = [stats.binomtest(counts[g], len(X), expected[g]).pvalue for g in expected]
        for row in shares.itertuples():
            assert (row.n, row.share) == (counts[row.group], counts[row.group] / len(X))
            assert (row.share_low, row.share_high) == pytest.approx(wilson(row.n, len(X)))
            assert row.reference == pytest.approx(expected[row.group])
            assert row.earlier == pytest.approx((old_groups[view] == row.group).mean())
            p = raw[list(expected).index(row.group)]  # corrected for up to 5 groups and 4 kinds
            assert min(4 * p, 1) <= row.p_value + 1e-12 <= min(20 * p, 1) + 1e-9
    columns = {f"missing[{name}]": X[name].isna() for name in X} | {
        "missing[granted]": y.isna(),
        "label[1.0]": (y == 1).where(y.notna()),
    }
    assert set(found.rates["measure"]) == {name for name, own in columns.items() if own.any()}
    for row in found.rates.itertuples():
        inside = groups[row.view] == row.group if row.view else np.ones(len(X), bool)
        values = columns[row.measure][inside].dropna().astype(float)
        assert row.value == pytest.approx(values.mean())
        assert (row.value_low, row.value_high) == pytest.approx(wilson(values.sum(), len(values)))
    for row in found.gaps.itertuples():
        rates = found.rates.query("view == @row.view and measure == @row.metric")["value"]
        assert row.value == pytest.approx(rates.max() - rates.min())
    named = {**X[["text", "whole", "flag"]], **groups, "granted": y}
    before = {**old_X, **old_groups, "granted": old_y}
    for name, now in named.items():
        levels = pd.concat([before[name], now]).astype(object).fillna("none")
        counts = pd.crosstab(levels, np.repeat([0, 1], [500, len(X)])).to_numpy() + 0.5
        then, now = (counts / counts.sum(axis=0)).T
        psi = found.drift.set_index("column")["psi"][name]
        assert psi == pytest.approx(((now - then) * np.log(now / then)).sum())


@pytest.mark.parametrize(("n_levels", "n_groups"), [(2, 2), (40, 2), (5, 4)])
def test_areas_are_those_of_scikit_learn(n_levels, n_groups):
    rng = np.random.RandomState(seed_of(n_levels))
    group, level = np.arange(400) % n_groups, rng.randint(n_levels, size=400)
    folds, areas = deal_folds(group, rng), []
    for g in range(n_groups):
        for fold in range(N_FOLDS):
            others = pd.DataFrame({"level": level, "inside": group == g})[folds != fold]
            sums = others.groupby("level")["inside"].agg(["sum", "size"])
            sums = sums.reindex(range(n_levels), fill_value=0)
            scores = (sums["sum"] + others["inside"].mean()) / (sums["size"] + 1)
            held_out = folds == fold
            areas.append(roc_auc_score(group[held_out] == g, scores[level[held_out]]))
    assert held_out_auc(count_rows(level, group, folds)) == pytest.approx(np.mean(areas))


def test_planted_proxies_are_found_and_others_are_not():
    loans, rng = make_loans(10_000, random_state=seed_of()), generator()
    null = {f"null{j}": rng.choice([*"abcdef"], 10_000) for j in range(6)}
    X = loans.data.drop(columns="loan_amount").assign(**null)
    found = audit_data(X, sensitive_features=loans.sensitive_features, random_state=0).proxies
    singles = found.query("kind == 'single' and is_beyond_chance")
    is_planted = singles["column"].isin(["income", "housing"])
    assert is_planted.sum() == 4
    # The six columns and those of the data that are no proxies, for two attributes.
    assert (~is_planted).sum() <= stats.binom.isf(1e-7, 2 * (X.shape[1] - 2), 0.05)


@pytest.mark.slow
def test_fair_data_have_no_finding():
    n_found = 0
    for seed in range(12):
        X, groups, y = table(seed + 40, 400)
        population = {"sex": {"f": 1, "m": 1}, "race": dict.fromkeys("abc", 1)}
        found = audit_data(
            X[["number", "text"]],
            sensitive_features=groups,
            y=y,
            reference_shares=population,
            n_simulations=100,
        )
        n_found += "statistically significant" in repr(found)
    assert n_found <= stats.binom.isf(1e-7, 12, 0.05)


def test_columns_that_tell_the_group_only_together():
    """Each combination is as frequent, and a tenth of each is of the other group."""
    number = generator(0).permutation(2000)
    a, b, c = (number >> k & 1 for k in range(3))
    noise = (number >> 3) % 10 == 0
    X = {"a": a, "b": b, "copy of a": a, "c": c}
    found = audit_data(X, sensitive_features={"sex": (a ^ b) ^ noise}).proxies.set_index("kind")
    assert not found.loc["single", "is_beyond_chance"].any()
    assert found.loc["all", "is_beyond_chance"]
    assert found.loc["all", "auc"] == pytest.approx(0.9, abs=0.03)
    assert sorted(found.loc["few", "column"].replace("copy of a", "a").split(", ")) == ["a", "b"]


def test_small_groups_are_in_no_number_and_absent_ones_are_a_finding():
    X, groups, y = table(0)
    groups.loc[:5, "race"] = "rare"
    population = {"race": {"a": 0.3, "b": 0.3, "c": 0.2, "rare": 0.1, "absent": 0.1}}
    found = audit_data(X, sensitive_features=groups, y=y, reference_shares=population)
    assert (found.n_rows, found.n_left_out) == (894, None)
    assert found.hidden.to_numpy().tolist() == [["race", "rare"]]
    rows = found.shares.query("apart == 'hidden'").set_index("group")
    assert rows["n"].isna().all()
    assert rows["is_beyond_chance"].all()
    assert rows.loc["rare", "p_value"] == rows.loc["absent", "p_value"]
    left = audit_data(X[6:], sensitive_features=groups[6:], y=y[6:], reference_shares=population)
    for name in ("rates", "gaps", "proxies"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(left, name))
    lines = [line for line in found.to_markdown().splitlines() if "rare" in line]
    assert [line.split(" | ")[1:5] for line in lines if line.startswith("| rare")] == [
        ["not shown", "-", "0.100", "-"]
    ]
    assert len(lines) == 3  # with the verdict, and what is not shown
    every = audit_data(X, sensitive_features=groups, y=y, suppress_below=1, min_group_size=1)
    assert every.n_rows == 900
    assert not len(every.hidden)
    few = audit_data(X[:40], sensitive_features=groups[:40], suppress_below=2)
    assert "Not compared: " in repr(few)
    assert "not examined" in repr(few)


def test_it_is_written_and_read_again():
    X, groups, y = table(1, 300)
    groups["sex"] = groups["sex"].replace("f", "<b>f|</b>")
    earlier = {"X": X, "sensitive_features": groups, "y": y}
    given = {"title": "People <i>", "about": {"prepared by": "me"}, "earlier": earlier}
    found = audit_data(
        X,
        sensitive_features=groups,
        y=y,
        reference_shares={"race": dict.fromkeys("abc", 1)},
        **given,
    )
    plain = json.loads(found.to_json())
    assert breaches(plain, DataAudit.schema()) == []
    again = DataAudit.from_dict(plain)
    assert (again.to_html(), again.to_markdown()) == (found.to_html(), found.to_markdown())
    for page in (found.to_html(), found._repr_html_()):
        assert "<b>f" not in page
        assert "People &lt;i&gt;" in page
    assert "granted = 1.0" in found.to_html()
    assert "Prepared by" in found.to_html()
    assert "\\<b\\>f\\|\\</b\\>" in found.to_markdown()
    few = functools.partial(audit_data, X[["text"]], y, sensitive_features=groups[["race"]])
    assert few().to_json() == few().to_json()


def test_labels_may_be_classes_or_numbers_and_groups_unknown():
    X, groups, _ = table(2)
    groups.loc[::9, "sex"] = None
    kinds = generator(0).choice(["x", "y", "z"], 900)
    found = audit_data(
        X,
        sensitive_features=groups,
        y=kinds,
        reference_shares={"sex": {"f": 1, "m": 1}},
        unknown=np.nan,
    )
    assert found.shares.set_index("group")["apart"]["missing"] == "unknown"
    assert found.shares.query("view == 'sex'")["share"].sum() == pytest.approx(1)
    measures = {f"label[{kind}]" for kind in "xyz"}
    assert measures <= set(found.rates["measure"])
    chosen = audit_data(X, sensitive_features=groups[["race"]], y=kinds, pos_label="y")
    assert "label[x]" not in set(chosen.rates["measure"])
    assert "y = 'y'" in chosen.decision
    pay = np.where(groups["race"] == "a", 2.5, 1.0) + np.arange(900) / 900
    found = audit_data(X.to_numpy()[:, :2], sensitive_features=groups["race"].to_numpy(), y=pay)
    assert set(found.proxies["column"]) == {"column_0", "column_1", "all columns together"}
    assert "mean of y: " in repr(found)
    assert "statistically significant" in repr(found)


def test_columns_named_like_an_attribute_are_left_out():
    loans = make_loans(500, random_state=seed_of(0))
    found = audit_data(loans.data, sensitive_features=loans.data["sex"])
    assert "sex" not in set(found.proxies["column"])
    assert found.n_columns == 8
