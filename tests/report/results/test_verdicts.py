"""The first screen of ten made-up audits: direction, size, significance; nothing contradicts."""

import html
import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency

from skfair.__main__ import main
from skfair.report import audit
from skfair.report.results.sentences import MOST_LINES, _numbers, verdicts_of
from skfair.report.words import law_of, law_warning
from tests.seeds import generator

SENTENCE = re.compile(
    r"(?:Largest significant difference: )?(?P<view>[\w ]+)(?: \(\d+ groups\))?: selection rate "
    r"(?P<rate>[\d.]+)% \((?P<group>.+?)\) against (?P<other_rate>[\d.]+)% \((?P<other>.+?)\): "
    r"(?:a gap of (?P<apart>[\d.]+) points?|no difference), "
    r"(?P<verdict>(?P<not>not )?statistically significant) "
    r"\(p (?:=|at most) (?P<p>[\d.e-]+)\)"
    r"(?:; (?:lowest )?impact ratio (?P<ratio>[\d.]+)(?: \((?P<low>.+?) against (?P<high>.+?)\))?"
    r"(?:, (?P<side>above|below|not below) four fifths)?)?\."
)


def rows_of(counts):
    """Rows with so many people of each group, of whom so many are selected."""
    groups = np.repeat(list(counts), [n for _, n in counts.values()])
    chosen = np.concatenate([np.arange(n) < k for k, n in counts.values()]).astype(int)
    order = generator(0).permutation(groups.size)
    return groups[order], chosen[order]


def lines_of(found):
    lines = repr(found).split("\n")[1:]
    warning = law_warning(law_of(found.preset))
    assert lines.pop() == warning if warning else True
    assert lines == verdicts_of(found)
    assert 1 <= len(lines) <= MOST_LINES
    return lines


def check_rates(said, rates):
    """Compare what a verdict says of selections with plain rates; return the side of its ratio."""
    rate, other = rates[said["group"]], rates[said["other"]]
    assert float(said["rate"]) == pytest.approx(100 * rate, abs=0.051)
    assert float(said["other_rate"]) == pytest.approx(100 * other, abs=0.051)
    if said["apart"] is None:
        assert rate == pytest.approx(other, abs=1e-9)
    else:
        apart = abs(float(said["rate"]) - float(said["other_rate"]))
        assert float(said["apart"]) == pytest.approx(apart)  # what a reader subtracts
    if not said["ratio"]:
        return None
    low, high = said["low"] or said["group"], said["high"] or said["other"]
    ratio = min(rates[low], rates[high]) / max(rates[low], rates[high])
    assert float(said["ratio"]) == pytest.approx(ratio, abs=0.0051)
    side = "not below" if abs(ratio - 0.8) < 1e-12 else "below" if ratio < 0.8 else "above"
    assert said["side"] in (side, None)
    return side, ratio


def check(line, groups, chosen):
    """Compare a verdict on selections with plain counting."""
    said = SENTENCE.fullmatch(line)
    assert said, line
    check_rates(said, pd.Series(chosen).groupby(groups).mean())
    assert (said["verdict"] == "statistically significant") == (float(said["p"]) <= 0.05)
    return said


def test_one_difference():
    groups, chosen = rows_of({"women": (418, 1100), "men": (580, 1350)})
    (line,) = lines_of(audit(None, chosen, sensitive_features={"sex": groups}))
    said = check(line, groups, chosen)
    assert (said["group"], said["other"], said["ratio"]) == ("women", "men", "0.88")
    p = chi2_contingency(pd.crosstab(groups, chosen), correction=False).pvalue
    assert float(said["p"]) == pytest.approx(p, abs=0.02)
    assert p < 0.05


def test_no_difference():
    groups, chosen = rows_of({"women": (200, 500), "men": (205, 500)})
    (line,) = lines_of(audit(None, chosen, sensitive_features={"sex": groups}))
    assert check(line, groups, chosen)["verdict"] == "not statistically significant"
    groups, chosen = rows_of({"women": (200, 500), "men": (200, 500)})
    (line,) = lines_of(audit(None, chosen, sensitive_features={"sex": groups}))
    assert "no difference, not statistically significant (p = 1)" in line
    check(line, groups, chosen)


def test_a_tiny_group():
    groups, chosen = rows_of({"women": (385, 1108), "men": (580, 1349), "other": (3, 3)})
    given = {"sensitive_features": {"sex": groups}, "suppress_below": 1}
    found = audit(None, chosen, min_group_size=1, **given)
    said = check(lines_of(found)[0], groups, chosen)
    assert {said["group"], said["other"]} == {"women", "men"}
    assert said["verdict"] == "statistically significant"
    found = audit(None, chosen, **given)
    (line, last) = lines_of(found)
    shown = found.to_html(), found._repr_html_(), found.to_markdown()
    page, cell, card = map(html.unescape, shown)
    for text in (line, last):
        assert text in page
        assert text in cell
        assert text in card.replace("\\", "")
    assert check(line, groups, chosen)["low"] is None  # the tiny group has no part in the ratio
    assert last == "Not compared: other (sex, 3 rows, too few)."


