"""Tables in engines: the same numbers as of the rows in memory, and only counts travel."""

import inspect
import shutil

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from skfair import Cohort, metrics
from skfair.groups import engine_scores, engine_tables
from skfair.metrics import disparity_test, fairness_report, group_report, make_group_metric
from skfair.metrics.labels import LABEL_METRICS, LARGEST_RATES
from tests.seeds import generator

DisparityMonitor = pytest.importorskip("skfair.monitoring").DisparityMonitor
audit = pytest.importorskip("skfair.report").audit

N = 3000


def in_duckdb(table):
    connection = duckdb.connect()
    connection.register("decisions", table)
    return connection.table("decisions")


def in_ibis(table):
    """The table in a DuckDB file that Ibis reads."""
    ibis = pytest.importorskip("ibis")
    path = str(in_ibis.folder / f"{len(list(in_ibis.folder.iterdir()))}.duckdb")
    with duckdb.connect(path) as connection:
        connection.register("rows_of", table)
        connection.execute("create table decisions as select * from rows_of")
    return ibis.duckdb.connect(path, read_only=True).table("decisions")


def in_spark(table):
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    sql = pytest.importorskip("pyspark.sql")
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    made = sql.SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        made = made.config(name, value)
    return made.getOrCreate().createDataFrame(table)


@pytest.fixture(autouse=True)
def _folder(tmp_path):
    in_ibis.folder = tmp_path


LAZY = {
    "lazy polars": lambda table: pl.from_pandas(table).lazy(),
    "duckdb": in_duckdb,
    "ibis": in_ibis,
    "spark": in_spark,
}
IN_MEMORY = {
    "pandas": lambda table: table,
    "polars": pl.from_pandas,
    "pyarrow": lambda table: pa.Table.from_pandas(table, preserve_index=False),
}


MARKS = {
    "spark": [pytest.mark.slow, pytest.mark.filterwarnings("ignore:PySpark does not")],
    "ibis": [pytest.mark.filterwarnings("ignore:fetch_arrow_table")],
}


def each_of(engines, facts=None):
    """Run a test in each engine; Ibis, which is slow, only with some of the ``facts``."""
    if facts is None:
        params = [
            pytest.param(own, id=name, marks=MARKS.get(name, ())) for name, own in engines.items()
        ]
        return pytest.mark.parametrize("engine", params)
    params = [
        pytest.param(own, fact, id=f"{fact}-{name}", marks=MARKS.get(name, ()))
        for name, own in engines.items()
        for fact in facts
        if name != "ibis" or fact in ("all", "units and weights", "scores")
    ]
    return pytest.mark.parametrize(("engine", "facts"), params)


each_engine = each_of(LAZY | IN_MEMORY)
each_lazy = each_of(LAZY)
each_own = each_of({name: own for name, own in LAZY.items() if name != "ibis"})


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
            "person": rng.integers(0, N // 2, N),
            "score": rng.random(N).round(3),
            "chance": rng.random(N) ** 3,
            "wage": rng.normal(1e6, 1, N),
        }
    )
    table["approved"] = np.where(rng.random(N) < 0.6, table["repaid"], table["approved"])
    return table


FACTS = {
    "plain": {},
    "strata": {"control_features": "region"},
    "weights": {"sample_weight": "weight"},
    "all": {"control_features": ["region"], "sample_weight": "weight", "before": "before"},
    "units": {"units": "person", "control_features": "region"},
    "units and weights": {"units": "person", "sample_weight": "weight"},
    "scores": {"y_score": "score", "control_features": "region"},
    "scores and weights": {"y_score": "score", "sample_weight": "weight"},
}
# Sums of these are made in another order, so last digits differ.
OTHER_ORDER = [name for name, own in FACTS.items() if {*own} - {"control_features"}]
NAMES = {"y_true": "repaid", "y_pred": "approved", "sensitive_features": ["sex", "race"]}


def both(engine, facts="plain", key=0, **changed):
    """The cohort of a table in an engine, and the one of the rows."""
    table, names = decisions(key), NAMES | FACTS[facts] | changed
    rows = {
        argument: table[[own] if isinstance(own, str) and "_features" in argument else own]
        for argument, own in names.items()
    }
    return Cohort.from_table(engine(table), **names), Cohort(**rows)


