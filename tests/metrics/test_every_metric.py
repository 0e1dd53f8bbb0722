"""The contract of every metric of labels, scores, losses and clusters, by its public interface."""

from inspect import signature

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from skfair.metrics.labels import LABEL_METRICS, LARGEST_RATES
from skfair.metrics.scorers import SCORERS
from tests.seeds import generator

OF_CLUSTERS = ["balance_score", "share_deviation", "share_ratio", "kl_fairness_error"]
OF_QUERIES = ["pair_error_gap", "exposure_gap", "rank_gap", "ndcg"]
METRICS = {
    name.removeprefix("neg_"): (metric, greater_is_better)
    for name, (metric, greater_is_better) in SCORERS.items()
    if metric.__name__ not in ("accuracy_score", *OF_QUERIES)
}
each_metric = pytest.mark.parametrize("name", sorted(METRICS))
each_comparison = pytest.mark.parametrize("name", sorted(set(METRICS) - set(OF_CLUSTERS)))
# Rates of a group of negatives that are predicted negative.
ALWAYS_DEFINED = {
    *("selection_rate", "false_positive_rate", "accuracy"),
    *("negative_predictive_value", "false_omission_rate"),
}
few = settings(deadline=None, max_examples=8)
by_seed = given(seed=st.integers(0, 2**31))


def random_rows(seed):
    """Rows of which every group has each class and prediction, and scores of few values."""
    rng = generator(seed)
    n_groups = int(rng.integers(2, 5))
    cells = np.repeat(np.arange(4 * n_groups), rng.integers(2, 7, 4 * n_groups))
    rng.shuffle(cells)
    columns = {"y": cells // 2 % 2, "p": cells % 2, "w": rng.integers(1, 4, cells.size)}
    columns["s"] = rng.normal(size=cells.size).round(1) + 0.3 * (cells // 4)
    columns["g"] = np.array(list("wxyz"))[cells // 4]
    return pd.DataFrame(columns), rng


def measured(name, rows, **options):
    """Call a metric with the columns that it reads."""
    metric, _ = METRICS[name]
    known = {"interval": (0, 0.6), "zero_division": np.nan, "sensitive_features": rows["g"]}
    options = {
        key: own for key, own in known.items() if key in signature(metric).parameters
    } | options
    if name in OF_CLUSTERS:
        return metric(2 * rows["p"] + rows["y"], **options)
    predicted = rows["p" if name in LABEL_METRICS | LARGEST_RATES else "s"]
    if name == "calibration_difference":
        predicted = expit(predicted)
    return metric(rows["y"], predicted, **options)


def same(value):
    return pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True)


@each_metric
@few
@by_seed
def test_order_names_and_copies(name, seed):
    """Rows come in any order, groups have any names, and a weight of 2 is two rows, of 0 none."""
    rows, rng = random_rows(seed)
    value = measured(name, rows)
    shuffled = rows.iloc[rng.permutation(len(rows))].reset_index(drop=True)
    assert measured(name, shuffled) == same(value)
    renamed = rows["g"].map({"w": 3, "x": 1, "y": 2, "z": 0})
    assert measured(name, rows, sensitive_features=renamed) == same(value)
    weighted = measured(name, rows, sample_weight=rows["w"])
    copies = rows.loc[rows.index.repeat(rows["w"])].reset_index(drop=True)
    assert measured(name, copies) == same(weighted)
    more = pd.concat([rows, rows.assign(w=0, s=9.0, y=1 - rows["y"])], ignore_index=True)
    assert measured(name, more, sample_weight=more["w"]) == same(weighted)


@each_comparison
def test_labels_may_be_names_signs_or_truth_values(name):
    if "pos_label" not in signature(METRICS[name][0]).parameters:
        return
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
    reduce = min if METRICS[name][1] else sum if name == "kl_fairness_error" else max
    assert pooled == same(reduce(values))
    crossed = measured(name, rows, sensitive_features=both["a"] + both["b"])
    assert measured(name, rows, sensitive_features=both) == same(crossed)


@each_metric
def test_a_single_group_has_nothing_to_compare(name):
    rows, _ = random_rows(0)
    value = measured(name, rows.assign(g="x"))
    assert "largest" in name or value == same(float(METRICS[name][1]))


# Metrics of rows of one class or prediction, and the options with which those of losses are.
UNDEFINED = [
    (name, {"subset": subset} if "subset" in signature(metric).parameters else {})
    for name, (metric, _) in sorted(METRICS.items())
    if "zero_division" in signature(metric).parameters
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
    if "agg" in signature(METRICS[name][0]).parameters:
        assert np.isnan(measured(name, kept, agg="mean", **weights, **options))


@each_metric
def test_rows_in_another_order_are_noticed(name):
    rows, _ = random_rows(0)
    turned = rows["g"].iloc[::-1]
    with pytest.raises(ValueError, match="different order"):
        measured(name, rows, sensitive_features=turned)
    with pytest.raises(ValueError, match=r"sensitive_features has 3 rows"):
        measured(name, rows, sensitive_features=["a", "b", "a"])
    with pytest.raises(ValueError, match=r"sample_weight has 2 rows"):
        measured(name, rows, sample_weight=[1, 2])
    with pytest.raises(ValueError, match="zero for every row"):
        measured(name, rows, sample_weight=np.zeros(len(rows)))


@pytest.mark.parametrize(
    "name", [one for one in METRICS if "y_score" in signature(METRICS[one][0]).parameters]
)
@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        ([1, np.nan], {}, "y_score has 1 value that are NaN or infinite"),
        ([1, np.inf], {}, "y_score has 1 value that are NaN or infinite"),
        (["x", "y"], {}, "y_score must be numeric"),
        ([[0.1, 0.9], [0.2, 0.8]], {}, "proba"),
        ([], {}, "y_score is empty"),
        (None, {}, "y_score is None"),
        ([1, 2, 3], {}, "sensitive_features has 2 rows"),
        ([1, 2], {"sample_weight": [1, 0]}, "no sample weight"),
        ([1, 2], {"sample_weight": [1]}, "sample_weight has 1 rows"),
    ],
)
def test_bad_scores(name, scores, options, message):
    metric, _ = METRICS[name]
    options |= {"interval": (0, 0.6)} if "interval" in signature(metric).parameters else {}
    with pytest.raises(ValueError, match=message):
        metric([0, 1], scores, sensitive_features=["a", "b"], **options)
