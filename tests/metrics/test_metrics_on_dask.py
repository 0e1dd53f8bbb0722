"""Metrics, reports and scorers of Dask collections are those of the same rows in memory."""

import inspect
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import skfair.metrics as metrics
from skfair.groups import score_bins, weighted_rows
from skfair.groups.encoding import encode_groups
from skfair.groups.weighted_rows import LazyRows
from skfair.model_selection import StratifiedSensitiveKFold
from skfair.utils.history import bytes_exchanged
from tests.seeds import generator

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

# A category that no row has is warned of; here it is there to be left out.
pytestmark = pytest.mark.filterwarnings("ignore:Sensitive attribute 'race' declares 1 level")
# Metrics of rankings need all documents of a query at once.
OF_RANKINGS = {"pair_error_gap", "exposure_gap", "rank_gap", "ndcg"}


# Tests of rates; those of scores need rows in memory.
TESTS = {
    "test": partial(metrics.disparity_test, "equalized_odds", max_disparity=0.1, method="melded"),
    "bound": partial(metrics.disparity_upper_bound, "largest_selection_rate"),
}


def function_of(name):
    return TESTS[name] if name in TESTS else getattr(metrics, name)


def parameters(name):
    thing = function_of(name)
    return list(inspect.signature(thing).parameters) if callable(thing) else [""]


# All that compare groups; reports and tests of disparities are tested below by themselves.
METRICS = sorted(
    name
    for name in {*metrics.__all__} - OF_RANKINGS - {"group_report", "fairness_report"}
    if "sensitive_features" in parameters(name)
    and parameters(name)[0] in ("y_true", "y_score", "labels")
)
# Exact whatever the number of scores.
OF_SUMS = ["loss_parity_difference", "largest_group_loss", "excess_loss", "mean_score_difference"]