@each_of(LAZY, FACTS)
def test_every_metric_of_labels_is_that_of_the_rows(engine, facts):
    found, expected = both(engine, facts)
    assert len(found) == len(expected) == N
    for name in {**LABEL_METRICS, **LARGEST_RATES}:
        metric = getattr(metrics, name)
        for options in ({}, {"intersectional": False}):
            values = [metric(one, **options, zero_division=np.nan) for one in (found, expected)]
            assert values[0] == pytest.approx(values[1], abs=1e-12)


@each_of(LAZY, FACTS)
def test_reports_tests_estimates_and_audits_are_those_of_the_rows(engine, facts):
    found, expected = both(engine, facts)
    tables = [fairness_report(one) for one in (found, expected)]
    kept = [name for name in tables[0].index if name.removesuffix("_max") in LABEL_METRICS]
    pd.testing.assert_frame_equal(*(table.loc[kept] for table in tables), rtol=1e-9)
    pd.testing.assert_frame_equal(group_report(found), group_report(expected), rtol=1e-9)
    tests = [disparity_test(one, "equalized_odds", max_disparity=0.2) for one in (found, expected)]
    assert tests[0].p_value == pytest.approx(tests[1].p_value, rel=1e-9)
    for rate in ("accuracy", "f1_score", "positive_predictive_value"):
        ends = [one.difference(rate).interval() for one in (found, expected)]
        assert ends[0] == pytest.approx(ends[1], abs=1e-9)
    own = {"metrics": ["equalized_odds_difference", make_group_metric(f1_score)]}
    for options in ({}, own | {"reference": {"sex": "m"}}):
        pages = [audit(one, n_simulations=20, **options) for one in (found, expected)]
        assert repr(pages[0]) == repr(pages[1])
        if facts not in OTHER_ORDER:
            assert pages[0].to_html() == pages[1].to_html()
        for name in ("rates", "gaps", "subgroups", "within", "strata", "signed"):
            tables = [getattr(page, name) for page in pages]
            pd.testing.assert_frame_equal(*tables, rtol=1e-9)


@each_lazy
def test_only_counts_travel(engine, monkeypatch):
    """Frames of narwhals are collected with a row for each kind, or for fewer."""
    arrived, collect = [], nw.LazyFrame.collect

    def counted(frame, *args, **options):
        found = collect(frame, *args, **options)
        arrived.append(len(found))
        return found

    monkeypatch.setattr(nw.LazyFrame, "collect", counted)
    found, _ = both(engine)
    assert max(arrived) == len(found.y_pred) == 24  # of 3,000 rows
    assert f"{N:,} rows in an engine, read as 24" in repr(found)
    arrived.clear()
    few_scores(monkeypatch, 100)
    found, _ = both(engine, y_score="chance")
    assert max(arrived) <= 24 * 101 < N  # one for each kind and bin


def few_scores(monkeypatch, n_bins):
    """Let scores be put into so many bins."""
    monkeypatch.setattr(engine_scores, "N_BINS", n_bins)
    monkeypatch.setattr(engine_tables, "MOST_KINDS", 999)


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


@each_lazy
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
    with pytest.raises(ValueError, match=r"has no rows|is empty"):
        audit(Cohort.from_table(engine(decisions()), **NAMES, where={"region": "none"}))


@each_lazy
@pytest.mark.parametrize("probed", [10**4, 10])
def test_a_column_of_numbers_is_no_group(engine, probed, monkeypatch):
    """It raises early, or when the first rows are all alike, before its values travel."""
    monkeypatch.setattr(engine_tables, "MOST_KINDS", 500)
    monkeypatch.setattr(engine_tables, "PROBED", probed)
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


@each_own
def test_several_classes_and_grades_are_audited(engine):
    rng = generator()
    table = decisions()
    table["answer"], table["truth"] = rng.choice(["no", "unclear", "yes"], (2, N))
    table["grade"], table["judged"] = rng.integers(0, 30, (2, N))
    for true, predicted, task in (("truth", "answer", "auto"), ("judged", "grade", "numbers")):
        for weight in ({}, {"sample_weight": "weight"}):
            names = {"y_true": true, "y_pred": predicted, "sensitive_features": ["sex"], **weight}
            given = {name: table[own] for name, own in names.items()}
            people = Cohort.from_table(engine(table), **names), Cohort(**given)
            found = [audit(one, n_simulations=20, task=task) for one in people]
            for name in ("rates", "gaps", "calibration"):
                tables = [getattr(one, name) for one in found]
                pd.testing.assert_frame_equal(*tables, rtol=1e-9)
            assert repr(found[0]) == repr(found[1])


