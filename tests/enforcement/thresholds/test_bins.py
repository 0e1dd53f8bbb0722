"""Thresholds by bins against sorting all scores."""

import numpy as np
import pytest

from skfair._kernels import thresholds as kernels
from skfair.enforcement.thresholds import bins as threshold_bins
from skfair.enforcement.thresholds.bins import ThresholdBins
from skfair.enforcement.thresholds.scan import ThresholdScan
from tests.enforcement.thresholds.test_scan import bind, sample
from tests.python_kernels import as_python


@pytest.mark.parametrize("rule", ["demographic_parity", "equalized_odds", "predictive_parity"])
@pytest.mark.parametrize("bound", [0.3, 0.03, 0.001])
@pytest.mark.parametrize("seed", range(4))
def test_bins_find_what_sorting_all_scores_finds(rule, bound, seed, monkeypatch):
    monkeypatch.setattr(threshold_bins, "_BLOCK_ROWS", 512)
    n = (60, 700, 9000, 9000)[seed]
    scores, targets, columns, weights = sample(seed, n, ties=seed == 3, weighted=seed > 1)
    scores += 0.3 * columns[0]
    rules = bind([rule], bound, targets, columns, weights)
    of_rows = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    sorted_, binned = (
        kind(rules, targets, of_rows)(scores, 1e-9) for kind in (ThresholdScan, ThresholdBins)
    )
    assert binned.shift == pytest.approx(sorted_.shift, abs=1e-12)
    assert binned.excess == pytest.approx(sorted_.excess, abs=1e-10)
    assert binned.accuracy == pytest.approx(sorted_.accuracy, abs=1e-10, nan_ok=True)
    assert binned.is_feasible == sorted_.is_feasible
    assert binned.is_constant == sorted_.is_constant


def test_kernels_are_their_python_twins():
    rng = np.random.default_rng(0)
    scores, cells = rng.normal(size=200), rng.integers(2, size=200)
    for run in (lambda kernel: kernel, as_python):
        bins, n = np.empty(200, np.int32), np.zeros(9, np.int64)
        lowest, highest = np.full(9, np.inf), np.full(9, -np.inf)
        run(kernels.count_in_bins)(scores, -1.0, 3.5, bins, n, lowest, highest)
        expected = np.clip(np.floor((scores + 1) * 3.5 + 1), 0, 8).astype(int)
        assert (bins == expected).all()
        assert (n == np.bincount(expected, minlength=9)).all()
        for b in range(9):
            assert lowest[b] == scores[bins == b].min(initial=np.inf)
            assert highest[b] == scores[bins == b].max(initial=-np.inf)
        rises, falls = np.zeros((2, 2, 9))
        run(kernels.add_signed)(bins, cells, scores, rises, falls)
        for sums, part in ((rises, np.maximum(scores, 0)), (falls, np.minimum(scores, 0))):
            joint = np.bincount(cells * 9 + bins, part, 18).reshape(2, 9)
            assert sums == pytest.approx(joint, abs=1e-12)