def test_a_ratio_below_four_fifths():
    groups, chosen = rows_of({"women": (300, 1000), "men": (500, 1000), "other": (440, 1000)})
    for options in ({}, {"preset": "ugesp"}, {"reference": "men"}):
        (line,) = lines_of(audit(None, chosen, sensitive_features={"sex": groups}, **options))
        said = check(line, groups, chosen)
        assert (said["group"], said["other"], said["ratio"]) == ("women", "men", "0.60")
        assert said["side"] == ("below" if options.get("preset") else None)  # a rule is in play
    (line,) = lines_of(audit(None, chosen, sensitive_features={"sex": groups}, reference="other"))
    said = check(line, groups, chosen)
    assert (said["group"], said["other"], said["ratio"]) == ("women", "other", "0.68")
    assert said["low"] is None  # the ratio is of the two groups that are named
    exact, chosen = rows_of({"women": (480, 1000), "men": (600, 1000)})
    (line,) = lines_of(audit(None, chosen, sensitive_features={"sex": exact}, preset="ugesp"))
    assert "impact ratio 0.80, not below four fifths" in line


def test_scores():
    rng = generator(0)
    groups = np.repeat(["women", "men"], 1000)
    score = rng.random(2000) * np.where(groups == "men", 1, 0.8)
    y = (rng.random(2000) < score).astype(int)
    first = lines_of(audit(y, y_score=score, sensitive_features={"sex": groups}))[0]
    women, men = pd.Series(score).groupby(groups).mean()[["women", "men"]].round(3)
    assert first.startswith(f"sex: mean score {women:.3f} (women) against {men:.3f} (men): ")
    assert f"a gap of {men - women:.3f}, statistically significant" in first
    of_law = lines_of(
        audit(None, y_score=score, sensitive_features={"sex": groups}, preset="ll144")
    )[0]
    assert of_law.startswith("sex: share with scores above the median ")
    assert "four fifths" not in of_law  # this law has no threshold


def test_three_classes():
    """Of 500 women of the third class 151 are predicted as the second one."""
    place = np.arange(3000)
    groups, y = np.repeat(["women", "men"], 1500), place % 3
    p = np.where((y == 2) & (place < 3 * 151), 1, y)
    labels = np.array(["low", "middle", "high"])
    lines = lines_of(audit(labels[y], labels[p], sensitive_features={"sex": groups}))
    assert lines[0].startswith("sex: recall of high 69.8% (women) against 100% (men): ")
    assert " points, statistically significant" in lines[0]


def test_numbers():
    rng = generator(0)
    groups, y = np.repeat(["women", "men"], 500), rng.normal(size=1000)
    p = y + 0.5 * (groups == "women") + 0.1 * rng.normal(size=1000)
    line = lines_of(audit(y, p, sensitive_features={"sex": groups}))[0]
    residuals = pd.Series(y - p).groupby(groups).mean()
    said = f"mean residual (truth minus prediction) {residuals['women']:.3f} (women) against "
    assert said in line
    assert ", statistically significant" in line


def test_before_and_after():
    groups = np.repeat(["women", "men"], 1000)
    before = np.concatenate([np.arange(1000) < 300, np.arange(1000) < 500]).astype(int)
    now = np.concatenate([np.arange(1000) < 300, np.arange(1000) < 310]).astype(int)
    line, last = lines_of(
        audit(
            before,
            now,
            before=before,
            sensitive_features={"sex": groups},
            metrics=["demographic_parity_difference"],
        )
    )
    assert check(line, groups, now)["verdict"] == "not statistically significant"
    assert "accuracy changed by -0.095" in last
    assert "0.0% of the rows moved up and 9.5% moved down." in last
    assert "The groups of sex came closer by levelling down" in last


def test_many_attributes_with_everything_else():
    """The clearest ones are shown, the others named, and no more than five lines."""
    rng = generator(0)
    people = pd.DataFrame(
        {f"a{j}": rng.choice(["x", "y", "?"], 2000, p=[0.5, 0.45, 0.05]) for j in range(6)}
    )
    chosen = (rng.random(2000) < 0.3 + 0.4 * (people["a3"] == "y")).astype(int)
    lines = lines_of(
        audit(None, chosen, sensitive_features=people, before=1 - chosen, unknown="?", depth=1)
    )
    assert len(lines) <= MOST_LINES
    assert any(line.startswith("a3: selection rate") for line in lines)
    assert any(line.startswith("Also compared: ") for line in lines)


def test_levels_that_are_numbers_are_named_with_their_attribute():
    groups, chosen = rows_of({"0": (300, 1000), "1": (500, 1000)})
    (line,) = lines_of(audit(None, chosen, sensitive_features={"is_old": groups.astype(int)}))
    assert line.startswith("is_old: selection rate 30% (is_old 0) against 50% (is_old 1)")


