"""The best threshold of rows in bands against the scan of all of them."""

import numpy as np
import pytest

from skfair.enforcement.erm import thresholds
from skfair.enforcement.erm.thresholds import best_threshold
from skfair.enforcement.strict_evaluation import StrictEvaluation
from tests.enforcement.test_strict_evaluation import bind
from tests.seeds import generator

N = 6000


def evaluation(seed, names, limit, **options):
    """Return an evaluation of rows in three groups, and scores that differ between them."""
    rng = generator(seed)
    groups = rng.integers(3, size=N)
    targets = np.where(rng.random(N) < 0.5, -1.0, 1.0)
    scores = rng.normal(size=N) + 0.7 * targets + 0.5 * groups
    weights = rng.integers(1, 4, N).astype(float)
    constraints = bind(names, limit, targets, [groups], weights, **options)
    strict = StrictEvaluation.of_scores(constraints, targets, weights / weights.sum())
    return strict, scores


def check_same(strict, scores, min_gap=1e-9):
    found, known = best_threshold(strict, scores, min_gap), strict.threshold(scores, min_gap)
    assert found.shift == known.shift
    assert found.is_constant == known.is_constant
    assert found.verdict.merit == pytest.approx(known.verdict.merit, abs=1e-12)
    assert found.verdict.excess == pytest.approx(known.verdict.excess, abs=1e-9)


@pytest.mark.parametrize("limit", [0.3, 0.1, 0.02, 0.0])
@pytest.mark.parametrize("comparison", ["difference", "ratio"])
@pytest.mark.parametrize("reference", ["pairwise", "overall"])
@pytest.mark.parametrize(
    "names",
    [
        ["demographic_parity"],
        ["equalized_odds"],
        ["predictive_parity"],
        ["accuracy_parity", "equal_opportunity"],
    ],
)
def test_the_threshold_is_that_of_the_scan_of_all_rows(names, limit, comparison, reference):
    for seed in range(3):
        options = {"comparison": comparison, "reference": reference}
        check_same(*evaluation(seed, names, limit, **options))


def test_scores_that_are_equal_close_or_far_off():
    strict, scores = evaluation(0, ["demographic_parity"], 0.1)
    check_same(strict, np.round(scores, 1))
    check_same(strict, np.full(N, 0.3))
    check_same(strict, scores, min_gap=0.01)
    scores[0] = 1e6
    check_same(strict, scores)


def test_most_bands_are_not_sorted(monkeypatch):
    strict, scores = evaluation(0, ["demographic_parity"], 0.3)  # next to all thresholds keep it
    shares, span_of_best = [], thresholds._span_of_best

    def span(rates, bands, *given):
        first, stop = span_of_best(rates, bands, *given)
        shares.append((stop - first) / bands.lowest.size)
        return first, stop

    monkeypatch.setattr(thresholds, "_span_of_best", span)
    best_threshold(strict, scores, 1e-9)
    assert 0 < shares[0] < 0.5
