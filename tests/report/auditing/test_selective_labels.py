"""Audits of outcomes that are known of the accepted only, in Python, on pages and in a shell."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from skfair.__main__ import main
from skfair.report import Audit, audit
from tests.seeds import generator

KNOWN = "outcomes are known of the accepted only"
BY_OUTCOME = [
    "equal_opportunity_difference",
    "false_positive_parity_difference",
    "equalized_odds_difference",
]
MARKED = pytest.mark.parametrize("metric", BY_OUTCOME)


@pytest.fixture(scope="module")
def loans():
    rng, n = generator(), 2000
    sex, skill = rng.choice(["f", "m"], n), rng.normal(size=n)
    repaid = (skill + rng.normal(0, 0.5, n) > 0).astype(int)
    granted = (skill + 0.8 * (sex == "m") - 0.4 + rng.normal(0, 0.3, n) > 0).astype(int)
    frame = pd.DataFrame({"sex": sex, "granted": granted, "truth": repaid})
    frame["repaid"] = np.where(granted == 1, repaid, np.nan)
    return frame


@pytest.fixture(scope="module")
def of_granted(loans):
    kept = loans[loans["granted"] == 1]
    return audit(kept["repaid"], kept["granted"], sensitive_features=kept[["sex"]])


@pytest.fixture
def shell(loans, tmp_path, capsys):
    loans.to_csv(tmp_path / "loans.csv", index=False)

    def run(*options):
        command = "audit", str(tmp_path / "loans.csv"), "--prediction", "granted"
        code = main([*command, "--sensitive", "sex", *options])
        return code, "".join(capsys.readouterr())

    return run


def test_audits_name_the_decision_for_which_outcomes_are_missing(loans):
    groups = {"sensitive_features": loans[["sex"]]}
    with pytest.raises(ValueError, match=rf"^repaid has .*all rows with granted = 0: {KNOWN}"):
        audit(loans["repaid"], loans["granted"], **groups)
    new = (generator().random(len(loans)) < 0.5).astype(int)
    with pytest.raises(ValueError, match=f"all rows with granted = 0: {KNOWN}"):
        audit(loans["repaid"], new, before=loans["granted"], **groups)
    score = (loans["granted"] + 0.5).rename("score")
    with pytest.raises(ValueError, match=f"score above 1 = False: {KNOWN}"):
        audit(loans["repaid"], y_score=score, threshold=1, **groups)
    lazy = dd.from_pandas(loans, npartitions=2)
    with pytest.raises(ValueError, match=KNOWN):
        audit(lazy["repaid"], lazy["granted"], sensitive_features=lazy[["sex"]])


def test_every_remedy_of_the_error_runs(loans, of_granted):
    rates = audit(None, loans["granted"], sensitive_features=loans[["sex"]])
    assert rates.check("demographic_parity_difference > 0.1").outcome == "fail"
    assert of_granted.check("predictive_parity_difference > 0.05").outcome == "fail"
    assert np.isfinite(of_granted.value("predictive_parity_difference"))


@MARKED
def test_no_gate_passes_on_rows_of_one_decision(of_granted, metric, loans):
    everybody = audit(loans["truth"], loans["granted"], sensitive_features=loans[["sex"]])
    assert everybody.check(f"{metric} > 0.05").outcome == "fail"
    check = of_granted.check(f"{metric} > 0.05")
    assert check.outcome == "inconclusive"
    assert "every decision is positive" in check.undefined
    assert KNOWN in check.sentence
    assert "undefined" in check.sentence
    assert "nan" not in check.sentence
    assert of_granted.check(f"{metric} > 0.05", allow_undefined=True).outcome == "inconclusive"
    again = Audit.from_dict(of_granted.to_dict())
    assert again.check(f"{metric} > 0.05").sentence == check.sentence


def test_rates_of_one_decision_are_undefined_and_precisions_lead(of_granted):
    rates = of_granted.rates.set_index("measure")["value"]
    for name in ("true_positive_rate", "false_positive_rate", "false_negative_rate"):
        assert rates[name].isna().all()
    assert rates["positive_predictive_value"].notna().all()
    gaps = of_granted.gaps.set_index("metric")["value"]
    assert gaps[[*BY_OUTCOME, "demographic_parity_difference"]].isna().all()
    lines = repr(of_granted).splitlines()
    assert lines[1].startswith("sex: precision ")
    assert "statistically significant" in lines[1]
    for text in (repr(of_granted), of_granted.to_html(), of_granted.to_markdown()):
        assert KNOWN in text
    assert "undefined" in of_granted.to_markdown()


@pytest.mark.parametrize("decision", [0, 1])
def test_a_gate_on_selection_rates_does_not_pass_if_all_decisions_are_the_same(decision):
    groups = {"sex": generator(decision).permutation(np.repeat(["f", "m"], 200))}
    found = audit(None, np.full(400, decision), sensitive_features=groups)
    check = found.check("demographic_parity_ratio < 0.8")
    assert check.outcome == "inconclusive"
    assert "every decision is" in check.sentence
    assert KNOWN not in repr(found)
    assert "every decision is" in repr(found)


def test_decisions_of_the_earlier_model_are_judged_by_themselves(loans):
    everybody = np.ones(len(loans), int)
    groups = {"sensitive_features": loans[["sex"]]}
    found = audit(loans["truth"], loans["granted"], before=everybody, **groups)
    rates = found.rates.set_index("measure")["value"]
    assert rates["true_positive_rate"].notna().all()
    assert rates["before:true_positive_rate"].isna().all()
    assert rates["before:selection_rate"].eq(1).all()


def test_one_class_for_everybody_has_no_recalls():
    rng = generator()
    y, groups = rng.choice(["a", "b", "c"], 300), {"g": rng.choice(["u", "v"], 300)}
    found = audit(y, np.full(300, "a"), sensitive_features=groups, task="classes")
    assert found.check("equal_opportunity_difference[a] > 0.5").outcome == "inconclusive"
    assert "very decision is 'a'" in repr(found)


def test_the_shell_says_it_and_no_gate_of_it_passes(shell):
    code, text = shell("--target", "repaid")
    assert code == 2
    assert KNOWN in text
    assert "with granted = 0" in text
    assert "--drop-missing target" in text
    gate = "--fail-if", "equalized_odds_difference > 0.1"
    for more in ((), ("--inconclusive", "pass"), ("--allow-undefined",)):
        code, text = shell("--target", "repaid", "--drop-missing", "target", *gate, *more)
        assert code == 3
        assert KNOWN in text
        assert "sex: precision" in text
    code, _ = shell("--fail-if", "demographic_parity_difference > 0.1")
    assert code == 1


def test_choose_names_the_decisions_of_today(loans, tmp_path, capsys):
    frame = loans.assign(income=generator().normal(size=len(loans)))
    frame.to_csv(tmp_path / "loans.csv", index=False)
    command = ["choose", str(tmp_path / "loans.csv"), "--target", "repaid", "--before", "granted"]
    command += ["--sensitive", "sex", "--columns", "income", "--limits", "0.1"]
    code = main([*command, "--out", str(tmp_path / "page.html")])
    assert code == 2
    assert KNOWN in capsys.readouterr().err
