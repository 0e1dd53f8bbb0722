"""Audits of a language model that reads each CV under two names, beside McNemar's test.

A CV has a quality, and each prompt adds a little chance to it. A man's name raises it, so that
men are invited in six percentage points more of the prompts, or it does not. So the share of audits
that find the effect can be counted, and the share that finds one where there is none. The audits
take the prompts for people, or know of pairs by ``units=``. McNemar's test compares the answers
under the first, second, ... name of each group, in the exact form and in the one for large samples.
"""

from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binomtest, chi2, norm

from benchmarks._drawing import small
from benchmarks.harness import Table, kept
from skfair.report import audit

FIRST_SEED = 91_000_000
EFFECT, ALIKE, LEVEL = 0.06, 0.8, 0.05  # ALIKE: correlation of answers to the same CV
SIZES, NAMES = (150, 250), (1, 2)  # CVs, and names of each group
QUOTED = SIZES[0], NAMES[0]
N_AUDITS, N_CANARY = 300, 100
WAYS = {
    "rows": "audit without units=",
    "units": "audit with units=",
    "exact": "McNemar, exact",
    "large": "McNemar, large samples",
}
Row = dict[str, Any]


def main(*, quick: bool = False) -> list[Row]:
    """Count what audits and tests find, with the effect and without."""
    pieces = [(n, names, effect) for n in SIZES for names in NAMES for effect in (EFFECT, 0.0)]
    return [
        kept(
            "-".join(map(str, ("pairs", *piece))),
            partial(found, *piece, 2 if quick else N_AUDITS),
            quick=quick,
        )
        for piece in pieces
    ]


def canary() -> Row:
    """Return some audits of the cell that pages quote."""
    return found(*QUOTED, EFFECT, N_CANARY)


def answers(n: int, names: int, effect: float, seed: int) -> np.ndarray:
    """Return who is invited (n, 2, names): CVs, women and men, names."""
    rng = np.random.default_rng(seed)
    shared = np.sin(np.pi / 2 * ALIKE)  # the correlation of two normals whose signs have ALIKE
    quality, chance = rng.normal(size=(n, 1, 1)), rng.normal(size=(n, 2, names))
    bar = norm.isf([0.5 - effect / 2, 0.5 + effect / 2])[:, np.newaxis]
    return np.sqrt(shared) * quality + np.sqrt(1 - shared) * chance > bar


def found(n: int, names: int, effect: float, n_audits: int) -> Row:
    """Count the audits and tests that find a difference between women and men."""
    counts = dict.fromkeys(WAYS, 0)
    for seed in range(FIRST_SEED, FIRST_SEED + n_audits):
        invited = answers(n, names, effect, seed)
        cv, group, _ = np.indices(invited.shape)
        for way, units in (("rows", {}), ("units", {"units": cv.ravel()})):
            made = audit(
                None,
                invited.ravel().astype(int),
                sensitive_features={"group": np.array(["woman", "man"])[group.ravel()]},
                random_state=0,
                **units,
            )
            counts[way] += bool(made.gaps["is_beyond_chance"].any())
        for way, p_value in mcnemar(invited[:, 0].ravel(), invited[:, 1].ravel()).items():
            counts[way] += p_value <= LEVEL
    return {"n": n, "names": names, "effect": effect, "n_audits": n_audits, "found": counts}


def mcnemar(first: np.ndarray, second: np.ndarray) -> dict[str, float]:
    """Return p values of the exact test and of the one for large samples, without a correction."""
    b, c = int((first & ~second).sum()), int((second & ~first).sum())
    if b + c == 0:
        return {"exact": 1.0, "large": 1.0}
    return {
        "exact": float(binomtest(b, b + c).pvalue),
        "large": float(chi2.sf((b - c) ** 2 / (b + c), 1)),
    }


def shares(results: list[Row], n: int, names: int) -> dict[str, dict[str, float]]:
    """Return for each way the shares of audits that find the effect, and one that is not there."""
    rows = [row for row in results if (row["n"], row["names"]) == (n, names)]
    return {
        way: {
            "found" if row["effect"] else "falsely": row["found"][way] / row["n_audits"]
            for row in rows
        }
        for way in WAYS
    }


def numbers(results: list[Row]) -> dict[str, Any]:
    """Return the shares of the smallest audits, and the largest share that units= finds falsely."""
    own = shares(results, *QUOTED)
    return {
        "points": 100 * EFFECT,
        "n": QUOTED[0],
        **{way: own[way]["found"] for way in WAYS},
        "falsely": max(
            shares(results, n, names)["units"]["falsely"] for n in SIZES for names in NAMES
        ),
    }


def tables(results: list[Row]) -> dict[str, Table]:
    """Return the shares of audits that find an effect, and one that is not there."""
    lines = []
    for n in SIZES:
        for names in NAMES:
            own = shares(results, n, names).values()
            cells = [f"{share[key]:.0%}" for share in own for key in ("found", "falsely")]
            lines.append([n, names, *cells])
    columns = [name for way in WAYS.values() for name in (f"{way}: effect", "/ no effect")]
    about = ["CVs", "names per group"]
    return {"found": Table("Shares of cases that find a difference", [*about, *columns], lines)}


def pictures(results: list[Row]) -> dict[str, Any]:
    """Draw the shares of audits that find the effect, a panel for each number of CVs."""
    figure, axes = small(len(SIZES), height=2.4, sharey=True)
    for panel, n in zip(axes, SIZES, strict=True):
        for k, names in enumerate(NAMES):
            own = shares(results, n, names)
            places = [place + 0.2 * (2 * k - 1) for place in range(len(WAYS))]
            label = f"{names} name{'s' * (names > 1)} of a group"
            panel.barh(places, [100 * own[way]["found"] for way in WAYS], 0.36, label=label)
        panel.set(xlim=(0, 100), xlabel="audits that find it, %", title=f"{n} CVs")
    axes[0].set_yticks(range(len(WAYS)), list(WAYS.values()))
    axes[0].invert_yaxis()
    axes[0].legend(frameon=False, fontsize="small")
    return {"picture": figure}
