"""The page on which a committee chooses a limit, made from a file on the command line."""

import json
import re
import shlex
from contextlib import redirect_stdout
from io import StringIO

import joblib
import numpy as np
import pandas as pd
import pytest

from skfair.__main__ import main
from skfair.model_selection import fairness_path
from skfair.records.decision_memo import checksum
from tests.seeds import generator

N = 600


@pytest.fixture(scope="module")
def frame():
    rng = generator(0)
    sex, paid = rng.choice(["f", "m"], N, p=[0.4, 0.6]), rng.random(N) < 0.5
    score = paid + 0.8 * (sex == "m") + rng.normal(size=N)
    words = np.where(rng.random(N) < 0.8, paid, ~paid)
    return pd.DataFrame(
        {
            "sex": sex,
            "age": rng.choice(["old", "young"], N),
            "score": score.round(3),
            "home": pd.Series(np.where(words, "own", "rent")).mask(rng.random(N) < 0.1),
            "income": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
            "old": np.where(score > 1.5, "yes", "no"),
            "paid": np.where(paid, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def chosen_from(frame, tmp_path_factory):
    """Return what makes a page from the rows, and reads the numbers that it holds.

    What is printed comes third. Pages of the same rows and options are made once.
    """
    folder, made = tmp_path_factory.mktemp("pages"), {}
    file, out = folder / "loans.csv", folder / "choice.html"

    def run(*options, rows=frame, usual=("--score", "score"), limits="20%,0.05", anew=False):
        key = joblib.hash((options, rows, usual, limits))
        if key in made and not anew:
            return made[key]
        rows.to_csv(file, index=False)
        columns = ["--target", "paid", "--sensitive", "sex", "--pos-label", "yes", *usual]
        given = [
            "choose",
            str(file),
            *columns,
            "--out",
            str(out),
            "--limits",
            limits,
            "--force",
            *options,
        ]
        with redirect_stdout(StringIO()) as told:
            assert main(given) == 0
        text = out.read_text(encoding="utf-8")
        (plain,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
        made[key] = json.loads(plain), text, told.getvalue()
        return made[key]

    return run


def accuracy(data, step=0):
    return data["steps"][step]["numbers"]["accuracy"][0]


def test_trees_read_words_and_missing_values(chosen_from):
    """Homes say in 80% of the cases who pays back, so trees that read them are right as often."""
    options = ("--columns", "home,income", "--group-aware")
    data, text, told = chosen_from(*options, usual=(), limits="1,0.1")
    assert accuracy(data) == pytest.approx(0.77, abs=0.15)
    for name in ("boosted trees (HistGradientBoostingClassifier)", "loans.csv"):
        assert name in text
    head, names, *lines, where = told.strip().split("\n")
    assert "boosted trees (HistGradientBoostingClassifier)" in head
    assert "300 rows and judged on 300 rows" in head
    assert "choice.html" in where
    assert " ".join(names.split()) == "limit selected difference by sex kept accuracy"
    rows = [line.rsplit(maxsplit=4) for line in lines]
    held = ", overall rate held"
    assert [row[0].strip() for row in rows] == ["100%", "10%", f"100%{held}", f"10%{held}"]
    for (_, rate, gap, kept, right), step in zip(rows, data["steps"], strict=True):
        numbers, shown = step["numbers"], gap_of(step)
        reached = [float(text) for text in (rate, gap, right)]
        values = numbers["rate"][0], shown["value"], numbers["accuracy"][0]
        np.testing.assert_allclose(reached, values, atol=6e-4)
        assert kept == ("yes" if shown["is_kept"] else "no")


def gap_of(step):
    (gap,) = step["numbers"]["attributes"]["sex"]["disparities"].values()
    return gap


@pytest.mark.filterwarnings("default::skfair.exceptions.SmallGroupWarning")
def test_the_printed_table_gives_no_hidden_group_away(chosen_from, frame):
    """Thirty people of another sex: neither table nor page has a number that counts them."""
    rows = frame.assign(sex=frame["sex"].where(frame.index >= 30, "divers"))
    options = ("--group-aware", "--suppress-below", "40")
    data, text, told = chosen_from(*options, rows=rows, limits="1,0.2")
    _, _, *rows, left_out, _ = told.strip().split("\n")
    assert left_out == "Not compared, sex: divers (too few people)."
    for row, step in zip(rows, data["steps"], strict=True):
        gap, numbers = gap_of(step), step["numbers"]
        *_, rate, apart, kept, right = row.split()
        values = numbers["rate"][0], gap["value"], numbers["accuracy"][0]
        assert [float(rate), float(apart), float(right)] == pytest.approx(values, abs=6e-4)
        assert kept == {None: "open", False: "no"}[gap["is_kept"]]
        assert gap["not_compared"] == "divers (too few people)"
        assert gap["is_kept"] in (None, False)
        assert set(step["numbers"]["attributes"]["sex"]["groups"]) == {"f", "m"}
    assert "the limit is kept for sex:" not in text


def test_the_limit_that_is_chosen_is_one_for_gates_and_monitors(chosen_from):
    monitor = pytest.importorskip("skfair.monitoring").DisparityMonitor
    data, *_ = chosen_from("--group-aware")
    for step in data["steps"]:
        limit = monitor(max_disparity=data["memo"] | step).max_disparity
        assert limit in ({"sex": 1.0}, {"sex": 0.2}, {"sex": 0.05})
    assert [step["holds_overall_rate"] for step in data["steps"]] == [False] * 3 + [True] * 3


def test_scores_stand_in_place_of_all_columns(chosen_from, frame):
    rng = generator(0)
    paid, noise = frame["paid"] == "yes", rng.normal(size=N)
    of_scores = (
        accuracy(chosen_from("--group-aware", rows=frame.assign(score=score), limits="1")[0])
        for score in (paid + 0.2 * noise, noise)
    )
    assert next(of_scores) > 0.9
    assert next(of_scores) < 0.65


def test_changes_are_counted_against_the_decisions_of_today(chosen_from, frame):
    """Which come first among the limits; without them no step is without a limit."""
    data, *_ = chosen_from("--before", "old", "--group-aware", limits="0.05")
    first, second, *_ = data["steps"]
    assert (first["label"], first["limits"], second["label"]) == ("none", None, "5%")
    assert accuracy(data) == pytest.approx((frame["old"] == frame["paid"]).mean(), abs=0.12)
    assert first["numbers"]["newly"] == first["numbers"]["no_longer"] == 0
    assert second["numbers"]["newly"] > 0
    data, *_ = chosen_from("--group-aware")
    assert [step["label"] for step in data["steps"][:3]] == ["100%", "20%", "5%"]


def test_a_person_is_in_one_half_only(chosen_from, frame):
    """A third of the rows is of one man, so that halves of the rows are none of the people."""
    is_one = np.arange(N) < N // 3
    rows = frame.assign(who=np.where(is_one, -1, np.arange(N)))
    rows["sex"] = rows["sex"].mask(is_one, "m")
    for options, are_halves in ((["--units", "who"], False), ([], True)):
        told = chosen_from("--group-aware", *options, rows=rows, limits="1")[2]
        fitted, judged = re.search(r"fitted to (\d+) rows and judged on (\d+) rows", told).groups()
        assert (fitted == judged) == are_halves


def test_options_reach_the_page(chosen_from):
    data, text, _ = chosen_from(limits="1")
    assert "granted" not in text
    assert data["steps"][0]["group_aware"] is False
    given = ["--decided", "granted", "--title", "Our limit", "--group-aware"]
    given += ["--constraint", "equal_opportunity", "--confidence", "0.99"]
    changed, text, _ = chosen_from(*given, limits="1")
    assert "granted" in text
    assert "<title>Our limit" in text
    assert changed["steps"][0]["group_aware"] is True
    assert changed["memo"]["metric"] == "equal_opportunity_difference"
    low, high, wider_low, wider_high = (
        end for own in (data, changed) for end in own["steps"][0]["numbers"]["accuracy"][1:]
    )
    assert wider_high - wider_low > high - low


def test_the_seed_says_which_rows_judge(chosen_from):
    first, other = (
        chosen_from("--group-aware", "--random-state", seed, limits="1")[0] for seed in "12"
    )
    again, *_ = chosen_from("--group-aware", "--random-state", "1", limits="1", anew=True)
    assert first == again
    assert first["steps"][0]["fingerprint"] != other["steps"][0]["fingerprint"]


def test_small_groups_are_not_shown(chosen_from, frame):
    rows = frame[(frame["sex"] == "m") | (frame.index % 3 == 0)]  # about 360 men and 80 women
    every, shown = (
        chosen_from("--group-aware", *options, rows=rows, limits="1")[0]["steps"][0]["numbers"]
        for options in ([], ["--suppress-below", "100"])
    )
    every, shown = every["attributes"], shown["attributes"]
    assert every["sex"]["groups"]["f"]["n"] < 100
    assert "f" not in shown.get("sex", {"groups": {}})["groups"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "choice.md"], "--out must end in .html, got 'choice.md'"),
        (["--limits", "5"], "--limits 5 limits nothing.*Pass a share"),
        (["--pos-label", "ja"], "--pos-label 'ja' is not one of the labels of paid: 'no', 'yes'"),
        (["--target", "home"], "missing values.*--drop-missing target"),
        (["--target", "piad"], "no column 'piad'.*Did you mean 'paid'"),
        (["--score", "home"], "home must be numeric .*--decimal ,.*, got values like"),
        (["--score", "income"], "income has .* values that are NaN.*--drop-missing score"),
        (["--sensitive", "home"], "--missing unknown"),
        (["--constraint", "parity"], "constraint"),
        (["--before", "home", "--pos-label", "yes"], "home has"),
    ],
)
def test_wrong_arguments_say_what_to_do(frame, tmp_path, capsys, options, message):
    file = tmp_path / "loans.csv"
    frame.to_csv(file, index=False)
    usual = ["--target", "paid", "--pos-label", "yes", "--score", "score"]
    usual += ["--sensitive", "sex"] * ("--sensitive" not in options)
    out = str(tmp_path / "choice.html")
    assert main(["choose", str(file), *usual, "--out", out, *options]) == 2
    told = capsys.readouterr().err
    assert told.startswith("skfair choose: ")
    assert re.search(message, told), told
    assert not (tmp_path / "choice.html").exists()


def lenders(seed=0, n=800, apart=2.0):
    """Men have higher scores, by far by default, and today a third is granted a loan."""
    rng = generator(seed)
    sex = rng.choice(["f", "m"], n)
    score = rng.normal(size=n) + apart * (sex == "m")
    paid = score + rng.normal(size=n) > 0.5
    return pd.DataFrame(
        {
            "sex": sex,
            "score": score.round(3),
            "job": np.where(rng.random(n) < np.where(sex == "m", 0.9, 0.1), "build", "care"),
            "paid": np.where(paid, "yes", "no"),
            "granted": np.where(score > np.quantile(score, 2 / 3), "granted", "refused"),
        }
    )


AWARE = ["--group-aware"]
TODAY = ["--before", "granted", "--pos-label", "granted", "--pos-label-true", "yes"]


@pytest.mark.parametrize("options", [[], ["--group-aware"], ["--columns", "job"]])
def test_a_large_change_of_the_rate_is_said_with_what_to_do(chosen_from, options):
    """Of a third today, about the half that pays back is selected if nothing holds the rate."""
    data, _, told = chosen_from(*TODAY, *options, rows=lenders(), limits="1")
    base = data["steps"][0]["numbers"]["rate"][0]
    moved = [
        step
        for step in data["steps"][1:]
        if step["limits"] and abs(step["numbers"]["rate"][0] - base) > 0.1
    ]
    assert moved
    (warning,) = re.findall("Warning: .*", told)
    assert f"from {base:.0%} (today) to {moved[0]['numbers']['rate'][0]:.0%} (" in warning
    assert warning.count("%)") + warning.count("held)") == len(moved)
    assert ("--group-aware" in warning) == (options != ["--group-aware"])
    assert ("One score tells little about the group" in told) == (options == [])


def test_no_change_of_the_rate_is_not_warned_of(chosen_from):
    assert "Warning" not in chosen_from("--group-aware", limits="1")[2]


def test_the_rate_of_today_is_held(chosen_from):
    """Page and table say the same of it: what the fit held, what it is here, what today is."""
    rows = lenders()
    data, text, _ = chosen_from(*TODAY, *AWARE, rows=rows, limits="0.3,1")
    today = (rows["granted"] == "granted").mean()
    held = [step for step in data["steps"] if step["holds_overall_rate"]]
    assert len(held) == 2
    for step in held:
        assert step["held_rate"] == pytest.approx(today)
        rate, before = (step["numbers"][name][0] for name in ("rate", "rate_before"))
        assert rate == pytest.approx(today, abs=0.15)
        said = (
            f"are selected at {today:.0%}. On these rows it is {rate:.0%}, and {before:.0%} today."
        )
        assert said in text
    assert "was held" not in text


def test_without_today_the_rate_of_the_model_is_held(chosen_from):
    data, text, _ = chosen_from(*AWARE, rows=lenders(apart=0.5), limits="0.3,1")
    rates = [step["held_rate"] for step in data["steps"] if step["holds_overall_rate"]]
    assert len(set(rates)) == 1
    assert f"are selected at {rates[0]:.0%}. On these rows it is" in text


def test_target_and_decisions_may_have_words_of_their_own(chosen_from, tmp_path, capsys):
    rows = lenders()
    same = rows.assign(granted=np.where(rows["granted"] == "granted", "yes", "no"))
    numbers = [
        [step["numbers"] for step in chosen_from(*options, rows=own, limits="0.3,1")[0]["steps"]]
        for own, options in ((rows, [*TODAY, *AWARE]), (same, ["--before", "granted", *AWARE]))
    ]
    assert numbers[0] == numbers[1]
    given = ["choose", str(tmp_path / "loans.csv"), "--target", "paid", "--sensitive", "sex"]
    given += ["--score", "score", "--out", str(tmp_path / "c.html"), "--before", "granted"]
    rows.to_csv(tmp_path / "loans.csv", index=False)
    for options, message in (
        (["--pos-label", "granted"], "not one of the labels of paid.*--pos-label-true for --t"),
        (["--pos-label", "yes"], "'granted', 'refused'.*--pos-label-true for --target"),
        ([*TODAY[2:5], "ja"], "--pos-label-true 'ja' is not one of the labels of paid"),
    ):
        assert main([*given, *options]) == 2
        assert re.search(message, capsys.readouterr().err)


@pytest.mark.slow
def test_columns_beside_the_score_tell_the_group(chosen_from):
    """Scores of men and women overlap; jobs tell nine of ten, so fewer decisions change."""
    rows = lenders(0, 1500)
    alone, beside = (
        chosen_from(*options, rows=rows, limits="0.05")[0]["steps"][1]["numbers"]
        for options in ([], ["--columns", "job"])
    )
    assert beside["accuracy"][0] > alone["accuracy"][0] + 0.02


def german(values, digits=2, unit=""):
    texts = (f"{value:,.{digits}f}" for value in values)
    return [text.translate(str.maketrans(",.", ".,")) + unit for text in texts]


def test_german_numbers_are_read_or_the_option_is_named(chosen_from, tmp_path, capsys):
    rows = lenders(0, 600)
    rows["score"] = (2000 * rows["score"]).round(2)
    for unit, times in (("", 1), (" %", 100)):
        plain = rows.assign(score=rows["score"] / times)
        written = rows.assign(score=german(rows["score"], unit=unit))
        first, second = (
            [step["numbers"] for step in chosen_from(*options, rows=own, limits="1")[0]["steps"]]
            for own, options in ((plain, AWARE), (written, [*AWARE, "--decimal", ","]))
        )
        assert first == second
    written.to_csv(tmp_path / "loans.csv", index=False)
    given = ["choose", str(tmp_path / "loans.csv"), "--target", "paid", "--sensitive", "sex"]
    given += ["--pos-label", "yes", "--out", str(tmp_path / "c.html")]
    for options in (["--score", "score"], ["--columns", "score"]):
        assert main([*given, *options]) == 2
        assert "--decimal ," in capsys.readouterr().err


def as_csv(rows, path):
    rows.to_csv(path, index=False)


def as_r(rows, path):
    """Write rows as R's write.table(sep=",") does: with names of rows, which have no name."""
    path.write_text(rows.set_axis(range(1, len(rows) + 1)).to_csv().removeprefix(","))


@pytest.fixture
def decide(tmp_path, chosen_from):
    """Return what decides about new rows by the memo of a step, and reads the decisions."""

    def run(step, new, *options, rows, fitted_on=None, code=0, limits="0.3,1", write=as_csv):
        data, *_ = chosen_from(*TODAY, *options, rows=rows, limits=limits)
        memo = data["memo"] | data["steps"][step]
        del memo["label"]
        memo |= {"date": "2026-12-01", "names": "A. Chair", "reasons": ""}
        (tmp_path / "decision.json").write_text(json.dumps(memo), encoding="utf-8")
        write(new, tmp_path / "new.csv")
        (rows if fitted_on is None else fitted_on).to_csv(tmp_path / "loans.csv", index=False)
        files = {"--memo": "decision.json", "--fitted-on": "loans.csv", "--out": "decided.csv"}
        given = [text for option, name in files.items() for text in (option, str(tmp_path / name))]
        assert main(["decide", str(tmp_path / "new.csv"), *given, "--force"]) == code
        if code:
            return None
        return pd.read_csv(tmp_path / "decided.csv", keep_default_na=False, dtype=str)

    return run


@pytest.mark.parametrize("options", [["--group-aware"], ["--columns", "job"], []])
def test_the_chosen_limit_is_put_into_force_and_its_gate_passes(decide, tmp_path, capsys, options):
    """Scores of both sexes are alike, so a limit of 30% is far from what new people show."""
    rows, new = (lenders(seed, apart=0.1) for seed in (1, 2))
    applicants = new.drop(columns=["paid", "granted"]).assign(note="NA")
    if "--group-aware" not in options:  # decisions do not use the group
        decided = decide(1, applicants.drop(columns="sex"), *options, rows=rows, limits="0.3")
        assert "sex" not in decided
    decided = decide(1, applicants, *options, rows=rows, limits="0.3")
    assert decided.drop(columns="decision").astype(str).equals(applicants.astype(str))
    assert set(decided["decision"]) == {"granted", "refused"}
    high = decided["score"].astype(float) > 1
    assert (decided["decision"][high] == "granted").mean() > 0.5
    check = re.search(r"Check the limit: python -m skfair (.*)", capsys.readouterr().out)[1]
    assert main(shlex.split(check)) == 0


def test_one_model_decides_where_it_is_asked_for(decide, monkeypatch):
    """The models of the page and the one of ``decide``, which fits it again, are single ones."""
    paths = []

    def path_of(*args, **options):
        paths.append(fairness_path(*args, **options))
        return paths[-1]

    monkeypatch.setattr("skfair.report.commands.choose.fairness_path", path_of)
    rows, new = (lenders(seed, n=400, apart=0.1) for seed in (1, 2))
    for options, is_single in ([], False), (["--one-model"], True):
        paths.clear()
        decided = decide(1, new, *AWARE, *options, rows=rows, limits="0.25")
        assert len(paths) > 1
        models = [model for path in paths for model in path.estimators]
        assert {hasattr(model, "estimator_") for model in models} == {is_single}
        predicted = (
            paths[-1]
            .estimators[-1]
            .predict(new[["score"]], sensitive_features=new["sex"].rename("sex"))
        )
        assert np.array_equal(decided["decision"] == "granted", predicted == 1)


@pytest.mark.parametrize("options", [["--group-aware"], ["--columns", "job"]])
def test_a_file_of_r_is_decided_about_as_the_same_rows_of_pandas(decide, options):
    rows, new = (lenders(seed, apart=0.1) for seed in (1, 2))
    applicants = new.drop(columns=["paid", "granted"])
    decided = decide(1, applicants, *options, rows=rows, limits="0.3")
    of_r = decide(1, applicants, *options, rows=rows, limits="0.3", write=as_r)
    assert of_r.pop("row.names").tolist() == [str(i + 1) for i in range(len(new))]
    assert of_r.equals(decided)


def test_rows_with_more_values_than_names_are_refused(decide, capsys):
    def write(new, path):
        head, *lines = new.to_csv(index=False).splitlines()
        path.write_text("\n".join([head, *(f"1,2,{line}" for line in lines)]))

    decide(1, lenders(2), *AWARE, rows=lenders(), code=2, write=write)
    assert "Give each column a name" in capsys.readouterr().err


@pytest.mark.filterwarnings("always:.*the fit did not know")
def test_words_that_the_fit_did_not_know_are_counted(decide, capsys):
    rows, new = (lenders(seed, apart=0.1) for seed in (1, 2))
    options = ["--columns", "job"]
    decide(1, new, *options, rows=rows, limits="0.3")
    assert "did not know" not in capsys.readouterr().err
    is_upper = np.arange(len(new)) % 4 == 0
    renamed = new.assign(job=new["job"].where(~is_upper, new["job"].str.upper()))
    decide(1, renamed, *options, rows=rows, limits="0.3")
    told = capsys.readouterr().err
    assert f"Column 'job' has words that the fit did not know, '{renamed['job'][0]}'" in told
    assert f"in {is_upper.sum():,} of {len(new):,} rows" in told


@pytest.mark.parametrize("taken", ["new.csv", "loans.csv"])
def test_decisions_overwrite_neither_the_new_rows_nor_those_of_the_fit(
    decide, tmp_path, capsys, taken
):
    decide(1, lenders(2), *AWARE, rows=lenders())
    before = (tmp_path / taken).read_bytes()
    given = ["--memo", str(tmp_path / "decision.json"), "--fitted-on", str(tmp_path / "loans.csv")]
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / taken)
    for out in (tmp_path / taken, link):
        assert main(["decide", str(tmp_path / "new.csv"), *given, "--out", str(out)]) == 2
        assert "Name another one" in capsys.readouterr().err
        assert (tmp_path / taken).read_bytes() == before


