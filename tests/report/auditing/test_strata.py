"""Audits within strata: direction, size and reversals in words, and rates that give nobody away."""

import itertools
import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from skfair.__main__ import main
from skfair.metrics import demographic_parity_difference
from skfair.report import Audit, audit
from tests.report.schema import breaches
from tests.seeds import generator

QUICK = {"n_simulations": 20, "metrics": ["demographic_parity_difference"]}


@pytest.fixture(params=range(3))
def seed(request):
    return request.param


def counted(cells):
    """Return rows for cells (group, stratum, rate) -> number of people, without any chance."""
    parts = []
    for (group, stratum, rate), n in cells.items():
        selected = (np.arange(n) < round(rate * n)).astype(int)
        parts.append(pd.DataFrame({"sex": group, "department": stratum, "selected": selected}))
    return pd.concat(parts, ignore_index=True)


def departments(is_reversed, n_reversed=None, groups="fm"):
    """Return rows of three departments in which f is ahead, or in some of them.

    Departments differ much. If the differences within them are to be reversed overall, f applies
    mostly where few are selected.
    """
    rng = generator()
    base, cells = [0.1, 0.4, 0.7], {}
    n_reversed = 3 if n_reversed is None else n_reversed
    sizes = [1200, 200, 100] if is_reversed else [500, 500, 500]
    for place, name in enumerate(["hard", "middle", "easy"]):
        higher = 0.15 if place < n_reversed else -0.15
        for group in groups:
            own = sizes[place] if group == "f" else sizes[::-1][place]
            n = own + int(rng.integers(0, 40))
            rate = base[place] + 0.1 + (higher if group == "f" else 0.0)
            cells[group, name, rate] = n
    return counted(cells)


def audited(rows, **options):
    given = {"sensitive_features": rows[["sex"]], "control_features": rows[["department"]]}
    given |= {"n_simulations": 99, "random_state": 0} | options
    return audit(None, rows["selected"], **given)


def shown(found):
    """Return the text, the Markdown and the page as plain text."""
    page = re.sub(r"<[^>]*>", " ", found.to_html())
    return repr(found), found.to_markdown().replace("\\", ""), re.sub(r"\s+", " ", page)


@pytest.mark.parametrize("preset", [None, "ugesp"])
def test_a_reversal_is_the_first_sentence(preset):
    rows = departments(is_reversed=True)
    found = audited(rows, preset=preset)
    for text in shown(found):
        first = text.index("selection rate higher for f than for m in 3 of 3 levels")
        named = text.index("Reversal: f is behind overall, ahead in 3 of 3 levels of department.")
        overall = text.index("Over all rows: selection rate")
        assert first < named < overall
    (pair,) = found.within.itertuples()
    rates = rows.groupby(["department", "sex"])["selected"].mean().unstack()
    sign = 1 if pair.group == "f" else -1
    apart = sign * (rates["f"] - rates["m"])
    assert apart.min() - 1e-12 <= pair.difference <= apart.max() + 1e-12
    for text in shown(found)[1:]:
        for stratum, group in itertools.product(rates.index, "fm"):
            value = rates.loc[stratum, group]
            assert re.search(rf"{stratum}[ |]+{group}[ |]+[\d,]+[ |]+{value:.3f}", text)
            if preset:
                selected = f"[\\d,]+[ |]+{100 * value:.1f}%"
                assert re.search(rf"{stratum}[ |]+{group}[ |]+[\d,]+[ |]+{selected}", text)
    if preset:
        assert found.impact.set_index("group").loc["f", "strata_odds_ratio"] > 1
        assert "below (over all rows; higher odds within department)" in shown(found)[1]


def test_a_reversal_in_some_strata():
    found = audited(departments(is_reversed=True, n_reversed=2))
    for text in shown(found):
        assert "Reversal: f is behind overall, ahead in 2 of 3 levels of department." in text
    (pair,) = found.within.itertuples()
    ahead = (pair.n_higher, pair.n_lower)
    assert ahead == ((2, 1) if pair.group == "f" else (1, 2))


