"""How much memory group metrics take beside the labels."""

import tracemalloc

import numpy as np
import pytest

from skfair.metrics import demographic_parity_difference, equalized_odds_difference


@pytest.mark.parametrize("metric", [demographic_parity_difference, equalized_odds_difference])
def test_metrics_of_many_labels_hold_no_copy_of_them(metric):
    y, predicted, groups = labels = np.random.default_rng(0).integers(2, size=(3, 10_000_000))
    metric(y[:1000], predicted[:1000], sensitive_features=groups[:1000])  # loads kernels
    tracemalloc.start()
    try:
        metric(y, predicted, sensitive_features=groups)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.2 * labels.nbytes
