"""The monitor: how often it raises a false alarm, and how soon it sees a change.

Streams of a million rows in 1000 batches, looked at after each. False alarms are counted where they
are likeliest, with a disparity of exactly the limit; also where persons have several similar rows,
counted as persons (``units=``) and as rows. A change from .02 to .10 is compared with the rows that
a test of a fixed size would need, started at the right moment.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from scipy import special, stats

from skfair.groups.rates import CellMeans
from skfair.monitoring import DisparityMonitor
from skfair.monitoring.comparison import shares_worth
from skfair.monitoring.windows import Windows

LIMIT, BASE, N_BATCHES, N_ROWS = 0.05, 0.3, 1000, 1000
# Seeds below were looked at while the monitor was made.
SEED = 9_000_000


def alarms_of(rng: np.random.Generator, gaps: np.ndarray, share: float) -> np.ndarray:
    """Return the batch of the first alarm of each stream, -1 if there is none.

    ``gaps`` has the shape (n_batches, n_streams). The streams stand side by side in one object, and
    each is weighed as a monitor of two groups weighs it.
    """
    n_streams = gaps.shape[1]
    windows, threshold = Windows(n_streams, N_BATCHES), np.log(20.0)
    found = np.full(n_streams, -1)
    for number, gap in enumerate(gaps):
        windows.start(number)
        first = rng.binomial(N_ROWS, share, n_streams)
        sizes = np.stack([first, N_ROWS - first], axis=1)
        hits = rng.binomial(sizes, np.stack([np.full(n_streams, BASE), BASE + gap], axis=1))
        windows.add(np.stack([hits, sizes], axis=2).astype(float), 50)
        waiting = np.flatnonzero(found < 0)
        if not waiting.size:
            break
        bets = windows.log_bets(LIMIT, waiting).reshape(-1, waiting.size)
        is_alarm = special.logsumexp(bets, axis=0) >= threshold
        found[waiting[is_alarm]] = number
    return found


def alarms_of_persons(
    rng: np.random.Generator, n_streams: int, has_units: bool, n_batches: int = 100
) -> np.ndarray:
    """Return which streams have an alarm, at the limit: new persons of 1 to 10 rows each month.

    There are 20 persons of one group and 100 of the other; the chances of a person are beta, so
    that two of its rows have a correlation of .5.
    """
    windows = Windows(n_streams, n_batches)
    before = CellMeans(np.zeros((3, 3, 2 * n_streams)), is_share=True)
    is_alarm = np.zeros(n_streams, bool)
    for number in range(n_batches):
        windows.start(number)
        of_groups = []
        for rate, n_persons in ((BASE, 20), (BASE + LIMIT, 100)):
            rows = rng.integers(1, 11, (n_streams, n_persons))
            hits = rng.binomial(rows, rng.beta(rate, 1 - rate, rows.shape))
            products = rows**2, rows * hits, hits**2
            total, hit = rows.sum(axis=1), hits.sum(axis=1)
            of_groups.append(
                [[total, hit, hit], [total, hit, hit], [own.sum(axis=1) for own in products]]
            )
        new = before._replace(sums=np.concatenate(np.array(of_groups, float), axis=2))
        worth = shares_worth(new, before) if has_units else np.ones(2 * n_streams)
        before = before._replace(sums=before.sums + new.sums)
        counts = (new.sums[0, [1, 0]] * worth).reshape(2, 2, n_streams)
        windows.add(counts.transpose(2, 1, 0), 50)
        bets = windows.log_bets(LIMIT, np.arange(n_streams)).reshape(-1, n_streams)
        is_alarm |= special.logsumexp(bets, axis=0) >= np.log(20.0)
    return is_alarm


def fixed_rows(share: float, power: float) -> float:
    """Return the rows that a one-sided test at 5% needs to find a difference of .10."""
    p = np.array([BASE, BASE + 0.1])
    variance = (p * (1 - p) / [share, 1 - share]).sum()
    z = stats.norm.ppf(0.95) + stats.norm.ppf(power)
    return float(variance * z**2 / (0.1 - LIMIT) ** 2)


def main(
    *, quick: bool = False, streams: int | None = None, shares: tuple[float, ...] = (0.5, 0.2)
) -> dict[str, Any]:
    """Measure false alarms, delays and speed."""
    n = streams or (20 if quick else 500)
    results: dict[str, Any] = {"streams": n}
    for share in shares:
        rng = np.random.default_rng(SEED)
        false = alarms_of(rng, np.full((N_BATCHES, n), LIMIT), share) >= 0
        results[f"false alarms, share {share}"] = float(np.mean(false))
        change = rng.integers(50, 500, n)
        batches = np.arange(600)[:, None]
        found = alarms_of(rng, np.where(batches < change, 0.02, 0.1), share)
        seen = found >= change
        results[f"changes seen within the stream, share {share}"] = float(np.mean(seen))
        delays = (found - change + 1)[seen] * N_ROWS
        results[f"rows to alarm, share {share}"] = float(np.mean(delays))
        for power in (0.8, 0.95):
            results[f"ratio to a fixed test of power {power}, share {share}"] = float(
                np.mean(delays)
            ) / fixed_rows(share, power)
    for what, has_units in {"persons": True, "persons as rows": False}.items():
        alarms = alarms_of_persons(np.random.default_rng(SEED), n, has_units)
        results[f"false alarms, {what}"] = float(np.mean(alarms))
    results["rows per second"] = speed()
    for name, value in results.items():
        print(f"  {name}: {value:.4g}")
    return results


def canary() -> dict[str, Any]:
    """Return the results of a small cell."""
    rng = np.random.default_rng(SEED)
    alarms = alarms_of(rng, np.full((300, 40), 1.5 * LIMIT), 0.2)
    of_persons = alarms_of_persons(rng, 100, has_units=False)
    return {"first alarms": alarms.tolist(), "of persons": int(of_persons.sum())}


def numbers(results: dict[str, Any]) -> dict[str, float]:
    """Return the shares of false alarms, and how soon a change is found, for groups of one size."""
    share = "share 0.5"
    return {
        "streams": results["streams"],
        "false_alarms": results[f"false alarms, {share}"],
        "seen": results[f"changes seen within the stream, {share}"],
        "rows_to_alarm": results[f"rows to alarm, {share}"],
        "ratio": results[f"ratio to a fixed test of power 0.95, {share}"],
        "persons": results["false alarms, persons"],
        "persons_as_rows": results["false alarms, persons as rows"],
    }


def speed(n: int = 1_000_000) -> float:
    """Return the rows that are read in a CPU second."""
    rng = np.random.default_rng(0)
    sex, y_pred = rng.choice(["f", "m"], n), rng.integers(0, 2, n)
    monitor = DisparityMonitor()
    monitor.update(None, y_pred, sensitive_features=sex)
    start = time.process_time()
    monitor.update(None, y_pred, sensitive_features=sex)
    return n / (time.process_time() - start)


if __name__ == "__main__":
    given = sys.argv[1:]
    main(
        streams=int(given[0]) if given else None,
        shares=tuple(map(float, given[1:])) or (0.5, 0.2),
    )
