"""Data, problems and verdicts of the benchmark ``constrained_erm``.

Adult (training part; 89 one-hot and numeric columns, groups by sex), Bank (groups: age from 25 to
below 60 or not) and COMPAS (13 columns, groups: African-American or not) in shuffled order. Columns
that tell the outcome, the group, or the same twice are left out.
"""

from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skfair.constraints.base import TrainingRows, make_constraints
from skfair.datasets import load_local
from skfair.groups.encoding import encode_groups
from skfair.losses import make_loss
from skfair.metrics import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
)
from skfair.models import LinearScore
from skfair.problems.erm.problem import LinearConstrainedERM

# None of them was used while the method was made.
SEEDS = (861, 862, 863, 864, 865)
METRICS = {
    "demographic_parity": demographic_parity_difference,
    "equal_opportunity": equal_opportunity_difference,
    "equalized_odds": equalized_odds_difference,
}
COMPAS_COLUMNS = [
    "sex",
    "age",
    "age_cat",
    "juv_fel_count",
    "juv_misd_count",
    "juv_other_count",
    "priors_count",
    "c_charge_degree",
]


class Table(NamedTuple):
    """A data set before its columns are encoded."""

    features: Any
    y: Any
    groups: Any
    frame: Any


class Part(NamedTuple):
    """Encoded rows."""

    X: Any
    y: Any
    groups: Any

    def dense(self) -> Any:
        return self.X.toarray() if sparse.issparse(self.X) else self.X


@cache
def table(name: str) -> Table:
    """Return a data set in shuffled order."""
    data = load_local(name)
    frame = data.frame.assign(target=data.target)
    if name == "adult":
        frame = frame[frame["split"] == "train"]
    frame = frame.sample(frac=1, random_state=SEEDS[0])
    if name == "adult":
        features = frame[data.feature_names].drop(columns=["sex", "fnlwgt", "education"])
        groups = frame["sex"].astype(str)
    elif name == "bank":
        features = frame[data.feature_names]
        groups = frame["age"].between(25, 60, inclusive="left")
    else:
        features = frame[COMPAS_COLUMNS]
        groups = frame["race"] == "African-American"
    for column in features.select_dtypes(exclude="number"):
        features = features.assign(**{column: features[column].astype(str)})
    return Table(features, frame["target"].to_numpy(), groups.to_numpy(), frame)


def encoded(name: str, fit_on: Any = None) -> Part:
    """Return all rows, standardised and one-hot encoded as learned from some of them.

    Adult and Bank are sparse, COMPAS is dense.
    """
    features, y, groups, _ = table(name)
    encoder = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        sparse_threshold=0,
    )
    X = encoder.fit(features if fit_on is None else features.iloc[fit_on]).transform(features)
    return Part(X if name == "compas" else sparse.csr_array(X), y, groups)


def split(name: str, seed: int) -> tuple[Part, Part]:
    """Return 70% of the rows to learn from and the rest; the encoding knows only the former."""
    parts = train_test_split(np.arange(len(table(name).y)), test_size=0.3, random_state=seed)
    everything = encoded(name, fit_on=parts[0])
    train, test = (Part(*(values[rows] for values in everything)) for rows in parts)
    return train, test


def adult_intersections() -> Any:
    """Return race x sex x age x education of each row; groups below 30 rows are merged."""
    frame = table("adult").frame
    age = np.digitize(frame["age"], [20, 25, 30, 35, 40, 45, 50, 60])
    names = frame["race"].str.cat([frame["sex"], age.astype(str), frame["education"]], sep=", ")
    return names.where(names.groupby(names).transform("size") >= 30, "others").to_numpy(str)


def communities() -> Part:
    """Return Communities and Crime with 848 overlapping groups, one column each.

    As in appendix E of plada: a group is where the shares of black, Hispanic and Asian people are
    all above one of ten thresholds each, and has more than 1% of the rows. The paper has 535 such
    groups and does not say where its thresholds are; these are the quantiles .05, .15, ..., .95.
    Positive are the 30% with the most violent crimes.
    """
    return intersections()[0]


def intersections() -> tuple[Part, np.ndarray]:
    """Return the data of :func:`communities`, and the three quantiles that describe each group."""
    data = load_local("communities_crime")
    columns = data.data.select_dtypes("number")
    columns = columns.loc[:, columns.isna().mean() < 0.5]
    X = StandardScaler().fit_transform(columns.fillna(columns.median()))
    quantiles = np.arange(0.05, 1, 0.1)
    conditions = [
        [data.frame[share] > threshold for threshold in data.frame[share].quantile(quantiles)]
        for share in ("racepctblack", "racePctHisp", "racePctAsian")
    ]
    groups = np.array([np.logical_and.reduce(chosen) for chosen in product(*conditions)])
    is_large = groups.mean(axis=1) > 0.01
    part = Part(X, data.target.to_numpy(), groups[is_large].T.astype(np.int64))
    return part, np.array(list(product(quantiles, repeat=3)))[is_large]


def make_problem(part: Part, rule: Any, bound: float) -> LinearConstrainedERM:
    """Return what ``enforce="surrogate"`` solves, for solvers to be run by hand."""
    loss, targets = make_loss("log_loss", "classification"), np.where(part.y > 0, 1.0, -1.0)
    rows = TrainingRows(encode_groups(part.groups), targets, None, loss, (0, 1))
    rules = [one.prepare(rows, bound) for one in make_constraints(rule, "classification")]
    return LinearConstrainedERM(LinearScore(part.X), loss, targets, rules, alpha=1 / targets.size)


def figure(results: dict[str, Any], name: str, value: float, bar: str = "", note: str = "") -> None:
    """Print a number, whether it keeps its bar ("<= 2"), and keep it."""
    entry: dict[str, Any] = {"value": float(value)}
    verdict = ""
    if bar:
        sense, limit = bar.split()
        entry["bar"] = bar
        entry["passed"] = bool(value <= float(limit) if sense == "<=" else value >= float(limit))
        verdict = f"{'PASS' if entry['passed'] else 'FAIL'} ({bar})"
    results[name] = entry
    print(f"     {name:<56}{value:<12.5g}{verdict:<18}{note}".rstrip())
