"""Signed differences and ratios from a reference group, against plain counting."""

from functools import partial
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import recall_score

from skfair import metrics
from skfair.groups.compared_groups import Agg
from skfair.groups.two_rates import rest_of_peers
from skfair.metrics import (
    demographic_parity_difference,
    demographic_parity_ratio,
    disparity_test,
    fairness_report,
    group_report,
    make_fairness_scorer,
    make_group_metric,
    mean_score_difference,
)
from skfair.metrics.labels import LABEL_METRICS
from tests.seeds import generator


@pytest.fixture(scope="module")
def people():
    rng = generator(0)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m", "x"], 900, p=[0.5, 0.4, 0.1])})
    frame["age"] = rng.choice(["old", "young"], 900)
    frame["y"] = rng.integers(0, 2, 900)
    frame["p"] = (rng.random(900) < frame["sex"].map({"f": 0.3, "m": 0.6, "x": 0.7})).astype(int)
    frame["w"] = rng.integers(1, 4, 900)
    return frame


def means(rows, by="sex", value="p"):
    weighted = rows.assign(total=rows[value] * rows["w"]).groupby(by)[["total", "w"]].sum()
    return weighted["total"] / weighted["w"]


def furthest(values):
    return values[values.abs().idxmax()]


@pytest.mark.parametrize("reference", ["f", "m", "x"])
def test_differences_and_ratios_are_those_of_plain_counting(people, reference):
    options = {"sensitive_features": people["sex"], "sample_weight": people["w"]}
    options["reference"] = reference
    rates = means(people)
    apart = (rates - rates[reference]).drop(reference)
    ratios = (rates / rates[reference]).drop(reference)
    value = demographic_parity_difference(None, people["p"], **options)
    assert value == pytest.approx(furthest(apart))
    value = demographic_parity_difference(None, people["p"], agg="mean", **options)
    assert value == pytest.approx(apart.mean())
    value = demographic_parity_ratio(None, people["p"], **options)
    assert value == pytest.approx(np.exp(-np.log(ratios).abs().max()))
    value = mean_score_difference(None, people["p"], **options)
    assert value == pytest.approx(furthest(apart))
    hits = means(people[people["y"] == 1])
    of_group = make_group_metric(recall_score)(people["y"], people["p"], **options)
    assert of_group == pytest.approx(furthest((hits - hits[reference]).drop(reference)))


def test_swapping_the_groups_turns_the_sign(people):
    two = people[people["sex"] != "x"]
    for name in ("demographic_parity", "equal_opportunity", "accuracy_parity"):
        difference = getattr(metrics, f"{name}_difference")
        ratio = getattr(metrics, f"{name}_ratio")
        rows = {"y_true": two["y"], "y_pred": two["p"], "sensitive_features": two["sex"]}
        signed = difference(**rows, reference="m")
        assert difference(**rows, reference="f") == pytest.approx(-signed)
        assert difference(**rows) == pytest.approx(abs(signed))
        for reference in ("f", "m"):
            assert ratio(**rows, reference=reference) == ratio(**rows) <= 1


