"""The contract of every metric, report and test of groups, by its public interface."""

from functools import partial
from inspect import signature
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.metrics import recall_score, roc_auc_score, zero_one_loss

from skfair import metrics
from skfair.metrics.labels import LABEL_METRICS, LARGEST_RATES
from skfair.metrics.scorers import SCORERS
from tests.seeds import generator

OF_CLUSTERS = ["balance_score", "share_deviation", "share_ratio", "kl_fairness_error"]
OF_QUERIES = [  # which may be missing
    metric.__name__ for metric, _ in SCORERS.values() if "query_id" in signature(metric).parameters
]
GAPS_OF_QUERIES = [name for name in OF_QUERIES if name.endswith("_gap")]
METRICS = {
    name.removeprefix("neg_"): (metric, greater_is_better)
    for name, (metric, greater_is_better) in SCORERS.items()
    if metric.__name__ not in ("accuracy_score", *OF_QUERIES)
}
# What else reads rows of groups.
OTHERS = {
    "test_of_rates": partial(metrics.disparity_test, "equalized_odds", max_disparity=0.3),
    "bound_of_rates": partial(metrics.disparity_upper_bound, "demographic_parity"),
    "group_report": partial(metrics.group_report, reference="w"),
    "report_of_own": partial(
        metrics.group_report, metrics={"auc": roc_auc_score}, method=None, rates=False
    ),
    "fairness_report": partial(metrics.fairness_report, n_bootstrap=0),
    "recall_difference": metrics.make_group_metric(recall_score),
    "auc_difference": metrics.make_group_metric(roc_auc_score),
    "cluster_balances": metrics.cluster_balances,
    **{name: getattr(metrics, name) for name in GAPS_OF_QUERIES},
}
# What draws from its rows, by their order.
SEEDED = {"random_state": 0, "n_bootstrap": 5}
DRAWN = {
    "bootstrap_report": partial(
        metrics.group_report, method="bootstrap", metrics={"loss": zero_one_loss}, **SEEDED
    ),
    "standard_errors": partial(metrics.fairness_report, **SEEDED),
    "noise_floor": partial(
        metrics.noise_floor, metrics.intra_group_pairwise_gap, random_state=0, n_permutations=5
    ),
}
OF_SCIKIT_LEARN = {"recall_difference", "auc_difference", "report_of_own", "bootstrap_report"}
FUNCTIONS = OTHERS | DRAWN | {name: metric for name, (metric, _) in METRICS.items()}
# What is undefined for a single group.
COMPARING = {*METRICS, *GAPS_OF_QUERIES} | {
    *("test_of_rates", "bound_of_rates", "fairness_report", "recall_difference", "noise_floor")
}
each = pytest.mark.parametrize("name", sorted({*FUNCTIONS} - {*DRAWN}))
each_metric = pytest.mark.parametrize("name", sorted(METRICS))
# Rates of a group of negatives that are predicted negative.
ALWAYS_DEFINED = {
    *("selection_rate", "false_positive_rate", "accuracy"),
    *("negative_predictive_value", "false_omission_rate"),
}
few = settings(deadline=None, max_examples=5)
by_seed = given(seed=st.integers(0, 2**31))


def takes(name, option):
    return option in signature(FUNCTIONS[name]).parameters


