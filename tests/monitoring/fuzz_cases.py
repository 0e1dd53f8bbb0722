"""Monitors: their arguments, and what is done with one."""

import numpy as np

from skfair.monitoring import DisparityMonitor
from tests.fuzz.parameters import MODELS
from tests.fuzz.values import ODD_VECTORS


def watched(sample):
    """A monitor that has read a batch."""
    monitor = DisparityMonitor()
    monitor.update(None, np.arange(200) % 3 == 0, sensitive_features=np.arange(200) % 2)
    return monitor


def updated(monitor, sample):
    monitor.update(sample.y, sample.predicted, sensitive_features=sample.groups)
    return DisparityMonitor.from_json(monitor.to_json()).to_prometheus()


USES = {DisparityMonitor: updated}
ARGUMENTS = {
    "DisparityMonitor.constraint": (["demographic_parity", "equalized_odds"], ["nonsense", 3]),
    "DisparityMonitor.reference_batches": ([None, 5], [0, -1, 2.5, "a"]),
    "DisparityMonitor.min_ratio": ([None, 0.8], [0, 1, -1, "a", {}, {"sex": None}, {"sex": 2}]),
    "DisparityMonitor.reference": (["pairwise", "g0"], ["zz", {}, {"zz": 1}, ["g0"]]),
    "DisparityMonitor.max_disparity": (
        [None, 0.05, {"sensitive_feature": 0.1}],
        [0.0, -1, "a", {}, {"sex": None}, {"sex": 2}],
    ),
    "DisparityMonitor.levels": ([None, ["g0", "g1"]], [[], ["g0"], "ab", 3]),
    "horizon": ([1000, 10], [0, -1, 2.5]),
    "DisparityMonitor.min_group_size": ([50, 5], [0, 1, 2.5]),
    "MonitorDisplay.min_ratio": ([None, 0.8], [0, -1, 2, "a"]),
    "MonitorDisplay.reference": ([None, "g0"], []),
    "MonitorDisplay.attribute": ([None, "sex"], [3, ["sex"]]),
    "MonitorDisplay.from_monitor.attribute": ([None, ""], ["sex", 3, ["sex"]]),
    "alarm_at": ([None, 2], [-1, 99]),
    "batches": ([None, [0, 2, 4, 6]], ODD_VECTORS),
    "monitor": (watched, MODELS),
}
