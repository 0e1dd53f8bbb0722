"""People of the benchmark ``stability``: rows that are fitted, and new people who get decisions.

The four groups are simulated, two draws of them. Adult (groups by sex) and COMPAS (four groups by
race) are read from ``SKFAIR_DATA``; the people who are not fitted are the new ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.harness import data_folder
from skfair.datasets import load_local, make_ranking_queries

FIRST_SEED = 7_100
N_DOCUMENTS = 50


class Rows(NamedTuple):
    """Columns, classes or numbers, groups, and the query of each row where rows are ranked."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    query: np.ndarray | None = None

    def at(self, rows: np.ndarray) -> Rows:
        """Return some of the rows, in this order."""
        query = None if self.query is None else self.query[rows]
        return Rows(self.X[rows], self.y[rows], self.groups[rows], query)

    def with_columns(self, X: np.ndarray) -> Rows:
        """Return the same people with other columns."""
        return self._replace(X=np.ascontiguousarray(X))


class Problem(NamedTuple):
    """Rows that are fitted, and new people."""

    name: str
    train: Rows
    new: Rows


def four_groups(n: int, seed: int, *, kind: str = "classes") -> Rows:
    """Draw people of four groups, of whom the largest has a higher first column."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    X = rng.normal(size=(n, 4))
    X[:, 0] += codes == 0
    X[:, 3] = rng.integers(0, 3, n)
    score = X[:, 0] + 0.6 * X[:, 1] + 0.4 * (X[:, 3] == 1)
    y = score + rng.logistic(size=n)
    if kind == "classes":
        y = (y > 0.6).astype(int)
    return Rows(X, y, np.array(list("abcd"))[codes])


def adult() -> Rows:
    """Return the people of Adult: five numbers, and whether and how they are married."""
    data = load_local("adult")
    frame = data.frame
    X = frame[["age", "education-num", "hours-per-week", "capital-gain", "capital-loss"]]
    married = pd.get_dummies(frame["marital-status"].astype(str))
    columns = np.column_stack([X.to_numpy(float), married.to_numpy(float)])
    return Rows(columns, np.asarray(data.target).astype(int), frame["sex"].astype(str).to_numpy())


def compas() -> Rows:
    """Return the people of COMPAS: six numbers and the degree of the charge."""
    frame = load_local("compas").frame
    counts = ["juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"]
    X = frame[["age", *counts]].assign(
        man=frame["sex"] == "Male", felony=frame["c_charge_degree"] == "F"
    )
    race = frame["race"].astype(str).replace({"Asian": "Other", "Native American": "Other"})
    return Rows(X.to_numpy(float), frame["two_year_recid"].to_numpy().astype(int), race.to_numpy())


def parted(name: str, people: Rows, n: int, n_new: int, seed: int) -> Problem:
    """Return a problem with n people drawn at random, and some or all others as new people."""
    order = np.random.default_rng(seed).permutation(people.y.size)
    return Problem(name, people.at(order[:n]), people.at(order[n : n + n_new]))


def decision_problems(quick: bool) -> list[Problem]:
    """Return the problems with two classes."""
    n, n_new = (800, 2_000) if quick else (2_500, 10_000)
    problems = [
        Problem(
            f"four groups {k + 1}",
            four_groups(n, FIRST_SEED + 2 * k),
            four_groups(n_new, FIRST_SEED + 2 * k + 1),
        )
        for k in range(1 if quick else 2)
    ]
    tables: dict[str, tuple[Callable[[], Rows], int]] = {
        "Adult": (adult, 4_000),
        "COMPAS": (compas, 3_000),
    }
    if not quick and data_folder() is not None:
        for name, (read, n_rows) in tables.items():
            try:
                problems.append(parted(name, read(), n_rows, 10_000, FIRST_SEED))
            except FileNotFoundError as error:
                print(f"   skipped: {error}", flush=True)
    return problems


def number_problems(quick: bool) -> list[Problem]:
    """Return the problems with numbers, which have a standard deviation of 1."""
    found = []
    for k in range(1 if quick else 2):
        train, new = (
            four_groups(n, FIRST_SEED + 50 + 2 * k + i, kind="numbers")
            for i, n in enumerate((800, 2_000) if quick else (2_500, 10_000))
        )
        unit = train.y.std()
        parts = (part._replace(y=part.y / unit) for part in (train, new))
        found.append(Problem(f"four groups {k + 1}", *parts))
    return found


def points(n: int, seed: int) -> Rows:
    """Draw points of six clusters that overlap; the left ones mainly belong to one group."""
    rng = np.random.default_rng(seed)
    centers = np.array([[0, 0], [2, 0.5], [4, 0], [0.5, 2.5], [2.5, 3], [4.5, 2.5]])
    which = rng.integers(0, 6, n)
    X = centers[which] + 0.7 * rng.normal(size=(n, 2))
    groups = np.where(rng.random(n) < 0.8 - 0.3 * (which % 3), "f", "m")
    return Rows(X, which, groups)


def cluster_problems(quick: bool) -> list[Problem]:
    """Return the problems of clusters."""
    n, n_new = (400, 1_000) if quick else (1_500, 5_000)
    return [
        Problem(
            f"six clusters {k + 1}",
            points(n, FIRST_SEED + 80 + 2 * k),
            points(n_new, FIRST_SEED + 81 + 2 * k),
        )
        for k in range(1 if quick else 3)
    ]


def query_problems(quick: bool) -> list[Problem]:
    """Return the problems of rankings; the new documents belong to new queries."""
    n_queries, found = (20 if quick else 60), []
    for k in range(1 if quick else 2):
        X, y, query, groups = make_ranking_queries(
            2 * n_queries * N_DOCUMENTS,
            n_documents=N_DOCUMENTS,
            n_features=20,
            n_informative=10,
            random_state=FIRST_SEED + 90 + k,
        )
        rows, is_new = Rows(X, y, groups, query), query >= n_queries
        parts = (rows.at(np.flatnonzero(mask)) for mask in (~is_new, is_new))
        found.append(Problem(f"queries {k + 1}", *parts))
    return found
