"""The first screen leads with what was asked: rates by outcome, or the metric of ``lead=``."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from skfair.__main__ import main
from skfair.report import Audit
from skfair.report import audit as audited
from tests.seeds import generator

audit = partial(audited, n_simulations=60)
NAMES = {
    "accuracy_parity_difference": "accuracy",
    "false_negative_parity_difference": "false negative rate",
    "demographic_parity_difference": "selection rate",
    "predictive_parity_difference": "precision",
}


def sick(rng, n=600):
    """Return groups, outcomes and decisions of n people."""
    groups = rng.permutation(np.resize(["f", "m"], n))
    y = (rng.random(n) < 0.4).astype(int)
    return groups, y, np.where(rng.random(n) < 0.7, y, rng.integers(0, 2, n))


def test_outcomes_lead_with_true_and_false_positive_rates():
    rng = generator()
    groups, y, p = sick(rng)
    found = audit(y, p, sensitive_features={"sex": groups})
    assert found.lead == ["equal_opportunity_difference", "false_positive_parity_difference"]
    line = str(found).splitlines()[1]
    assert line.startswith("sex: true positive rate ")
    assert "; false positive rate " in line
    assert "law" not in str(found)
    assert "four fifths" not in str(found)
    for actual in (1, 0):
        for group in ("f", "m"):
            rate = round(100 * p[(y == actual) & (groups == group)].mean(), 1)
            assert f"{rate:g}% ({group})" in line
    assert line in str(Audit.from_dict(found.to_dict()))
    assert 'In short</h2>\n<ul class="verdicts">\n<li' in found.to_html()


def test_decisions_and_rules_lead_with_selection_rates():
    rng = generator()
    groups, y, p = sick(rng)
    given = {"sensitive_features": {"sex": groups}}
    for found in (audit(None, p, **given), audit(y, p, **given, preset="ugesp")):
        assert found.lead == []
        assert str(found).splitlines()[1].startswith("sex: selection rate ")
        assert ("four fifths" in str(found)) == (found.preset == "ugesp")
        assert ("Warning about the law" in str(found)) == (found.preset == "ugesp")


@pytest.mark.parametrize("lead", NAMES)
@pytest.mark.parametrize("metrics", [None, ["equalized_odds_difference"]])
def test_a_metric_may_lead(tmp_path, capsys, lead, metrics):
    rng = generator()
    groups, y, p = sick(rng)
    found = audit(y, p, sensitive_features={"sex": groups}, lead=lead, metrics=metrics)
    line = str(found).splitlines()[1]
    assert line.startswith("sex: ")
    assert found.lead == [lead]
    assert found.value(lead) >= 0
    rates = found.rates[(found.rates["view"] == "sex")].pivot(
        index="group", columns="measure", values="value"
    )
    measure = {"precision": "positive_predictive_value"}.get(NAMES[lead], NAMES[lead])
    for rate in rates[measure.replace(" ", "_")]:
        assert f"{round(100 * rate, 1):g}% (" in line
    file = tmp_path / "a.csv"
    pd.DataFrame({"sex": groups, "y": y, "p": p}).to_csv(file, index=False)
    asked = ["audit", str(file), "--target", "y", "--prediction", "p", "--sensitive", "sex"]
    assert main([*asked, "--lead", lead]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1].partition(" (p ")[0][:60] == line.partition(" (p ")[0][:60]


def test_what_cannot_lead_is_refused():
    rng = generator()
    groups, y, p = sick(rng)
    given = {"sensitive_features": {"sex": groups}}
    for lead in ("demographic_parity_ratio", "equalized_odds_difference"):
        with pytest.raises(ValueError, match=rf"lead='{lead}' compares no single rate"):
            audit(y, p, **given, lead=lead)
    with pytest.raises(ValueError, match=r"lead has 'accuracy_difference', .* Did you mean"):
        audit(y, p, **given, lead="accuracy_difference")
    with pytest.raises(ValueError, match="lead has 'equal_opportunity_difference', which need"):
        audit(None, p, **given, lead="equal_opportunity_difference")
    assert audit(y, p, **given, lead="equal_opportunity_difference").lead