def test_new_rows_need_no_column_of_units(decide):
    """Whose rows belong together mattered to the fit alone."""
    rows, new = (lenders(seed, apart=0.1) for seed in (1, 2))
    rows = rows.assign(person=np.arange(len(rows)) // 2)
    applicants = new.drop(columns=["paid", "granted", "sex"])
    decided = decide(1, applicants, "--units", "person", rows=rows, limits="0.3")
    assert set(decided["decision"]) == {"granted", "refused"}


def test_a_memo_decides_only_with_the_file_that_it_was_made_of(decide, tmp_path, capsys):
    rows = lenders()
    changed = rows.assign(paid=rows["paid"].replace({"yes": "no", "no": "yes"}))
    decide(1, rows, *AWARE, rows=rows, fitted_on=changed, code=2)
    assert "not the one that the committee chose" in capsys.readouterr().err
    assert not (tmp_path / "decided.csv").exists()
    decide(0, rows, *AWARE, rows=rows, code=2)  # the committee chose no limit
    assert "no limit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda new: new.drop(columns="score"), "has no column 'score'"),
        (lambda new: new.assign(decision="granted"), "a column 'decision' already. Rename it"),
        (lambda new: new.assign(score="high"), "'high', but only numbers"),
        (lambda new: new.assign(score="1,5"), "written as '1,5'. Pass --decimal ,"),
        (lambda new: new.assign(score=np.nan), "score has 800 values that are NaN"),
        (lambda new: new.head(0), "has no rows"),
    ],
)
def test_new_rows_that_cannot_be_decided_about_say_what_to_do(decide, capsys, change, message):
    decide(1, change(lenders()), *AWARE, rows=lenders(), code=2)
    assert message in capsys.readouterr().err


def test_a_memo_of_a_page_that_was_made_in_python_names_its_models(tmp_path, capsys):
    memo = {"kind": "skfair decision", "version": 1, "metric": "demographic_parity_difference"}
    memo |= {"limits": {"sex": 0.1}, "command": None}
    memo |= {"checksum": checksum(memo)}
    (tmp_path / "decision.json").write_text(json.dumps(memo))
    given = ["decide", "new.csv", "--memo", str(tmp_path / "decision.json"), "--fitted-on", "a.csv"]
    assert main([*given, "--out", str(tmp_path / "decided.csv")]) == 2
    assert "path.estimators[k].predict" in capsys.readouterr().err


def test_a_limit_that_is_no_number_says_how_to_write_it(capsys):
    given = "choose a.csv --target a --sensitive b --out c.html --limits x"
    with pytest.raises(SystemExit):
        main(given.split())
    assert "'x' is no number. Write it as 0.05 or 5%." in capsys.readouterr().err
