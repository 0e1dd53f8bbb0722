"""Whether mixtures of thresholds keep their limits, and give the same person the same answer.

Group-aware equalized odds on simulated people whose scores say more of one group than of the other,
so that no pair of thresholds is as good as a mixture. Disparities are counted here, not by the code
that enforced them; answers are those of all rows at once, of single rows in another order, of
single precision, of a model that was stored and read, and of another process.
"""

import warnings
from io import BytesIO
from typing import Any

import joblib
import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from benchmarks._decision_scores import Stored
from benchmarks.decision_promise import gap
from benchmarks.harness import Table, quiet, timed
from skfair.classification import FairDecisionClassifier

LIMITS = (0.005, 0.01, 0.02, 0.03, 0.05)
# Of how many fits at most, each of another seed; about two of three have a mixture.
N_FITS, N_ROWS, FIRST_SEED = 620, 1500, 41_000
WAYS = ("single rows", "single precision", "stored", "process")


def people(seed: int) -> tuple[pd.DataFrame, Any, Any]:
    """Return scores, classes and groups; scores of the second group are vague."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 2, N_ROWS)
    clear = np.where(groups == 0, rng.uniform(1.5, 3), rng.uniform(0.3, 1.2))
    odds = rng.normal(size=N_ROWS) * clear + rng.uniform(-1, 1) * groups - 0.3
    positive = 1 / (1 + np.exp(-odds))
    y = (rng.random(N_ROWS) < positive).astype(int)
    chances = np.column_stack([1 - positive, positive]).astype(np.float32).astype(np.float64)
    return pd.DataFrame(chances, columns=["no", "yes"]), y, groups


def answers(model: FairDecisionClassifier, X: Any, groups: Any) -> Any:
    """Return decisions; called in other processes, too."""
    return model.predict(X, sensitive_features=groups)


def fit(number: int) -> dict[str, Any]:
    """Fit once, and count; an empty result if no mixture was of use."""
    X, y, groups = people(FIRST_SEED + number)
    limit = LIMITS[number % len(LIMITS)]
    model = FairDecisionClassifier(
        Stored().fit(X, y), "equalized_odds", limit, group_aware="mixed", cv="prefit"
    )
    cpu, _ = timed(lambda: model.fit(X, y, sensitive_features=groups))
    if not model.mixed_share_:
        return {}
    found = answers(model, X, groups)
    order = np.random.default_rng(number).permutation(N_ROWS)[:5]
    single = [answers(model, X.iloc[[i]], groups[[i]])[0] for i in order]
    file = BytesIO()
    joblib.dump(model, file)
    same = {
        "single rows": np.array_equal(single, found[order]),
        "single precision": np.array_equal(answers(model, X.astype(np.float32), groups), found),
        "stored": np.array_equal(answers(joblib.load(file), X, groups), found),
    }
    return {
        "excess": gap("equalized_odds", y, model.train_predictions_ == 1, groups, 1) - limit,
        "says": model.status_,
        "share": model.mixed_share_,
        "cpu": cpu,
        "same": {way: bool(one) for way, one in same.items()},
        "model": model,
        "found": found,
    }


def elsewhere(part: list[tuple[int, FairDecisionClassifier]]) -> list[Any]:
    """Return answers to the people of some fits; called in other processes."""
    made = [(model, people(FIRST_SEED + number)) for number, model in part]
    return [answers(model, X, groups) for model, (X, _, groups) in made]


def main(*, quick: bool = False) -> dict[str, Any]:
    n_fits = 20 if quick else N_FITS
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = {number: one for number in range(n_fits) if (one := fit(number))}
    asked = [(number, one.pop("model")) for number, one in made.items()]
    parts = Parallel(n_jobs=2)(delayed(elsewhere)(part) for part in (asked[::2], asked[1::2]))
    for part, start in zip(parts, (0, 1), strict=True):
        for (number, _), own in zip(asked[start::2], part, strict=True):
            made[number]["same"]["process"] = bool(np.array_equal(own, made[number].pop("found")))
    return {"fits": list(made.values()), "tried": n_fits}


def canary() -> list[dict[str, Any]]:
    """Return which fits break a limit, and what they say; by how much depends on rounding."""
    fits = filter(None, map(fit, range(8)))
    return [{"broken": bool(one["excess"] > 1e-9), "says": one["says"]} for one in fits]


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Show how many fits kept the limit, and how many gave the same answers."""
    fits = results["fits"]
    row = [
        len(fits),
        sum(one["excess"] > 1e-9 for one in fits),
        sum(one["says"] != "converged" for one in fits),
        f"{max(one['excess'] for one in fits):.2g}",
        *(sum(not one["same"][way] for one in fits) for way in WAYS),
        f"{np.median([one['share'] for one in fits]):.1%}",
        float(np.median([one["cpu"] for one in fits])),
    ]
    columns = [
        "fits with mixtures",
        "limits broken",
        "said to be broken",
        "worst excess",
        *(f"other answers: {way}" for way in WAYS),
        "rows drawn (median)",
        "CPU s (median)",
    ]
    return {"mixtures": Table("Mixtures of thresholds", columns, [row])}
