"""Hidden numbers of small groups cannot be computed from the numbers that are shown."""

import itertools
import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from skfair.datasets import make_group_scores
from skfair.report import Audit, audit
from tests.report.schema import breaches
from tests.seeds import generator, seed_of

QUICK = {"n_simulations": 5, "metrics": ["demographic_parity_difference"]}


def people(seed, levels=(2, 5, 2), n=600, rare=0.45):
    """Return crossed attributes with levels that become rarer, and decisions."""
    rng = generator(seed)
    columns = {}
    for name, size in zip("abc", levels, strict=False):
        shares = rare ** np.arange(size)
        columns[name] = rng.choice(np.array(list("uvwxyz"))[:size], n, p=shares / shares.sum())
    return pd.DataFrame(columns), rng.integers(0, 2, n)


def sums_of(plain, attributes, cells):
    """Read all sums of the JSON: which cells, how many people, how many of them selected."""
    found = [(np.ones(len(cells)), row["n"], row["value"]) for row in plain["rates"]
             if row["view"] == "" and row["measure"] == "selection_rate"]  # fmt: skip
    for row in [*plain["rates"], *plain["subgroups"]]:
        if row["measure"] != "selection_rate" or row.get("view") == "":
            continue
        name = row.get("group", row.get("subgroup"))
        named = name if "=" in name else f"{row['view']}={name}"
        asked = dict(part.split("=") for part in named.split(", "))
        inside = np.logical_and.reduce([cells[key] == level for key, level in asked.items()])
        found.append((inside.astype(float), row["n"], row["value"]))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_no_solver_recovers_a_small_group(seed):
    """The most and the least that each hidden group may have, by linear programmes, differ."""
    levels = [(2, 5, 2), (3, 4, 1), (2, 3, 3)][seed % 3]
    groups, chosen = people(seed, levels, n=300 + 50 * seed)
    groups = groups.loc[:, groups.nunique() > 1]
    attributes = list(groups)
    plain = json.loads(audit(None, chosen, sensitive_features=groups, **QUICK).to_json())
    left = groups
    for _ in attributes:
        sizes = [left[name].map(left[name].value_counts()) for name in attributes]
        left = left[np.min(sizes, axis=0) >= 10]
    cells = left.assign(k=chosen[left.index]).groupby(attributes)["k"].agg(["size", "sum"])
    cells = cells.reset_index()
    sums = sums_of(plain, attributes, cells)
    inside, n_rows, values = (np.array(part) for part in zip(*sums, strict=True))
    np.testing.assert_allclose(inside @ cells["size"], n_rows)
    np.testing.assert_allclose(inside @ cells["sum"], n_rows * values)
    assert n_rows.min() >= 10
    for size in range(2, len(attributes) + 1):
        small = cells.groupby(attributes[:size])["size"].transform("sum") < 10
        for _, rows in cells[small].groupby(attributes[:size]):
            asked = np.isin(np.arange(len(cells)), rows.index).astype(float)
            ends = [
                sign * linprog(sign * asked, A_eq=inside, b_eq=n_rows, bounds=(1, None)).fun
                for sign in (1, -1)
            ]
            assert ends[1] - ends[0] >= 1


# All others join decisions and outcomes.
PLAIN = ["base_rate", "selection_rate", "mean_score", "moved_up", "moved_down", "calibration_error"]
PLAIN += ["mean_residual"]  # the base rate minus the mean score