def random_rows(seed):
    """Rows of which every group has each class and prediction, and scores of few values."""
    rng = generator(seed)
    n_groups = int(rng.integers(2, 5))
    cells = np.repeat(np.arange(4 * n_groups), rng.integers(2, 7, 4 * n_groups))
    rng.shuffle(cells)
    columns = {"y": cells // 2 % 2, "p": cells % 2, "w": rng.integers(1, 4, cells.size)}
    columns["s"] = np.round(8 * rng.normal(size=cells.size)) / 8 + 0.25 * (cells // 4)
    columns["chance"] = np.round(64 * expit(columns["s"])) / 64
    columns["cluster"] = 2 * columns["p"] + columns["y"]
    columns["g"] = np.array(list("wxyz"))[cells // 4]
    columns["query"] = rng.permutation(cells.size) % 2
    return pd.DataFrame(columns), rng


def measured(name, rows, held=lambda column: column, **options):
    """Call a function with the columns that it reads; numbers are returned."""
    function = FUNCTIONS[name]
    of_scores = "chance" if name == "calibration_difference" else "s"
    columns = {"y_true": "y", "y_pred": "p", "y_score": of_scores, "labels": "cluster"}
    columns |= {"query_id": "query", "sensitive_features": "g"}
    read = {key: held(rows[c]) for key, c in columns.items() if takes(name, key)}
    known = {"interval": (0, 0.6)} if "partial" in name else {}
    known |= {"zero_division": np.nan} if takes(name, "zero_division") else {}
    found = function(**read | known | options)
    found = getattr(found, "p_value", getattr(found, "upper", found))
    if isinstance(found, pd.DataFrame):
        found = found.drop(columns=["n", "n_units"], errors="ignore").to_numpy(float)
    return found


def same(value):
    return pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True)


@each
@few
@by_seed
def test_order_and_rows_without_a_weight(name, seed):
    """Rows come in any order, and those of weight 0 might as well not be there."""
    rows, rng = random_rows(seed)
    shuffled = rows.iloc[rng.permutation(len(rows))].reset_index(drop=True)
    assert measured(name, shuffled) == same(measured(name, rows))
    if takes(name, "sample_weight"):
        weighted = measured(name, rows, sample_weight=rows["w"])
        more = pd.concat([rows, rows.assign(w=0, s=9.0, y=1 - rows["y"])], ignore_index=True)
        assert measured(name, more, sample_weight=more["w"]) == same(weighted)


@each_metric
@few
@by_seed
def test_names_and_copies(name, seed):
    """Groups have any names, and a weight of 2 is two rows."""
    rows, _ = random_rows(seed)
    renamed = rows["g"].map({"w": 3, "x": 1, "y": 2, "z": 0})
    assert measured(name, rows, sensitive_features=renamed) == same(measured(name, rows))
    weighted = measured(name, rows, sample_weight=rows["w"])
    copies = rows.loc[rows.index.repeat(rows["w"])].reset_index(drop=True)
    assert measured(name, copies) == same(weighted)


CONTAINERS = {
    "lists": list,
    "arrays": np.asarray,
    "objects": lambda column: np.asarray(column, dtype=object),
    "odd index": lambda column: column.set_axis(np.arange(len(column))[::-1] * 3 + 1),
    "frames": pd.DataFrame,
    "nullable": lambda column: column.convert_dtypes(),
    "pyarrow": lambda column: column.convert_dtypes(dtype_backend="pyarrow"),
    "categories": lambda column: column if column.dtype == float else column.astype("category"),
    "single precision": lambda c: c.astype({"f": "f4", "i": "i1"}.get(c.dtype.kind, c.dtype)),
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@pytest.mark.parametrize("kind", CONTAINERS)
def test_columns_come_in_any_container(name, kind):
    rows, _ = random_rows(3)
    weights = {"sample_weight": rows["w"]} if takes(name, "sample_weight") else {}
    value = measured(name, rows, **weights)
    held = CONTAINERS[kind]
    if kind == "objects" and name in OF_SCIKIT_LEARN:
        return  # it reads no labels that are objects
    weights = {key: held(column) for key, column in weights.items()}
    assert measured(name, rows, held, **weights) == same(value)


@pytest.mark.parametrize("name", [name for name in sorted(FUNCTIONS) if takes(name, "units")])
def test_units_of_one_row_each_change_nothing(name):
    rows, rng = random_rows(3)
    people = [f"person {number}" for number in rng.permutation(len(rows))]
    assert measured(name, rows, units=people) == same(measured(name, rows))


@pytest.mark.parametrize("name", [name for name in sorted(FUNCTIONS) if takes(name, "pos_label")])
def test_labels_may_be_names_signs_or_truth_values(name):
    rows, _ = random_rows(3)
    value = measured(name, rows)
    names = rows.assign(**{c: np.array(["no", "yes"])[rows[c]] for c in "yp"})
    assert measured(name, names, pos_label="yes") == same(value)
    for change in (lambda labels: 2 * labels - 1, lambda labels: labels == 1):
        assert measured(name, rows.assign(y=change(rows["y"]), p=change(rows["p"]))) == same(value)


@each_metric
def test_attributes_are_pooled_or_crossed(name):
    rows, rng = random_rows(3)
    both = pd.DataFrame({"a": rows["g"], "b": rng.choice(["u", "v"], len(rows))})
    values = [measured(name, rows, sensitive_features=both[c]) for c in both]
    pooled = measured(name, rows, sensitive_features=both, intersectional=False)
    # By numpy, whose result is NaN if one of the values is
    reduce = np.min if METRICS[name][1] else np.sum if name == "kl_fairness_error" else np.max
    assert pooled == same(reduce(values))
    crossed = measured(name, rows, sensitive_features=both["a"] + both["b"])
    assert measured(name, rows, sensitive_features=both) == same(crossed)
    if takes(name, "reference"):
        overall = {"reference": "overall"}
        values = [measured(name, rows, sensitive_features=both[c], **overall) for c in both]
        apart = measured(name, rows, sensitive_features=both, intersectional=False, **overall)
        assert apart == same(reduce(values))


@pytest.mark.parametrize(
    "name",
    # Excess losses compare groups with all rows.
    [name for name in sorted({*METRICS} - {*OF_CLUSTERS, "excess_loss"}) if takes(name, "agg")],
)
def test_pairs_of_groups_are_compared(name):
    """The value is that of the worst pair, or the mean over all pairs."""
    rows, _ = random_rows(3)
    rows = pd.concat([rows, rows.assign(g="v", s=rows["s"] - 0.5, y=rows["p"], p=rows["y"])])
    pairs = [rows[rows["g"].isin(pair)] for pair in combinations(sorted(set(rows["g"])), 2)]
    reduce = min if METRICS[name][1] else max
    for agg, of_pairs in (("worst", reduce), ("mean", np.mean)):
        values = [measured(name, pair, agg=agg) for pair in pairs]
        assert measured(name, rows, agg=agg) == same(of_pairs(values))


@pytest.mark.parametrize(
    "name",
    [name for name in sorted(COMPARING) if "largest" not in name and name not in OF_CLUSTERS],
)
@few
@by_seed
def test_a_single_group_has_nothing_to_compare(name, seed):
    """The value is undefined and never that of parity, whatever groups are compared with."""
    one = random_rows(seed)[0].assign(g="w")
    for reference in ("pairwise", "overall", "w") if takes(name, "reference") else (None,):
        options = {} if reference is None else {"reference": reference}
        if takes(name, "zero_division"):
            assert np.isnan(measured(name, one, **options))
            options["zero_division"] = "raise"
        with pytest.raises(ValueError, match="nothing to compare|undefined in each"):
            measured(name, one, **options)


# Metrics of rows of one class or prediction, and the options with which those of losses are.
UNDEFINED = [
    (name, {"subset": subset} if takes(name, "subset") else {})
    for name in sorted(METRICS)
    if takes(name, "zero_division")
    for subset in ("positive", "class")
]


@pytest.mark.parametrize(("name", "options"), UNDEFINED)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_what_a_group_lacks_is_an_error_or_nan_and_never_zero(name, options, is_weighted):
    """Group x has only negatives that are predicted negative, or others without a weight."""
    rows, _ = random_rows(3)
    is_lacking = (rows["g"] == "x") & ((rows["y"] == 1) | (rows["p"] == 1))
    kept = rows if is_weighted else rows[~is_lacking].reset_index(drop=True)
    weights = {"sample_weight": np.where(is_lacking, 0.0, 2.0)} if is_weighted else {}
    spec = {**LABEL_METRICS, **LARGEST_RATES}.get(name)
    if spec is not None and ALWAYS_DEFINED.issuperset(spec.rates):
        assert np.isfinite(measured(name, kept, **weights)) or spec.kind == "ratio"
        return
    said = r"Group 'x' has no row.*zero_division=numpy.nan"
    with pytest.raises(ValueError, match=said):
        measured(name, kept, zero_division="raise", **weights, **options)
    assert np.isnan(measured(name, kept, **weights, **options))
    if takes(name, "agg"):
        assert np.isnan(measured(name, kept, agg="mean", **weights, **options))


# Words of a message, an argument and a wrong value of it.
WRONG = [
    ("sensitive_features has 3 rows|inconsistent", "sensitive_features", ["a", "b", "a"]),
    ("1 missing value", "sensitive_features", [None, *"ab" * 99]),
    ("sample_weight has 2 rows", "sample_weight", [1, 2]),
    ("zero for every row", "sample_weight", np.zeros(200)),
    ("negative", "sample_weight", -np.ones(200)),
    ("NaN or infinite", "sample_weight", np.full(200, np.inf)),
    ("must be numeric", "sample_weight", np.full(200, "a")),
    ("'?agg'? (parameter|must be)", "agg", "most"),
    ("reference='nobody' is a group that no", "reference", "nobody"),
]
WRONG_TRUTH = [
    ("y_true is None|needs y_true|at least 1 dimension|Got None", "y_true", None),
    ("has 2 rows|have 2|inconsistent", "y_true", [0, 1]),
    ("y_true has 1 (missing )?value", "y_true", [np.nan, *[0.0, 1.0] * 99]),
]
WRONG_PREDICTIONS = [
    (f"{argument} {words}|{other}", argument, value)
    for argument in ("y_pred", "y_score")
    for words, other, value in (
        ("is None", "^$", None),
        ("is empty", "have 0", []),
        ("^$", "proba", np.full((200, 2), 0.5)),
        ("has 1 (missing )?value", "^$", [np.nan, *[0.5, 1.0] * 99]),
    )
]
WRONG_PREDICTIONS += [
    ("y_score has 1 value that are NaN or infinite", "y_score", [np.inf, *[0.5, 1.0] * 99]),
    ("y_score must be numeric", "y_score", np.full(200, "a")),
]


def ignores_truth(name, rows):
    try:
        measured(name, rows, y_true=None)
    except (ValueError, TypeError):
        return False
    return True


@each
def test_wrong_rows_are_named(name):
    rows, _ = random_rows(3)
    wrong = [*WRONG, ("different order", "sensitive_features", rows["g"].iloc[::-1])]
    if not ignores_truth(name, rows):
        wrong += WRONG_TRUTH if name in METRICS else WRONG_TRUTH[:2]
    wrong += WRONG_PREDICTIONS if name in METRICS else []
    for words, argument, value in wrong:
        if takes(name, argument):
            of_rows = isinstance(value, list | np.ndarray | pd.Series)
            value = value[: len(rows)] if of_rows else value
            with pytest.raises((ValueError, TypeError), match=words):
                measured(name, rows, **{argument: value})
