"""Rows, groups and splits of the benchmark ``external``.

LinearPost draws the rows that train a classifier once, and those that set and test its decisions
five times. Which function draws them is not printed: of several ways this one, of scikit-learn,
leads to classifiers whose accuracies and disparities without a limit are closest to theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.harness import data_folder
from skfair.metrics import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
)

METRICS: dict[str, tuple[str, Any]] = {
    "sp": ("demographic_parity", demographic_parity_difference),
    "eopp": ("equal_opportunity", equal_opportunity_difference),
    "eo": ("equalized_odds", equalized_odds_difference),
}
TRAIN_SEED, SEEDS = 33, (33, 34, 35, 36, 37)
SHARES = (0.35, 0.35, 0.3)
COMPAS = ["age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"]
COMPAS += ["sex", "c_charge_degree"]
PLACES = ["state", "county", "community", "communityname", "fold"]
CRIMES = "ViolentCrimesPerPop"
MOST_MISSING = 5  # the columns of the police miss 84% of the rows, another column one


class People(NamedTuple):
    """Rows, true classes or numbers, and groups."""

    X: pd.DataFrame
    y: Any
    groups: Any

    def at(self, rows: Any) -> People:
        """Return some of them."""
        return People(self.X.iloc[rows], self.y[rows], self.groups[rows])

    def without(self, column: str) -> People:
        """Leave out a column, if it is there."""
        return self._replace(X=self.X.drop(columns=column, errors="ignore"))

    def cells(self) -> Any:
        """Return the number of each row's pair of group and class."""
        groups, classes = (np.unique(v, return_inverse=True) for v in (self.groups, self.y))
        return groups[1] * classes[0].size + classes[1]


def people(name: str) -> People:
    """Return the rows of a table."""
    d = pd.read_parquet(f"{data_folder()}/{name}.parquet")
    if name == "compas":
        d = d[d["race"].isin(["African-American", "Caucasian"])]
        X, y, groups = d[COMPAS], d["two_year_recid"], d["race"]
    else:
        X = d.drop(columns=["income", "split", "fnlwgt"], errors="ignore")
        y, groups = d["income"] == ">50K", d["sex"]
    words = X.select_dtypes(["category", "object", "string"]).columns
    X = X.astype(dict.fromkeys(words, "str"))
    return People(X, y.to_numpy().astype(int), groups.astype(str).to_numpy())


def crimes() -> People:
    """Return communities, their crimes, and whether their share of black people is high."""
    d = pd.read_parquet(f"{data_folder()}/communities_crime.parquet")
    X = d.drop(columns=[*PLACES, CRIMES])
    X = X.loc[:, X.isna().sum() < MOST_MISSING].fillna(0.0)
    groups = np.where(X["racepctblack"] >= X["racepctblack"].median(), "above", "below")
    return People(X, d[CRIMES].to_numpy(), groups)


def splits(n: int, quick: bool) -> Iterator[tuple[int, Any, Any, Any]]:
    """Yield seeds with the rows that train, that set decisions and that test."""
    rest, train = train_test_split(np.arange(n), test_size=SHARES[0], random_state=TRAIN_SEED)
    for seed in SEEDS[: 1 if quick else None]:
        own, new = train_test_split(rest, test_size=int(SHARES[2] * n), random_state=seed)
        yield seed, train, own, new


def with_words(last: Any) -> Any:
    """Return a model for tables with words."""
    words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encoder = make_column_transformer(
        (words, make_column_selector(dtype_exclude="number")), remainder=StandardScaler()
    )
    return make_pipeline(encoder, last)


def classifier(model: str) -> Any:
    """Return a classifier for tables with words."""
    boosting = HistGradientBoostingClassifier(random_state=0)
    return with_words(LogisticRegression(max_iter=1000) if model == "logistic" else boosting)
