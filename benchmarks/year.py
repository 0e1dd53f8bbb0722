"""A limit for a year: how often it is exceeded without an alarm, and how often alarms are false.

A model with a certified limit decides in each month. At each look, at the end of a month or of a
quarter, an alarm is raised unless ``disparity_test`` of the people since the last look shows that
their population was within the limit. After an alarm the model is fitted anew, up to three times,
and after a fourth alarm no more. Counted are the years in which the limit was exceeded in the
population of a look that raised no alarm, for several ways to divide 5% among looks or fits. The
same years are watched by the evidence of ``DisparityMonitor``, which raises an alarm if the data
show that the limit is exceeded, and by its evidence that a limit holds on average.

A fit is simulated by the disparity that it leaves, which differs from the intended one by the
sampling error of its rows: a year of people at the start, and the people of the last look later.
"""

from __future__ import annotations

import sys
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

from skfair.groups.two_rates import both_ways
from skfair.metrics import sample_size
from skfair.monitoring.windows import Windows

SEED, BASE, MONTHS, REFITS, ERROR = 9_300_000, 0.3, 12, 3, 0.05
N_FITS = REFITS + 1
# People of a month, and months between two looks
PLANS = ((500, 1), (2000, 1), (2000, 3), (10_000, 1), (10_000, 3))
SHARES, LIMITS, PARTS = (0.5, 0.2), (0.05, 0.1), (0.25, 0.5)
# How 5% is divided: the error probability of a look after so many alarms. With "each look", looks
# and fits count as if there were one, and with "looks" each look has its share.
RULES = {
    "each look": lambda n_looks: np.full(N_FITS, ERROR),
    "fits": lambda n_looks: np.full(N_FITS, ERROR / N_FITS),
    "half for the first fit": lambda n_looks: ERROR / 2 * np.array([1, *[1 / REFITS] * REFITS]),
    "looks": lambda n_looks: np.full(N_FITS, ERROR / n_looks),
}
# In a jump, the disparity becomes the limit or twice the limit from the sixth month on.
JUMP = 5
DRIFTS = ("none", "linear", "jump to twice", "jump to the limit", "at the limit after each fit")


class Setting(NamedTuple):
    """The people of a month, the months between looks, a limit, and what the model keeps of it."""

    people: int
    months: int
    share: float
    limit: float
    part: float  # of the limit: the disparity that fits intend

    @property
    def n_looks(self) -> int:
        """Return the number of looks in a year."""
        return MONTHS // self.months

    def seed(self, drift: str) -> list[int]:
        """Return the seed of the years, the same for each way to watch them."""
        named = self.people, self.months, *(round(100 * x) for x in self[2:])
        return [SEED, *named, DRIFTS.index(drift)]

    def error(self, months: int) -> float:
        """Return the standard error of the difference of rates of the people of these months."""
        variance = BASE * (1 - BASE) / (self.people * months)
        return float(np.sqrt(variance / (self.share * (1 - self.share))))


