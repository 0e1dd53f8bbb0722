"""Watch the disparity of decisions that keep coming, without looking too often."""

from skfair.monitoring.monitor import Alarm, DisparityMonitor

__all__ = ["DisparityMonitor", "Alarm"]