@pytest.mark.parametrize("shift", [0.0, 0.0004, 0.004])
def test_differences_are_shown_however_small(shift):
    n = 100_000
    groups = np.repeat(["a", "b"], n)
    chosen = np.concatenate([np.arange(n) < 0.4 * n, np.arange(n) < (0.4 + shift) * n]).astype(int)
    (line,) = verdicts_of(audit(None, chosen, sensitive_features={"g": groups}))
    said = check(line, groups, chosen)
    assert (said["apart"] is None) == (shift == 0)


@pytest.mark.parametrize(
    ("first", "second"), [(-0.0017, 0.00164), (0.43912, 0.49987), (12.3456, 12.3461), (3.0, 2.0)]
)
def test_numbers_differ_by_what_a_reader_subtracts(first, second):
    a, b, said = _numbers(first, second)
    apart = said.removeprefix("a gap of ")
    assert float(apart) == pytest.approx(abs(float(a) - float(b)))
    assert float(apart) > 0
    assert float(a) == pytest.approx(first, abs=5.1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("of", ["y_true", "y_pred"])
def test_an_attribute_that_is_the_outcome_is_named(n_classes, of):
    rng, n = generator((n_classes, of)), 400
    y_true = np.arange(n) % n_classes
    y_pred = np.where(rng.random(n) < 0.7, y_true, rng.integers(0, n_classes, n))
    label = pd.Series(y_true if of == "y_true" else y_pred, name="paid")
    labels = {"y_true": y_true, "y_pred": y_pred} | {of: label}
    # Another name for each class, and another order; and a group of few people, which is left out
    risk = np.array(["medium", "high", "low"])[label]
    few = np.where(np.arange(n) < 10, "not known yet", risk)
    almost = np.where(np.arange(n) % 20 == 7, risk[::-1], risk)
    groups = {"sex": rng.choice(["f", "m"], n), "risk": risk, "few": few, "almost": almost}
    found = audit(*labels.values(), sensitive_features=groups, suppress_below=1)
    lines = repr(found).splitlines()
    told = [line for line in lines if "has one label only" in line]
    assert len(told) == 1
    assert "another name: risk (paid), few (paid). If so" in told[0]
    assert len(lines) <= 6 + sum("Warning about the law" in line for line in lines)
    del groups["risk"], groups["few"]
    assert "one label" not in repr(audit(*labels.values(), sensitive_features=groups))


def risks(seed, share, n=3000):
    """Outcomes and probabilities; in B only a share of the risk becomes true."""
    rng = generator(seed)
    groups, risk = rng.permutation(np.repeat(["A", "B"], n // 2)), rng.random(n)
    true = (rng.random(n) < np.where(groups == "B", share * risk, risk)).astype(int)
    return true, risk, {"group": groups}


@pytest.mark.parametrize("threshold", [None, 0.5])
def test_a_risk_that_is_wrong_for_one_group_is_a_verdict(threshold, tmp_path, capsys):
    true, risk, groups = risks(0, 0.5)
    found = audit(true, y_score=risk, threshold=threshold, sensitive_features=groups)
    lines = [line for line in repr(found).splitlines() if line.startswith("group: mean residual")]
    assert len(lines) == 1
    assert "statistically significant" in lines[0]
    assert "not statistically significant" not in lines[0]
    assert lines[0].endswith("scores of B are higher than outcomes.")
    residuals = [np.mean((true - risk)[groups["group"] == name]) for name in "AB"]
    assert found.value("mean_residual_difference") == pytest.approx(abs(np.subtract(*residuals)))
    assert found.check("mean_residual_difference > 0.1").outcome == "fail"
    for text in (found.to_html(), found.to_markdown()):
        assert "scores of B are higher than outcomes" in text
    plain = json.loads(found.to_json())["gaps"]
    (gap,) = [row for row in plain if row["metric"] == "mean_residual_difference"]
    assert gap["is_beyond_chance"]
    file = tmp_path / "rows.csv"
    pd.DataFrame({"true": true, "risk": risk, **groups}).to_csv(file, index=False)
    command = ["audit", str(file), "--target", "true", "--score", "risk", "--sensitive", "group"]
    command += [] if threshold is None else ["--threshold", str(threshold)]
    assert main([*command, "--block-rows", "700"]) == 0
    assert "scores of B are higher than outcomes" in capsys.readouterr().out


def test_a_risk_that_is_right_and_scores_that_are_no_probabilities_have_no_such_verdict():
    true, risk, groups = risks(1, 1.0, 400)
    right = audit(true, y_score=risk, sensitive_features=groups)
    assert right.check("mean_residual_difference > 0.4").outcome == "pass"
    scores = audit(true, y_score=3 * risk - 1, sensitive_features=groups)
    assert "mean_residual_difference" not in set(scores.gaps["metric"])
    assert "mean residual" not in repr(scores)
