"""The comparison of a peer with the estimator of skfair for the same task.

The peer is fitted first, with its own limit. The estimator of skfair then gets the disparity that
the peer has on the training rows as its limit, so that costs are compared at equal disparity:
limits of libraries mean different things, and this needs no translation of them. References, which
know no constraint, are compared with skfair without a constraint and with one.
"""

import warnings
from collections.abc import Callable
from importlib import import_module
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import timed

SEEDS = (3401, 3402, 3403)
LEAST = 0.005  # some peers keep a constraint exactly, in the mean of random labels; labels cannot
LONG = 0.5  # seconds; fits of peers that take longer are timed once
SLOW_TO_IMPORT = ("aif360", "holisticai")  # seconds each
FIGURES = ("score", "train", "test")

Predictor = Callable[[Any], Any]


class Peer(NamedTuple):
    """``make(rule)`` imports what is needed and returns what is timed: rows -> predictor."""

    name: str
    what: str
    module: str
    make: Callable[[str], Callable[[Any], Predictor]]
    is_reference: bool = False
    only: tuple[str, ...] = ()  # data sets; all if empty


class Task(NamedTuple):
    """How a model of a task is fitted by us, and measured."""

    ours: Callable[[Any, str, float], Predictor]  # rows, constraint, disparity -> predictor
    measure: Callable[[Any, str, Predictor], tuple[float, float]]  # score and disparity
    fixed: float  # the disparity that ours has when it is set against a reference
    is_scored_on_training: bool = False


def run(
    task: Task, peer: Peer, rule: str, draws: list[tuple[Any, Any]], quick: bool
) -> list[dict[str, Any]]:
    """Return the figures of a peer and of ours, means over the draws of training and test rows."""
    row = {"peer": peer.name, "what": peer.what}
    if quick and peer.name in SLOW_TO_IMPORT:
        return [row | {"skipped": "left out of --quick: slow to import"}]
    try:
        import_module(peer.module)
    except Exception as error:  # whatever another library raises when it is imported
        return [row | {"skipped": f"cannot be imported: {type(error).__name__}: {error}"}]
    fit, pairs, rounds = peer.make(rule), {}, 1 if quick else 3
    for train, test in draws:
        try:
            with warnings.catch_warnings():  # peers have much to say
                warnings.simplefilter("ignore")
                seconds, theirs = settled(lambda: fit(train), rounds, LONG)  # noqa: B023
        except Exception as error:  # a finding about the peer, not about us
            return [row | {"skipped": f"fails: {error}"}]
        found = figures(task, rule, theirs, train, test)
        bounds = {"the same disparity": max(found["train"], LEAST)}
        if peer.is_reference:
            bounds = {"no rule": 1.0, f"at most {task.fixed:.2g}": task.fixed}
        for kind, bound in bounds.items():
            our_seconds, ours = settled(lambda b=bound: task.ours(train, rule, b), rounds)  # noqa: B023
            own = figures(task, rule, ours, train, test)
            both = {key: (found[key], own[key]) for key in FIGURES}
            pairs.setdefault(kind, []).append(both | {"cpu": (seconds, our_seconds)})
    rows = []
    for kind, values in pairs.items():
        of_all = {key: mean_pair([v[key] for v in values]) for key in FIGURES}
        ratio = median(v["cpu"][0] / v["cpu"][1] for v in values)
        rows.append(row | of_all | {"ours": kind, "ratio": round(ratio, 4)})
    return rows


def mean_pair(pairs: list[tuple[float, float]]) -> list[float] | None:
    """Return the means of theirs and ours; None where there were no test rows."""
    means = np.mean(pairs, axis=0)
    return None if np.isnan(means).any() else means.round(5).tolist()


def settled(fit: Callable[[], Any], rounds: int, long: float = np.inf) -> tuple[float, Any]:
    """Return CPU seconds of a fit when all is loaded, and its result; long fits are run once."""
    seconds, result = timed(fit)
    if seconds < long:
        seconds = median(timed(fit)[0] for _ in range(rounds))
    return seconds, result


def figures(task: Task, rule: str, predictor: Predictor, train: Any, test: Any) -> dict[str, float]:
    """Return score and disparities; the score is that of test rows if there are any."""
    score, train_disparity = task.measure(train, rule, predictor)
    disparity = float("nan")
    if test is not None:
        test_score, disparity = task.measure(test, rule, predictor)
        score = score if task.is_scored_on_training else test_score
    return {"score": score, "train": train_disparity, "test": disparity}
