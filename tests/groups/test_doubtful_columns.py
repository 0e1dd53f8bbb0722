"""Columns that are read, and probably mean something else: each asks, and its neighbours do not."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skfair import Cohort
from skfair.metrics import (
    demographic_parity_difference,
    disparity_test,
    equal_opportunity_difference,
    fairness_report,
    mean_residual_difference,
    sample_size,
)
from tests.seeds import generator

audit = pytest.importorskip("skfair.report").audit

N = 600


def rows(key=0):
    rng = generator(key)
    y, sex = rng.integers(0, 2, N), rng.choice(["f", "m"], N)
    score = np.clip(0.3 + 0.4 * y + rng.normal(0, 0.2, N), 0, 1)
    return y, score, pd.DataFrame({"sex": sex})


def said(call, *args, **options):
    """Return the warnings of a call, as texts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args, **options)
    return " ".join(str(own.message) for own in caught)


@pytest.mark.parametrize("other", ["Yes", "yes ", "YES"])
@pytest.mark.parametrize("column", ["y_true", "y_pred"])
def test_labels_that_are_spelled_alike_ask(other, column):
    y, score, sex = rows()
    labels = {"y_true": np.where(y == 1, "yes", "no"), "y_pred": np.where(score > 0.5, "yes", "no")}
    given = {"sensitive_features": sex, "pos_label": "yes"}
    for call in (equal_opportunity_difference, fairness_report, audit):
        assert "differ only in case" not in said(call, **labels, **given)
    changed = labels[column].astype(object)
    changed[np.flatnonzero(changed == "yes")[:50]] = other
    for call in (equal_opportunity_difference, fairness_report, audit):
        assert "differ only in case" in said(call, **labels | {column: changed}, **given)
    test = given | labels | {column: changed, "max_disparity": 0.1}
    assert "differ only" in said(disparity_test, "equal_opportunity", **test)


def test_scores_of_the_other_class_ask():
    y, score, sex = rows()
    given = {"y_pred": (score > 0.5).astype(int), "sensitive_features": sex}
    for call in (audit, fairness_report):
        assert "other class" not in said(call, y, y_score=score, **given)
        assert "other class" in said(call, y, y_score=1 - score, **given)
        # Decisions of another kind, which have little to do with the scores, are no mistake
        unrelated = given | {"y_pred": generator(1).integers(0, 2, N)}
        assert "other class" not in said(call, y, y_score=score, **unrelated)


@pytest.mark.parametrize("threshold", [50, -1, 1.5])
def test_thresholds_in_another_unit_ask(threshold):
    y, score, sex = rows()
    given = {"y_score": score, "sensitive_features": sex}
    assert "same decision" not in said(audit, y, threshold=0.5, **given)
    assert f"threshold={threshold:g}" in said(audit, y, threshold=threshold, **given)


def test_groups_as_units_ask():
    y, score, sex = rows()
    people = {"y_pred": (score > 0.5).astype(int), "sensitive_features": sex}
    asked = "Is it a group or a site"
    for call in (audit, fairness_report):
        assert asked not in said(call, y, units=np.arange(N) // 2, **people)
        shown = {"suppress_below": 1, "min_group_size": 1} if call is audit else {}
        assert asked in said(call, y, units=np.arange(N) % 3, **people, **shown)
    few = {name: own[:30] for name, own in people.items()}
    assert asked not in said(fairness_report, y[:30], units=np.arange(30) // 10, **few)


@pytest.mark.parametrize("is_cohort", [False, True])
def test_outcomes_of_the_rejected_that_were_filled_in_ask(is_cohort):
    y, score, sex = rows()
    granted = (score > 0.5).astype(int)

    def of(outcomes):
        if is_cohort:
            return said(audit, Cohort(outcomes, granted, sensitive_features=sex))
        return said(audit, outcomes, granted, sensitive_features=sex)

    assert "filled in" not in of(y)
    assert "filled in" in of(np.where(granted == 1, y, 0))
    assert "filled in" not in of(granted)  # the model is right about everybody


def test_clear_columns_do_not_ask():
    y, score, sex = rows()
    given = {"y_score": score, "sensitive_features": sex, "units": np.arange(N)}
    assert said(audit, y, (score > 0.5).astype(int), **given) == ""
    assert said(demographic_parity_difference, None, score > 0.5, sensitive_features=sex) == ""


def test_abbreviations_of_groups_ask():
    _, score, sex = rows()
    words = sex["sex"].map({"f": "female", "m": "male"})
    mixed = words.mask(np.arange(N) % 3 == 0, sex["sex"].str.upper())
    asked = "abbreviate others"
    for call in (demographic_parity_difference, audit):
        assert asked not in said(call, None, score > 0.5, sensitive_features=words)
        assert asked in said(call, None, score > 0.5, sensitive_features=mixed)
    grades = np.where(np.arange(N) % 2, "A", "absent")  # a single pair may be chance
    assert asked not in said(
        demographic_parity_difference, None, score > 0.5, sensitive_features=grades
    )


def test_people_who_prefer_not_to_say_ask():
    _, score, sex = rows()
    some = sex["sex"].mask(np.arange(N) % 17 == 0, "Prefer not to answer")
    text = said(demographic_parity_difference, None, score > 0.5, sensitive_features=some)
    assert "stand for missing values" in text


def test_percent_beside_a_share_asks():
    y, score, sex = rows()
    given = {"threshold": 0.5, "sensitive_features": sex}
    assert "another unit" not in said(audit, y, y_score=score, **given)
    assert "another unit" in said(audit, y, y_score=100 * score, **given)
    for call, value in (
        (lambda: sample_size(5), "0.05"),
        (lambda: audit(y, score > 0.5, sensitive_features=sex, confidence=95), "0.95"),
    ):
        with pytest.raises(ValueError, match=f"Did you mean {value}"):
            call()


def test_numbers_in_two_units_ask():
    rng = generator(4)
    salary = rng.lognormal(10, 0.3, N)
    sex, asked = rng.choice(["f", "m"], N), "in the same unit"
    for call in (mean_residual_difference, audit):
        assert asked not in said(call, salary, 1.05 * salary, sensitive_features=sex)
        assert asked in said(call, np.log(salary), salary, sensitive_features=sex)
