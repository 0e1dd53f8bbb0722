"""Certificates, audits and intervals where people come back: rows counted as people, and people.

Simulated patients have one visit or many, always the same number or very different ones. The visits
of a person are nearly the same (``alike``), or each visit is drawn anew (``independent``). So what
holds in the population is known, and how often a certificate, a finding or an interval is wrong can
be counted, once with the visits taken for people and once with ``units=``.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks._drawing import small
from benchmarks.harness import Table, kept, timed
from skfair import Certificate
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
    PartialParityClassifier,
)
from skfair.metrics import (
    demographic_parity_difference,
    disparity_test,
    group_report,
    mean_score_difference,
    partial_statistical_parity_gap,
)
from skfair.regression import ConstrainedERMRegressor
from skfair.report import audit

FIRST_SEED = 90_000_000
LIMIT, N_ROWS, INTERVAL = 0.1, 3000, (0.1, 0.4)
# Visits of a person, and whether all have as many.
VISITS = (
    *((1, True), (2, True), (3, True), (5, True), (10, True), (30, True)),
    *((3, False), (10, False)),
)
REPETITIONS = {"certificates": 24, "audits": 100, "intervals": 250}
# Certificates are fits, and take most of the time: visits, constant, alike.
FITTED = {
    *((1, True, True), (3, True, True), (10, True, True)),
    *((10, False, True), (10, True, False)),
}


# People have ten visits in the mean, which are partly alike, or are alike and have weights, are
# in two strata, or have an age band that changes.
SETTINGS = ("partly alike", "weights", "strata", "two attributes")


class Visits(NamedTuple):
    """Visits of simulated patients."""

    X: np.ndarray
    y: np.ndarray
    sex: np.ndarray
    person: np.ndarray


def visits_of(n: int, k: int, is_constant: bool, rng: np.random.Generator) -> np.ndarray:
    """Return the number of visits of each of n people, k in the mean."""
    return np.full(n, k) if is_constant else rng.geometric(1 / k, n)


def patients(n: int, k: int, is_constant: bool, is_alike: bool, seed: int) -> Visits:
    """Draw the visits of n people, k in the mean; men are more often ill."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n), visits_of(n, k, is_constant, rng))
    sex = rng.integers(0, 2, n)[person]
    own = rng.normal(size=(n, 2))[person] if is_alike else rng.normal(size=(person.size, 2))
    X = own + np.column_stack([0.6 * sex, np.zeros(person.size)])
    X += 0.1 * rng.normal(size=X.shape)
    y = (X.sum(axis=1) + rng.normal(size=person.size) > 0).astype(int)
    return Visits(X, y, np.where(sex, "m", "f"), person)


class Family(NamedTuple):
    """A certified estimator, and how far apart its outputs for new people are."""

    make: Callable[[int], Any]
    disparity: Callable[[Any, Visits], float]


def _decided(model: Any, people: Visits) -> float:
    groups = {"sensitive_features": people.sex} if getattr(model, "group_aware", False) else {}
    predicted = model.predict(people.X, **groups)
    return demographic_parity_difference(None, predicted, sensitive_features=people.sex)


def _in_the_mean(model: Any, people: Visits) -> float:
    return mean_score_difference(None, model.predict(people.X), sensitive_features=people.sex)


def _within(model: Any, people: Visits) -> float:
    scores = model.decision_function(people.X)
    return partial_statistical_parity_gap(
        None, scores, sensitive_features=people.sex, interval=INTERVAL
    )


def _decisions(is_aware: bool) -> Callable[[int], Any]:
    return lambda seed: FairDecisionClassifier(
        LogisticRegression(),
        max_disparity=LIMIT,
        group_aware=is_aware,
        certificate=0.95,
        random_state=seed,
    )


def _linear(by: Any) -> Callable[[int], Any]:
    return lambda seed: ConstrainedERMClassifier(
        max_disparity=LIMIT, certificate=Certificate(0.95, by=by), random_state=seed
    )


FAMILIES = {
    "thresholds by group": Family(_decisions(True), _decided),
    "thresholds without groups": Family(_decisions(False), _decided),
    "linear, by folds": Family(_linear("cross"), _decided),
    "linear, in halves": Family(_linear("split"), _decided),
    "regression": Family(
        lambda seed: ConstrainedERMRegressor(
            max_disparity=LIMIT, certificate=0.95, random_state=seed
        ),
        _in_the_mean,
    ),
    "within an interval": Family(
        lambda seed: PartialParityClassifier(
            interval=INTERVAL, max_disparity=3 * LIMIT, certificate=0.95, random_state=seed
        ),
        _within,
    ),
}


