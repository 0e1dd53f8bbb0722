"""Groups that are known by probability: read, spread, and the same as plain groups if certain."""

import functools
import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score
from sklearn.model_selection import cross_validate

import skfair.metrics
from skfair import GroupProbabilities
from skfair.groups.encoding import encode_groups
from skfair.groups.probabilities import whole_numbers
from skfair.metrics import (
    demographic_parity_difference,
    disparity_test,
    equal_opportunity_difference,
    fairness_report,
    group_report,
    make_fairness_scorer,
    make_group_metric,
    noise_floor,
)
from tests.messages import messages
from tests.seeds import generator

N = 400
COMPARING = [
    name
    for name in skfair.metrics.__all__
    if list(inspect.signature(getattr(skfair.metrics, name)).parameters)[:1] == ["y_true"]
    and "sensitive_features" in inspect.signature(getattr(skfair.metrics, name)).parameters
    and "query_id" not in inspect.signature(getattr(skfair.metrics, name)).parameters
    and not name.endswith("_report")
]
COMPARING += ["balance_score", "share_deviation", "share_ratio", "kl_fairness_error"]


@pytest.fixture
def people():
    rng = generator(0)
    return {
        "groups": rng.choice(["a", "b", "c"], N),
        "table": rng.dirichlet([1, 1, 1], N),
        "y_true": rng.integers(0, 2, N),
        "y_pred": rng.integers(0, 2, N),
        "y_score": rng.normal(size=N),
        "weights": rng.uniform(0.5, 2, N),
        "strata": rng.choice(["u", "v"], N),
    }


def certain(groups):
    return GroupProbabilities(pd.get_dummies(pd.Series(groups)).astype(float))


def spread_by_hand(table, weights):
    """Each row three times, with the groups and weights that it has there."""
    rows = np.tile(np.arange(N), 3)
    return rows, np.repeat(["a", "b", "c"], N), table.T.ravel() * weights[rows]


def measure(name, people, groups, rows=slice(None), **more):
    """Call a metric with the columns that it reads."""
    metric = getattr(skfair.metrics, name)
    known = inspect.signature(metric).parameters
    given = people | {"labels": people["y_pred"], "sensitive_features": groups}
    if name == "calibration_difference":
        given["y_score"] = expit(people["y_score"])
    read = {c: given[c][rows] for c in ("y_true", "y_pred", "y_score", "labels") if c in known}
    more |= {"interval": (0.1, 0.4)} if name.startswith("partial") else {}
    return metric(**read, sensitive_features=groups, **more)


@pytest.mark.parametrize("name", COMPARING)
def test_certain_groups_give_the_numbers_of_plain_groups(name, people):
    known = inspect.signature(getattr(skfair.metrics, name)).parameters
    for more in ({}, {"sample_weight": people["weights"]}, {"control_features": people["strata"]}):
        if more.keys() <= known.keys():
            plain = measure(name, people, people["groups"], **more)
            found = measure(name, people, certain(people["groups"]), **more)
            assert found == pytest.approx(plain, abs=1e-12)


@pytest.mark.parametrize("name", COMPARING)
def test_rows_weigh_in_each_group_what_its_probability_says(name, people):
    rows, groups, weights = spread_by_hand(people["table"], people["weights"])
    wanted = measure(name, people, groups, rows, sample_weight=weights)
    table = GroupProbabilities(people["table"], names=["a", "b", "c"])
    found = measure(name, people, table, sample_weight=people["weights"])
    assert found == pytest.approx(wanted, abs=1e-12)


def test_a_metric_of_ones_own_gets_the_weights(people):
    metric = make_group_metric(recall_score)
    rows, groups, weights = spread_by_hand(people["table"], np.ones(N))
    y_true, y_pred = people["y_true"], people["y_pred"]
    wanted = metric(y_true[rows], y_pred[rows], sensitive_features=groups, sample_weight=weights)
    table = GroupProbabilities(people["table"])
    assert metric(y_true, y_pred, sensitive_features=table) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("report", [group_report, fairness_report])
def test_reports_of_certain_groups_are_those_of_plain_groups(report, people):
    given = people["y_true"], people["y_pred"]
    options = {"y_score": people["y_score"], "random_state": 0}
    plain = report(*given, sensitive_features=people["groups"], **options)
    found = report(*given, sensitive_features=certain(people["groups"]), **options)
    pd.testing.assert_frame_equal(plain, found, rtol=0, atol=1e-12)


@pytest.mark.parametrize("strata", [None, "strata"])
def test_a_report_counts_the_people_that_are_expected(people, strata):
    table = GroupProbabilities(people["table"], names=["a", "b", "c"])
    control = None if strata is None else people[strata]
    report, plain = (
        group_report(
            people["y_true"], people["y_pred"], sensitive_features=groups, control_features=control
        )
        for groups in (table, np.zeros(N))
    )
    of_all = [
        one.xs("overall", level=-1) if strata else one.loc[["overall"]] for one in (report, plain)
    ]
    assert of_all[0]["n"].sum() == N
    widths = [one["selection_rate_high"] - one["selection_rate_low"] for one in of_all]
    np.testing.assert_allclose(*widths, atol=1e-12)  # everybody counts once
    if strata is None:
        np.testing.assert_allclose(report["n"][:3], people["table"].sum(axis=0), atol=1)