def people(n=600, seed=0):
    """Rows in five blocks; one lacks a group and a class, one is empty."""
    rng = generator(seed)
    sex = rng.choice(["f", "m"], n, p=[0.3, 0.7])
    sex[: n // 4] = "m"
    score = rng.normal(size=n) + 0.4 * (sex == "m")
    score[::7] = score[0]  # ties
    # The score tells classes apart: models of it predict both in each group.
    y = (score + rng.normal(size=n) > 0).astype(int)
    y[n // 4 : n // 3] = 0
    return pd.DataFrame(
        {
            "y": y,
            "pred": (score + rng.normal(size=n) > 0).astype(int),
            "score": score,
            "chance": 1 / (1 + np.exp(-score)),
            "label": rng.choice([-1, 0, 1, 2], n),
            "sex": sex,
            "race": pd.Categorical(rng.choice(["w", "b", "o"], n), categories=["w", "b", "o", "x"]),
            "w": rng.choice([0.0, 0.5, 1.0, 3.0], n),
            "job": rng.choice(["a", "b", "c"], n),
            "grade": rng.choice([2, 10], n),
        }
    )


def lazy_frame(frame, n_blocks=5):
    """Blocks of unequal length, known to nobody, the second one without rows."""
    ends = np.linspace(0, len(frame), n_blocks, dtype=int) ** 2 // len(frame)
    ends = np.sort(np.append(ends, ends[1]))
    parts = [frame.iloc[i:j] for i, j in pairwise(ends)]
    return dd.from_map(lambda i: parts[i], range(len(parts)), meta=frame.iloc[:0])


def arguments(name, frame, groups=None):
    """The arguments with one value per row that a metric takes, from a frame."""
    columns = {"y_true": "y", "y_pred": "pred", "y_score": "score", "labels": "label"}
    columns |= {"y_score": "chance"} if name == "calibration_difference" else {}
    wanted = parameters(name)
    given = {argument: frame[column] for argument, column in columns.items() if argument in wanted}
    return given | {"sensitive_features": frame["sex"] if groups is None else frame[groups]}


def options(name):
    if name == "accuracy" or name in TESTS:
        return {}
    wanted = parameters(name)
    found = {"interval": (0.1, 0.45)} if "interval" in wanted else {}
    return found | ({"rate": 0.2, "step": 0.2} if name == "suggest_interval" else {})


def value(result):
    result = getattr(result, "p_value", result)
    return result.to_numpy() if isinstance(result, pd.DataFrame) else result


# The groups of each kind of call, and its options, of which some are columns.
KINDS = {
    "weights": ("sex", {"sample_weight": "w"}),
    "crossed": (["sex", "race"], {"intersectional": True}),
    "apart": (["sex", "race"], {"intersectional": False}),
    "stratum": ("sex", {"control_features": "job"}),
    "reference": ("sex", {"reference": "m"}),
    "strata": ("sex", {"control_features": ["job", "grade"], "sample_weight": "w"}),
}


def is_in_another(name, kind):
    """Weights and strata are asked for at once where both are taken."""
    return kind in ("weights", "stratum") and KINDS["strata"][1].keys() <= {*parameters(name)}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=pytest.mark.slow if is_in_another(name, kind) else ())
        for name in [*METRICS, *TESTS]
        for kind, (_, given) in KINDS.items()
        if given.keys() <= {*parameters(name)}
    ],
)
def test_equal_to_memory(name, kind):
    groups, given = KINDS[kind]
    extra = {"zero_division": np.nan} if "zero_division" in parameters(name) else {}
    frame, results = people(1500), []
    for rows in (frame, lazy_frame(frame)):
        by_row = ("sample_weight", "control_features")
        read = {key: rows[v] if key in by_row else v for key, v in given.items()}
        call = arguments(name, rows, groups) | read | extra | options(name)
        results.append(function_of(name)(**call))
    assert type(results[0]) is type(results[1])
    assert_allclose(*map(value, results), rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Dask currently has limited support")
def test_columns_here_and_in_blocks():
    """Control features of any kind, and true labels that a metric ignores."""
    frame, metric = people(), metrics.demographic_parity_difference
    lazy, names = lazy_frame(frame), ["job", "grade"]
    table = frame[names].astype(object).to_numpy()
    pred = da.from_array(frame.pred.to_numpy(), chunks=77)
    given = {"sensitive_features": frame.sex, "control_features": frame[names]}
    expected = metric(None, frame.pred, **given)
    for y, p, groups, control in (
        (None, lazy.pred, lazy.sex, lazy[names]),
        (None, lazy.pred, lazy.sex, {"job": lazy.job, "grade": lazy.grade}),
        (None, lazy.pred, lazy.sex, frame[names]),
        (None, lazy.pred, lazy.sex, table),
        (None, pred, frame.sex, da.from_array(table, chunks=(77, 2))),
        (None, frame.pred, frame.sex, lazy[names]),
        (pred, frame.pred.array, frame.sex.array, frame[names]),
    ):
        found = metric(y, p, sensitive_features=groups, control_features=control)
        assert_allclose(found, expected, atol=1e-14)
    missing = lazy_frame(frame.assign(job=frame.job.where(frame.index != 300)))
    with pytest.raises(ValueError, match="Control attribute .job. has 1 missing value"):
        metric(None, lazy.pred, sensitive_features=lazy.sex, control_features=missing[["job"]])


def resolution(rows, codes):
    """The largest share of a group in one bin of several scores."""
    table = pd.DataFrame({"group": codes, "bin": rows.bins.number, "weight": rows.weights})
    is_wide = (rows.bins.low < rows.bins.high)[table.bin]
    inside = table[is_wide].groupby(["group", "bin"]).weight.sum()
    return float((inside / table.groupby("group").weight.sum()).max())


def bound_of(name, frame, interval=(0.1, 0.45)):
    """How far a metric of binned scores may be off, as the module says."""
    groups = (frame.sex, None, None, True)
    rows = LazyRows({"y_true": frame.y}, {"y_score": frame.score}, *groups)
    rows = rows.binned("y_score", [0.0])
    (codes,) = rows.groups.codes
    share = resolution(rows, codes)
    assert 0 < share < 0.2
    if name == "wasserstein_gap":
        return float((rows.bins.high - rows.bins.low).max())
    if "pairwise" in name or name in (
        "partial_equal_opportunity_gap",
        "partial_equalized_odds_gap",
    ):
        positive = np.asarray(rows.columns["y_true"])
        share = resolution(rows, 2 * codes + positive)
    if "partial" in name or name == "suggest_interval":
        share /= 0.2 if name == "suggest_interval" else interval[1] - interval[0]
    return 2 * share


@pytest.mark.parametrize("name", METRICS)
def test_many_scores_are_put_into_bins(name, monkeypatch):
    frame, metric = people(3000), getattr(metrics, name)
    monkeypatch.setattr(score_bins, "N_BINS", 300)
    monkeypatch.setattr(score_bins, "N_QUANTILES", 150)
    lazy = lazy_frame(frame)
    expected = metric(**arguments(name, frame), **options(name))
    found = metric(**arguments(name, lazy), **options(name))
    if name == "suggest_interval":
        expected, found = (one.sort_values(["low", "high"])["gap"] for one in (expected, found))
    of_scores = "y_score" in parameters(name) and name not in OF_SUMS
    atol = bound_of(name, lazy) if of_scores else 1e-12
    assert_allclose(value(found), value(expected), rtol=0, atol=atol)


def test_the_score_of_a_bin_is_the_mean_of_its_scores(monkeypatch):
    """Weighted, so that sums over the bins of a group are nearly those over its rows."""
    monkeypatch.setattr(score_bins, "N_BINS", 10)
    frame = people(3000)
    frame["w"] = generator(1).choice([0.1, 10.0], 3000)
    lazy = lazy_frame(frame)
    rows = LazyRows({}, {"s": lazy.score}, lazy.sex, None, lazy.w).binned("s")
    for number, (low, high) in enumerate(zip(rows.bins.low, rows.bins.high, strict=True)):
        own = frame[frame.score.between(low, high)]
        expected = np.average(own.score, weights=own.w)
        assert rows.columns["s"][rows.bins.number == number] == pytest.approx(expected)


def test_rates_at_a_threshold_are_exact_in_bins(monkeypatch):
    frame = people(3000)
    monkeypatch.setattr(score_bins, "N_BINS", 20)
    lazy = lazy_frame(frame)
    for threshold in (-0.5, 0.0, 0.123):
        found, expected = (
            metrics.partial_demographic_parity_gap(
                None, of.score, sensitive_features=of.sex, interval=(0, 1), threshold=threshold
            )
            for of in (lazy, frame)
        )
        assert_allclose(found, expected, atol=1e-13)


@pytest.mark.filterwarnings("ignore:Dask currently has limited support")
@pytest.mark.parametrize("name", ["demographic_parity_difference", "equalized_odds_difference"])
def test_strings_arrays_of_unknown_chunks_and_columns_that_are_here(name):
    frame, metric = people(), getattr(metrics, name)
    for column in ("y", "pred"):
        frame[column] = np.where(frame[column] == 1, "yes", "no")
    expected = metric(frame.y, frame.pred, sensitive_features=frame.sex, pos_label="yes")
    lazy = lazy_frame(frame)
    arrays = [lazy[column].to_dask_array() for column in ("y", "pred", "sex")]
    cut = [
        da.from_array(frame[c].to_numpy().astype("U3"), chunks=k)
        for c, k in (("y", 70), ("pred", 200), ("sex", 33))
    ]
    for y, pred, sex in [arrays, cut, (lazy.y, lazy.pred, frame.sex), (cut[0], frame.pred, cut[2])]:
        found = metric(y, pred, sensitive_features=sex, pos_label="yes")
        assert_allclose(found, expected, atol=1e-14)
    frame["y"] = frame.y.astype("category")
    lazy = lazy_frame(frame)
    found = metric(lazy.y, lazy.pred, sensitive_features={"sex": lazy.sex}, pos_label="yes")
    assert_allclose(found, expected, atol=1e-14)
    days = frame.assign(sex=pd.to_datetime(frame.sex.map({"f": "2020-01-01", "m": "2019-05-05"})))
    found = metric(lazy.y, lazy.pred, sensitive_features=lazy_frame(days).sex, pos_label="yes")
    assert_allclose(found, expected, atol=1e-14)


@pytest.mark.parametrize("loss", ["squared_error", lambda t, z: np.maximum(0, 2 - t * z)])
@pytest.mark.parametrize(
    ("task", "given"),
    [("classification", "all"), ("classification", "class"), ("regression", "all")],
)
def test_losses(loss, task, given):
    frame = people()
    if given == "regression":
        given, task = "all", given
        frame["y"] = generator(1).normal(size=len(frame))
    lazy = lazy_frame(frame)
    extra = {"loss": loss, "task": task, "subset": given, "zero_division": np.nan}
    for metric in (metrics.loss_parity_difference, metrics.largest_group_loss):
        expected = metric(frame.y, frame.score, sensitive_features=frame.sex, **extra)
        found = metric(lazy.y, lazy.score, sensitive_features=lazy.sex, **extra)
        assert_allclose(found, expected, rtol=1e-12)


def reports_of_both(report, groups, columns, **given):
    """Make a report of rows in blocks, and the same of rows in memory."""
    frame = people(1500)
    for of in (lazy_frame(frame), frame):
        own = {name: of[column] for name, column in columns.items()}
        own |= {"y_score": of.score, "sensitive_features": of[groups], "random_state": 0}
        yield report(of.y, of.pred, **own, **given)


each_kind_of_report = pytest.mark.parametrize(
    "columns",
    [{}, pytest.param({"sample_weight": "w"}, marks=pytest.mark.slow), KINDS["strata"][1]],
    ids=["plain", "weights", "strata"],
)


@each_kind_of_report
@pytest.mark.parametrize("method", ["wilson", "bootstrap"])
def test_group_report(columns, method):
    given = {"method": method, "n_bootstrap": 50}
    reports = reports_of_both(metrics.group_report, ["sex", "race"], columns, **given)
    pd.testing.assert_frame_equal(*reports, rtol=1e-12, atol=1e-12)


@each_kind_of_report
def test_fairness_report(columns):
    found, expected = reports_of_both(metrics.fairness_report, "sex", columns, n_bootstrap=400)
    assert_allclose(found["value"], expected["value"], rtol=1e-11)
    of_labels = [name for name in found.index if name in metrics.labels.LABEL_METRICS]
    assert_allclose(found.loc[of_labels], expected.loc[of_labels], rtol=1e-11, atol=1e-12)
    # Rows are resampled by kind: other draws of the same distribution.
    assert_allclose(found["standard_error"], expected["standard_error"], rtol=0.35)


def test_standard_errors_count_the_rows_behind_a_bin(monkeypatch):
    monkeypatch.setattr(score_bins, "N_BINS", 100)
    frame, given = people(3000), {"random_state": 0, "n_bootstrap": 400}
    found, expected = (
        metrics.fairness_report(None, None, y_score=of.score, sensitive_features=of.sex, **given)
        for of in (lazy_frame(frame), frame)
    )
    assert_allclose(found["standard_error"], expected["standard_error"], rtol=0.35)


@pytest.mark.parametrize(
    ("name", "is_weighted", "control"),
    [
        ("statistical_parity_gap", False, None),
        pytest.param("statistical_parity_gap", True, "job", marks=pytest.mark.slow),
        pytest.param("demographic_parity_difference", True, None, marks=pytest.mark.slow),
        ("equal_opportunity_difference", False, "job"),  # classes keep their rows
    ],
)
def test_noise_floor(name, is_weighted, control):
    frame = people(1000)
    lazy, metric = lazy_frame(frame), getattr(metrics, name)
    # A gap of two groups varies more than the largest of many.
    n = 1000 if (name, control) == ("demographic_parity_difference", None) else 300

    def floor(of):
        weights = {"sample_weight": of.w} if is_weighted else {}
        weights |= {} if control is None else {"control_features": of[control]}
        first = of.y if name == "equal_opportunity_difference" else None
        second = of.score if name == "statistical_parity_gap" else of.pred
        given = {"sensitive_features": of.sex, "n_permutations": n, "random_state": 0}
        return metrics.noise_floor(metric, first, second, **given, **weights)

    found, expected = floor(lazy), floor(frame)
    assert found.values.shape == (n,)
    # The two differ by 0.04 each: these are five standard errors and more.
    assert_allclose(found.mean, expected.mean, rtol=0.2)
    assert_allclose(found.upper, expected.upper, rtol=0.25)


@pytest.mark.parametrize("centers", [False, True])
@pytest.mark.parametrize("mean", [False, True])
def test_kmeans_cost(centers, mean):
    frame = people()
    rng = generator(0)
    X = rng.normal(size=(len(frame), 3)) + 1e4
    table = pd.concat([pd.DataFrame(X, columns=["a", "b", "c"]), frame], axis=1)
    table["label"] += 1
    lazy = lazy_frame(table)
    given = {"centers": X[:4] if centers else None, "mean": mean}
    expected = metrics.kmeans_cost(X, table.label, sample_weight=table.w, **given)
    found = metrics.kmeans_cost(lazy[["a", "b", "c"]], lazy.label, sample_weight=lazy.w, **given)
    assert_allclose(found, expected, rtol=1e-10)
    blocks = da.from_array(sparse.csr_array(X), chunks=(150, 3), asarray=False)
    found = metrics.kmeans_cost(blocks, table.label, sample_weight=table.w, **given)
    assert_allclose(found, expected, rtol=1e-10)


class GroupConstraint(ClassifierMixin, BaseEstimator):
    """Takes the groups at prediction."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X, *, sensitive_features=None):
        return np.asarray(X)[:, 0] + (np.asarray(sensitive_features) == "f")

    def predict(self, X, *, sensitive_features=None):
        scores = self.decision_function(X, sensitive_features=sensitive_features)
        return self.classes_[(scores > 0).astype(int)]

    def predict_proba(self, X, *, sensitive_features=None):
        scores = self.decision_function(X, sensitive_features=sensitive_features)
        return expit(np.column_stack([-scores, scores]))


SCORERS = sorted(n for n in metrics.get_scorer_names() if n.removeprefix("neg_") not in OF_RANKINGS)


@pytest.mark.parametrize(
    ("name", "takes_groups"), [(name, k % 2 == 0) for k, name in enumerate(SCORERS)]
)
def test_scorers(name, takes_groups):
    frame = people()
    frame["a"] = frame.score
    lazy, columns = lazy_frame(frame), ["a", "w"]
    extra = options(name.removeprefix("neg_"))
    if name.removeprefix("neg_") in metrics.clusters.__dict__:
        model = KMeans(3, n_init=1, random_state=0).fit(frame[columns])
    elif takes_groups:
        model = GroupConstraint().fit(frame[columns], frame.y)
    else:
        # Products of blocks and of all rows are rounded apart: equal rows would tie in one only.
        frame["a"] += 1e-3 * generator().normal(size=len(frame))
        lazy = lazy_frame(frame)
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame[columns], frame.y)
    scorer = metrics.get_scorer(name, **extra)
    expected = scorer(model, frame[columns], frame.y, sensitive_features=frame.sex)
    found = scorer(model, lazy[columns], lazy.y, sensitive_features=lazy.sex)
    assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["frame", "array"])
def test_scorers_read_sensitive(kind):
    frame = people()
    table = pd.DataFrame({"a": frame.score, "g": (frame.sex == "m").astype(float)})
    model = LinearRegression().fit(table, frame.score)
    lazy, columns = dd.from_pandas(table, npartitions=3), "g"
    y = dd.from_pandas(frame.score, npartitions=3)
    if kind == "array":
        table, columns = table.to_numpy(), 1
        lazy = da.from_array(table, chunks=(130, 1))
        y = da.from_array(frame.score.to_numpy(), chunks=200)
        model = LinearRegression().fit(table, frame.score)
    scorer = metrics.get_scorer("neg_mean_score_difference", sensitive=columns)
    found = scorer(model, lazy, y)
    assert_allclose(found, scorer(model, table, frame.score), rtol=1e-12)
    assert found < 0


def test_errors_name_partition_and_argument():
    frame = people()
    lazy = dd.from_pandas(frame, npartitions=3)
    metric = metrics.equalized_odds_difference
    broken = frame.assign(pred=frame.pred.astype(float), sex=frame.sex.astype(object))
    broken.loc[250, "pred"] = np.nan
    broken.loc[599, "sex"] = None
    broken = dd.from_pandas(broken, npartitions=3)
    with pytest.raises(ValueError, match="Partition 1: y_pred has 1 missing value"):
        metric(lazy.y, broken.pred, sensitive_features=lazy.sex)
    with pytest.raises(ValueError, match="Partition 2: Sensitive attribute 'sex' has 1 missing"):
        metric(lazy.y, lazy.pred, sensitive_features=broken.sex)
    short = dd.from_pandas(frame.iloc[:590], npartitions=3)
    with pytest.raises(ValueError, match=r"Partition \d: the numbers of rows differ .*y_pred 19\d"):
        metric(lazy.y, short.pred, sensitive_features=lazy.sex)
    with pytest.raises(ValueError, match=r"Partition \d: sample_weight has negative values"):
        metric(lazy.y, lazy.pred, sensitive_features=lazy.sex, sample_weight=lazy.w - 1)
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        metric(lazy.y, lazy.pred, sensitive_features=lazy.sex, sample_weight=lazy.w * 0)
    with pytest.raises(ValueError, match=r"Partition \d: y_score must be numeric"):
        metrics.wasserstein_gap(None, lazy.sex, sensitive_features=lazy.sex)
    with pytest.raises(TypeError, match="array-like with one value per row, got None"):
        metric(lazy.y, lazy.pred, sensitive_features=None)
    with pytest.raises(ValueError, match="needs y_true, got None"):
        metric(None, lazy.pred, sensitive_features=lazy.sex)
    nobody = dd.from_pandas(frame.iloc[:0], npartitions=1)
    with pytest.raises(ValueError, match="y_pred is empty"):
        metrics.independence_gap(None, nobody.pred, sensitive_features=nobody.sex)


def test_intervals_are_listed_in_the_order_of_rows_in_memory():
    """Gaps that differ by rounding alone decided which came first."""
    rng = generator(0)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m", "x"], 900, p=[0.4, 0.5, 0.1])})
    frame["score"] = (rng.normal(size=900) + 0.5 * (frame["sex"] == "m")).round(2)
    lazy = dd.from_pandas(frame, npartitions=4)
    here, there = (
        metrics.suggest_interval(one["score"], sensitive_features=one["sex"])
        for one in (frame, lazy)
    )
    assert here[["low", "high"]].equals(there[["low", "high"]])
    assert_allclose(here["gap"], there["gap"], atol=1e-12)


def test_tests_of_scores_say_that_they_need_rows_in_memory():
    frame = people()
    lazy = dd.from_pandas(frame, npartitions=3)
    for scores, groups in ((lazy.score, lazy.sex), (lazy.score.values, (lazy.w > 1).values)):
        for test in (metrics.disparity_upper_bound, metrics.disparity_test):
            limit = {} if test is metrics.disparity_upper_bound else {"max_disparity": 0.1}
            with pytest.raises(TypeError, match="compute"):
                test("mean_score_difference", None, scores, sensitive_features=groups, **limit)
    columns = {"sensitive_features": lazy.sex}
    for read in (
        lambda: next(StratifiedSensitiveKFold(3).split(lazy, lazy.y, **columns)),
        lambda: encode_groups(frame.sex, like=lazy.score),
        lambda: encode_groups(lazy[["sex"]]),
    ):
        with pytest.raises(TypeError, match="rows are read in memory here"):
            read()


def test_numbers_are_no_labels(monkeypatch):
    frame = people()
    lazy = dd.from_pandas(frame, npartitions=3)
    monkeypatch.setattr(weighted_rows, "MOST_KINDS", 100)
    with pytest.raises(ValueError, match=r"distinct values: sex \d, y_pred \d\d\d"):
        metrics.independence_gap(None, lazy.score, sensitive_features=lazy.sex)


@pytest.mark.parametrize("name", ["equalized_odds_difference", "wasserstein_gap", "kmeans_cost"])
def test_what_travels_does_not_grow_with_the_rows(name, monkeypatch):
    monkeypatch.setattr(score_bins, "N_BINS", 256)
    monkeypatch.setattr(score_bins, "N_QUANTILES", 128)

    def n_bytes(n):
        lazy = dd.from_pandas(people(n), npartitions=4)
        before = bytes_exchanged()
        if name == "kmeans_cost":
            metrics.kmeans_cost(lazy[["score"]], lazy.label)
        else:
            getattr(metrics, name)(**arguments(name, lazy))
        return bytes_exchanged() - before

    few, many = n_bytes(4000), n_bytes(40_000)
    assert 0 < many < 1.3 * few < 8 * 40_000


def test_scorers_read_control_columns():
    frame = people()
    lazy, names = lazy_frame(frame), ["sex", "job", "score"]
    model = make_pipeline(FunctionTransformer(lambda X: X[["score"]]), LogisticRegression())
    model.fit(frame[names], frame.y)
    scorer = metrics.get_scorer(
        "neg_demographic_parity_difference", sensitive="sex", control_columns="job"
    )
    expected = scorer(model, frame[names], frame.y)
    assert_allclose(scorer(model, lazy[names], lazy.y), expected, atol=1e-12)