@pytest.mark.parametrize("preset", [None, "ugesp"])
def test_no_reversal_is_claimed_where_there_is_none(preset):
    rows = departments(is_reversed=False)
    text, *pages = shown(audited(rows, preset=preset))
    assert "selection rate higher for f than for m in 3 of 3 levels" in text
    assert not any("Reversal" in one or "higher odds" in one for one in (text, *pages))
    # Small differences have another direction by chance, which is no reversal.
    rng = generator()
    rows["selected"] = rng.permutation(rows["selected"])
    assert "Reversal" not in repr(audited(rows, n_simulations=999, confidence=0.999999))


def test_directions_do_not_depend_on_names():
    rows = departments(is_reversed=True)
    renamed = rows.assign(sex=rows["sex"].map({"f": "z", "m": "a"}))
    texts = [repr(audited(one, preset="ugesp")) for one in (rows, renamed)]
    changed = re.sub(r"\b[fm]\b", lambda one: {"f": "z", "m": "a"}[one[0]], texts[0])
    assert changed == texts[1]
    for one, higher, lower in ((rows, "f", "m"), (renamed, "z", "a")):
        page = shown(audited(one))[2]
        assert f"{lower} (stratum" in page
        assert re.search(rf"\b{lower} \(stratum \w+\) lower than {higher} \(stratum \w+\)", page)
        assert f"{higher} lower than {lower}" in page  # over all rows


