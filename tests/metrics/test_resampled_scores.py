"""Gaps of scores of resamples against the metrics of scores, which sort every group."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from skfair._kernels.score_gaps import score_gaps
from skfair.metrics import fairness_report
from skfair.metrics.intervals import SCORE_METRICS, SortedRows, _Attribute
from skfair.metrics.scores import scored_rows
from skfair.utils.threads import BLOCK
from tests import naive
from tests.python_kernels import as_python


def people(seed, n=90):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n).round(6 if seed % 2 else 0)
    groups = np.c_[rng.choice(["f", "m"], n), rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])]
    return rng.integers(0, 2, n), scores, groups, rng.choice([0, 0.5, 1, 3.0], n), rng


def own_way(y, scores, weights, groups, agg="worst", **options):
    rows = scored_rows(
        scores,
        groups,
        options.get("control_features"),
        None,
        **{"intersectional": options.get("intersectional", True)},
    )
    return SortedRows(rows, y).gaps(weights, agg)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("agg", ["worst", "mean"])
@pytest.mark.parametrize("kind", ["crossed", "apart", "strata"])
def test_one_walk_says_what_all_metrics_say(seed, agg, kind):
    y, scores, groups, weights, _ = people(seed)
    options = {"crossed": {}, "apart": {"intersectional": False}}.get(kind)
    if options is None:
        groups, options = groups[:, 0], {"control_features": groups[:, 1]}
    expected = [
        metric(
            y,
            scores,
            sensitive_features=groups,
            sample_weight=weights,
            agg=agg,
            **options,
            **({"zero_division": np.nan} if needs else {}),
        )
        for metric, needs in SCORE_METRICS.items()
    ]
    assert own_way(y, scores, weights, groups, agg, **options) == pytest.approx(
        expected, abs=1e-12, nan_ok=True
    )


def test_groups_that_a_resample_lacks_make_it_undefined():
    y, scores, groups, weights, _ = people(1)
    sex = groups[:, 0]
    assert np.isnan(own_way(y, scores, np.where(sex == "f", 0.0, 1.0), sex)).all()
    without_positives = own_way(y, scores, np.where((sex == "f") & (y == 1), 0.0, 1.0), sex)
    assert np.isnan(without_positives).tolist() == [False, False, False, True, True]
    assert len(own_way(None, scores, weights, sex)) == 3


@pytest.mark.parametrize("kernel", [score_gaps, as_python(score_gaps)], ids=["compiled", "python"])
@pytest.mark.parametrize("seed", range(4))
def test_kernel(kernel, seed):
    y, scores, _, weights, rng = people(seed, n=60)
    codes = rng.integers(0, 3, 60)
    order = np.argsort(-scores, kind="stable")
    scores, codes, y, weights = scores[order], codes[order], y[order].astype(bool), weights[order]
    first, second = np.array([0, 0, 1]), np.array([1, 2, 2])
    one = _Attribute.of(codes, 3, first, second)

    def mass(rows):
        return np.where(rows, weights, 0) / weights[rows].sum()

    per_weight = 1 / np.array(
        [
            [weights[rows].sum() for rows in (codes == g, (codes == g) & y, (codes == g) & ~y)]
            for g in range(3)
        ]
    )
    gaps, wins = np.zeros((3, 2)), np.zeros((6, 3))
    work = np.zeros((3, 3)), np.zeros((3, 3)), np.full(3, scores[0])
    partners = one.starts, one.partner, one.pair, one.is_second
    kernel(scores, codes, y, weights, per_weight, *partners, *work, gaps, wins)

    above = (scores[:, None] > scores) + 0.5 * (scores[:, None] == scores)
    for p, (i, j) in enumerate(zip(first, second, strict=True)):
        levels = [
            [naive.ccdf(scores, codes, g, weights, t) for g in (i, j)]
            for t in naive.thresholds(scores)
        ]
        assert gaps[p, 0] == pytest.approx(max(abs(a - b) for a, b in levels))
        assert wins[p, 0] == pytest.approx(mass(codes == i) @ above @ mass(codes == j))
        for column, k, other in ((1, i, j), (2, j, i)):
            expected = mass((codes == k) & y) @ above @ mass((codes == other) & ~y)
            assert wins[p, column] == pytest.approx(expected)
    for g in range(3):
        expected = mass((codes == g) & y) @ above @ mass((codes == g) & ~y)
        assert wins[3 + g, 1] == pytest.approx(expected)


def test_reports_of_many_rows_do_not_depend_on_the_number_of_threads():
    y, scores, groups, _, _ = people(3, n=BLOCK)
    reports = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            reports.append(
                fairness_report(
                    y,
                    None,
                    y_score=scores,
                    sensitive_features=groups,
                    n_bootstrap=4,
                    random_state=0,
                )
            )
    assert reports[0].equals(reports[1])
    assert (reports[0]["standard_error"] > 0).all()
