"""Watch the disparity of decisions that keep coming, without looking too often."""

from skfair.monitoring.monitor import DisparityMonitor

__all__ = ["DisparityMonitor"]
