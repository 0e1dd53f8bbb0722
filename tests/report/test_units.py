"""Audits of rows that belong together: persons are counted, and the same numbers hold."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skfair.__main__ import main
from skfair.exceptions import RepeatedRowsWarning
from skfair.groups.rates import CellMeans
from skfair.groups.row_units import read_units
from skfair.report import Audit, audit, audit_data, find_subgroups
from skfair.report.tables.subgroups import list_tables
from skfair.utils.factorize import factorize
from tests.report.schema import breaches
from tests.seeds import generator, seed_of

QUICK = {"n_simulations": 60, "title": "T"}


def persons(n=120, k=1, seed=0):
    """Columns of n persons with k rows each, all the same."""
    rng = generator(seed)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "age": rng.choice(["old", "young"], n),
            "y": rng.integers(0, 2, n),
            "score": rng.random(n).round(2),
            "person": np.arange(n),
        }
    )
    return frame.loc[frame.index.repeat(k)].reset_index(drop=True)


def visits(n=80, seed=0, is_alike=True):
    """Persons with 1 to 9 rows, whose age band may change."""
    rng = generator(seed)
    person = np.repeat(np.arange(n), rng.integers(1, 10, n))
    own = rng.normal(size=n)[person] if is_alike else 0.0
    score = own + 0.3 * rng.normal(size=person.size)
    return pd.DataFrame(
        {
            "sex": np.where(person % 2, "f", "m"),
            "age": np.where(rng.random(person.size) < 0.3, "old", "young"),
            "y": rng.integers(0, 2, person.size),
            "score": np.round(1 / (1 + np.exp(-score)), 3),
            "person": person,
        }
    )


def audited(frame, units=None, **options):
    groups = frame[["sex", "age"]]
    decided = frame["score"] > 0.5
    scores = frame["score"].to_numpy()
    return audit(
        frame["y"],
        decided,
        y_score=scores,
        sensitive_features=groups,
        units=units,
        **QUICK | options,
    )


@pytest.mark.parametrize("seed", range(3))
def test_copies_of_every_row_add_nothing(seed):
    once, copied = persons(seed=seed), persons(k=4, seed=seed)
    alone, repeated = audited(once), audited(copied, copied["person"])
    assert repeated.n_rows == 4 * alone.n_rows
    assert repeated.n_units == alone.n_rows
    for name, columns in (
        ("rates", ["value", "value_low", "value_high"]),
        ("gaps", ["value", "value_low", "value_high", "noise_upper", "p_value"]),
        ("subgroups", ["value", "standard_errors", "p_value"]),
        ("calibration", ["mean_target", "mean_target_low", "mean_target_high"]),
    ):
        pair = (getattr(own, name)[columns] for own in (alone, repeated))
        pd.testing.assert_frame_equal(*pair, rtol=1e-9, atol=1e-9)
    assert (repeated.rates["n_units"] * 4 == repeated.rates["n"]).all()
    rows, people = (
        own.rates.query("measure == 'selection_rate'") for own in (audited(copied), repeated)
    )
    assert (rows["value_low"] > people["value_low"]).all()


@pytest.mark.parametrize("n_copies", [3, 4, 7])
def test_copies_are_exactly_as_many_people(n_copies):
    """Ten people were 9.9999 by rounding: their rates were hidden, and other noise was drawn."""
    sizes, hits = np.nonzero(np.tri(60, dtype=bool)[1:])  # all shares of up to 59 people
    sizes = sizes + 1
    cells = np.repeat(np.arange(sizes.size), sizes)
    place = np.arange(cells.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.repeat(np.arange(cells.size), n_copies)
    chosen = place < hits[cells]
    units = read_units(rows, rows.size)
    found = CellMeans.of_rows(chosen[rows], None, cells[rows], sizes.size, units=units)
    np.testing.assert_array_equal(found.n_effective, sizes)


def test_a_unit_for_each_row_changes_nothing():
    frame = persons()
    plain = audited(frame).to_json()
    assert audited(frame, generator(0).permutation(120)).to_json() == plain
    assert "units" not in plain
    columns = frame[["score", "y"]]
    pair = [
        find_subgroups(frame["y"], frame["score"] > 0.5, columns=columns, n_bins=2, units=units)
        for units in (None, frame["person"])
    ]
    pd.testing.assert_frame_equal(*pair)
    pair = [
        audit_data(
            columns, sensitive_features=frame["sex"], y=frame["y"], units=units, n_simulations=60
        ).to_json()
        for units in (None, frame["person"])
    ]
    assert pair[0] == pair[1]


def test_the_order_of_rows_and_the_names_of_persons_change_nothing():
    frame = visits()
    other = frame.sample(frac=1, random_state=seed_of(0)).reset_index(drop=True)
    names = [f"p{99 - i}" for i in other["person"]]
    one, two = audited(frame, frame["person"]), audited(other, names)
    for name in ("rates", "gaps", "subgroups"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(two, name), rtol=1e-9)
    # The row of each person that counts in the shares is drawn by what is in it.
    options = {"reference_shares": {"age": {"old": 0.5, "young": 0.5}}, "n_simulations": 60}
    one, two = (
        audit_data(
            own[["score", "sex"]],
            sensitive_features=own[["age"]],
            y=own["y"],
            units=own["person"],
            **options,
        )
        for own in (frame, other)
    )
    pd.testing.assert_frame_equal(one.shares, two.shares)


@pytest.mark.parametrize("is_alike", [True, False])
def test_a_view_is_worth_what_its_rows_are(is_alike):
    """Also of persons who have rows in several groups, as if only this attribute were audited."""
    frame = visits(n=400, is_alike=is_alike)  # many enough for groups of both attributes
    both = audited(frame, frame["person"]).rates
    for name in ("sex", "age"):
        decided = frame["score"] > 0.5
        alone = audit(
            frame["y"], decided, sensitive_features=frame[[name]], units=frame["person"], **QUICK
        ).rates
        kept = both[both["view"].isin(["", name]) & both["measure"].isin(alone["measure"])]
        order = ["view", "group", "measure"]
        pair = (own.sort_values(order, ignore_index=True) for own in (kept, alone))
        pd.testing.assert_frame_equal(*pair, rtol=1e-9)


def test_intervals_are_wider_where_rows_are_alike():
    widths = {}
    for is_alike in (True, False):
        frame = visits(n=200, is_alike=is_alike)
        for units in (None, frame["person"]):
            rates = audited(frame, units).rates.query("measure == 'selection_rate'")
            width = (rates["value_high"] - rates["value_low"]).mean()
            widths[is_alike, units is None] = width
    assert widths[True, False] > 1.5 * widths[True, True]
    assert widths[False, False] < 1.2 * widths[False, True]


@pytest.mark.slow
def test_no_difference_is_seldom_beyond_chance():
    """By rows, of which each person has dozens, there nearly always is one."""
    n_found = np.zeros((2, 2), int)
    for seed in range(20):
        frame = pd.concat([visits(n=100, seed=seed)] * 12, ignore_index=True)
        rng = generator(seed)
        columns = {"own": rng.normal(size=100)[frame["person"]], "visit": frame["age"]}
        for i, units in enumerate((None, frame["person"])):
            given = {"units": units, "n_simulations": 60}
            chosen, groups = frame["score"] > 0.5, frame[["sex", "age"]]
            found = audit(None, chosen, sensitive_features=groups, **given)
            n_found[0, i] += found.gaps["is_beyond_chance"].any() or found.n_beyond_chance > 0
            found = find_subgroups(None, chosen, columns=columns, **given)
            n_found[1, i] += found["is_beyond_chance"].any()
    most = stats.binom.isf(1e-7, 20, 0.05)
    assert (n_found[:, 0] > most).all()
    assert (n_found[:, 1] <= most).all()


def test_groups_of_few_persons_are_hidden_whatever_their_rows():
    frame = visits(n=120)
    frame["sex"] = np.where(frame["person"] < 8, "x", frame["sex"])
    extra = pd.concat([frame, *[frame[frame["person"] < 8]] * 9])
    assert (extra["sex"] == "x").sum() > 100
    found = audited(extra, extra["person"])
    assert ["sex", "x"] in found.hidden.to_numpy().tolist()
    assert "x" not in set(found.rates["group"])
    assert found.n_left_out is None
    assert "fewer than 10 persons: x (sex)" in repr(found)
    compared = audited(extra, extra["person"], suppress_below=1)
    rates = compared.rates.query("group == 'x'")
    assert (rates["apart"] == "small").all()
    assert (rates["n_units"] == 8).all()
    assert "x (sex, 8 persons, too few)" in repr(compared)
    assert not set(rates["apart"]) & set(audited(extra).rates.query("group == 'x'")["apart"])


def test_no_bin_of_scores_has_fewer_persons_than_may_be_shown():
    """A person with hundreds of rows is one person."""
    frame = visits(n=60)
    many = pd.concat([frame, *[frame[frame["person"] < 2]] * 100])
    table = audited(many, many["person"]).calibration
    decided = many.assign(sex_age=many["sex"] + many["age"])
    for row in table[table["view"] == "sex"].itertuples():
        own = decided[decided["sex"] == row.group]
        last = row.bin == table[(table["view"] == "sex") & (table["group"] == row.group)].bin.max()
        upper = own["score"] <= row.score_high if last else own["score"] < row.score_high
        assert own[(own["score"] >= row.score_low) & upper]["person"].nunique() >= 10


def test_the_head_counts_persons(tmp_path):
    frame = visits()
    found = audited(frame, frame["person"])
    n_split = int((frame.groupby("person")["age"].nunique() > 1).sum())
    assert found.n_in_several == {"sex": 0, "age": n_split}
    size = f"{len(frame):,} rows of 80 persons"
    assert repr(found).startswith(f"T: {size}, read as 2 classes; positive: ")
    several = f"{n_split} of 80 persons have rows in several groups of age"
    for text in (found.to_html(), found.to_markdown()):
        assert size in text
        assert several in text
        assert "in several groups of sex" not in text
    plain = found.to_dict()
    assert breaches(plain, Audit.schema()) == []
    assert repr(Audit.from_dict(json.loads(found.to_json()))) == repr(found)


def test_a_subgroup_has_as_many_persons():
    frame = visits()
    columns = {name: factorize(frame[name].to_numpy()) for name in ("sex", "age")}
    shares = 1 / frame.groupby("person")["y"].transform("size").to_numpy()
    n_kept = 0
    for table in list_tables(columns, None, 2, 20, shares):
        for place in table.kept:
            assert frame["person"][table.codes == place].nunique() >= 20
            n_kept += 1
    assert n_kept >= 2


def test_an_audit_of_data_counts_persons():
    frame = persons(n=150)
    copied = frame.loc[frame.index.repeat(5)].sample(frac=1, random_state=seed_of(0))
    options = {"reference_shares": {"f": 0.5, "m": 0.5}, "n_simulations": 60}
    once, again = (
        audit_data(
            own[["score", "age"]], sensitive_features=own["sex"], y=own["y"], units=units, **options
        )
        for own, units in ((frame, None), (copied, copied["person"]))
    )
    names = ["n", "share", "share_low", "share_high", "p_value"]
    pd.testing.assert_frame_equal(once.shares[names], again.shares[names])
    names = ["value", "value_low", "value_high", "p_value"]
    pd.testing.assert_frame_equal(once.gaps[names], again.gaps[names], rtol=1e-9)
    assert again.n_units == 150
    assert "750 rows of 150 persons" in again.to_html()


@pytest.mark.parametrize("block_rows", [50, 5000])
def test_a_file_names_its_persons(tmp_path, block_rows):
    frame = visits().sample(frac=1, random_state=seed_of(0))
    frame["decided"] = (frame["score"] > 0.5).astype(int)
    path, out = tmp_path / "rows.csv", tmp_path / "out.json"
    frame.to_csv(path, index=False)
    given = ["--units", "person", "--out", str(out), "--block-rows", str(block_rows), "--force"]
    columns = ["--target", "y", "--prediction", "decided", "--sensitive", "sex,age"]
    assert main(["audit", str(path), *columns, "--title", "T", *given]) == 0
    report = json.loads(out.read_text(encoding="utf-8"))
    groups = {"sensitive_features": frame[["sex", "age"]], "units": frame["person"]}
    wanted = audit(frame["y"], frame["decided"], **groups)
    pd.testing.assert_frame_equal(pd.DataFrame(report["rates"]), wanted.rates, check_dtype=False)
    assert report["n_units"] == 80
    assert report["columns"]["units"] == "person"
    columns = ["--target", "y", "--sensitive", "sex"]
    assert main(["audit-data", str(path), *columns, *given]) == 0
    report = json.loads(out.read_text(encoding="utf-8"))
    assert (report["n_units"], report["n_columns"]) == (80, 3)


def applicants(seed=0, n=600):
    """People with one to three applications each, one row each; half of them are selected."""
    rng = generator(seed)
    person = np.repeat(np.arange(n), np.append(2, rng.integers(1, 4, n - 1)))
    rows = pd.DataFrame({"Applicant ID": person, "Sex": rng.choice(["F", "M"], n)[person]})
    return rows.assign(Outcome=rng.integers(0, 2, len(rows)))


def asked_of_people(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if w.category is RepeatedRowsWarning]


def test_an_audit_asks_for_units_if_an_unused_column_or_index_repeats():
    rows = applicants()
    indexed = rows.set_index("Applicant ID")
    sex, outcome, person = rows[["Sex"]], rows["Outcome"], rows["Applicant ID"]
    calls = {
        "index": lambda **how: audit(
            None, indexed["Outcome"], sensitive_features=indexed[["Sex"]], **QUICK, **how
        ),
        "columns": lambda **how: audit_data(
            rows[["Applicant ID"]], outcome, sensitive_features=sex, n_simulations=20, **how
        ),
    }
    for call in calls.values():
        (asked,) = asked_of_people(call)
        assert f"Applicant ID has 600 values in {len(rows):,} rows" in asked
        assert "--units 'Applicant ID' in a shell" in asked
        assert asked_of_people(lambda call=call: call(units=person.to_numpy())) == []
    # Nobody repeats, or the name is not one of people.
    once = rows.drop_duplicates("Applicant ID").set_index("Applicant ID")
    once = audit, (None, once["Outcome"]), once[["Sex"]]
    named = rows.rename(columns={"Applicant ID": "department"}).set_index("department")
    for make, given, groups in (once, (audit, (None, named["Outcome"]), named[["Sex"]])):
        call = lambda: make(*given, sensitive_features=groups, **QUICK)  # noqa: B023, E731
        assert asked_of_people(call) == []


@pytest.mark.filterwarnings("always:Rows look as if people repeat")
@pytest.mark.parametrize("preset", [[], ["--preset", "ugesp"]])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_shell_asks_for_the_units_of_an_unused_column(tmp_path, capsys, preset, kind):
    rows, path = applicants(), tmp_path / f"rows.{kind}"
    write = rows.to_csv if kind == "csv" else rows.to_parquet
    write(path, index=False)
    given = ["audit", str(path), "--prediction", "Outcome", "--sensitive", "Sex", *preset]
    given += ["--block-rows", "100"]
    assert main(given) == 0
    assert "(--units 'Applicant ID' in a shell)" in capsys.readouterr().err
    assert main([*given, "--units", "Applicant ID"]) == 0
    assert "people repeat" not in capsys.readouterr().err


@pytest.mark.parametrize("rule", ["any", "last"])
def test_a_preset_counts_each_person_once(tmp_path, capsys, rule):
    """The same tables as of a file with one row of each person, from Python and a shell."""
    rows, path, out = applicants(), tmp_path / "rows.csv", tmp_path / "u.json"
    people = rows.groupby("Applicant ID").agg(
        Sex=("Sex", "first"), Outcome=("Outcome", "max" if rule == "any" else "last")
    )
    groups = people[["Sex"]].reset_index(drop=True)
    wanted = audit(None, people["Outcome"].to_numpy(), sensitive_features=groups, preset="ugesp")
    given = {"sensitive_features": rows[["Sex"]], "units": rows["Applicant ID"]}
    found = audit(None, rows["Outcome"], preset="ugesp", units_rule=rule, **given)
    pd.testing.assert_frame_equal(found.impact, wanted.impact)
    pd.testing.assert_frame_equal(found.rates, wanted.rates)
    said = "a person is selected if " + {"any": "any of their rows", "last": "their last row"}[rule]
    assert f"600 rows (600 people of {len(rows):,} rows; {said} is)" in repr(found)
    assert said in found.to_html()
    rows.to_csv(path, index=False)
    command = ["audit", str(path), "--prediction", "Outcome", "--sensitive", "Sex", "--out"]
    command += [str(out), "--preset", "ugesp", "--units", "Applicant ID", "--units-rule", rule]
    assert main([*command, "--block-rows", "100"]) == 0
    assert said in capsys.readouterr().out
    report = pd.DataFrame(json.loads(out.read_text(encoding="utf-8"))["impact"])
    for column in ("group", "n", "selected"):
        assert report[column].tolist() == wanted.impact[column].tolist()


def test_a_preset_wants_one_group_and_one_rule_of_each_person():
    rows = applicants()
    given = {"sensitive_features": rows[["Sex"]], "units": rows["Applicant ID"], "preset": "ugesp"}
    moved = rows[["Sex"]].copy()
    moved.loc[0, "Sex"] = "F" if rows["Sex"][1] == "M" else "M"
    with pytest.raises(ValueError, match="with several values of 'Sex'.*Give each person one"):
        audit(None, rows["Outcome"], **given | {"sensitive_features": moved})
    with pytest.raises(ValueError, match="Pass decisions as y_pred, or y_score with threshold"):
        audit(rows["Outcome"], y_score=rows["Outcome"] / 2, **given)
    with pytest.raises(ValueError, match="units_rule must be 'any' or 'last', got 'all'"):
        audit(None, rows["Outcome"], units_rule="all", **given)
    with pytest.raises(ValueError, match="Pass preset= and units="):
        audit(None, rows["Outcome"], units_rule="last", **given | {"preset": None})
