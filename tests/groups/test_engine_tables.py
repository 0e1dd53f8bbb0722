"""Tables in engines: the same numbers as of the rows in memory, and only counts travel."""

import inspect

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from skfair import Cohort, metrics
from skfair.groups import engine_tables
from skfair.metrics import disparity_test, fairness_report, group_report, make_group_metric
from skfair.metrics.labels import LABEL_METRICS, LARGEST_RATES
from skfair.monitoring import DisparityMonitor
from skfair.report import audit
from tests.seeds import generator

N = 3000


def in_duckdb(table):
    duckdb = pytest.importorskip("duckdb", reason="duckdb comes with the engines extra")
    connection = duckdb.connect()
    connection.register("decisions", table)
    return connection.table("decisions")


ENGINES = {
    "pandas": lambda table: table,
    "polars": pl.from_pandas,
    "lazy polars": lambda table: pl.from_pandas(table).lazy(),
    "pyarrow": lambda table: pa.Table.from_pandas(table, preserve_index=False),
    "duckdb": in_duckdb,
}
each_engine = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)


def decisions(key=0):
    rng = generator(key)
    table = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], N),
            "race": rng.choice(list("abc"), N, p=[0.6, 0.3, 0.1]),
            "region": rng.choice(["north", "south"], N),
            "repaid": rng.integers(0, 2, N),
            "approved": rng.integers(0, 2, N),
            "before": rng.integers(0, 2, N),
            "income": rng.normal(size=N),
            "weight": rng.uniform(0.2, 3, N),
        }
    )
    table["approved"] = np.where(rng.random(N) < 0.6, table["repaid"], table["approved"])
    return table


FACTS = {
    "plain": {},
    "strata": {"control_features": "region"},
    "weights": {"sample_weight": "weight"},
    "all": {"control_features": ["region"], "sample_weight": "weight", "before": "before"},
}
NAMES = {"y_true": "repaid", "y_pred": "approved", "sensitive_features": ["sex", "race"]}


def both(engine, facts="plain", key=0, **changed):
    """The cohort of a table in an engine, and the one of the rows."""
    table, names = decisions(key), NAMES | FACTS[facts] | changed
    rows = {
        argument: table[own if isinstance(own, str) or argument.endswith("_features") else own[0]]
        for argument, own in names.items()
    }
    return Cohort.from_table(engine(table), **names), Cohort(**rows)


@each_engine
@pytest.mark.parametrize("facts", FACTS)
def test_every_metric_of_labels_is_that_of_the_rows(engine, facts):
    found, expected = both(engine, facts)
    assert len(found) == len(expected) == N
    for name in {**LABEL_METRICS, **LARGEST_RATES}:
        metric = getattr(metrics, name)
        for options in ({}, {"intersectional": False}):
            values = [metric(one, **options, zero_division=np.nan) for one in (found, expected)]
            assert values[0] == pytest.approx(values[1], abs=1e-12)


@each_engine
@pytest.mark.parametrize("facts", FACTS)
def test_reports_tests_estimates_and_audits_are_those_of_the_rows(engine, facts):
    found, expected = both(engine, facts)
    for report in (fairness_report, group_report):
        pd.testing.assert_frame_equal(report(found), report(expected), rtol=1e-9)
    tests = [disparity_test(one, "equalized_odds", max_disparity=0.2) for one in (found, expected)]
    assert tests[0].p_value == pytest.approx(tests[1].p_value, rel=1e-9)
    for rate in ("accuracy", "f1_score", "positive_predictive_value"):
        ends = [one.difference(rate).interval() for one in (found, expected)]
        assert ends[0] == pytest.approx(ends[1], abs=1e-9)
    own = {"metrics": ["equalized_odds_difference", make_group_metric(f1_score)]}
    for options in ({}, own | {"reference": {"sex": "m"}}):
        pages = [audit(one, n_simulations=20, **options) for one in (found, expected)]
        assert repr(pages[0]) == repr(pages[1])
        if "weight" not in FACTS[facts].values():  # else the last digits of sums may differ
            assert pages[0].to_html() == pages[1].to_html()
        for name in ("rates", "gaps", "subgroups", "within", "strata", "signed"):
            tables = [getattr(page, name) for page in pages]
            pd.testing.assert_frame_equal(*tables, rtol=1e-9)


@each_engine
def test_only_counts_travel(engine, monkeypatch):
    """Frames of narwhals are collected once, with a row for each kind."""
    arrived, collect = [], nw.LazyFrame.collect

    def counted(frame, *args, **options):
        found = collect(frame, *args, **options)
        arrived.append(len(found))
        return found

    monkeypatch.setattr(nw.LazyFrame, "collect", counted)
    found, _ = both(engine)
    assert arrived == [len(found.y_pred)]
    assert len(found.y_pred) == 24  # of 3,000 rows
    assert f"{N:,} rows of 24 kinds" in repr(found)


@each_engine
def test_where_picks_kinds(engine):
    found, expected = both(engine, "all")
    few = [one.where(sex="f", region=["north"]) for one in (found, expected)]
    assert len(few[0]) == len(few[1])
    values = [metrics.equalized_odds_difference(one) for one in few]
    assert values[0] == pytest.approx(values[1], abs=1e-12)