@settings(max_examples=30)
@given(
    counts=st.lists(st.integers(1, 20), min_size=3, max_size=6),
    agg=st.sampled_from(get_args(Agg)),
)
@pytest.mark.parametrize("name", [name for name in LABEL_METRICS if name.endswith("_ratio")])
def test_no_group_hides_behind_one_above_the_reference(name, counts, agg):
    """A ratio to a reference group is that of the worst single comparison, up or down."""
    first, *others = counts
    ratio = partial(getattr(metrics, name), agg=agg, reference="0")

    def of(counts):
        cells = np.tile([0, 1, 2, 3], len(counts))
        sizes = np.concatenate([[21, n, 15, n + 3] for n in counts])
        rows, groups = (
            np.repeat(cells, sizes),
            np.repeat(np.arange(len(counts)), sizes.reshape(-1, 4).sum(1)),
        )
        return ratio(rows // 2, rows % 2, sensitive_features=groups.astype(str))

    alone = [of([first, other]) for other in others]
    assert of(counts) == pytest.approx(min(alone) if agg == "worst" else np.mean(alone))
    assert max(alone) <= 1


def test_several_attributes_and_strata(people):
    both = people[["sex", "age"]]
    rates = means(people, ["sex", "age"])
    apart = (rates - rates["m", "old"]).drop(("m", "old"))
    for reference in ({"sex": "m", "age": "old"}, ("m", "old"), "sex=m, age=old"):
        options = {"sensitive_features": both, "sample_weight": people["w"]}
        value = demographic_parity_difference(None, people["p"], reference=reference, **options)
        assert value == pytest.approx(furthest(apart))
    plain = {"sensitive_features": both, "intersectional": False}
    of_age = demographic_parity_difference(None, people["p"], reference="old", **plain)
    only_age = {"sensitive_features": people["age"]}
    assert of_age == demographic_parity_difference(None, people["p"], reference="old", **only_age)
    strata = {"sensitive_features": people["sex"], "control_features": people["age"]}
    strata["sample_weight"] = people["w"]
    within = demographic_parity_difference(None, people["p"], reference="m", **strata)
    apart = rates.unstack() - rates["m"]
    assert within == pytest.approx(furthest(apart.drop("m").stack()))


def test_the_report_has_the_differences_of_the_audit(people):
    audit = pytest.importorskip("skfair.report").audit
    rows = {"sensitive_features": people[["sex"]]}
    report = group_report(people["y"], people["p"], reference="m", **rows)
    signed = audit(people["y"], people["p"], n_simulations=20, reference="m", **rows).signed
    signed = signed.set_index(["measure", "group"])
    for group in ("f", "x"):
        for rate in ("selection_rate", "true_positive_rate", "false_positive_rate"):
            value, *ends = (
                report.loc[group, f"{rate}_difference{end}"] for end in ("", "_low", "_high")
            )
            own = signed.loc[(rate, group)]
            assert value == pytest.approx(own["difference"])
            theirs = [own["difference_low"], own["difference_high"]]
            assert ends == pytest.approx(theirs, abs=1e-12)
    assert report.loc[["m", "overall"], "accuracy_difference"].isna().all()
    assert "accuracy_difference" not in group_report(people["y"], people["p"], **rows)
    strata = group_report(
        people["y"], people["p"], reference="m", control_features=people["age"], **rows
    )
    old = strata.loc["old", "selection_rate"]
    assert strata.loc[("old", "f"), "selection_rate_difference"] == old["f"] - old["m"]


def test_the_table_of_all_metrics_is_signed():
    """A third of 2000 against two thirds of 1000, and of 1000 more: nobody is near 0."""
    sex, p = np.repeat(["f", "m", "x"], [2000, 1000, 1000]), np.tile([1, 0, 0, 0], 1000)
    p[2000:] = np.tile([1, 1, 0, 0], 500)
    rows = {"sensitive_features": sex, "n_bootstrap": 50, "random_state": 0}
    table = fairness_report(np.tile([0, 1, 1, 0], 1000), p, reference="m", **rows)
    row = table.loc["demographic_parity_difference"]
    assert row["value"] < 0
    assert row["value_low"] < row["value"] < row["value_high"] < 0


def test_a_test_compares_with_the_reference_only(people):
    rows = {"sensitive_features": people["sex"], "max_disparity": 0.2}
    found = disparity_test("demographic_parity", None, people["p"], reference="m", **rows)
    assert found.pairs["second"].tolist() == ["m", "m"]
    assert found.pairs["first"].tolist() == ["f", "x"]
    every = disparity_test("demographic_parity", None, people["p"], **rows)
    assert len(every.pairs) == 3
    assert found.p_value <= every.p_value + 1e-12
    make_fairness_scorer(demographic_parity_difference, reference="overall")  # not signed
    make_fairness_scorer(demographic_parity_ratio, reference="m")  # nor is a ratio


def test_the_others_are_worth_their_rows_or_as_many_as_their_rates_are_precise():
    """With equal rates all rows of the others; with unequal weights the effective number."""
    size, weight = np.array([30.0, 50, 20, 100]), generator(0).uniform(1, 3, 4)
    rate = np.full(4, 0.3)
    for of_group in (size, weight):
        found, sizes, share = rest_of_peers(rate, size, of_group, lambda v: np.full(4, v.sum()))
        others = of_group.sum() - of_group
        squares = (of_group**2 / size).sum() - of_group**2 / size
        assert found == pytest.approx(rate)
        assert sizes == pytest.approx(others**2 / squares)
        assert share == pytest.approx(others / of_group.sum())
    apart = rest_of_peers(np.array([0.3, 0, 1, 1]), size, size, lambda v: np.full(4, v.sum()))
    assert (apart[1] >= size.sum() - size - 1e-9).all()  # rates of 0 and 1 have no spread
