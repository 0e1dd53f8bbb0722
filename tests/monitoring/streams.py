"""Streams of batches that monitors watch, one by one and many side by side."""

import numpy as np
from scipy.stats import binom

from skfair.groups.rates import CellMeans
from skfair.monitoring import DisparityMonitor
from skfair.monitoring.comparison import shares_worth
from skfair.monitoring.windows import Windows
from tests.seeds import generator


def most_alarms(share, n_streams):
    """The share of streams with an alarm that chance exceeds less than once in a million runs."""
    return binom.isf(1e-7, n_streams, share) / n_streams


def batch(rng, gap, n=1000, base=0.3):
    sex = rng.choice(["f", "m"], n)
    return (rng.random(n) < base + gap * (sex == "m")).astype(int), sex


def stream(rates, n_batches=40, seed=0, n=1000, **options):
    """Watch groups with the rates, which may depend on the batch."""
    rng, monitor = generator(seed), DisparityMonitor(**options)
    for number in range(n_batches):
        now = rates(number) if callable(rates) else rates
        group = rng.choice(list(now), n)
        chance = np.array([now[one] for one in group])
        monitor.update(None, (rng.random(n) < chance).astype(int), sensitive_features=group)
    return monitor


def feed(monitor, y_true, y_pred, groups, **options):
    """Let a monitor read a batch that was drawn as labels and groups."""
    return monitor.update(y_true, y_pred, sensitive_features=groups, **options)


def watched(gaps, **options):
    return stream(lambda k: {"f": 0.3, "m": 0.3 + gaps[k]}, len(gaps), **options)


def side_by_side(
    rates, sizes, limit, n_batches, min_group_size=50, n_streams=200, lag=None, ratio=False
):
    """Streams of two groups, as the pairs of one object.

    Returned are the shares of streams with an alarm, and of those that are ever shown to keep the
    limit, and the windows.
    """
    rng, windows = generator(0), Windows(n_streams, 50, lag, ratio)
    pairs, is_alarm, is_kept = np.arange(n_streams), False, False
    for number in range(n_batches):
        windows.start(number)
        of_first = rng.binomial(sum(sizes), sizes[0] / sum(sizes), n_streams)
        n = np.stack([of_first, sum(sizes) - of_first], axis=1)
        hits = rng.binomial(n, rates(number) if callable(rates) else rates)
        windows.add(np.stack([hits, n], axis=2).astype(float), min_group_size, limit)
        if number % 10 == 9:
            bets = windows.log_bets(limit, pairs)
            is_alarm |= np.logaddexp.reduce(bets, axis=(0, 1)) >= np.log(20)
            is_kept |= windows.log_kept(limit) >= np.log(20)
    return np.mean(is_alarm), np.mean(is_kept), windows


def sums_of_persons(rng, rate, n_persons, rows, likeness, n_streams):
    """Persons with some numbers of rows, whose chances are beta: sums as of CellMeans."""
    m = rng.choice(rows, (n_streams, n_persons)).astype(float)
    size = (1 - likeness) / likeness
    hits = rng.binomial(m.astype(int), rng.beta(rate * size, (1 - rate) * size, m.shape))
    total, hit = m.sum(1), hits.sum(1)
    squares = [(m * m).sum(1), (m * hits).sum(1), (hits * hits).sum(1)]
    return np.array([[total, hit, hit], [total, hit, hit], squares])


def persons_side_by_side(rates, n_persons, rows, likeness, limit, n_batches, n_streams=200):
    """Streams of two groups whose persons have several rows, new ones in each batch.

    Returned is the batch of the first alarm of each, -1 if there is none.
    """
    rng, windows = generator(0), Windows(n_streams, n_batches)
    before = CellMeans(np.zeros((3, 3, 2 * n_streams)), is_share=True)
    found = np.full(n_streams, -1)
    for number in range(n_batches):
        windows.start(number)
        now = rates(number) if callable(rates) else rates
        of_groups = [
            sums_of_persons(rng, *of_group, rows, likeness, n_streams)
            for of_group in zip(now, n_persons, strict=True)
        ]
        new = before._replace(sums=np.concatenate(of_groups, axis=2))
        worth = shares_worth(new, before)
        before = before._replace(sums=before.sums + new.sums)
        counts = (new.sums[0, [1, 0]] * worth).reshape(2, 2, n_streams).transpose(2, 1, 0)
        windows.add(counts, 50)
        bets = windows.log_bets(limit, np.arange(n_streams))
        is_alarm = np.logaddexp.reduce(bets, axis=(0, 1)) >= np.log(20)
        found[is_alarm & (found < 0)] = number
    return found
