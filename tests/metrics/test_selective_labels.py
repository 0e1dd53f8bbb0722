"""Outcomes that are known of one decision only: errors, undefined rates, and bounds."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from skfair import metrics
from tests.seeds import generator

DisparityMonitor = pytest.importorskip("skfair.monitoring").DisparityMonitor

KNOWN = "outcomes are known of the accepted only"
BY_OUTCOME = "equal_opportunity", "equalized_odds", "false_positive_parity"


def loans(seed, n=400):
    """Outcomes of everybody, which are known in simulations only, decisions, and groups."""
    rng = generator(seed)
    sex, skill = rng.permutation(np.repeat(["f", "m"], n // 2)), rng.normal(size=n)
    repaid = (skill + rng.normal(0, 0.5, n) > 0).astype(int)
    granted = (skill + 0.8 * (sex == "m") + rng.normal(0, 0.5, n) > 0.4).astype(int)
    return repaid, granted, sex


READERS = {
    **{name: getattr(metrics, f"{name}_difference") for name in BY_OUTCOME},
    "accuracy": metrics.accuracy_parity_difference,
    "largest": metrics.largest_false_positive_rate,
    "group report": metrics.group_report,
    "fairness report": metrics.fairness_report,
    "test": lambda *labels, **who: metrics.disparity_test(
        "equal_opportunity", *labels, max_disparity=0.1, **who
    ),
    "bound": lambda *labels, **who: metrics.disparity_upper_bound("equalized_odds", *labels, **who),
    "monitor": lambda *labels, **who: DisparityMonitor("equal_opportunity", 0.1).update(
        *labels, **who
    ),
}


@pytest.mark.parametrize("n", [400, 40_000])  # few and many rows are read in different ways
@pytest.mark.parametrize("name", READERS)
def test_outcomes_that_are_missing_because_of_a_decision_are_recognised(name, n):
    repaid, granted, sex = loans(0, n)
    known = np.where(granted == 1, repaid, np.nan)
    with pytest.raises(ValueError, match=KNOWN) as error:
        READERS[name](known, granted, sensitive_features=sex)
    assert "all rows with y_pred = 0" in str(error.value)
    assert "Drop them" not in str(error.value)


@pytest.mark.parametrize("name", ["equal_opportunity", "test", "group report"])
def test_missing_outcomes_of_another_cause_are_not_blamed_on_the_decision(name):
    repaid, granted, sex = loans(1)
    known = repaid.astype(float)
    known[generator(1).permutation(known.size)[:40]] = np.nan
    with pytest.raises(ValueError, match="40 missing values in 400 rows. Drop them"):
        READERS[name](known, granted, sensitive_features=sex)


def test_words_few_known_outcomes_and_negative_decisions_are_recognised():
    repaid, granted, sex = loans(2)
    words = np.where(granted == 1, "granted", "refused")
    known = np.where(granted == 1, np.where(repaid == 1, "granted", "refused"), None)
    metric = metrics.equal_opportunity_difference
    with pytest.raises(ValueError, match="y_pred = 'granted'; selective labels"):
        metric(known, words, sensitive_features=sex, pos_label="granted")
    few = np.where((granted == 1) | (np.arange(400) % 20 == 0), repaid, np.nan)
    with pytest.raises(ValueError, match="the accepted and few others"):
        metric(few, granted, sensitive_features=sex)
    with pytest.raises(ValueError, match="known of the rejected only"):
        metric(np.where(granted == 1, np.nan, repaid), granted, sensitive_features=sex)


@pytest.mark.parametrize("decision", [0, 1])
@pytest.mark.parametrize("name", BY_OUTCOME)
def test_rates_by_outcome_of_one_decision_are_shown_to_be_within_no_limit(name, decision):
    repaid, granted, sex = loans(3)
    kept = granted == decision
    rows, who = (repaid[kept], granted[kept]), {"sensitive_features": sex[kept]}
    found = metrics.disparity_test(name, *rows, max_disparity=0.5, **who)
    assert np.isnan(found.statistic)
    assert found.p_value == 1
    assert not found.is_within
    assert "every decision is" in found.undefined
    assert found.undefined in repr(found)
    with pytest.warns(UserWarning, match="every decision is"):
        assert metrics.disparity_upper_bound(name, *rows, **who) == 1
    with pytest.warns(UserWarning, match="says nothing about groups: every decision is"):
        getattr(metrics, f"{name}_difference")(*rows, **who)
    with pytest.warns(UserWarning, match="undefined: every decision is"):
        report = metrics.fairness_report(*rows, n_bootstrap=0, **who)
    assert np.isnan(report.loc[f"{name}_difference", "value"])
    assert np.isfinite(report.loc["accuracy_parity_difference", "value"])
    # With both decisions, and for selection rates, nothing is undefined.
    everybody = metrics.disparity_test(
        name, repaid, granted, max_disparity=0.5, sensitive_features=sex
    )
    assert everybody.undefined == ""
    assert np.isfinite(everybody.statistic)
    alike = metrics.disparity_test("demographic_parity", None, rows[1], max_disparity=0.5, **who)
    assert alike.is_within


def all_outcomes(known, granted, sex, metric_rates):
    """Return every value of a rate by group, over all outcomes that are possible."""
    missing = np.flatnonzero(np.isnan(known))
    values = []
    for own in product([0, 1], repeat=missing.size):
        y = known.copy()
        y[missing] = own
        with np.errstate(invalid="ignore", divide="ignore"):
            values.append([metric_rates(y[sex == s], granted[sex == s]) for s in "fm"])
    return np.array(values)


RATES = {
    "equal_opportunity": lambda y, p: np.mean(p[y == 1]) if (y == 1).any() else np.nan,
    "false_positive_parity": lambda y, p: np.mean(p[y == 0]) if (y == 0).any() else np.nan,
    "predictive_parity": lambda y, p: np.mean(y[p == 1]) if (p == 1).any() else np.nan,
    "accuracy_parity": lambda y, p: np.mean(y == p),
    "demographic_parity": lambda y, p: np.mean(p),
}


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("are_selective", [True, False])
def test_bounds_are_the_extremes_over_all_outcomes(name, are_selective):
    rng = generator(4)
    sex, granted = np.repeat(["f", "m"], 12), np.tile([0, 0, 1, 1, 1, 1], 4)
    known = rng.integers(0, 2, 24).astype(float)
    known[(granted == 0) if are_selective else rng.permutation(24)[:8]] = np.nan
    values = all_outcomes(known, granted, sex, RATES[name])
    bounds = metrics.outcome_bounds(
        name, known, granted, sensitive_features=sex, n_bootstrap=20
    ).iloc[0]
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    sides = bounds[["first_lower", "second_lower", "first_upper", "second_upper"]]
    assert sides.tolist() == pytest.approx([*low, *high])
    assert bounds["lower"] == pytest.approx(low[0] - high[1])
    assert bounds["upper"] == pytest.approx(high[0] - low[1])
    assert -1 <= bounds["lower_low"] <= bounds["lower"] <= bounds["upper"] <= bounds["upper_high"]


def test_bounds_hold_the_truth_and_are_the_difference_if_nothing_is_missing():
    repaid, granted, sex = loans(5, 2000)
    known = np.where(granted == 1, repaid, np.nan)
    who = {"sensitive_features": sex, "n_bootstrap": 20}
    truth = metrics.outcome_bounds("equalized_odds", repaid, granted, **who)
    assert truth["lower"].tolist() == truth["upper"].tolist()
    largest = metrics.equalized_odds_difference(repaid, granted, sensitive_features=sex)
    assert truth["lower"].abs().max() == pytest.approx(largest)
    bounds = metrics.outcome_bounds("equalized_odds", known, granted, **who)
    assert (bounds["lower"] <= truth["lower"]).all()
    assert (truth["upper"] <= bounds["upper"]).all()
    # More outcomes make the bounds narrower.
    more = np.where(np.arange(2000) % 2, known, repaid)
    narrower = metrics.outcome_bounds("equalized_odds", more, granted, **who)
    assert (narrower["lower"] >= bounds["lower"]).all()
    assert (narrower["upper"] <= bounds["upper"]).all()


def test_bounds_read_weights_units_and_labels_of_their_own():
    repaid, granted, sex = loans(6)
    known = np.where(granted == 1, repaid, np.nan)
    how = {"n_bootstrap": 50, "random_state": 0}
    plain = metrics.outcome_bounds("equalized_odds", known, granted, sensitive_features=sex, **how)
    twice = {"sensitive_features": np.repeat(sex, 2), **how}
    doubled = metrics.outcome_bounds(
        "equalized_odds",
        np.repeat(known, 2),
        np.repeat(granted, 2),
        units=np.repeat(np.arange(400), 2),
        **twice,
    )
    pd.testing.assert_frame_equal(plain, doubled)
    weighted = metrics.outcome_bounds(
        "equalized_odds",
        known,
        granted,
        sensitive_features=sex,
        sample_weight=np.full(400, 2.0),
        **how,
    )
    pd.testing.assert_frame_equal(plain, weighted)
    named = metrics.outcome_bounds(
        "equalized_odds",
        pd.Series(known).map({1: "repaid", 0: "default"}),
        np.where(granted == 1, "granted", "refused"),
        sensitive_features=sex,
        pos_label="granted",
        pos_label_true="repaid",
        **how,
    )
    pd.testing.assert_frame_equal(plain, named)


def test_bounds_of_nothing_known_are_everything():
    _, granted, sex = loans(7)
    bounds = metrics.outcome_bounds(
        "equal_opportunity", [None] * 400, granted, sensitive_features=sex, n_bootstrap=20
    )
    assert bounds[["lower", "upper"]].values.tolist() == [[-1, 1]]


def test_what_bounds_cannot_read_is_said():
    repaid, granted, sex = loans(8)
    with pytest.raises(ValueError, match="Pass a name such as 'equal_opportunity'"):
        metrics.outcome_bounds(metrics.group_auc_gap, repaid, granted, sensitive_features=sex)
    with pytest.raises(ValueError, match="the group 'f' only"):
        metrics.outcome_bounds("equal_opportunity", repaid, granted, sensitive_features=["f"] * 400)
