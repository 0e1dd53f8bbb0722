"""Monitor the disparity of a deployed model, with few false alarms however often one looks."""

from skfair.monitoring.monitor import DisparityMonitor

__all__ = ["DisparityMonitor"]
