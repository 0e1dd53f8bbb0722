"""What messages about audits tell to write runs, and does not lead to another remedy."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from skfair.metrics import group_report, mean_score_difference
from skfair.metrics.labels import LABEL_METRICS
from skfair.report import audit, audit_data

SEX, PLACE = np.repeat(["f", "m"], 100), np.arange(200)
Y, P = PLACE % 2, (np.where(SEX == "f", 3, 5) > PLACE % 10).astype(int)
SHARES = PLACE / 200
# A condition that a message tells to write, which follows the one that was wrong
WRITTEN = re.compile(r".*'([a-z_]+ [<>]=? [\d.%]+)'(?! (?:fails|limits|asks))")


@pytest.mark.parametrize(
    "metric", sorted(name for name in LABEL_METRICS if "treatment" not in name)
)
@pytest.mark.parametrize("limit", ["> 1.25", "<= 1.25", "> 0.8", "< 0.1", "> 3", "< 0.8%", "> 0.9"])
def test_a_condition_that_is_proposed_can_be_checked(metric, limit):
    found = audit(Y, P, sensitive_features=SEX, metrics=[metric], n_simulations=5)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            found.check(f"{metric} {limit}")
            said = [str(own.message) for own in warned]
        except ValueError as error:
            said = [str(error)]
    for text in said:
        proposed = WRITTEN.search(text)
        if proposed is None:
            assert "Pass a share, 0.05 for 5%." in text
        condition = f"{metric} > 0.05" if proposed is None else proposed[1]
        asked = condition.split()[0]
        assert (">" in condition) != asked.endswith("_ratio")
        again = audit(Y, P, sensitive_features=SEX, metrics=[asked], n_simulations=5)
        assert again.check(condition).outcome in ("pass", "fail", "inconclusive")


@pytest.mark.parametrize("missing", [np.nan, None])
def test_missing_groups_are_listed_apart_as_the_message_says(missing):
    sex = pd.Series(SEX, dtype=object)
    sex[::10] = missing
    calls = (
        lambda **asked: audit(Y, P, sensitive_features=sex, n_simulations=5, **asked),
        lambda **asked: audit_data(
            pd.DataFrame({"x": SHARES}), Y, sensitive_features=sex, n_simulations=5, **asked
        ),
    )
    for call in calls:
        with pytest.raises(ValueError, match=r"list them apart in an audit \(unknown=numpy.nan\)"):
            call()
        assert "missing" in str(call(unknown=np.nan))


def test_scores_without_outcomes_are_sent_where_they_are_measured():
    for options in ({}, {"rates": False}):
        with pytest.raises(ValueError, match=r"use skfair.report.audit"):
            group_report(None, SHARES, sensitive_features=SEX, **options)
    found = audit(None, SHARES, sensitive_features=SEX, n_simulations=5)
    assert found.task == "numbers"
    expected = abs(SHARES[SEX == "f"].mean() - SHARES[SEX == "m"].mean())
    value = mean_score_difference(None, SHARES, sensitive_features=SEX)
    assert value == pytest.approx(expected)
