"""Data of the benchmark ``partial_parity``, as in partial_fairness_idca where it says how.

a9a: 90% of its training part to learn from, its own test part; groups by sex (or race); columns
of the group are left out where a model must not see it. Bank: groups by age, from 25 to below 60 or
not; eight numeric columns without ``duration``, whether somebody was contacted before, and one-hot
columns; 80% to learn from. COMPAS: African-American or not; 70% to learn from. The law school
data are not public: people of that shape are drawn; 75% to learn from.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks._erm_data import COMPAS_COLUMNS
from skfair.datasets import load_local, make_group_scores

# None of them was used while the method was made.
SEEDS = (971, 972, 973, 974, 975)
A9A_INTERVAL, BANK_INTERVAL = (0.05, 0.3), (0.0, 0.25)
RACES = ["f67", "f68", "f69", "f70", "f71"]
SEX = ["f72", "f73"]


class Part(NamedTuple):
    """Rows with their groups."""

    X: Any
    y: Any
    groups: Any


@cache
def _frame(name: str) -> Any:
    data = load_local(name)
    return data.frame.assign(target=data.target)


def a9a(seed: int, *, group: str = "sex", is_blind: bool = False) -> tuple[Part, Part]:
    """Return training and test rows; race columns are never used with groups by race."""
    frame = _frame("a9a")
    columns = [name for name in frame.columns if name[0] == "f" and name[1:].isdigit()]
    if group == "race":
        columns = [name for name in columns if name not in RACES]
    elif is_blind:
        columns = [name for name in columns if name not in SEX]
    train, test = (frame[frame["split"] == part] for part in ("train", "test"))
    train = train.sample(frac=0.9, random_state=seed)
    return _part(train, columns, group), _part(test, columns, group)


def _part(frame: Any, columns: list[str], group: str) -> Part:
    groups = (frame[SEX] if group == "sex" else frame[RACES]).to_numpy().argmax(axis=1)
    X = sparse.csr_array(frame[columns].to_numpy(np.float64))
    return Part(X, frame["target"].to_numpy(), groups)


def bank(seed: int) -> tuple[Part, Part]:
    """Return training and test rows."""
    frame = _frame("bank")
    numbers = frame.select_dtypes("number").columns.drop(
        ["duration", "pdays", "target"], errors="ignore"
    )
    words = frame.select_dtypes(exclude="number").columns.drop(["y"], errors="ignore")
    X = pd.concat(
        [
            frame[numbers],
            (frame["pdays"] < 999).astype(float),
            pd.get_dummies(frame[words].astype(str), drop_first=True, dtype=float),
        ],
        axis=1,
    ).to_numpy(np.float64)
    groups = frame["age"].between(25, 60, inclusive="left").to_numpy()
    return _split(X, frame["target"].to_numpy(), groups, seed, 0.2, n_numbers=numbers.size)


def compas(seed: int) -> tuple[Part, Part]:
    """Return training and test rows; race is in no column."""
    frame = _frame("compas").sample(frac=1, random_state=SEEDS[0])
    X = pd.get_dummies(frame[COMPAS_COLUMNS], drop_first=True, dtype=float).to_numpy(np.float64)
    groups = (frame["race"] == "African-American").to_numpy()
    return _split(X, frame["target"].to_numpy(), groups, seed, 0.3, n_numbers=X.shape[1])


def law_school(seed: int) -> tuple[Part, Part]:
    """Return simulated rows of the size of the law school data, white (1) or not.

    Twelve columns are noisy views of a score that says how likely somebody is to pass. The laws of
    the groups give about the accuracy and the fairness that the paper prints without a constraint.
    """
    laws = {0: (1.4, 1.4), 1: (3.2, 1.4)}
    y, scores, groups = make_group_scores(
        20_798, distributions=laws, group_shares=(0.16, 0.84), random_state=SEEDS[0]
    )
    noise = np.random.default_rng(SEEDS[0]).normal(size=(y.size, 12))
    X = np.outer(scores, np.linspace(0.8, 0, 12)) + noise
    return _split(X, y, groups.astype(int), seed, 0.25, n_numbers=12)


def _split(
    X: Any, y: Any, groups: Any, seed: int, test_size: float, n_numbers: int
) -> tuple[Part, Part]:
    """Split, and standardise the first columns as learned from the training rows."""
    train, test = train_test_split(np.arange(y.size), test_size=test_size, random_state=seed)
    X = X.copy()
    scaler = StandardScaler().fit(X[train, :n_numbers])
    X[:, :n_numbers] = scaler.transform(X[:, :n_numbers])
    return Part(X[train], y[train], groups[train]), Part(X[test], y[test], groups[test])