def main(*, quick: bool = False) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    parts = {"certificates": _certificates, "audits": _audits, "intervals": _intervals}
    n_samples = 2 if quick else REPETITIONS["intervals"]
    settings = [
        kept(f"persons-settings-{name}", lambda: _setting(name, n_samples), quick=quick)  # noqa: B023
        for name in SETTINGS
    ]
    return (
        {"settings": settings}
        | {
            name: [
                kept(
                    f"persons-{name}-{k}-{is_constant}-{is_alike}",
                    lambda: measure(k, is_constant, is_alike, n),  # noqa: B023
                    quick=quick,
                )
                for k, is_constant in (VISITS[:5:4] if quick else VISITS)
                for is_alike in ((True,) if k == 1 else (True, False))
                if name != "certificates" or (k, is_constant, is_alike) in FITTED
            ]
            for name, measure in parts.items()
            for n in [2 if quick else REPETITIONS[name]]
        }
    )


def canary() -> dict[str, Any]:
    """Return the results of a small cell."""
    return _audits(3, True, True, REPETITIONS["audits"])["found"]


def _certificates(k: int, is_constant: bool, is_alike: bool, n: int) -> dict[str, Any]:
    """Count the certified fits of each family, and those above the limit in the population."""
    everybody, found = patients(60_000, 1, True, True, FIRST_SEED - 1), {}
    for name, (make, disparity) in FAMILIES.items():
        limit, counts, cpu = make(0).max_disparity, {"rows": [], "people": []}, {}
        for seed in range(FIRST_SEED, FIRST_SEED + n):
            X, y, sex, person = patients(N_ROWS // k, k, is_constant, is_alike, seed)
            for way, groups in (("rows", {}), ("people", {"units": person})):
                fit = make(seed).fit
                seconds, model = timed(lambda: fit(X, y, sensitive_features=sex, **groups))  # noqa: B023
                cpu[way] = cpu.get(way, 0.0) + seconds
                if model.status_ == "certified":
                    counts[way].append(disparity(model, everybody) > limit)
        found[name] = {
            way: {"certified": len(own), "exceeded": int(sum(own)), "cpu": cpu[way] / n}
            for way, own in counts.items()
        }
    return {"visits": k, "constant": is_constant, "alike": is_alike, "n": n, "families": found}


def _audits(k: int, is_constant: bool, is_alike: bool, n: int) -> dict[str, Any]:
    """Count the audits that find a difference where there is none."""
    found, cpu = {"rows": 0, "people": 0}, {"rows": 0.0, "people": 0.0}
    for seed in range(FIRST_SEED, FIRST_SEED + n):
        rng = np.random.default_rng(seed)
        n_people = N_ROWS // k
        person = np.repeat(np.arange(n_people), visits_of(n_people, k, is_constant, rng))
        illness = rng.normal(size=n_people)[person] if is_alike else rng.normal(size=person.size)
        decided = (illness + 0.3 * rng.normal(size=person.size) > 0).astype(int)
        # The age band of a person may change between visits.
        age = rng.integers(0, 3, n_people)[person] + (rng.random(person.size) < 0.1)
        features = {"sex": rng.integers(0, 2, n_people)[person], "age": np.minimum(age, 2)}
        for way, units in (("rows", {}), ("people", {"units": person})):
            seconds, made = timed(
                lambda: audit(None, decided, sensitive_features=features, random_state=0, **units)  # noqa: B023
            )
            cpu[way] += seconds / n
            found[way] += bool(made.gaps["is_beyond_chance"].any())
    own = {"visits": k, "constant": is_constant, "alike": is_alike, "n": n}
    return own | {"found": found, "cpu": cpu}


def _intervals(k: int, is_constant: bool, is_alike: bool, n: int) -> dict[str, Any]:
    """Count the intervals of rates that hold the rate, and tests that a limit passes wrongly."""
    results = []
    for n_people in (20, 50, 100, 300):
        for rate in (0.2, 0.5):
            held, passed, width, n_passed = {}, {}, {}, max(n // 2, 1)
            for i in range(n):
                rng = np.random.default_rng([FIRST_SEED + i, n_people, k])
                many = 2 * n_people
                person = np.repeat(np.arange(many), visits_of(many, k, is_constant, rng))
                sex, draws = person % 2, rng.random(many if is_alike else person.size)
                draws = draws[person] if is_alike else draws
                decided = (draws < rate + LIMIT * sex).astype(int)
                groups = {"sensitive_features": sex}
                for way, units in (("rows", {}), ("people", {"units": person})):
                    ends = group_report(None, decided, **groups, **units).iloc[0]
                    low, high = ends["selection_rate_low"], ends["selection_rate_high"]
                    held[way] = held.get(way, 0) + bool(low <= rate <= high)
                    width[way] = width.get(way, 0.0) + (high - low) / n
                    if i < n_passed:
                        asked = {"max_disparity": LIMIT, **groups, **units}
                        test = disparity_test("demographic_parity", None, decided, **asked)
                        passed[way] = passed.get(way, 0) + test.is_within
            own = {"n_people": n_people, "rate": rate, "n": n, "n_passed": n_passed}
            results.append(own | {"held": held, "width": width, "passed": passed})
    return {"visits": k, "constant": is_constant, "alike": is_alike, "cells": results}


def _setting(name: str, n: int) -> dict[str, Any]:
    """Count the same of people with ten visits in the mean, in one of the settings."""
    results = []
    for n_people in (20, 50, 100):
        held, passed = {"rows": 0, "people": 0}, {"rows": 0, "people": 0}
        for i in range(n):
            rng = np.random.default_rng([FIRST_SEED + i, n_people])
            many = n_people * (4 if name in ("strata", "two attributes") else 2)
            person = np.repeat(np.arange(many), visits_of(many, 10, False, rng))
            sex, half = np.arange(many) % 2, np.arange(many) // 2 % 2
            rate = 0.2 + LIMIT * sex + 0.3 * half * (name == "strata")
            chances = rng.random(many) < rate
            if name == "partly alike":
                chances = rng.beta(1.5 * rate, 1.5 * (1 - rate))
            decided = (rng.random(person.size) < chances[person]).astype(int)
            how: dict[str, Any] = {"sensitive_features": {"sex": sex[person]}}
            if name == "weights":
                how["sample_weight"] = rng.choice([0.5, 1.0, 3.0], person.size)
            if name == "strata":
                how["control_features"] = half[person]
            if name == "two attributes":
                how["sensitive_features"]["age"] = half[person] ^ (rng.random(person.size) < 0.1)
            for way, units in (("rows", {}), ("people", {"units": person})):
                ends = group_report(None, decided, **how, **units).iloc[0]
                held[way] += bool(ends["selection_rate_low"] <= 0.2 <= ends["selection_rate_high"])
                asked = {"max_disparity": LIMIT, **how, **units}
                test = disparity_test("demographic_parity", None, decided, **asked)
                passed[way] += test.is_within
        results.append({"n_people": n_people, "n": n, "held": held, "passed": passed})
    return {"setting": name, "cells": results}


def _about(row: dict[str, Any]) -> list[str]:
    visits = f"{row['visits']}" if row["constant"] else f"{row['visits']} on average"
    return [visits, "-" if row["visits"] == 1 else "alike" if row["alike"] else "independent"]


def numbers(results: dict[str, Any]) -> dict[str, Any]:
    """Return how often limits and audits are wrong with ten similar visits on average.

    ``wider_few`` and ``wider_many`` are the largest ratios of widths of independent visits.
    """

    def of_many(part: str) -> Any:
        kept = (row for row in results[part] if row["visits"] == 10 and row["alike"])
        return next(row for row in kept if not row["constant"])

    families, audits = of_many("certificates")["families"].values(), of_many("audits")
    widths = [[float(ratio) for ratio in row[1:]] for row in tables(results)["widths"].rows]

    def above(way: str) -> float:
        exceeded, certified = (
            sum(f[way][key] for f in families) for key in ("exceeded", "certified")
        )
        return exceeded / certified

    return {
        **{f"exceeded_by_{way}": above(way) for way in ("rows", "people")},
        **{f"found_by_{way}": audits["found"][way] / audits["n"] for way in ("rows", "people")},
        "wider_few": max(own[0] for own in widths),
        "wider_many": max(own[-1] for own in widths),
    }


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Show how often each way is wrong."""
    of_families = [
        [
            name,
            *_about(row),
            *(
                f"{own[key]} of {own['certified'] if key == 'exceeded' else row['n']}"
                for key in ("exceeded", "certified")
                for own in (row["families"][name]["rows"], row["families"][name]["people"])
            ),
        ]
        for name in FAMILIES
        for row in results["certificates"]
    ]
    columns = ["estimator", "visits per person", "visits of a person"]
    columns += ["above the limit, by rows", "above the limit, by people"]
    of_audits = [
        [*_about(row), *(f"{row['found'][way] / row['n']:.1%}" for way in ("rows", "people"))]
        for row in results["audits"]
    ]
    of_intervals = []
    for row in results["intervals"]:
        for n_people in (20, 50, 100, 300):
            cells = [cell for cell in row["cells"] if cell["n_people"] == n_people]
            n, n_passed = (sum(cell[key] for cell in cells) for key in ("n", "n_passed"))
            shares = [
                f"{sum(cell[key][way] for cell in cells) / total:.1%}"
                for key, total in (("held", n), ("passed", n_passed))
                for way in ("rows", "people")
            ]
            of_intervals.append([n_people, *_about(row), *shares])
    of_settings = [
        [
            *(row["setting"], cell["n_people"]),
            *(
                f"{cell[key][way] / cell['n']:.1%}"
                for key in ("held", "passed")
                for way in ("rows", "people")
            ),
        ]
        for row in results["settings"]
        for cell in row["cells"]
    ]
    shown = [
        f"{what}, by {way}"
        for what in ("rate in the interval", "limit wrongly confirmed")
        for way in ("rows", "people")
    ]
    of_widths = []
    for row in results["intervals"]:
        if row["alike"]:
            continue
        ratios = [
            np.mean(
                [
                    cell["width"]["people"] / cell["width"]["rows"]
                    for cell in row["cells"]
                    if cell["n_people"] == n_people
                ]
            )
            for n_people in (20, 50, 100, 300)
        ]
        of_widths.append([_about(row)[0], *(f"{ratio:.2f}" for ratio in ratios)])
    return {
        "settings": Table(
            "Other settings, with ten visits per person on average",
            ["setting", "people per group", *shown],
            of_settings,
        ),
        "widths": Table(
            "Width of intervals of independent visits, by people / by rows",
            ["visits per person", *(f"{n} people per group" for n in (20, 50, 100, 300))],
            of_widths,
        ),
        "certificates": Table(
            "Certified fits above the limit in the population",
            [*columns, "certified, by rows", "certified, by people"],
            of_families,
        ),
        "audits": Table(
            "Audits that find a difference where there is none",
            ["visits per person", "visits of a person", "by rows", "by people"],
            of_audits,
        ),
        "intervals": Table(
            "Intervals that contain the rate, and limits that are wrongly confirmed",
            [
                *("people per group", "visits per person", "visits of a person", *shown),
            ],
            of_intervals,
        ),
    }


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Draw how often certificates and audits are wrong by the number of visits."""
    figure, axes = small(2, height=2.6)
    for axis, name in zip(axes, ("certificates", "audits"), strict=True):
        rows = [row for row in results[name] if row["alike"] and row["constant"]]
        for way in ("rows", "people"):
            if name == "audits":
                shares = [100 * row["found"][way] / row["n"] for row in rows]
            else:
                of_rows = [[own[way] for own in row["families"].values()] for row in rows]
                counts = np.array(
                    [[(x["exceeded"], x["certified"]) for x in own] for own in of_rows]
                )
                exceeded, certified = counts.sum(axis=1).T
                shares = 100 * exceeded / np.maximum(certified, 1)
            label = "visits taken for people" if way == "rows" else "people"
            axis.plot([row["visits"] for row in rows], shares, "o-", label=label)
        axis.set_xscale("log")
        axis.set_xticks([row["visits"] for row in rows], [row["visits"] for row in rows])
        axis.minorticks_off()
        axis.axhline(5, color="0.5", lw=1, ls=":")
        axis.set_xlabel("Visits of each person")
        axis.set_ylim(bottom=0)
    axes[0].set_ylabel("Certified fits above the limit, %")
    axes[1].set_ylabel("Audits that find nothing real, %")
    axes[0].legend(frameon=False)
    return {"picture": figure}