@each_own
@pytest.mark.parametrize("facts", ["plain", "strata", "all"])
def test_numbers_that_hardly_repeat_are_audited(engine, facts, monkeypatch):
    """Moments about an origin near the values: the numbers are around a million."""
    monkeypatch.setattr(engine_tables, "MOST_KINDS", 500)
    monkeypatch.setattr(engine_tables, "PROBED", {"strata": 10}.get(facts, 10**4))
    table = decisions()
    table["earned"] = table["wage"] + table["income"]
    table["before"] = table["wage"] + 0.1 * table["weight"]
    names = NAMES | FACTS[facts] | {"y_true": "earned", "y_pred": "wage"}
    given = {
        argument: table[[own]] if isinstance(own, str) and "features" in argument else table[own]
        for argument, own in names.items()
    }
    people = Cohort.from_table(engine(table), **names), Cohort(**given)
    found = [audit(one, n_simulations=20) for one in people]
    assert repr(found[0]) == repr(found[1])
    for name in ("rates", "gaps", "subgroups", "calibration", "strata", "within"):
        tables = [getattr(one, name) for one in found]
        pd.testing.assert_frame_equal(*tables, rtol=1e-7)
    without_true = {name: own for name, own in names.items() if name != "y_true"}
    del given["y_true"]
    people = Cohort.from_table(engine(table), **without_true), Cohort(**given)
    found = [audit(one, n_simulations=20).rates for one in people]
    pd.testing.assert_frame_equal(*found, rtol=1e-7)


@each_lazy
def test_numbers_are_refused_where_labels_are_counted(engine, monkeypatch):
    monkeypatch.setattr(engine_tables, "MOST_KINDS", 500)
    people = Cohort.from_table(engine(decisions()), y_pred="wage", sensitive_features="sex")
    for call in (metrics.demographic_parity_difference, fairness_report, Cohort.rates):
        with pytest.raises(TypeError, match="'wage' are numbers that hardly repeat"):
            call(people)
    with pytest.raises(ValueError, match="task='binary' cannot be audited"):
        audit(people, task="binary")


def of_scores():
    """Yield every public metric of one score for each row, and the options that it needs."""
    needed = {
        "interval_gap": {"interval": (0.2, 0.6)},
        "fixed_interval_gap": {"interval": (0.2, 0.6)},
        "wasserstein_barycenter_gap": {},
    }
    for name in metrics.__all__:
        metric = getattr(metrics, name)
        known = getattr(inspect.unwrap(metric), "__code__", None)
        names = inspect.signature(metric).parameters if known is not None else {}
        if {"y_score", "sensitive_features"} <= {*names} and "metric" not in names:
            yield name, metric, needed.get(name, {})


@each_lazy
@pytest.mark.parametrize("facts", ["plain", "weights", "strata"])
def test_every_metric_of_scores_is_that_of_the_rows(engine, facts):
    """Some need single rows, and say so."""
    pair = both(engine, facts, y_score="score")
    compared = []
    for name, metric, options in of_scores():
        try:
            expected = metric(pair[1], **options)
        except (TypeError, ValueError):  # it knows no strata, or needs more
            continue
        if isinstance(expected, float):
            try:
                found = metric(pair[0], **options)
            except TypeError as error:
                assert "ingle rows" in str(error), name  # noqa: PT017
                continue
            assert found == pytest.approx(expected, abs=1e-12), name
            compared.append(name)
    assert {"mean_score_difference", "wasserstein_gap"} <= {*compared}
    assert len(compared) > 4, compared


@each_lazy
def test_decisions_at_a_threshold_are_those_of_the_rows(engine):
    for facts in ("scores", "scores and weights"):
        pair = both(engine, facts)
        for threshold in (0.25, 0.5004):
            pages = [audit(undecided(one), threshold=threshold, n_simulations=20) for one in pair]
            pd.testing.assert_frame_equal(pages[0].rates, pages[1].rates, rtol=1e-9)


