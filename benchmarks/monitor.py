"""The monitor: how often it raises a false alarm, and how soon it sees a change.

Streams of a million rows in 1000 batches, looked at after each. False alarms are counted where they
are likeliest, with a disparity of exactly the limit. A change from .02 to .10 is compared with the
rows that a test of a fixed size would need, started at the right moment.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from scipy import stats

from skfair.monitoring import DisparityMonitor
from skfair.monitoring.windows import Windows

LIMIT, BASE, N_BATCHES, N_ROWS = 0.05, 0.3, 1000, 1000


def alarm_of(rng: np.random.Generator, gaps: np.ndarray, share: float) -> int | None:
    """Return the batch of the first alarm in a stream with given gaps."""
    windows, threshold = Windows(1, N_BATCHES), np.log(20.0)
    for number, gap in enumerate(gaps.tolist()):
        windows.start(number)
        sizes = rng.multinomial(N_ROWS, [share, 1 - share])
        hits = rng.binomial(sizes, [BASE, BASE + gap])
        windows.add(np.stack([hits, sizes], axis=1)[None].astype(float), 50)
        if windows.log_total(LIMIT, LIMIT)[0] >= threshold:
            return number
    return None


def fixed_rows(share: float, power: float) -> float:
    """Return the rows that a one-sided test at 5 % needs to find a gap of .10."""
    p = np.array([BASE, BASE + 0.1])
    variance = (p * (1 - p) / [share, 1 - share]).sum()
    z = stats.norm.ppf(0.95) + stats.norm.ppf(power)
    return float(variance * z**2 / (0.1 - LIMIT) ** 2)


def main(*, quick: bool = False, streams: int | None = None) -> dict[str, Any]:
    """Measure false alarms, delays and speed."""
    n = streams or (20 if quick else 500)
    results: dict[str, Any] = {"streams": n}
    for share in (0.5, 0.2):
        rng = np.random.default_rng(1)
        false = [alarm_of(rng, np.full(N_BATCHES, LIMIT), share) is not None for _ in range(n)]
        results[f"false alarms, share {share}"] = float(np.mean(false))
        delays = []
        for _ in range(max(n // 5, 10)):
            change = int(rng.integers(50, 500))
            gaps = np.where(np.arange(N_BATCHES) < change, 0.02, 0.1)
            found = alarm_of(rng, gaps, share)
            if found is not None and found >= change:
                delays.append((found - change + 1) * N_ROWS)
        results[f"rows to alarm, share {share}"] = float(np.mean(delays))
        for power in (0.8, 0.95):
            results[f"ratio to a fixed test of power {power}, share {share}"] = float(
                np.mean(delays)
            ) / fixed_rows(share, power)
    results["rows per second"] = speed()
    for name, value in results.items():
        print(f"  {name}: {value:.4g}")
    return results


def speed(n: int = 1_000_000) -> float:
    """Return the rows that are read in a CPU second."""
    rng = np.random.default_rng(0)
    sex, y_pred = rng.choice(["f", "m"], n), rng.integers(0, 2, n)
    monitor = DisparityMonitor()
    monitor.update(None, y_pred, sex)
    start = time.process_time()
    monitor.update(None, y_pred, sex)
    return n / (time.process_time() - start)


if __name__ == "__main__":
    main(quick=True, streams=int(sys.argv[1]) if len(sys.argv) > 1 else None)
