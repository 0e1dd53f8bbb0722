"""A monitor of F1 scores: the scores, the information that they have, false alarms, and changes."""

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from skfair.groups.declared_rates import hits_and_rows, rates_of
from skfair.metrics import make_group_metric
from skfair.monitoring import DisparityMonitor
from skfair.monitoring.windows import Windows
from tests.monitoring.streams import most_alarms
from tests.seeds import generator

F1 = make_group_metric(f1_score)


def kinds(base, hit, miss):
    """Return the chances of (tn, fp, fn, tp)."""
    return np.array([(1 - base) * (1 - miss), (1 - base) * miss, base * (1 - hit), base * hit])


def f1_of(chances):
    return 2 * chances[3] / (2 * chances[3] + chances[1] + chances[2])


def test_a_monitor_knows_the_f1_score_of_each_group_and_survives_its_state():
    rng, monitor, seen = generator(), DisparityMonitor(F1, max_disparity=0.1), []
    for _ in range(5):
        y, hospital = rng.integers(0, 2, 300), rng.choice(["east", "west"], 300)
        predicted = np.where(rng.random(300) < 0.2, 1 - y, y)
        monitor.update(y, predicted, sensitive_features=hospital)
        seen.append((y, predicted, hospital))
    y, predicted, hospital = map(np.concatenate, zip(*seen, strict=True))
    again = DisparityMonitor.from_json(monitor.to_json())
    for name, value in again.rates_["f1_score"].items():
        assert value == pytest.approx(f1_score(y[hospital == name], predicted[hospital == name]))
    again.update(y, predicted, sensitive_features=hospital, units=np.arange(y.size) // 2)
    assert again.n_rows_ == 2 * y.size


@pytest.mark.parametrize("chances", [kinds(0.3, 0.85, 0.05), kinds(0.1, 0.5, 0.1)])
def test_rows_understate_the_information_of_an_f1_score(chances):
    """The variance is that of the delta method, and the one that a monitor counts on is larger."""
    tables = generator().multinomial(2000, chances, size=4000).reshape(-1, 2, 2).astype(float)
    scores, (_, rows) = rates_of(tables, "f1_score"), hits_and_rows(tables, "f1_score")
    value = f1_of(chances)
    counted = value * (1 - value) / rows.mean()
    # A variance of 4,000 draws has an error of 2.2%.
    assert scores.var() == pytest.approx(counted * (1 - value / 2), rel=0.15)
    assert scores.var() < counted


@pytest.mark.parametrize("sizes", [(500, 500), (900, 100), (60, 60)])
@pytest.mark.parametrize("other", [kinds(0.3, 0.75, 0.06), kinds(0.15, 0.8, 0.04)])
def test_false_alarms_are_rare_and_a_change_is_found(sizes, other):
    first, n_streams = kinds(0.3, 0.85, 0.05), 200
    rng, pairs = generator(), np.arange(200)
    limit = abs(f1_of(first) - f1_of(other))
    for change, is_far in ((other, False), (kinds(0.3, 0.4, 0.2), True)):
        windows, is_alarm = Windows(n_streams, 40), np.zeros(n_streams, bool)
        for number in range(40):
            windows.start(number)
            both = first, change if number >= 20 or not is_far else first
            drawn = [rng.multinomial(n, p, n_streams) for n, p in zip(sizes, both, strict=True)]
            tables = np.stack(drawn, axis=1).reshape(n_streams, 2, 2, 2).astype(float)
            windows.add(np.stack(hits_and_rows(tables, "f1_score"), axis=2), 50, limit)
            bets = windows.log_bets(limit, pairs)
            is_alarm |= np.logaddexp.reduce(bets, axis=(0, 1)) >= np.log(20)
        assert is_alarm.all() if is_far else is_alarm.mean() <= most_alarms(0.05, n_streams)


def test_other_metrics_say_what_to_do():
    with pytest.raises(ValueError, match="No interval of .*roc_auc_score.*Audit each period"):
        DisparityMonitor(make_group_metric(roc_auc_score))
    with pytest.raises(ValueError, match="compare='ratio'"):
        DisparityMonitor(F1, min_ratio=0.8)
    assert DisparityMonitor(make_group_metric(f1_score, compare="ratio"), min_ratio=0.8).min_ratio
    with pytest.raises(ValueError, match=r"or make_group_metric\(f1_score\), got 'f1'"):
        DisparityMonitor("f1")
