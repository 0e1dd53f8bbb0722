import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from skfair import metrics
from skfair.metrics import (
    calibration_difference,
    expected_calibration_error,
    group_auc_gap,
    inter_group_pairwise_gap,
    intra_group_pairwise_gap,
    statistical_parity_gap,
    wasserstein_gap,
)
from tests import naive
from tests.seeds import generator

few = settings(deadline=None, max_examples=25)
by_seed = given(seed=st.integers(0, 2**31))
METRICS = [
    statistical_parity_gap,
    wasserstein_gap,
    group_auc_gap,
    inter_group_pairwise_gap,
    intra_group_pairwise_gap,
]
each_metric = pytest.mark.parametrize("metric", METRICS)


def random_case(seed, n=40):
    """Scores, half of the time with many ties; every group has both classes."""
    rng = generator(seed)
    n_groups = int(rng.integers(2, 5))
    groups = np.concatenate((np.tile(np.arange(n_groups), 2), rng.integers(0, n_groups, n)))
    y = np.concatenate((np.repeat([0, 1], n_groups), rng.integers(0, 2, n)))
    scores = rng.normal(size=groups.size) + 0.5 * groups
    if seed % 2:
        scores = scores.round()
    order = rng.permutation(groups.size)
    weights = rng.uniform(0.1, 3, groups.size)
    return y[order], scores[order], np.array(list("abcd"))[groups[order]], weights, rng


def naive_value(metric, y, s, g, w, tie_value=0.5):
    if metric is statistical_parity_gap:
        return naive.partial_statistical_parity(s, g, w, {k: [(0, 1)] for k in set(g)})
    if metric is wasserstein_gap:
        return naive.wasserstein(s, g, w)

    def win(a, b, a_label=None, b_label=None):
        one = (g == a) & (True if a_label is None else y == a_label)
        other = (g == b) & (True if b_label is None else y == b_label)
        return naive.win_rate(s[one], w[one], s[other], w[other], tie_value)

    gaps = []
    for a, b in naive.pairs(g):
        if metric is group_auc_gap:
            gaps += [abs(win(a, b) - 0.5), abs(win(b, a) - 0.5)]
        elif metric is inter_group_pairwise_gap:
            gaps.append(abs(win(a, b, 1, 0) - win(b, a, 1, 0)))
        else:
            gaps.append(abs(win(a, a, 1, 0) - win(b, b, 1, 0)))
    return max(gaps)


@each_metric
@few
@by_seed
def test_equals_naive_twin(metric, seed):
    y, s, g, w, _ = random_case(seed)
    value = metric(y, s, sensitive_features=g)
    assert value == pytest.approx(naive_value(metric, y, s, g, np.ones(y.size)), abs=1e-12)
    value = metric(y, s, sensitive_features=g, sample_weight=w)
    assert value == pytest.approx(naive_value(metric, y, s, g, w), abs=1e-12)
    if metric in METRICS[2:]:  # ties may also count as wins
        value = metric(y, s, sensitive_features=g, sample_weight=w, ties="geq")
        assert value == pytest.approx(naive_value(metric, y, s, g, w, tie_value=1.0), abs=1e-12)


@few
@by_seed
def test_equals_scipy_and_scikit_learn(seed):
    y, s, g, w, _ = random_case(seed)
    s, g, y, w = (v[(g == "a") | (g == "b")] for v in (s, g, y, w))
    a, b = g == "a", g == "b"
    ks = stats.ks_2samp(s[a], s[b], method="asymp").statistic
    assert statistical_parity_gap(y, s, sensitive_features=g) == pytest.approx(ks)
    area = stats.wasserstein_distance(s[a], s[b], w[a], w[b])
    assert wasserstein_gap(y, s, sensitive_features=g, sample_weight=w) == pytest.approx(area)
    auc = [roc_auc_score(y[k], s[k], sample_weight=w[k]) for k in (a, b)]
    assert intra_group_pairwise_gap(y, s, sensitive_features=g, sample_weight=w) == pytest.approx(
        abs(auc[0] - auc[1])
    )
    rank = roc_auc_score(a, s, sample_weight=w)
    assert group_auc_gap(y, s, sensitive_features=g, sample_weight=w) == pytest.approx(
        abs(rank - 0.5)
    )


@each_metric
def test_constant_scores_and_extreme_scales(metric):
    y, s, g, _, _ = random_case(2)
    assert metric(y, np.ones(y.size), sensitive_features=g) == pytest.approx(0, abs=1e-12)
    value = metric(y, s, sensitive_features=g)
    for scale in (1e-200, 4.0, 1e200):
        expected = value * scale if metric is wasserstein_gap else value
        assert metric(y, s * scale, sensitive_features=g) == pytest.approx(expected, rel=1e-9)
    if metric is not wasserstein_gap:  # a matter of ranks only
        assert metric(y, np.exp(s), sensitive_features=g) == pytest.approx(value)


def naive_calibration_error(y, p, w):
    """Bin by bin: the distance of the share of positives and the mean probability."""
    error = 0.0
    for b in range(20):
        inside = (p >= b / 20) & ((p < (b + 1) / 20) | (b == 19))
        if w[inside].sum():
            shares = [np.average(values[inside], weights=w[inside]) for values in (y, p)]
            error += w[inside].sum() / w.sum() * abs(shares[0] - shares[1])
    return error


@few
@by_seed
def test_calibration_errors_equal_a_naive_twin(seed):
    """Of a sample, of each group in a report, and the difference; also of a single row."""
    y, s, g, w, rng = random_case(seed)
    p = np.round(stats.norm.cdf(s), int(rng.integers(1, 6)))  # also at edges of bins
    p[:2] = 0, 1
    each = {k: naive_calibration_error(y[g == k], p[g == k], w[g == k]) for k in sorted(set(g))}
    assert expected_calibration_error(y, p, sample_weight=w) == pytest.approx(
        naive_calibration_error(y, p, w)
    )
    report = metrics.group_report(
        y, p > 0.5, y_score=p, sensitive_features=g, sample_weight=w, method=None,
        metrics={"ece": expected_calibration_error},
    )  # fmt: skip
    assert report["ece"].drop("overall").to_dict() == pytest.approx(each)
    values = np.array(list(each.values()))
    found = calibration_difference(y, p, sensitive_features=g, sample_weight=w)
    assert found == pytest.approx(np.ptp(values))
    one = calibration_difference(y, p, sensitive_features=g, sample_weight=w, reference="a")
    assert one == pytest.approx(max(values[1:] - values[0], key=abs))
    assert expected_calibration_error([y[0]], [p[0]]) == pytest.approx(abs(y[0] - p[0]))


def test_the_calibration_difference_is_the_number_of_an_audit():
    audit = pytest.importorskip("skfair.report").audit
    rng = generator(0)
    p, g = rng.random(3000), rng.choice(["f", "m"], 3000)
    y = (rng.random(3000) < np.where(g == "f", p**2, p)).astype(int)
    rates = audit(y, p > 0.5, y_score=p, sensitive_features={"sex": g}, n_simulations=5).rates
    of_groups = rates.query("measure == 'calibration_error' and view == 'sex'").set_index("group")
    difference = of_groups["value"]["f"] - of_groups["value"]["m"]
    found = calibration_difference(y, p, sensitive_features=g, reference="m")
    assert found == pytest.approx(difference)
