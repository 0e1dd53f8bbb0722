"""
Watch decisions: an alarm that may be looked at every day
=========================================================

A model decides about a thousand people a day. After some time something changes: men are selected
more often than before. When does a monitor detect this, and are there false alarms before?
"""

# %%
# A stream of decisions
# ---------------------
# For sixty days the rates are 30% and 32%. Then they are 30% and 42%.
import matplotlib.pyplot as plt
import numpy as np

from skfair.inspection import MonitorDisplay
from skfair.monitoring import DisparityMonitor

rng = np.random.default_rng(0)


def day_of_decisions(day):
    sex = rng.choice(["women", "men"], 1000)
    extra = 0.02 if day < 60 else 0.12
    return (rng.random(1000) < 0.3 + extra * (sex == "men")).astype(int), sex


# %%
# The monitor
# -----------
# The monitor gets the limit, and we look at it every day. As long as the limit is kept, the
# probability that it ever raises an alarm is at most 5%.
monitor = DisparityMonitor("demographic_parity", max_disparity=0.05, confidence=0.95)
for day in range(120):
    y_pred, sex = day_of_decisions(day)
    monitor.update(None, y_pred, sensitive_features=sex, batch=day)

alarm = monitor.alarm_
print(f"Alarm on day {alarm.batch}: since about day {alarm.since} {alarm.higher} are selected")
print(f"more often, by {alarm.disparity:.3f} +- {alarm.standard_error:.3f}")

# %%
# Over time
# ---------
# The line is the disparity of the most recent rows. On single days it is above the limit long
# before the change. This is chance, and no reason for an alarm.
display = MonitorDisplay.from_monitor(monitor)
display.ax_.set_title(f"Alarm on day {alarm.batch}")
display.figure_.set_size_inches(5, 3.4)
plt.show()