class Years:
    """Years side by side, and what holds in each of them."""

    def __init__(self, setting: Setting, drift: str, n: int) -> None:
        self.setting, self.drift = setting, drift
        self.rng = np.random.default_rng(setting.seed(drift))
        self.start, self.since, self.n_alarms = np.zeros(n), np.zeros(n, int), np.zeros(n, int)
        self.has_missed, self.was_above = np.zeros(n, bool), np.zeros(n, bool)
        self.fit(np.ones(n, bool), 0, MONTHS)

    def fit(self, which: np.ndarray, month: int, months: int) -> None:
        """Fit the models of some years anew, to the people of the last months."""
        error = self.setting.error(months)
        most = self.setting.limit - stats.norm.ppf(0.95) * error  # what a certificate leaves
        intended = max(min(self.setting.part * self.setting.limit, most), 0.0)
        made = intended + error * self.rng.normal(size=which.size)
        self.start[which], self.since[which] = np.maximum(made, 0)[which], month

    def gaps(self, month: int) -> np.ndarray:
        """Return the disparity of each year in a month."""
        limit, at = self.setting.limit, np.full(self.start.size, self.setting.limit)
        if self.drift == "linear":
            slope = (2 - self.setting.part) * limit / (MONTHS - 1)
            return self.start + slope * (month - self.since)
        if self.drift == "at the limit after each fit":
            return at
        if self.drift == "none":
            return self.start
        height = 2 if self.drift == "jump to twice" else 1
        return np.where((month >= JUMP) & (self.since <= JUMP), height * at, self.start)

    def people(self, look: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return hits and rows of both groups since the last look, and their mean disparity."""
        setting, n = self.setting, self.start.size
        months = range(look * setting.months, (look + 1) * setting.months)
        hits, rows, gaps = np.zeros((2, n)), np.zeros((2, n)), np.zeros(n)
        for month in months:
            first = self.rng.binomial(setting.people, setting.share, n)
            new = np.stack([first, setting.people - first])
            gap = self.gaps(month)
            hits += self.rng.binomial(new, np.stack([np.full(n, BASE), BASE + gap]))
            rows, gaps = rows + new, gaps + gap / setting.months
        return hits, rows, gaps

    def note(self, is_above: np.ndarray, is_alarm: np.ndarray, look: int, refit: bool) -> None:
        """Note excesses and alarms of a look, and fit anew where there is an alarm."""
        is_running = self.n_alarms < (N_FITS if refit else 1)
        self.was_above |= is_running & is_above
        self.has_missed |= is_running & is_above & ~is_alarm
        new = is_running & is_alarm
        self.n_alarms += new
        if refit:
            months = self.setting.months
            self.fit(new & (self.n_alarms < N_FITS), (look + 1) * months, months)

    def found(self) -> dict[str, float]:
        """Return the shares of years with an excess, a missed one and an alarm."""
        return {
            "missed": float(self.has_missed.mean()),
            "above": float(self.was_above.mean()),
            "alarms": float(self.n_alarms.mean()),
            "with alarm": float((self.n_alarms > 0).mean()),
        }


def by_tests(setting: Setting, drift: str, rule: str, n: int) -> dict[str, float]:
    """Return what happens if each look without an alarm shows that the limit held."""
    years = Years(setting, drift, n)
    levels = RULES[rule](setting.n_looks)
    for look in range(setting.n_looks):
        hits, rows, gaps = years.people(look)
        p = both_ways("melded", hits[1], rows[1], hits[0], rows[0], setting.limit, False)
        allowed = levels[np.minimum(years.n_alarms, REFITS)]
        years.note(gaps >= setting.limit - 1e-12, p > allowed, look, refit=True)
    return years.found()


def by_monitor(setting: Setting, drift: str, n: int, *, shows: str) -> dict[str, float]:
    """Return what happens with the evidence of a monitor.

    If it shows "excess", the alarm is that of ``DisparityMonitor``, and nothing is fitted anew. If
    it shows "mean", an alarm is raised unless it is shown that the limit holds on average since the
    model was fitted, with a quarter of 5% for each fit.
    """
    years = Years(setting, drift, n)
    windows, everyone = Windows(n, setting.n_looks), np.arange(n)
    total, n_since = np.zeros(n), np.zeros(n)
    for look in range(setting.n_looks):
        if shows == "excess" or not look:
            windows.start(look)
        hits, rows, gaps = years.people(look)
        windows.add(np.stack([hits, rows], axis=2).transpose(1, 0, 2), 50)
        total, n_since = total + gaps, n_since + 1
        if shows == "excess":
            bets = windows.log_bets(setting.limit, everyone).reshape(-1, n)
            is_alarm, is_above = special.logsumexp(bets, axis=0) >= -np.log(ERROR), gaps
        else:
            is_alarm = windows.log_kept(setting.limit) < -np.log(ERROR / N_FITS)
            is_above = total / n_since
        years.note(is_above >= setting.limit - 1e-12, is_alarm, look, refit=shows == "mean")
        if shows == "mean":
            for array in (windows.sums[0].T, windows.known, windows.waiting, total, n_since):
                array[is_alarm] = 0  # a new monitor for the new model
    return years.found()


def delay(setting: Setting, n: int) -> int | None:
    """Return how many looks of a monitor find a jump to twice the limit in 95% of the streams.

    The streams end two years after the jump. It is None if the jump is found in fewer of them.
    """
    rng, n_looks = np.random.default_rng(setting.seed("jump to twice")), JUMP + 2 * MONTHS
    windows, everyone, found = Windows(n, n_looks), np.arange(n), np.full(n, n_looks)
    for look in range(n_looks):
        windows.start(look)
        gap = setting.limit * (setting.part if look < JUMP else 2)
        first = rng.binomial(setting.people, setting.share, n)
        rows = np.stack([first, setting.people - first], axis=1)
        hits = rng.binomial(rows, [BASE, BASE + gap])
        windows.add(np.stack([hits, rows], axis=2).astype(float), 50)
        bets = windows.log_bets(setting.limit, everyone).reshape(-1, n)
        is_alarm = special.logsumexp(bets, axis=0) >= -np.log(ERROR)
        found[is_alarm] = np.minimum(found[is_alarm], look)
    late = int(np.quantile(found, 0.95, method="higher"))
    return late - JUMP + 1 if late < n_looks else None


def largest_disparity(setting: Setting) -> float | None:
    """Return the disparity with which nine of ten years have no alarm, or None if there is none."""
    most = None
    for gap in np.arange(0, setting.limit, 0.001):
        needed = sample_size(
            setting.limit,
            rates=(BASE, BASE + gap),
            shares=(setting.share, 1 - setting.share),
            confidence=1 - ERROR / N_FITS,
            power=0.9 ** (1 / setting.n_looks),
        )
        if needed.sum() > setting.people * setting.months:
            break
        most = float(gap)
    return most


def main(*, quick: bool = False) -> dict[str, list[dict[str, Any]]]:
    """Simulate the years of each setting, and the delays of a monitor."""
    n, years, delays = 40 if quick else 500, [], []
    for plan in PLANS[3:] if quick else PLANS:
        for share, limit, part in product(SHARES, LIMITS, PARTS):
            setting = Setting(*plan, share, limit, part)
            own = setting._asdict() | {"n": n, "largest": largest_disparity(setting)}
            for drift in DRIFTS if part == PARTS[-1] else DRIFTS[:1]:
                ways = {rule: by_tests(setting, drift, rule, n) for rule in RULES}
                for shows in ("excess", "mean"):
                    ways[shows] = by_monitor(setting, drift, n, shows=shows)
                years.append(own | {"drift": drift, "ways": ways})
            if part == PARTS[-1] and setting.months == 1:
                delays.append(own | {"looks": delay(setting, n)})
    results = {"years": years, "delays": delays}
    for name, value in numbers(results).items():
        print(f"  {name}: {value}")
    return results


def canary() -> dict[str, Any]:
    """Return the results of a small cell."""
    setting = Setting(*PLANS[1], SHARES[0], LIMITS[1], PARTS[0])
    ways = {rule: by_tests(setting, DRIFTS[0], rule, 500) for rule in RULES}
    for shows in ("excess", "mean"):
        ways[shows] = by_monitor(setting, DRIFTS[0], 500, shows=shows)
    return {"largest": largest_disparity(setting), "ways": ways}


def numbers(results: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the cells of the tables of the page."""
    found: dict[str, Any] = {"n": results["years"][0]["n"]}
    still = [one for one in results["years"] if one["drift"] == "none"]
    for one in still:
        of_sizes = f"{one['people'] * one['months']}_{name_of(one)}"
        most = one["largest"]
        found[f"most_{of_sizes}"] = "none" if most is None else f"{most:.3f}"
        share = f"{one['ways']['fits']['with alarm']:.0%}"
        before = found.get(f"alarms_{of_sizes}")
        found[f"alarms_{of_sizes}"] = share if before is None else f"{before} / {share}"
    for one in results["delays"]:
        looks = one["looks"]
        found[f"delay_{one['people']}_{name_of(one)}"] = "more than 24" if looks is None else looks
    half = [one for one in results["years"] if one["part"] == PARTS[-1]]
    for way in half[0]["ways"]:
        missed = {
            drift: [one["ways"][way]["missed"] for one in half if one["drift"] == drift]
            for drift in DRIFTS[1:]
        }
        short = way.replace(" ", "_")
        found[f"missed_{short}"] = max(float(np.mean(shares)) for shares in missed.values())
        if way == "fits":
            found["most_missed"] = max(max(shares) for shares in missed.values())
            found["settings"] = len(missed[DRIFTS[1]])
        for share in SHARES:
            (own,) = [
                one["ways"][way]["with alarm"]
                for one in half
                if (one["drift"], one["people"], one["months"]) == ("none", 10_000, 1)
                and (one["share"], one["limit"]) == (share, 0.1)
            ]
            found[f"false_{short}_{round(100 * share)}"] = own
    return found


def name_of(one: dict[str, Any]) -> str:
    """Return the limit and the share of the smaller group, in hundredths."""
    return f"{round(100 * one['limit'])}_{round(100 * one['share'])}"


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
