"""Watch the disparity of decisions that keep coming, without looking too often."""

from skfair.monitoring.monitor import DisparityMonitor
from skfair.monitoring.state import Alarm

__all__ = ["DisparityMonitor", "Alarm"]