def undecided(people):
    own = ("y_true", "y_score", "sensitive_features", "control_features", "sample_weight")
    if people._kinds is not None:
        table = people._kinds.table
        columns = {name: one for name, one in table.columns.items() if name != "y_pred"}
        named = {
            name: one[0] if name in engine_tables.LABELS else one for name, one in columns.items()
        }
        beside = {name: getattr(table, name) for name in table.beside}
        return Cohort.from_table(table.frame, **named, **beside)
    return Cohort(**{name: getattr(people, name) for name in own})


@each_own
def test_many_scores_are_put_into_bins(engine, monkeypatch):
    """Shares are exact to the stated resolution, and decisions at a threshold exactly."""
    few_scores(monkeypatch, 200)
    names = {"y_true": "repaid", "y_score": "chance", "sensitive_features": "sex"}
    for weight in ({}, {"sample_weight": "weight"}):
        table = decisions()
        people = Cohort.from_table(engine(table), **names, **weight)
        rows = Cohort(**{name: table[own] for name, own in (names | weight).items()})
        exact = people._kinds.resolution(pd.factorize(people.sensitive_features["sex"])[0])
        assert 0.001 < exact < 0.05  # of 4 kinds in about 200 bins, which are not of equal size
        assert f"shares of scores exact to {exact:.1g}" in repr(people)
        assert metrics.mean_score_difference(people) == pytest.approx(
            metrics.mean_score_difference(rows), abs=1e-12
        )
        assert metrics.group_auc_gap(people) == pytest.approx(
            metrics.group_auc_gap(rows), abs=2 * exact
        )
        for threshold in generator().random(2):
            found = [audit(one, threshold=threshold, n_simulations=20) for one in (people, rows)]
            kept = [one.rates[one.rates["measure"].str.contains("rate")] for one in found]
            pd.testing.assert_frame_equal(*kept, rtol=1e-9)
        if not weight:
            for own in (people, rows.where(sex="f")):
                few = own if own is not people else people.where(sex="f")
                assert (
                    audit(few, threshold=0.3, n_simulations=20).n_rows == (table.sex == "f").sum()
                )
            pages = [audit(one, preset="ll144", n_simulations=20) for one in (people, rows)]
            shares = [page.rates.set_index(["measure", "view"])["value"] for page in pages]
            overall = [float(own["selection_rate", ""]) for own in shares]
            assert overall[0] == pytest.approx(overall[1], abs=exact)


@each_own
@pytest.mark.parametrize("power", [1, 3, 12, 40])
def test_bins_follow_the_scores(engine, power, monkeypatch):
    """No bin of several scores has much more than its share, however crowded scores are."""
    few_scores(monkeypatch, 500)
    table = decisions()
    table["chance"] = np.append(generator().random(N - 600) ** power, np.full(600, 0.25))
    people = Cohort.from_table(engine(table), y_score="chance", sensitive_features="sex")
    assert people._kinds.resolution(pd.factorize(people.sensitive_features["sex"])[0]) < 0.03
    assert people._kinds.bins.low.size > 60


@each_lazy
def test_scores_that_are_none_are_refused(engine):
    table = decisions()
    names = {"y_score": "score", "sensitive_features": "sex"}
    for bad, said in ((np.inf, "NaN or infinite in 1 of"), (None, "score' is (missing|NaN)")):
        changed = table.assign(score=table["score"].where(np.arange(N) != 7, bad))
        with pytest.raises(ValueError, match=said):
            Cohort.from_table(engine(changed), **names)
    with pytest.raises(TypeError, match="must be a column of numbers"):
        Cohort.from_table(engine(table), **names | {"y_score": "race"})