def test_the_noise_floor_deals_out_rows_of_the_table(people):
    given = equal_opportunity_difference, people["y_true"], people["y_pred"]
    plain = noise_floor(*given, sensitive_features=people["groups"], random_state=0)
    found = noise_floor(*given, sensitive_features=certain(people["groups"]), random_state=0)
    np.testing.assert_allclose(found.values, plain.values, atol=1e-12)
    soft = noise_floor(
        *given, sensitive_features=GroupProbabilities(people["table"]), random_state=0
    )
    assert 0 < soft.mean < plain.mean  # blurred groups differ by less


def test_scorers_get_the_rows_of_the_fold(people):
    X = np.c_[people["y_score"], people["table"][:, 0]]
    scorer = make_fairness_scorer(demographic_parity_difference, greater_is_better=False)
    with sklearn.config_context(enable_metadata_routing=True):
        found = [
            cross_validate(
                LogisticRegression(),
                X,
                people["y_true"],
                scoring=scorer,
                params={"sensitive_features": groups},
            )["test_score"]
            for groups in (people["groups"], certain(people["groups"]))
        ]
    np.testing.assert_allclose(*found, atol=1e-12)


def test_forms_of_tables_agree(people):
    table = people["table"]
    frame = pd.DataFrame(table, columns=["a", "b", "c"])
    forms = [frame, dict(frame), table, table.tolist(), table.astype(np.float32)]
    for form in forms:
        found = GroupProbabilities(form)
        np.testing.assert_allclose(found.values, table, atol=1e-6)
        np.testing.assert_allclose(found.values.sum(axis=1), 1, atol=1e-15)
    assert GroupProbabilities(frame).names == ("a", "b", "c")
    assert GroupProbabilities(table).names == ("0", "1", "2")
    assert repr(GroupProbabilities(frame)) == "GroupProbabilities(400 rows, groups 'a', 'b', 'c')"
    copied = pickle.loads(pickle.dumps(found[np.arange(3)]))
    np.testing.assert_array_equal(copied.values, found.values[:3])
    assert found[:2].shape == (2, 3)
    assert len(found[np.arange(N) < 7]) == 7
    np.testing.assert_array_equal(np.asarray(found), found.values)


def test_a_group_to_which_nobody_can_belong_is_none():
    table = GroupProbabilities({"a": [0.5, 1], "b": [0.0, 0], "c": [0.5, 0]})
    owners, weights, groups = table.spread()
    assert groups.names == ("a", "c")
    assert owners.tolist() == [0, 0, 1]
    assert weights.tolist() == [0.5, 0.5, 1]


def test_sizes_are_rounded_to_their_sum():
    assert whole_numbers(np.array([1.4, 1.3, 1.3])).tolist() == [2, 1, 1]
    assert whole_numbers(np.array([3.0, 2.0])).tolist() == [3, 2]


def gap(table, y_pred=(0, 1, 1)):
    return demographic_parity_difference(None, y_pred, sensitive_features=table)


def test_tables_that_say_nothing_warn():
    with pytest.warns(UserWarning, match="same in every row"):
        table = GroupProbabilities(np.full((4, 2), 0.5))
    assert gap(table, [0, 1, 1, 1]) == 0


BAD = [
    ({"a": [0.5, 0.2], "b": [0.5, 0.2]}, "1 row of 2 have others, for example .0.2, 0.2."),
    ({"a": [1.5, 0.5], "b": [-0.5, 0.5]}, "at least 0"),
    ({"a": [50.0, 20], "b": [50.0, 80]}, "not 100%"),
    ({"a": [np.nan, 0.5], "b": [1, 0.5]}, "missing or infinite in 1 row of 2"),
    ({"a": [np.inf, 0.5], "b": [1, 0.5]}, "missing or infinite"),
    ({"a": [1.0, 1.0]}, "'a' alone"),
    ({"a": ["x", "y"], "b": ["u", "v"]}, "must be numbers"),
    ([], "is empty"),
]
NAMES = "one name for each of the 2 columns"
TABLE = [[0.5, 0.5], [1, 0]]
ROWS = GroupProbabilities(pd.DataFrame(TABLE))

test_tables_that_do_not_fit_are_refused = messages(
    *((ValueError, words, functools.partial(GroupProbabilities, table)) for table, words in BAD),
    (ValueError, NAMES, lambda: GroupProbabilities(TABLE, names=["a"])),
    (ValueError, NAMES, lambda: GroupProbabilities(TABLE, names=["a", "a"])),
    (IndexError, "indexed by rows", lambda: ROWS[:, 0]),
    (ValueError, "2 rows but the other data have 3", lambda: gap(ROWS)),
    (ValueError, "different order", lambda: gap(ROWS, pd.Series([0, 1], index=[1, 0]))),
    (TypeError, "each row must have one group", lambda: encode_groups(ROWS)),
    (
        *(TypeError, "each row must have one group"),
        lambda: disparity_test(
            "demographic_parity", None, [0, 1], sensitive_features=ROWS, max_disparity=0.1
        ),
    ),
)