@each_engine
def test_labels_and_groups_of_any_kind(engine):
    """Words, booleans and numbers are labels, and either of two may be positive."""
    table = decisions()
    table["decided"] = np.where(table["approved"] == 1, "yes", "no")
    table["known"] = np.where(table["repaid"] == 1, "yes", "no")
    table["old"] = table["income"] > 0
    for positive in ("yes", "no"):
        names = {"y_true": "known", "y_pred": "decided", "pos_label": positive}
        found = Cohort.from_table(engine(table), **names, sensitive_features="old")
        columns = {"sensitive_features": table["old"], "pos_label": positive}
        expected = metrics.equalized_odds_difference(table["known"], table["decided"], **columns)
        assert metrics.equalized_odds_difference(found) == pytest.approx(expected, abs=1e-12)


@each_engine
def test_weights_that_are_none_are_refused(engine):
    table = decisions()
    for values, said in (
        (np.where(np.arange(N) == 7, -1.0, 1.0), "negative"),
        (np.where(np.arange(N) == 7, np.inf, 1.0), "NaN or infinite"),
        (np.full(N, "a"), "column of numbers"),
    ):
        changed = engine(table.assign(weight=values))
        with pytest.raises((ValueError, TypeError), match=said):
            Cohort.from_table(changed, **NAMES, sample_weight="weight")


@each_engine
def test_columns_that_the_table_lacks_are_named(engine):
    for argument, own in (("y_pred", "approveds"), ("sensitive_features", ["sex", "rase"])):
        with pytest.raises(ValueError, match=rf"{argument}='\w+' is no column.*Did you mean"):
            Cohort.from_table(engine(decisions()), **NAMES | {argument: own})
    with pytest.raises(ValueError, match="has no rows"):
        Cohort.from_table(engine(decisions().iloc[:0]), **NAMES)


@each_engine
def test_a_column_of_numbers_is_no_group(engine, monkeypatch):
    monkeypatch.setattr(engine_tables, "MOST_KINDS", 500)
    with pytest.raises(ValueError, match="more than 500 combinations"):
        Cohort.from_table(engine(decisions()), y_pred="approved", sensitive_features="income")


@each_engine
def test_missing_groups_are_missing(engine):
    table = decisions()
    table["sex"] = np.where(np.arange(N) % 50 == 0, None, table["sex"])
    people = Cohort.from_table(engine(table), y_pred="approved", sensitive_features="sex")
    with pytest.raises(ValueError, match="missing value"):
        metrics.demographic_parity_difference(people)
    found = audit(people, unknown=np.nan, n_simulations=20)
    rows = Cohort(y_pred=table["approved"], sensitive_features=table[["sex"]])
    assert repr(found) == repr(audit(rows, unknown=np.nan, n_simulations=20))


@each_engine
def test_several_classes_are_audited_and_numbers_need_rows(engine):
    rng = generator()
    table = decisions()
    table["answer"], table["truth"] = rng.choice(["no", "unclear", "yes"], (2, N))
    table["grade"] = rng.integers(0, 9, N)
    names = {"y_true": "truth", "y_pred": "answer", "sensitive_features": ["sex"]}
    rows = Cohort(table["truth"], table["answer"], sensitive_features=table[["sex"]])
    found = [
        audit(one, n_simulations=20) for one in (Cohort.from_table(engine(table), **names), rows)
    ]
    pd.testing.assert_frame_equal(found[0].rates, found[1].rates, rtol=1e-9)
    assert repr(found[0]) == repr(found[1])
    graded = Cohort.from_table(engine(table), y_pred="grade", sensitive_features="sex")
    with pytest.raises(TypeError, match="Single rows are measured here"):
        audit(graded)


@each_engine
def test_missing_outcomes_are_counted_in_rows(engine):
    """Whether outcomes are known of the accepted only, or of some people by chance."""
    table = decisions()
    table["repaid"] = np.where(table["approved"] == 1, table["repaid"], None)
    n_missing = int((table["approved"] == 0).sum())
    with pytest.raises(
        ValueError, match=rf"repaid has {n_missing:,} missing values in {N:,} rows, a"
    ):
        Cohort.from_table(engine(table), **NAMES)
    table = decisions()
    table["repaid"] = np.where(np.arange(N) % 10 == 0, None, table["repaid"])
    with pytest.raises(ValueError, match="repaid has 300 missing values in 3,000 rows. Leave"):
        Cohort.from_table(engine(table), **NAMES)
    with pytest.raises(ValueError, match="sensitive_features is empty"):
        Cohort.from_table(engine(table), y_pred="approved", sensitive_features=[])


NEED_ROWS = {
    "scores": lambda people: metrics.group_auc_gap(people),
    "own metric": lambda people: make_group_metric(roc_auc_score)(people),
    "own audit": lambda people: audit(people, metrics=[make_group_metric(roc_auc_score)]),
    "noise": lambda people: metrics.noise_floor(people, metrics.demographic_parity_difference),
    "monitor": lambda people: DisparityMonitor().update(people),
    "bounds": lambda people: metrics.outcome_bounds(people, "equal_opportunity"),
}


@pytest.mark.parametrize("call", NEED_ROWS.values(), ids=NEED_ROWS)
def test_what_needs_single_rows_says_so(call):
    people, _ = both(ENGINES["lazy polars"])
    with pytest.raises((TypeError, ValueError), match=r"[Ss]ingle rows|y_score|knows no sample_w"):
        call(people)


def test_an_audit_of_a_table_has_no_record_yet(tmp_path):
    found = audit(both(ENGINES["polars"])[0], n_simulations=20)
    with pytest.raises((TypeError, ValueError)):
        found.record(tmp_path / "record.json")


def test_what_narwhals_does_not_know_is_refused():
    with pytest.raises(TypeError, match="frame that narwhals knows"):
        Cohort.from_table([[1, 2]], y_pred="a", sensitive_features="b")
    assert "table" in inspect.signature(Cohort.from_table).parameters