@each_own
def test_units_in_one_group_and_in_several(engine):
    """Whether a unit lies in one cell or in many: counts of people, tests and draws agree."""
    rng = generator()
    for within in (False, True):
        table = decisions()
        if within:
            table["sex"] = np.where(table["person"] % 2 == 0, "f", "m")
        table["person"] = [f"p{i}" for i in table["person"]]
        names = {"y_true": "repaid", "y_pred": "approved", "sensitive_features": "sex"}
        found = Cohort.from_table(engine(table), **names, units="person")
        expected = Cohort(**{name: table[own] for name, own in names.items()}, units=table.person)
        assert f"of {table['person'].nunique():,} units" in repr(found)
        for reference in ("pairwise", "f"):
            ends = [
                one.difference("accuracy", reference=reference).interval()
                for one in (found, expected)
            ]
            assert ends[0] == pytest.approx(ends[1], abs=1e-9)
        options = {"method": "bootstrap", "random_state": int(rng.integers(100))}
        tables = [group_report(one, **options) for one in (found, expected)]
        pd.testing.assert_frame_equal(*tables, rtol=0.2, atol=0.02)
        pd.testing.assert_series_equal(tables[0]["n_units"], tables[1]["n_units"])
        pages = [audit(one, n_simulations=20) for one in (found, expected)]
        assert pages[0].n_units == pages[1].n_units
        assert pages[0].n_in_several == pages[1].n_in_several
        few = [one.where(sex="f") for one in (found, expected)]
        values = [one.difference("accuracy", intersectional=False) for one in (found, expected)]
        assert values[0].p_value(0.01) == pytest.approx(values[1].p_value(0.01), abs=1e-9)
        assert len(few[0]) == len(few[1])


@each_lazy
def test_what_units_cannot_do_is_refused(engine, monkeypatch):
    table = decisions()
    names = NAMES | {"units": "person"}
    with pytest.raises(TypeError, match="Units with scores"):
        Cohort.from_table(engine(table), **names, y_score="score")
    with pytest.raises(TypeError, match="single rows|Single rows"):
        audit(Cohort.from_table(engine(table), **names), preset="ugesp")
    monkeypatch.setattr(engine_tables, "MOST_ROWS", 100)
    with pytest.raises(ValueError, match="more than 100 units"):
        Cohort.from_table(engine(table), **names)
    missing = table.assign(person=table["person"].where(np.arange(N) != 3))
    with pytest.raises(ValueError, match="units='person' has 1 missing value"):
        Cohort.from_table(engine(missing), **names)


def test_rows_that_arrive_between_two_passes_are_noticed():
    """Each pass over this table finds one row more."""
    connection, table = duckdb.connect(), decisions()
    connection.register("rows_of", table)
    connection.execute("create table decisions as select * from rows_of")
    people = Cohort.from_table(
        connection.table("decisions"), y_score="chance", y_true="repaid", sensitive_features="sex"
    )
    connection.execute("insert into decisions select * from rows_of limit 1")
    counts = people._kinds.counts.sum()
    with pytest.raises(RuntimeError, match="3,000 rows in one pass and 3,001 in the next"):
        engine_tables.check_unchanged(counts, len(people._read_again([0.5])))
    frame = pl.from_pandas(table).lazy()
    arriving = iter(range(1, 100))

    def more(rows):
        return pl.concat([rows, rows.head(next(arriving))])

    growing = frame.map_batches(more, validate_output_schema=False)
    with pytest.raises(RuntimeError, match="rows arrive while it is read"):
        Cohort.from_table(growing, y_score="chance", sensitive_features="sex")


def test_errors_of_an_engine_are_passed_on():
    connection = duckdb.connect()
    connection.register("rows_of", decisions().assign(race="none"))
    relation = connection.sql("select sex, race::int as race, approved from rows_of")
    with pytest.raises(RuntimeError, match="The engine did not count the rows.*Could not convert"):
        Cohort.from_table(relation, y_pred="approved", sensitive_features="race")


