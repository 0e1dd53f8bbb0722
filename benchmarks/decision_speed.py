"""The CPU time of fair decisions beyond the fits of the classifier, for 30,000 to a million rows.

The classifier hands out probabilities that are columns of X, so a fit costs nothing but the search
for prices, reading the data, and taking rows of X for the folds. A fit under a limit that does not
bind is set off against it ("without a limit"): that is reading and folds alone.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import softmax

from benchmarks._decision_scores import Stored
from benchmarks.harness import Table, alternate, quiet
from skfair.classification import FairDecisionClassifier

# Rows, groups, classes, whether the group may be used, constraint, limit, and the bar in CPU
# seconds.
CASES = (
    (30_000, 2, 2, False, "demographic_parity", 0.03, 0.2),
    (30_000, 2, 2, False, "equalized_odds", 0.03, 0.2),
    (30_000, 2, 2, True, "equalized_odds", 0.03, 0.2),
    (30_000, 5, 2, False, "equalized_odds", 0.05, 0.2),
    (30_000, 2, 3, True, "equalized_odds", 0.05, 0.2),
    (30_000, 4, 3, False, "equalized_odds", 0.05, 0.2),
    (1_000_000, 10, 2, True, "demographic_parity", 0.05, 3.0),
    (1_000_000, 10, 2, False, "demographic_parity", 0.05, 3.0),
    (1_000_000, 10, 5, True, "demographic_parity", 0.05, 8.0),
    (1_000_000, 100, 2, True, "demographic_parity", 0.05, 5.0),
)


def rows(n: int, n_groups: int, n_classes: int) -> tuple[Any, Any, Any]:
    """Return probabilities of classes, of pairs and of groups side by side, classes and groups."""
    rng = np.random.default_rng(1)
    sizes = rng.random(n_groups) + 0.3
    n_pairs = n_groups * n_classes
    scores = 0.8 * rng.normal(size=(n, 2)) @ rng.normal(size=(2, n_pairs))
    scores += np.log(np.repeat(sizes / sizes.sum(), n_classes)) + 0.5 * rng.normal(size=n_pairs)
    joint = softmax(scores + 0.2 * rng.normal(size=(n, n_pairs)), axis=1)
    pair = np.minimum((joint.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), n_pairs - 1)
    both = joint.reshape(n, n_groups, n_classes)
    X = np.hstack([both.sum(axis=1), joint, both.sum(axis=2)])
    names = np.array([f"group {g}" for g in range(n_groups)])
    return X, pair % n_classes, names[pair // n_classes]


def fitting(case: tuple[Any, ...], n: int) -> Callable[[float], FairDecisionClassifier]:
    """Return a function that fits n rows of a case with a limit."""
    _, n_groups, n_classes, aware, rule, *_ = case
    X, y, groups = rows(n, n_groups, n_classes)
    n_pairs = n_groups * n_classes
    # Of many pairs the classifier estimates groups by themselves.
    part = (0, n_pairs) if n_pairs <= 20 else (n_pairs, n_pairs + n_groups)
    groups_of = Stored(n_classes + part[0], n_classes + part[1])
    # With known groups a second model would be tried as well, at twice the time.
    options = {"group_aware": aware, "group_estimator": None if aware else groups_of}
    options["random_state"] = 0

    def fit(value: float) -> FairDecisionClassifier:
        model = FairDecisionClassifier(Stored(0, n_classes), rule, value, **options)
        return model.fit(X, y, sensitive_features=groups)

    return fit


def run(case: tuple[Any, ...], *, quick: bool) -> dict[str, Any]:
    """Return the CPU seconds of a fit with the limit and of one with a limit that never binds."""
    n, *_, limit, bar = case
    fit = fitting(case, n // 100 if quick else n)
    times = alternate({"limit": lambda: fit(limit), "free": lambda: fit(1.0)}, 1 if n > 1e5 else 5)
    with_limit, without = times["limit"]["cpu"], times["free"]["cpu"]
    return {"case": list(case[:6]), "cpu": with_limit, "free": without, "bar": bar}


def main(*, quick: bool = False) -> dict[str, Any]:
    found = []
    with quiet():
        for case in CASES[:3] if quick else CASES:
            found.append(run(case, quick=quick))
            print(f"   {case} done", flush=True)
    return {"fits": found}


def canary() -> list[float]:
    """Return the mean class that small fits of some cases decide, with the group."""
    fits = (fitting(case, 3000)(case[5]) for case in CASES[:6] if case[3])
    return [float(model.train_predictions_.mean()) for model in fits]


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Show CPU seconds beside the bars."""
    names = ["rows", "groups", "classes", "group used", "rule", "limit"]
    lines = [
        [*row["case"], f"{row['cpu']:.2f}", f"{row['free']:.2f}", row["bar"]]
        for row in results["fits"]
    ]
    columns = [*names, "CPU s", "without a limit", "bar for the difference"]
    return {"speed": Table("CPU seconds of fits whose classifier costs nothing", columns, lines)}
