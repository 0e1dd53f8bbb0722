"""The page on which a committee chooses a limit, made from a file on the command line."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from skfair.__main__ import main
from skfair.monitoring import DisparityMonitor

N = 600


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
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


@pytest.fixture
def chosen_from(frame, tmp_path):
    """Return what makes a page from the rows, and reads the numbers that it holds."""
    file, out = tmp_path / "loans.csv", tmp_path / "choice.html"

    def run(*options, rows=frame, usual=("--score", "score"), limits="20%,0.05"):
        rows.to_csv(file, index=False)
        columns = ["--target", "paid", "--groups", "sex", "--positive", "yes", *usual]
        given = ["choose", str(file), *columns, "--out", str(out), "--limits", limits, *options]
        assert main(given) == 0
        text = out.read_text(encoding="utf-8")
        (plain,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
        return json.loads(plain), text

    return run


def accuracy(data, step=0):
    return data["steps"][step]["numbers"]["accuracy"][0]


def test_trees_read_words_and_missing_values(chosen_from, frame, capsys):
    """Homes say in 80% of the cases who pays back, so trees that read them are right as often."""
    data, text = chosen_from("--columns", "home,income", "--group-aware", usual=(), limits="1,0.1")
    assert accuracy(data) == pytest.approx(0.77, abs=0.1)
    for name in ("boosted trees (HistGradientBoostingClassifier)", "loans.csv"):
        assert name in text
    head, names, *lines, where = capsys.readouterr().out.strip().split("\n")
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
def test_the_printed_table_gives_no_hidden_group_away(chosen_from, frame, capsys):
    """Nine people of another sex: neither table nor page has a number that counts them."""
    sex = frame["sex"].where(frame.index >= 9, "divers")
    data, text = chosen_from("--group-aware", rows=frame.assign(sex=sex), limits="1,0.2")
    _, _, *rows, left_out, _ = capsys.readouterr().out.strip().split("\n")
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
    data, _ = chosen_from("--group-aware")
    for step in data["steps"]:
        memo = data["memo"] | step
        limit = DisparityMonitor(max_disparity=memo).max_disparity
        assert limit in ({"sex": 0.2}, {"sex": 0.05})
    assert [step["holds_overall_rate"] for step in data["steps"]] == [False] * 2 + [True] * 2


def test_scores_stand_in_place_of_all_columns(chosen_from, frame):
    rng = np.random.default_rng(0)
    paid, noise = frame["paid"] == "yes", rng.normal(size=N)
    of_scores = (
        accuracy(chosen_from("--group-aware", rows=frame.assign(score=score), limits="1")[0])
        for score in (paid + 0.3 * noise, noise)
    )
    assert next(of_scores) > 0.9
    assert next(of_scores) < 0.65


def test_changes_are_counted_against_the_decisions_of_today(chosen_from, frame):
    data, _ = chosen_from("--before", "old", limits="0.05")
    first = data["steps"][0]
    assert (first["label"], first["limits"]) == ("none", None)
    assert accuracy(data) == pytest.approx((frame["old"] == frame["paid"]).mean(), abs=0.06)
    assert first["numbers"]["newly"] == first["numbers"]["no_longer"] == 0
    assert data["steps"][1]["numbers"]["newly"] > 0


def test_a_person_is_in_one_half_only(chosen_from):
    """Who pays back is drawn for each person: it is known of those who are in both halves."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"income": rng.normal(size=160), "who": range(160)})
    people["sex"], people["paid"] = rng.choice(["f", "m"], 160), rng.choice(["yes", "no"], 160)
    rows = pd.concat([people] * 5)
    options = {"rows": rows, "usual": ("--columns", "income", "--group-aware"), "limits": "1"}
    apart, together = (accuracy(chosen_from(*of, **options)[0]) for of in (["--person", "who"], []))
    assert together > 0.65
    assert apart < 0.6


def test_options_reach_the_page(chosen_from):
    data, text = chosen_from(limits="0.05")
    assert "granted" not in text
    assert data["steps"][0]["group_aware"] is False
    given = ["--decided", "granted", "--title", "Our limit", "--group-aware"]
    given += ["--constraint", "equal_opportunity", "--confidence", "0.99"]
    changed, text = chosen_from(*given, limits="0.05")
    assert "granted" in text
    assert "<title>Our limit" in text
    assert changed["steps"][0]["group_aware"] is True
    assert changed["memo"]["metric"] == "equal_opportunity_difference"
    low, high, wider_low, wider_high = (
        end for own in (data, changed) for end in own["steps"][0]["numbers"]["accuracy"][1:]
    )
    assert wider_high - wider_low > 1.2 * (high - low)


def test_the_seed_says_which_rows_judge(chosen_from):
    first, again, other = (
        chosen_from("--group-aware", "--seed", seed, limits="1")[0] for seed in "112"
    )
    assert first == again
    assert first["steps"][0]["fingerprint"] != other["steps"][0]["fingerprint"]


def test_small_groups_are_not_shown(chosen_from):
    every, shown = (
        chosen_from("--group-aware", *options, limits="0.05")[0]["steps"][0]["numbers"]
        for options in ([], ["--suppress-below", "150"])
    )
    every, shown = every["attributes"], shown["attributes"]
    assert every["sex"]["groups"]["f"]["n"] < 150
    assert "f" not in shown.get("sex", {"groups": {}})["groups"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "choice.md"], "--out must end in .html, got 'choice.md'"),
        (["--limits", "5"], "--limits 5 limits nothing.*Pass a share"),
        (["--positive", "ja"], "--positive 'ja' is not one of the labels of paid: 'no', 'yes'"),
        (["--target", "home"], "missing values.*--drop-missing target"),
        (["--target", "piad"], "no column 'piad'.*Did you mean 'paid'"),
        (["--score", "home"], "home must be numeric, got values like"),
        (["--score", "income"], "income has .* values that are NaN.*--drop-missing score"),
        (["--groups", "home"], "--missing unknown"),
        (["--constraint", "parity"], "constraint"),
        (["--before", "home", "--positive", "yes"], "home has"),
    ],
)
def test_wrong_arguments_say_what_to_do(frame, tmp_path, capsys, options, message):
    file = tmp_path / "loans.csv"
    frame.to_csv(file, index=False)
    usual = ["--target", "paid", "--groups", "sex", "--positive", "yes", "--score", "score"]
    out = str(tmp_path / "choice.html")
    assert main(["choose", str(file), *usual, "--out", out, *options]) == 2
    told = capsys.readouterr().err
    assert told.startswith("skfair choose: ")
    assert re.search(message, told), told
    assert not (tmp_path / "choice.html").exists()


def test_a_limit_that_is_no_number_says_how_to_write_it(capsys):
    with pytest.raises(SystemExit):
        main(
            [
                "choose",
                "a.csv",
                "--target",
                "a",
                "--groups",
                "b",
                "--out",
                "c.html",
                "--limits",
                "x",
            ]
        )
    assert "'x' is no number. Write it as 0.05 or 5%." in capsys.readouterr().err