@each_engine
def test_columns_are_named_beside_data(engine):
    """Metrics, reports, tests, audits and monitors take data= and where=."""
    table = decisions()
    north = table[table["region"] == "north"]
    columns = {"y_true": north["repaid"], "y_pred": north["approved"]}
    expected = columns | {"sensitive_features": north["sex"]}
    names = {"y_true": "repaid", "y_pred": "approved", "sensitive_features": "sex"}
    options = {"data": engine(table), "where": {"region": "north"}, **names}
    metric = metrics.equalized_odds_difference
    assert metric(**options) == pytest.approx(metric(**expected), abs=1e-12)
    del options["y_true"], options["y_pred"]
    assert metric("repaid", "approved", **options) == pytest.approx(metric(**expected), abs=1e-12)
    given = ("equalized_odds", "repaid", "approved")
    test = disparity_test(*given, **options, max_disparity=0.1)
    own = disparity_test("equalized_odds", **expected, max_disparity=0.1)
    assert test.p_value == pytest.approx(own.p_value, rel=1e-9)
    for function in (fairness_report, group_report):
        found = function("repaid", "approved", **options)
        pd.testing.assert_frame_equal(found, function(**expected), rtol=1e-9)
    page = audit("repaid", "approved", **options, n_simulations=20)
    assert repr(page) == repr(audit(**expected, n_simulations=20))
    monitors = [DisparityMonitor("equalized_odds", max_disparity=0.01) for _ in range(2)]
    monitors[0].update("repaid", "approved", **options)
    monitors[1].update(**expected)
    assert monitors[0].evidence_ == pytest.approx(monitors[1].evidence_, rel=1e-9)
    assert monitors[0].rates_ == monitors[1].rates_
    with pytest.raises(TypeError, match="y_pred= is the name of a column"):
        metric("repaid", table["approved"], **options)
    with pytest.raises(ValueError, match="where= names 'regionn'.*Did you mean 'region'"):
        metric("repaid", "approved", **options | {"where": {"regionn": "north"}})
    over = options | {"where": nw.col("income") > 0}
    rows = table[table["income"] > 0]
    alone = metric(rows["repaid"], rows["approved"], sensitive_features=rows["sex"])
    assert metric("repaid", "approved", **over) == pytest.approx(alone, abs=1e-12)


@each_lazy
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
    "bounds": lambda people: metrics.outcome_bounds(people, "equal_opportunity"),
}


@pytest.mark.parametrize("call", NEED_ROWS.values(), ids=NEED_ROWS)
def test_what_needs_single_rows_says_so(call):
    people, _ = both(LAZY["lazy polars"])
    with pytest.raises((TypeError, ValueError), match=r"[Ss]ingle rows|y_score|knows no sample_w"):
        call(people)


def test_what_narwhals_does_not_know_is_refused():
    with pytest.raises(TypeError, match="frame that narwhals knows"):
        Cohort.from_table([[1, 2]], y_pred="a", sensitive_features="b")
    assert "table" in inspect.signature(Cohort.from_table).parameters


def test_columns_of_dask_are_read_in_their_blocks():
    frames = pytest.importorskip("dask.dataframe")
    table = decisions()
    lazy = frames.from_pandas(table, npartitions=3)
    found = metrics.equalized_odds_difference(data=lazy, **NAMES)
    assert found == pytest.approx(metrics.equalized_odds_difference(data=table, **NAMES))
    people = Cohort.from_table(lazy, y_score="score", sensitive_features="sex")
    assert "Dask collections" in repr(people)
    with pytest.raises(TypeError, match="where= is for other tables"):
        Cohort.from_table(lazy, **NAMES, where={"region": "north"})
    with pytest.raises(ValueError, match="y_pred='approvd' is no column"):
        Cohort.from_table(lazy, **NAMES | {"y_pred": "approvd"})


@each_engine
def test_levels_that_are_asked_for_are_those_of_the_column(engine):
    """None is the missing level, and 1, 1.0 and True are equal, as in pandas."""
    table = decisions()
    table["sex"] = np.where(np.arange(N) % 50 == 0, None, table["sex"])
    table["old"], table["rate"] = table["income"] > 0, table["repaid"].astype(float)
    names = {"y_pred": "approved", "sensitive_features": "race"}
    for where, kept in (
        ({"sex": [None, "f"]}, table["sex"].isna() | (table["sex"] == "f")),
        ({"sex": None}, table["sex"].isna()),
        ({"rate": 1}, table["rate"] == 1),
        ({"repaid": 1.0}, table["repaid"] == 1),
        ({"region": np.array(["north"])}, table["region"] == "north"),
        ({"repaid": range(1, 2), "old": True}, (table["repaid"] == 1) & table["old"]),
    ):
        assert len(Cohort.from_table(engine(table), **names, where=where)) == kept.sum(), where
    with pytest.raises(TypeError, match="where= is a dict of columns and levels"):
        Cohort.from_table(engine(table), **names, where="sex = 'f'")