def test_the_pair_of_a_reversal_is_named_among_several_groups_and_attributes():
    rows = departments(is_reversed=True, groups="fm")
    other = rows[rows["sex"] == "m"].assign(sex="x", selected=1)
    text = repr(audited(pd.concat([rows, other], ignore_index=True)))
    assert "sex (3 groups), within department" in text
    assert "Reversal: f is behind overall, ahead in 3 of 3 levels" in text
    # Every attribute has its own strata.
    rows["age"] = np.arange(len(rows)) % 2
    text = repr(audited(rows, sensitive_features=rows[["age", "sex"]]))
    lines = [line for line in text.splitlines() if ", within department: " in line]
    assert [line.partition(",")[0] for line in lines] == ["age", "sex"]
    assert ["Reversal" in line for line in lines] == [False, True]
    # Of many attributes the reversed one stays on the first screen.
    many = {f"a{i}": np.arange(len(rows)) // (i + 1) % 2 for i in range(6)} | {"sex": rows["sex"]}
    text = repr(audited(rows, sensitive_features=many, depth=1))
    assert "Also compared" in text
    assert "Reversal: f is behind overall" in text


def test_strata_with_few_people_or_one_group_are_left_out_and_counted():
    rows = departments(is_reversed=True)
    few = counted({("f", "tiny", 0.5): 4, ("m", "tiny", 0.5): 200, ("m", "men", 0.5): 100})
    found = audited(pd.concat([rows, few], ignore_index=True))
    text = repr(found)
    assert "in 3 of 3 levels" in text
    assert "2 more levels are not compared" in text
    levels = found.strata.groupby("stratum")["group"].agg(list).to_dict()
    assert levels.pop("men") == ["m"]
    assert "f" not in levels.pop("tiny", [])
    alone = counted({("f", "women", 0.5): 60, ("m", "men", 0.5): 100})
    assert "no level has enough rows of two groups" in repr(audited(alone))


def test_many_strata_are_counted_and_the_largest_listed():
    rng = generator()
    cells = {}
    for k in range(40):
        n = 60 + int(rng.integers(0, 40))
        cells |= {("f", f"d{k:02}", 0.6): n, ("m", f"d{k:02}", 0.2): 2 * n}
    found = audited(counted(cells), **QUICK)
    assert "higher for f than for m in 40 of 40 levels" in repr(found)
    assert found.strata["stratum"].nunique() == 20
    assert "20 more levels are not listed." in shown(found)[1]


def test_weights_and_units_decide_what_is_said():
    rows = departments(is_reversed=False)
    weights = np.where((rows["sex"] == "f") & (rows["selected"] == 1), 0.1, 1.0)
    found = audited(rows, sample_weight=weights)
    assert "higher for m than for f in 3 of 3 levels" in repr(found)
    values = found.strata.set_index(["stratum", "group"])["value"]
    own = (rows["department"] == "easy") & (rows["sex"] == "f")
    mean = np.average(rows["selected"][own], weights=weights[own])
    assert values["easy", "f"] == pytest.approx(mean)
    twice = pd.concat([rows, rows], ignore_index=True)
    of_people = audited(twice, units=np.tile(np.arange(len(rows)), 2))
    assert "higher for f than for m in 3 of 3 levels" in repr(of_people)
    assert of_people.strata["n_units"].sum() == len(rows)


def test_the_average_is_that_of_mantel_and_haenszel(seed):
    rng = generator(seed)
    rows = pd.DataFrame({"sex": rng.choice(["f", "m"], 900)})
    rows["department"] = rng.integers(4, size=900)
    rows["selected"] = rng.integers(0, 2, 900)
    (pair,) = audited(rows).within.itertuples()
    apart, weights = [], []
    for _, own in rows.groupby("department"):
        means, sizes = (own.groupby("sex")["selected"].agg(how) for how in ("mean", "size"))
        apart.append(means[pair.group] - means[pair.other])
        weights.append(sizes["f"] * sizes["m"] / sizes.sum())
    assert pair.difference == pytest.approx(np.average(apart, weights=weights))
    signs = np.sign(apart).tolist()
    assert (pair.n_higher, pair.n_lower) == (signs.count(1), signs.count(-1))
    assert abs(pair.difference) <= demographic_parity_difference(
        None, rows["selected"], sensitive_features=rows["sex"], control_features=rows["department"]
    )


def test_numbers_and_classes_have_strata_too():
    rng = generator()
    rows = departments(is_reversed=True)
    groups = {"sensitive_features": rows[["sex"]], "control_features": rows[["department"]]}
    numbers = audit(None, rows["selected"] * 10 + 0.5, **groups, task="numbers", n_simulations=99)
    assert "mean prediction higher for f than for m in 3 of 3 levels" in repr(numbers)
    assert "Reversal: f is lower overall, higher in 3 of 3 levels" in repr(numbers)
    classes = np.where(rows["selected"] == 1, "a", rng.choice(["b", "c"], len(rows)))
    named = audit(
        None, classes, **groups, task="classes", metrics=["demographic_parity_difference[a]"],
        n_simulations=99,
    )  # fmt: skip
    assert "share predicted as a higher for f than for m in 3 of 3 levels" in repr(named)


def test_plain_data_say_the_same():
    found = audited(departments(is_reversed=True), preset="ugesp")
    plain = json.loads(found.to_json())
    assert breaches(plain, Audit.schema()) == []
    again = Audit.from_dict(plain)
    assert (repr(again), again.to_html()) == (repr(found), found.to_html())
    without = audited(departments(is_reversed=True), control_features=None)
    assert not len(without.within)
    assert not len(without.strata)


def people(seed, levels, n, rare=0.45):
    """Return attributes and strata with levels that become rarer, decisions and true labels."""
    rng = generator(seed)
    columns = {}
    for name, size in zip("abs", levels, strict=True):
        shares = rare ** np.arange(size)
        columns[name] = rng.choice(np.array(list("uvwxyz"))[:size], n, p=shares / shares.sum())
    frame = pd.DataFrame(columns)
    if seed % 3 == 0 and levels[1] > 1:  # strata made of an attribute give most away
        frame["s"] = np.where(frame["b"] == "u", "u", "v")
    return frame.loc[:, frame.nunique() > 1], rng.integers(0, 2, n), rng.integers(0, 2, n)


def sums_of(plain, cells, measures):
    """Read the sums of the JSON: of which cells they are, and of how many people."""
    every = [*plain["rates"], *plain["subgroups"], *plain["strata"]]
    for row in every:
        if row["measure"] not in measures or row["value"] is None:
            continue
        name = row.get("group", row.get("subgroup"))
        named = name if "=" in name else f"{row['view']}={name}"
        asked = dict(part.split("=") for part in named.split(", ")) if row.get("view", "x") else {}
        asked |= {"s": row["stratum"]} if "stratum" in row else {}
        inside = [cells[key] == level for key, level in asked.items()]
        yield np.logical_and.reduce([np.ones(len(cells), bool), *inside]).astype(float), row["n"]


def secrets_of(cells, counts, attributes):
    """Yield which cells make up each group of up to all attributes that has few people."""
    for size in range(1, len(attributes) + 1):
        for names in itertools.combinations(attributes, size):
            few = counts.groupby([cells[name] for name in names]).transform("sum") < 10
            for _, rows in cells[few].groupby(list(names)):
                yield np.isin(np.arange(len(cells)), rows.index).astype(float)


@pytest.mark.parametrize("levels", [(2, 1, 4), (2, 3, 2), (3, 2, 5)])
def test_no_solver_recovers_few_people_of_a_stratum(seed, levels):
    rows, chosen, _ = people(seed, levels, n=400)
    attributes = [name for name in rows if name != "s"]
    given = {"sensitive_features": rows[attributes], "control_features": rows[["s"]]}
    plain = json.loads(audit(None, chosen, **given, **QUICK).to_json())
    left = rows
    for _ in attributes:
        sizes = [left[name].map(left[name].value_counts()) for name in attributes]
        left = left[np.min(sizes, axis=0) >= 10]
    cells = left.groupby(list(rows)).size().reset_index(name="n")
    inside, n_rows = map(np.array, zip(*sums_of(plain, cells, {"selection_rate"}), strict=True))
    np.testing.assert_allclose(inside @ cells["n"], n_rows)
    assert n_rows.min() >= 10
    assert plain["strata"]
    for asked in secrets_of(cells, cells["n"], list(rows)):
        ends = [
            sign * linprog(sign * asked, A_eq=inside, b_eq=n_rows, bounds=(1, None)).fun
            for sign in (1, -1)
        ]
        assert ends[1] - ends[0] >= 1


def test_what_is_left_of_a_group_is_no_few_people(seed):
    """Also if there are too many crossed groups to list them."""
    rng, n = generator(seed), 3000
    rows = pd.DataFrame({name: rng.integers(6, size=n) for name in "abc"})
    rows["s"] = rng.choice(list("uvwxyz"), n, p=[0.7, 0.2, 0.09, 0.004, 0.003, 0.003])
    given = {"sensitive_features": rows[[*"abc"]], "control_features": rows["s"]}
    found = audit(None, rng.integers(0, 2, n), **given, **QUICK)
    assert "a x b x c" not in set(found.rates["view"])
    for name in "abc":
        sums = found.strata.query("view == @name").groupby("group")["n"].sum()
        left = rows[name].astype(str).value_counts() - sums
        assert sums.min() > 300
        assert ((left == 0) | (left >= 10)).all()


@pytest.mark.parametrize("levels", [(2, 1, 4), (2, 3, 2), (3, 2, 5)])
def test_no_rate_and_difference_tell_a_rate_that_is_hidden(seed, levels):
    rows, chosen, _ = people(seed, levels, n=400)
    rows.loc[:4, "s"], rows.loc[:4, "a"] = "t", "u"  # 5 people, who hide another stratum
    attributes = [name for name in rows if name != "s"]
    given = {"sensitive_features": rows[attributes], "control_features": rows[["s"]]}
    found = audit(None, chosen, **given, n_simulations=5)
    table = found.strata
    names = table["group"] + " (stratum " + table["stratum"] + ")"
    listed = {*zip(table["view"], names, strict=True)}
    gaps = found.gaps.query("is_conditional and view in @attributes")
    for sides in (["first_group", "second_group"], ["clear_first", "clear_second"]):
        for view, *pair in gaps[["view", *sides]].itertuples(index=False):
            assert len(listed & {(view, name) for name in pair}) != 1
    assert (found.within["n_strata"] > 0).any()


@pytest.mark.parametrize("levels", [(2, 1, 4), (2, 3, 2)])
def test_rates_of_few_people_of_a_class_are_in_no_span(seed, levels):
    rows, chosen, y = people(seed, levels, n=700)
    attributes = [name for name in rows if name != "s"]
    given = {"sensitive_features": rows[attributes], "control_features": rows[["s"]]}
    found = audit(y, chosen, **given, n_simulations=5)
    hidden = [rows[v].isin(found.hidden.query("view == @v").group) for v in attributes]
    kept = rows[~np.any(hidden, axis=0)]
    frame = kept.assign(y=y[kept.index], p=chosen[kept.index])
    cells = frame.groupby(list(rows)).size().reset_index(name="n")
    plain = json.loads(found.to_json())
    measures = {"true_positive_rate", "false_positive_rate", "accuracy"}
    span = np.array([own for own, _ in sums_of(plain, cells, measures)]).reshape(-1, len(cells))
    rank = np.linalg.matrix_rank(span)
    for column, label in itertools.product("yp", (0, 1)):
        counts = frame[frame[column] == label].groupby(list(rows)).size()
        counts = counts.reindex(pd.MultiIndex.from_frame(cells[list(rows)]), fill_value=0)
        for asked in secrets_of(cells, counts.reset_index(drop=True), list(rows)):
            if asked @ counts.to_numpy() > 0:
                assert np.linalg.matrix_rank(np.vstack([span, asked])) > rank


WITHIN = "within department: demographic_parity_difference"


def test_a_gate_within_levels_is_about_the_worst_level():
    rows = departments(is_reversed=True, n_reversed=2)
    found = audited(rows)
    by_cell = rows.groupby(["department", "sex"])["selected"].mean().unstack()
    worst = float((by_cell["f"] - by_cell["m"]).abs().max())
    for text in (WITHIN, WITHIN.replace("within", "sex, within")):
        check = found.check(f"{text} > 0.5")
        assert check.value == pytest.approx(worst)
        assert (check.outcome, check.view, check.scope) == ("pass", "sex", "within department")
        assert "(sex, within department: " in check.sentence
        assert found.check(f"{text} > 0.02").outcome == "fail"
    ratio = float((by_cell.min(axis=1) / by_cell.max(axis=1)).min())
    check = found.check("within department: demographic_parity_ratio < 0.9")
    assert (check.value, check.outcome) == (pytest.approx(ratio), "fail")
    over_all = found.check("demographic_parity_difference > 0.5")
    assert "(sex, over all rows, not within department: " in over_all.sentence
    again = Audit.from_dict(json.loads(found.to_json()))
    assert again.check(f"{WITHIN} > 0.02").sentence == found.check(f"{WITHIN} > 0.02").sentence
    plain = audit(None, rows["selected"], sensitive_features=rows[["sex"]])
    assert "over all rows" not in plain.check("demographic_parity_difference > 0.5").sentence


def test_a_gate_over_all_rows_and_one_within_levels_answer_two_questions():
    even = counted({(g, d, r): 500 for g in "fm" for d, r in (("easy", 0.8), ("hard", 0.2))})
    moved = even[(even["sex"] == "m") | (even["department"] == "hard") | (even.index % 5 == 0)]
    found = audited(moved)
    assert found.check("demographic_parity_difference > 0.15").outcome == "fail"
    assert found.check(f"{WITHIN} > 0.15").outcome == "pass"


def test_levels_that_cannot_be_compared_keep_a_gate_within_levels_from_passing():
    few = counted({("f", "small", 0.5): 12, ("m", "small", 0.5): 400, ("m", "men", 0.5): 200})
    found = audited(pd.concat([departments(is_reversed=False), few], ignore_index=True))
    check = found.check(f"{WITHIN} > 0.5")
    assert check.outcome == "inconclusive"
    assert "level men" in check.undefined
    assert "level small" in check.undefined
    assert found.check(f"{WITHIN} > 0.5", allow_undefined=True).outcome == "pass"
    assert found.check(f"{WITHIN} > 0.02").outcome == "fail"
    assert found.check("demographic_parity_difference > 0.5").undefined == ""


def test_a_condition_within_levels_that_the_audit_does_not_have_is_refused():
    rows = departments(is_reversed=False)
    with pytest.raises(ValueError, match="within 'year', but the audit .* within 'department'"):
        audited(rows).check("within year: demographic_parity_difference > 0.1")
    plain = audit(None, rows["selected"], sensitive_features=rows[["sex"]])
    with pytest.raises(ValueError, match="over all rows. Pass these columns"):
        plain.check(f"{WITHIN} > 0.1")


def test_the_shell_has_a_gate_within_levels(tmp_path, capsys):
    rows = departments(is_reversed=True)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    command = ["audit", str(tmp_path / "rows.csv"), "--prediction", "selected"]
    command += ["--sensitive", "sex", "--control", "department", "--fail-if"]
    assert main([*command, f"{WITHIN} > 0.02"]) == 1
    assert "(sex, within department: " in capsys.readouterr().err
    assert main([*command, f"{WITHIN} > 0.5"]) == 0
    assert main([*command, "demographic_parity_difference > 0.5"]) == 0
    assert "over all rows, not within department" in capsys.readouterr().err
    assert main([*command, "within year: demographic_parity_difference > 0.5"]) == 2
    assert "--control" in capsys.readouterr().err