@pytest.mark.parametrize("n_attributes", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_how_few_people_of_a_class_were_decided_cannot_be_computed(seed, n_attributes):
    """Of 60 men three are qualified: how many of these were selected is in no span of sums."""
    groups, chosen = people(seed, (3, 3, 2), n=900)
    groups = groups.iloc[:, :n_attributes]
    y, few = generator(seed).integers(0, 2, 900), np.flatnonzero(groups["a"] == "w")
    y[few], y[few[:3]] = 0, 1
    found = audit(
        y, chosen, y_score=chosen * 0.5, sensitive_features=groups, before=1 - chosen,
        n_simulations=5, min_group_size=10,
    )  # fmt: skip
    plain = json.loads(found.to_json())
    rows = pd.DataFrame({"y": y, "p": chosen, **groups})
    kept = rows[~np.any([rows[v].isin(found.hidden.query("view == @v").group) for v in groups], 0)]

    def inside(row):
        asked = row.get("group", row.get("subgroup"))
        named = asked if "=" in asked else f"{row['view']}={asked}"
        parts = [part.split("=") for part in named.split(", ")] if row.get("view", "x") else []
        return np.logical_and.reduce([np.ones(len(kept), bool), *(kept[k] == v for k, v in parts)])

    cells = kept.groupby(list(groups)).ngroup()
    n_cells = cells.max() + 1
    shown = [
        np.bincount(cells, inside(row), n_cells) > 0
        for row in [*plain["rates"], *plain["subgroups"]]
        if row["measure"].removeprefix("before:") not in PLAIN and row["value"] is not None
    ]
    span = np.array(shown, float).reshape(-1, n_cells)
    rank = np.linalg.matrix_rank(span)
    n_few = 0
    for size in range(n_attributes + 1):
        for attributes in itertools.combinations(groups, size):
            for _, own in kept.groupby(list(attributes)) if size else [((), kept)]:
                counts = [*own["y"].value_counts(), *own["p"].value_counts()]
                if min(counts) < 10:
                    secret = (np.bincount(cells[own.index], minlength=n_cells) > 0) * 1.0
                    assert np.linalg.matrix_rank(np.vstack([span, secret])) > rank
                    n_few += 1
    assert n_few
    rates = found.rates[found.rates["measure"].isin(["base_rate", "selection_rate"])]
    assert rates["value"].notna().all()  # these say nothing of who was selected


@pytest.mark.parametrize("share", [0.03, 0.1, 0.3])
@pytest.mark.parametrize("n_attributes", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_hidden_classes_hold_against_subtraction(seed, n_attributes, share):
    """No group with few people of a class, and no rest of a view, follows from what is shown.

    Groups without people of the class add nothing to a sum, so they are in no vector.
    """
    rng = generator(seed)
    groups, chosen = people(seed, (2, 3, 3), n=int(rng.integers(150, 500)))
    groups = groups.iloc[:, :n_attributes]
    y = (rng.random(len(groups)) < share).astype(int)
    y[:2] = 0, 1
    found = audit(y, chosen, sensitive_features=groups, n_simulations=5, min_group_size=10)
    rows = pd.DataFrame({"y": y, "p": chosen, **groups})
    kept = rows[~np.any([rows[v].isin(found.hidden.query("view == @v").group) for v in groups], 0)]
    subgroups = found.subgroups.rename(columns={"subgroup": "group"}).assign(view="subgroup")
    numbers = pd.concat([found.rates, subgroups])[["view", "group", "measure", "value"]].dropna()
    for measure, column, label in (
        ("true_positive_rate", "y", 1),
        ("false_positive_rate", "y", 0),
        ("positive_predictive_value", "p", 1),
        ("negative_predictive_value", "p", 0),
    ):
        own = kept[kept[column] == label]
        cells = own.groupby(list(groups)).ngroup().to_numpy()

        def vector(is_inside, cells=cells):
            return (np.bincount(cells, is_inside, cells.max() + 1) > 0).astype(float)

        shown = []
        for row in numbers[numbers["measure"] == measure].itertuples():
            named = row.group if "=" in row.group else f"{row.view}={row.group}"
            parts = [part.split("=") for part in named.split(", ")] if row.view else []
            inside = [own[name] == level for name, level in parts]
            shown.append(vector(np.logical_and.reduce([np.ones(len(own), bool), *inside])))
        if not shown:
            continue
        rank = np.linalg.matrix_rank(shown)
        for size in range(1, n_attributes + 1):
            for attributes in itertools.combinations(groups, size):
                sizes = own.groupby(list(attributes))["y"].transform("size")
                single = own.groupby(list(attributes)).ngroup()
                rests = [np.zeros(len(own)), *(own[name] for name in groups)]
                few = [sizes < 10] * (1 + len(rests))
                for parts, is_few in zip([single, *rests], few, strict=True):
                    for part in np.unique(parts[is_few]):
                        secret = is_few & (parts == part)
                        if secret.sum() < 10:
                            both = [*shown, vector(secret)]
                            assert np.linalg.matrix_rank(both) > rank, (measure, attributes, part)


def test_a_hidden_class_is_not_the_rest_of_two_numbers():
    """C has nobody who is qualified, so the rate of B is that of all minus that of A."""
    sizes, qualified = {"A": 285, "B": 146, "C": 58}, {"A": 15, "B": 8, "C": 0}
    group = np.repeat(list(sizes), list(sizes.values()))
    y = np.concatenate([np.arange(n) < qualified[g] for g, n in sizes.items()]).astype(int)
    rates = audit(y, np.arange(y.size) % 2, sensitive_features={"g": group}, **QUICK).rates
    rates = rates[rates["measure"] == "true_positive_rate"].set_index("group")["value"]
    assert rates.notna()["all"]
    assert rates[["A", "B", "C"]].isna().all()


def test_a_page_says_that_a_second_one_may_reveal_what_it_hides():
    """The rows of a page by sex are more than those of a page by sex and a small group."""
    groups, chosen = pd.DataFrame({"a": list("uv") * 100, "b": ["w"] * 193 + ["few"] * 7}), [0, 1]
    pages = [
        audit(None, chosen * 100, sensitive_features=groups[own], **QUICK)
        for own in (["a"], ["a", "b"])
    ]
    assert pages[0].n_rows - pages[1].n_rows == 7  # which no page by itself can prevent
    for page in pages:
        for text in (page.to_html(), page.to_markdown()):
            assert "A second report on the same people" in text


def test_rows_of_a_small_group_count_nowhere():
    groups, chosen = people(0, (2, 2, 2))
    groups.loc[:5, "a"] = "rare"
    found = audit(None, chosen, sensitive_features=groups, **QUICK)
    assert found.hidden.loc[found.hidden["view"] == "a", "group"].tolist() == ["rare"]
    left = audit(None, chosen[6:], sensitive_features=groups[6:], **QUICK)
    assert (found.n_rows, found.n_left_out) == (left.n_rows, None) == (594, None)
    pd.testing.assert_frame_equal(found.rates, left.rates)
    assert "Not shown because they have fewer than 10 rows: rare (a)" in repr(found)
    for n_rare, n_seldom, said in (
        (1, 9, 10),
        (3, 7, 10),
        (9, 9, None),
        (6, 6, None),
        (2, 3, None),
    ):
        names = ["rare"] * n_rare + ["seldom"] * n_seldom
        own = [*names, *("uv" * 300)[len(names) :]]  # said if each may have any number
        found = audit(None, chosen, sensitive_features={"a": own}, **QUICK)
        assert (found.n_left_out, found.n_rows) == (said, 600 - len(names))
    every = audit(None, chosen, sensitive_features=groups, suppress_below=1, **QUICK)
    assert (every.n_rows, every.n_left_out, len(every.hidden)) == (600, 0, 0)


def test_what_is_shown_names_no_hidden_group_with_a_number():
    groups, chosen = people(1)
    y, score, _ = make_group_scores(600, random_state=seed_of(0))
    found = audit(
        y, chosen, y_score=score, sensitive_features=groups, before=1 - chosen, preset="ugesp",
        reference={"a": "u", "b": "u", "c": "u"}, n_simulations=5,
    )  # fmt: skip
    plain = json.loads(found.to_json())
    assert breaches(plain, Audit.schema()) == []
    names = {row["group"] for row in plain.pop("hidden") if " x " in row["view"]}
    assert names
    text = re.sub("Not shown.*", "", found.to_html() + found.to_markdown()) + json.dumps(plain)
    assert not [name for name in names if name in text]
    assert Audit.from_dict(found.to_dict()).to_html() == found.to_html()
    assert found.calibration["n"].min() >= 10
    assert found.calibration.groupby("view")["n"].sum()[["a", "b"]].tolist() == [found.n_rows] * 2


def test_a_stratum_of_few_people_is_not_compared():
    """Two people of one department, of whom one was selected, were its widest gap."""
    rng = generator(0)
    sex, chosen = rng.choice(["f", "m"], 400), rng.integers(0, 2, 400)
    department = np.repeat(["large", "tiny"], [398, 2])
    sex[-2:], chosen[-2:] = ["f", "m"], [0, 1]
    given = {"sensitive_features": {"sex": sex}, "control_features": {"d": department}}
    gaps = audit(None, chosen, **given, **QUICK).gaps
    assert gaps.loc[gaps["is_conditional"], "value"].item() < 0.5
    for least in ({"min_group_size": 1}, {"suppress_below": 1}):
        gaps = audit(None, chosen, **given, **least, **QUICK).gaps
        assert gaps.loc[gaps["is_conditional"], "value"].item() < 0.5
    every = audit(None, chosen, **given, min_group_size=1, suppress_below=1, **QUICK).gaps
    assert every.loc[every["is_conditional"], "value"].item() == 1


def test_large_tables_of_many_attributes_keep_their_clean_pairs():
    """More crossed groups than are listed: of pairs with a small group none is shown."""
    groups, _ = people(2, (3, 6, 6), n=4000, rare=0.35)
    is_even = np.arange(4000) % 2
    options = {"min_group_size": 10, "n_simulations": 5, "depth": 2}
    found = audit(None, is_even, sensitive_features=groups.assign(d=is_even), **options)
    assert "a x b" not in str(found.rates["view"].unique())
    columns = set(found.subgroups["subgroup"].str.findall(r"(\w)=").str.join(""))
    assert "ad" in columns
    assert "bc" not in columns