@each_lazy
def test_names_of_columns_do_not_matter(engine, monkeypatch):
    """A group may be called as a sum is, and a unit may be a group."""
    table = decisions().rename(columns={"sex": "bin", "race": "n", "region": "cell"})
    units = Cohort.from_table(
        engine(table), y_pred="approved", sensitive_features="bin", units="bin"
    )
    assert units.units.n_people == 2
    monkeypatch.setattr(engine_tables, "MOST_KINDS", 500)
    table["earned"] = table["wage"] + table["income"]
    names = {"y_true": "earned", "y_pred": "wage", "sensitive_features": ["bin", "n", "cell"]}
    found = audit(Cohort.from_table(engine(table), **names), n_simulations=20)
    rows = {name: table[own] for name, own in names.items()}
    pd.testing.assert_frame_equal(found.rates, audit(**rows, n_simulations=20).rates, rtol=1e-7)
    for options in ({"threshold": 3}, {"pos_label": 1}, {"preset": "ugesp"}):
        given = names | ({"pos_label": 1} if "pos_label" in options else {})
        options = {} if "pos_label" in options else options
        with pytest.raises(ValueError, match="is about classes, but 'earned', 'wage' are numbers"):
            audit(Cohort.from_table(engine(table), **given), **options)


@each_lazy
def test_people_are_counted_and_missing_ones_are_named(engine, monkeypatch):
    table = decisions()
    table["who"] = np.arange(N)
    alone = Cohort.from_table(engine(table), **NAMES, units="who")
    assert alone.units is None
    table["who"] = np.where(np.arange(N) % 30 == 0, np.nan, table["person"])
    with pytest.raises(ValueError, match=f"units='who' has {N // 30} missing values"):
        Cohort.from_table(engine(table), **NAMES, units="who")
    table["sex"] = np.where(np.arange(N) % 50 == 0, None, table["sex"])
    people = Cohort.from_table(engine(table), **NAMES)
    for call in (metrics.equalized_odds_difference, group_report, audit):
        with pytest.raises(ValueError, match=f"has {N // 50} missing values in {N} rows"):
            call(people)
    few_scores(monkeypatch, 100)
    binned = Cohort.from_table(engine(table), y_score="chance", sensitive_features="sex")
    assert f"{N // 50} rows missing" in repr(binned)
    assert audit(binned, threshold=0.5, unknown=np.nan, n_simulations=20).n_rows == N


def test_calls_with_data_are_calls_of_python():
    table, metric = decisions(), metrics.equalized_odds_difference
    options = {"data": table, "sensitive_features": "sex"}
    with pytest.raises(TypeError, match="got 'y_pred' twice"):
        metric("repaid", "approved", **options, y_pred="approved")
    people = Cohort.from_table(table, **NAMES)
    for call in (lambda: metric(people, data=table), lambda: metric(data=people)):
        with pytest.raises(TypeError, match="got a cohort and data="):
            call()
    for wrong in ({"y_pred": table["approved"]}, {"y_pred": 0}):
        with pytest.raises(TypeError, match="y_pred= is the name of a column"):
            Cohort.from_table(table, sensitive_features="sex", **wrong)
    with pytest.raises(ValueError, match="no labels and no scores"):
        Cohort.from_table(table, sensitive_features="sex")
    monitor = DisparityMonitor(pos_label=1)
    with pytest.raises(ValueError, match="The monitor has pos_label=1 and the batch 0"):
        monitor.update(Cohort.from_table(table, **NAMES, pos_label=0))
    with pytest.raises(TypeError, match=r"'sensitive_feature'.*Did you mean 'sensitive_features'"):
        metric("repaid", "approved", data=table, sensitive_feature="sex")
    with pytest.raises(TypeError, match="unexpected keyword argument 'units'"):
        metric("repaid", "approved", **options, units="person")


def test_a_test_of_means_reads_single_rows():
    people, _ = both(LAZY["duckdb"], y_score="score")
    with pytest.raises(TypeError, match="Single rows"):
        disparity_test(people, "mean_score_difference", max_disparity=0.1)
