"""Rows that are hard to treat fairly, but valid: what the attack fits estimators to.

Few rows, ties, columns of any scale, a group that is alone or tiny, attributes that overlap,
weights of any kind. All is drawn from one generator, so a seed and a number name a case.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

N_ROWS = [4, 6, 9, 14, 24, 24, 40, 40, 60, 90]
LEVELS = [1, 2, 2, 2, 3, 4]
TIES = ["none", "none", "rounded", "repeated rows", "constant column", "all rows equal"]
OFTEN_TIED = [*TIES, "repeated rows", "repeated rows", "all rows equal"]
SCALES = ["one", "one", "tiny", "large", "far away", "mixed"]
WEIGHTS = ["none", "none", "equal", "uniform", "whole", "heavy", "tiny", "zeros"]
NAMES = np.array(["f", "m", "x", "?"])


@dataclass(frozen=True)
class Rows:
    """Columns, targets, and one list of groups for each attribute."""

    X: np.ndarray
    y: np.ndarray
    attributes: list[np.ndarray]
    weights: np.ndarray | None
    pattern: str

    @property
    def n(self) -> int:
        return len(self.X)

    @property
    def sensitive_features(self) -> Any:
        """As users pass them: a column, or a table of several."""
        if len(self.attributes) == 1:
            return self.attributes[0]
        return pd.DataFrame(dict(zip("abc", self.attributes, strict=False)))

    def columns(self, intersectional: bool) -> list[np.ndarray]:
        """The groups that are compared: of each attribute, or of all of them crossed."""
        if not intersectional or len(self.attributes) == 1:
            return self.attributes
        return [np.array([" & ".join(row) for row in zip(*self.attributes, strict=True)])]


def pick(rng: np.random.Generator, options: Any) -> Any:
    """Draw one of several, whatever they are."""
    return options[int(rng.integers(len(options)))]


def draw_rows(
    rng: np.random.Generator,
    n_rows: Any = N_ROWS,
    n_classes: int = 2,
    has_weights: bool = True,
    ties: Any = TIES,
) -> Rows:
    """Draw rows with classes; :func:`with_numbers` gives them real targets."""
    n, d = pick(rng, n_rows), int(rng.integers(1, 5))
    attributes = [draw_groups(rng, n) for _ in range(pick(rng, [1, 1, 1, 2, 2, 3]))]
    ties, scale = pick(rng, ties), pick(rng, SCALES)
    kind = pick(rng, WEIGHTS) if has_weights else "none"
    X = tied(rng, rng.normal(size=(n, d)) + (attributes[0] == "m")[:, None], ties)
    score = X[:, 0] - X[:, 0].mean() + 0.7 * (attributes[-1] == "f") + rng.normal(size=n)
    y = np.argsort(np.argsort(score)) * n_classes // n  # classes of equal size
    if rng.random() < 0.2:
        y = (score > np.quantile(score, 0.8)).astype(int) * (n_classes - 1)
    pattern = f"{n} rows, ties: {ties}, scale: {scale}, weights: {kind}"
    return Rows(scaled(rng, X, scale), y, attributes, draw_weights(rng, n, kind), pattern)


def draw_groups(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw groups of any sizes: one may be alone, or have a single row."""
    n_levels = pick(rng, LEVELS)
    shares = rng.dirichlet(np.full(n_levels, pick(rng, [1.0, 5.0, 50.0])))
    return NAMES[rng.choice(n_levels, n, p=shares)]


def tied(rng: np.random.Generator, X: np.ndarray, kind: str) -> np.ndarray:
    """Make rows, columns or single numbers equal."""
    if kind == "rounded":
        return np.round(X)
    if kind == "repeated rows":
        return X[rng.integers(0, max(1, len(X) // 3), len(X))]
    if kind == "constant column":
        return np.column_stack([X, np.full(len(X), 1.5)])
    return np.zeros_like(X) + X[0] if kind == "all rows equal" else X


def scaled(rng: np.random.Generator, X: np.ndarray, kind: str) -> np.ndarray:
    """Put columns into units of any size."""
    factors = {"tiny": 1e-8, "large": 1e8, "mixed": 10.0 ** rng.integers(-6, 7, X.shape[1])}
    return X * factors.get(kind, 1.0) + 1e5 * (kind == "far away")


def draw_weights(rng: np.random.Generator, n: int, kind: str) -> np.ndarray | None:
    """Draw weights; a few rows may have nearly all of it, or none."""
    if kind == "none":
        return None
    weights = {
        "equal": np.full(n, 2.5),
        "whole": rng.integers(1, 6, n).astype(float),
        "heavy": np.where(rng.random(n) < 0.1, 50.0, 1.0),
        "zeros": rng.integers(0, 3, n).astype(float),
    }.get(kind, rng.uniform(0.1, 3, n))
    return weights * 1e-6 if kind == "tiny" else weights


def with_numbers(rng: np.random.Generator, rows: Rows) -> Rows:
    """Return the rows with real targets of any unit."""
    y = rows.y + rng.normal(size=rows.n)
    y = np.round(y) if rng.random() < 0.2 else y
    return replace(rows, y=y * pick(rng, [1.0, 1.0, 1e-6, 1e6]) + pick(rng, [0.0, 0.0, 1e3]))
