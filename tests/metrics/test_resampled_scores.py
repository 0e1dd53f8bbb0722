"""Gaps of scores of resamples against the metrics of scores, which sort every group."""

from itertools import product

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from skfair._kernels.score_gaps import score_gaps
from skfair.groups.measured_rows import MeasuredRows
from skfair.metrics import fairness_report
from skfair.metrics.resampled_scores import SCORE_METRICS, SortedRows
from skfair.utils.threads import BLOCK
from tests.python_kernels import as_python
from tests.seeds import generator


def people(seed, n=90):
    rng = generator(seed)
    scores = rng.normal(size=n).round(6 if seed % 2 else 0)
    groups = np.c_[rng.choice(["f", "m"], n), rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])]
    weights = rng.choice([0, 0.5, 1, 3.0], n)
    # Every pair of attributes has a row that counts: metrics refuse or leave out those without.
    groups[:6], weights[:6] = list(product("fm", "abc")), 1
    return rng.integers(0, 2, n), scores, groups, weights, rng


def own_way(y, scores, weights, groups, agg="worst", **options):
    rows = MeasuredRows.of_scores(scores, None, groups, **options)
    return SortedRows(rows, y).gaps(weights, agg)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("agg", ["worst", "mean"])
@pytest.mark.parametrize("kind", ["crossed", "apart", "strata"])
@pytest.mark.parametrize("kernel", [score_gaps, as_python(score_gaps)], ids=["compiled", "python"])
def test_one_walk_says_what_all_metrics_say(seed, agg, kind, kernel, monkeypatch):
    monkeypatch.setattr("skfair._kernels.score_gaps.score_gaps", kernel)
    y, scores, groups, weights, _ = people(seed)
    options = {"intersectional": kind != "apart"}
    if kind == "strata":
        groups, options = groups[:, 0], {"control_features": groups[:, 1]}
    given = {"sensitive_features": groups, "sample_weight": weights, "agg": agg, **options}
    expected = [
        metric(y, scores, **given, **({"zero_division": np.nan} if needs else {}))
        for metric, needs in SCORE_METRICS.items()
    ]
    found = own_way(y, scores, weights, groups, agg, **options)
    assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_groups_that_a_resample_lacks_make_it_undefined():
    y, scores, groups, weights, _ = people(1)
    sex = groups[:, 0]
    assert np.isnan(own_way(y, scores, np.where(sex == "f", 0.0, 1.0), sex)).all()
    without_positives = own_way(y, scores, np.where((sex == "f") & (y == 1), 0.0, 1.0), sex)
    assert np.isnan(without_positives).tolist() == [False, False, False, True, True]
    assert len(own_way(None, scores, weights, sex)) == 3


def test_reports_of_many_rows_do_not_depend_on_the_number_of_threads():
    y, scores, groups, _, _ = people(3, n=BLOCK)
    given = {"sensitive_features": groups, "n_bootstrap": 4, "random_state": 0}
    reports = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            reports.append(fairness_report(y, None, y_score=scores, **given))
    assert reports[0].equals(reports[1])
    assert (reports[0]["standard_error"] > 0).all()
