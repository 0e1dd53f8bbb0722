"""Hard but valid fits of every estimator, each with a count of what it promises.

A :class:`Fit` is an estimator, its data, and a function that counts: what the estimator reports
beside what plain loops count, and by how much the limits are missed. Nothing here asks the code
that enforced the limits; percentile intervals are measured by :mod:`skfair.metrics`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from skfair import Sensitive, metrics
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
    PartialParityCalibrator,
    PartialParityClassifier,
)
from skfair.cluster import FairAssignment, FairKMeans, FairSpectralClustering, ParetoFairKMeans
from skfair.constraints import ConditionalOn
from skfair.constraints.partial import IntervalConstraint, read_constraint
from skfair.ranking import FairRanker
from skfair.regression import ConstrainedERMRegressor
from tests import naive
from tests.fuzz.hard_rows import OFTEN_TIED, Rows, draw_rows, pick, with_numbers
from tests.naive import erm, ranking
from tests.registries import CLUSTERING_SOLVERS, CONSTRAINTS

EXACT = 1e-9
LIMITS = [0.0, 0.02, 0.1, 0.1, 0.3, 0.8]
ON_RATES = [
    name for name, (_, what) in erm.CONSTRAINT_NAMES.items() if what not in ("loss", "score")
]
IN_REGRESSION = [name for name in CONSTRAINTS if "regression" in CONSTRAINTS[name].tasks]


class Pair(NamedTuple):
    """A number that an estimator reports, the same counted, and how far rounding may part them."""

    name: str
    reported: float
    counted: float
    slack: float = EXACT


class Count(NamedTuple):
    """What is reported and counted, and what a limit is missed by (at most 0 if none is)."""

    pairs: list[Pair]
    missed: float


@dataclass
class Fit:
    """An estimator that is not fitted yet, its data, and how to count what it promises."""

    estimator: Any
    rows: Rows
    count: Callable[[Any], Count]
    y: np.ndarray | None = None
    given: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.given = {"sensitive_features": self.rows.sensitive_features} | self.given

    @property
    def title(self) -> str:
        named = ", ".join(name for name in self.given)
        kinds = [len(set(groups)) for groups in self.rows.attributes]
        said = " ".join(repr(self.estimator).split())
        return f"{said}.fit({named}) [{self.rows.pattern}, groups: {kinds}]"


def weighted(rows: Rows) -> dict[str, Any]:
    return {} if rows.weights is None else {"sample_weight": rows.weights}


# --- constraints on rates, losses and scores ----------------------------------------------------


@dataclass
class Limited:
    """A constraint: its name and options, its limit, and whether it holds within strata."""

    name: str
    limit: Any
    options: dict[str, Any]
    strata: np.ndarray | None
    unit: float = 1.0

    def made(self) -> Any:
        made = CONSTRAINTS[self.name](**self.options)
        own = None if isinstance(self.limit, dict) else self.limit
        if self.strata is not None:
            return ConditionalOn(made, max_disparity=own)
        return made.set_params(max_disparity=own)

    def parts(self, rows: Rows, intersectional: bool) -> list[tuple[list[np.ndarray], float]]:
        """The groups that are compared with each other, and their limit."""
        columns = rows.columns(intersectional)
        if not isinstance(self.limit, dict):
            return [(columns, self.limit)]
        limits = zip(columns, self.limit.values(), strict=True)
        return [([own], limit) for own, limit in limits if limit is not None]

    def counted(
        self, scores: Any, targets: Any, rows: Rows, intersectional: bool, loss: str = "log_loss"
    ) -> list[tuple[float, float, float]]:
        """Disparity, limit and unit, of each part."""
        reference = self.options.get("reference", "pairwise")
        comparison = self.options.get("comparison", "difference")
        more = (rows.weights, loss, comparison, self.strata)
        return [
            (erm.disparity(self.name, reference, scores, targets, columns, *more), limit, self.unit)
            for columns, limit in self.parts(rows, intersectional)
        ]


def draw_limited(
    rng: np.random.Generator, rows: Rows, names: Any, intersectional: bool, units: Any = (1, 1)
) -> Limited:
    """Draw a constraint with its limit, which may be one for each attribute.

    ``units`` are those of losses and of scores.
    """
    name, options = pick(rng, names), {}
    known = CONSTRAINTS[name]().get_params()
    if "comparison" in known and rng.random() < 0.2:
        options["comparison"] = "ratio"
    if "reference" in known and name not in erm.EXCESS and rng.random() < 0.25:
        options["reference"] = "overall"
    unit = float(units[erm.CONSTRAINT_NAMES[name][1] == "score"])
    limit: Any = unit * pick(rng, LIMITS)
    if len(rows.attributes) > 1 and not intersectional and rng.random() < 0.3:
        limit = dict(zip("abc"[: len(rows.attributes)], [limit, None, 2 * limit], strict=False))
    strata = np.array(["u", "v"])[rng.integers(0, 2, rows.n)] if rng.random() < 0.1 else None
    return Limited(name, limit, options, strata, unit)


def draw_several(
    rng: np.random.Generator, rows: Rows, names: Any, intersectional: bool, units: Any = (1, 1)
) -> tuple[list[Limited], dict[str, Any], dict[str, Any]]:
    """Draw one constraint or two; return the parameters that say so, and arguments of ``fit``."""
    drawn = [draw_limited(rng, rows, names, intersectional, units)]
    if rng.random() < 0.2 and not isinstance(drawn[0].limit, dict):
        other = draw_limited(rng, rows, names, intersectional, units)
        drawn += [] if isinstance(other.limit, dict) else [other]
    strata = [one.strata for one in drawn if one.strata is not None]
    for one in drawn:  # there is one list of them
        one.strata = strata[0] if one.strata is not None else None
    limit = drawn[0].limit if isinstance(drawn[0].limit, dict) else 0.05
    made: Any = [one.made() for one in drawn]
    settings = {"constraint": made[0] if len(made) == 1 else made, "max_disparity": limit}
    return drawn, settings, {"control_features": strata[0]} if strata else {}


def count_each(limited: list[Limited], *given: Any) -> list[tuple[float, float, float]]:
    return [part for one in limited for part in one.counted(*given)]


def summed_up(
    reported: float, found: list[tuple[float, float, float]], rounding: float = EXACT
) -> Count:
    """Compare the largest disparity with what is reported, and each with its limit."""
    counted, slack = -np.inf if found else 0.0, EXACT
    for value, _, unit in found:
        counted, slack = max((value, rounding * unit), (counted, slack))
    missed = max((value - limit - rounding * unit for value, limit, unit in found), default=0.0)
    return Count([Pair("train_disparity_", reported, counted, slack)], missed)


def erm_classifier(rng: np.random.Generator) -> Fit:
    rows, intersectional = draw_rows(rng), bool(rng.integers(2))
    names = list(erm.CONSTRAINT_NAMES)
    limited, settings, control = draw_several(rng, rows, names, intersectional)
    loss = pick(rng, ["log_loss", "log_loss", "hinge", "squared_hinge"])
    estimator = ConstrainedERMClassifier(
        **settings,
        loss=loss,
        sensitive=Sensitive(crossed=intersectional),
        **pick(rng, [{}, {}, {}, {}, {"model": (3,), "max_iter": 20}]),
        random_state=0,
    )

    def count(model: Any) -> Count:
        scores, targets = model.decision_function(rows.X), 2 * rows.y - 1
        found = count_each(limited, scores, targets, rows, intersectional, loss)
        return summed_up(model.train_disparity_, found)

    given = weighted(rows) | control
    return Fit(estimator, rows, count, rows.y, given)


def erm_regressor(rng: np.random.Generator) -> Fit:
    rows, intersectional = with_numbers(rng, draw_rows(rng)), bool(rng.integers(2))
    loss = pick(rng, ["squared_error", "squared_error", "absolute_error"])
    unit = float(np.std(rows.y)) or 1.0
    units = unit**2 if loss == "squared_error" else unit, unit
    limited, settings, control = draw_several(rng, rows, IN_REGRESSION, intersectional, units)
    estimator = ConstrainedERMRegressor(
        **settings, loss=loss, sensitive=Sensitive(crossed=intersectional), random_state=0
    )

    def count(model: Any) -> Count:
        scores = model.predict(rows.X)
        found = count_each(limited, scores, rows.y, rows, intersectional, loss)
        # Predictions far from 0 are rounded.
        rounding = max(EXACT, 1e-14 * float(np.abs(rows.y).max()) / unit)
        return summed_up(model.train_disparity_, found, rounding)

    given = weighted(rows) | control
    return Fit(estimator, rows, count, rows.y, given)


def fair_decisions(rng: np.random.Generator) -> Fit:
    n_classes = pick(rng, [2, 2, 3])
    rows = draw_rows(rng, n_classes=n_classes, ties=OFTEN_TIED)
    intersectional = bool(rng.integers(2))
    limited, settings, control = draw_several(rng, rows, ON_RATES, intersectional)
    inner = pick(
        rng,
        [LogisticRegression(), GaussianNB(), DecisionTreeClassifier(max_depth=2, random_state=0)],
    )
    is_fitted = rng.random() < 0.3
    estimator = FairDecisionClassifier(
        FrozenEstimator(inner.fit(rows.X, rows.y)) if is_fitted else inner,
        **settings,
        group_aware=pick(rng, [True, False, False]),
        cv=pick(rng, [2, 3]),
        sensitive=Sensitive(crossed=intersectional),
        random_state=0,
    )

    def count(model: Any) -> Count:
        found = []
        for one in limited:
            for scores, targets in against_rest(one.name, model.train_predictions_, rows.y):
                found += one.counted(scores, targets, rows, intersectional)
        result = summed_up(model.train_disparity_, found)
        if is_fitted and model.is_group_aware_:  # groups that are guessed are so on folds
            known = {"sensitive_features": rows.sensitive_features} | control
            n_other = float(np.sum(model.predict(rows.X, **known) != model.train_predictions_))
            result.pairs.append(Pair("predict(X) != train_predictions_", n_other, 0.0))
        return result

    given = weighted(rows) | control
    return Fit(estimator, rows, count, rows.y, given)


def against_rest(name: str, predicted: Any, y: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Each class against the rest, as scores and targets; right and wrong are one for all."""
    classes = np.unique(y)
    if name == "accuracy_parity" and classes.size > 2:
        return [(np.where(predicted == y, 1, -1), np.ones(len(y)))]
    wanted = classes[1:] if classes.size == 2 else classes
    return [(np.where(predicted == c, 1, -1), np.where(y == c, 1, -1)) for c in wanted]


# --- percentile intervals -----------------------------------------------------------------------

PARTIAL = [
    *["statistical_parity", "statistical_parity", "demographic_parity", "group_auc"],
    *["equal_opportunity", "equalized_odds"],
]
INTERVALS = [(0.0, 0.5), (0.0, 1.0), (0.1, 0.6), [(0.0, 0.3), (0.5, 0.8)]]
MANY = [14, 24, 40, 40, 60, 90]


def partial_disparity(model: Any, scores: np.ndarray, rows: Rows, intersectional: bool) -> float:
    """The disparity within intervals, of the worst attribute; NaN where it is undefined."""
    columns = rows.columns(intersectional)
    weights = ones_or_weights(rows)
    if all(len(set(groups)) == 1 for groups in columns):
        return 0.0
    name = read_constraint(model.constraint).constraint
    if name == "statistical_parity" and model.scale == "conditional":
        # Only their order counts, and scores may be too close for a threshold between them.
        ranks, pairs = np.unique(scores, return_inverse=True)[1], np.atleast_2d(model.interval)
        there = weights > 0
        return max(
            naive.partial_statistical_parity(
                ranks[there], groups[there], weights[there], dict.fromkeys(groups, pairs.tolist())
            )
            for groups in columns
        )
    return measured(model, scores, rows, intersectional)


def measured(model: Any, scores: np.ndarray, rows: Rows, intersectional: bool) -> float:
    """The same by the metric that the page of the estimator names."""
    constraint, is_ccdf = read_constraint(model.constraint), model.scale == "ccdf"
    name = constraint.constraint
    given: dict[str, Any] = {
        "sensitive_features": rows.sensitive_features,
        "interval": model.interval,
        "sample_weight": rows.weights,
        "intersectional": intersectional,
    }
    if name == "statistical_parity":
        try:
            return metrics.partial_ccdf_gap(rows.y, scores, **given)
        except ValueError:  # ties: no threshold lies inside
            return float("nan")
    if name == "demographic_parity":
        given["normalize"] = not is_ccdf
    elif name != "group_auc":
        given["rank_within"] = constraint.rank_within
    pairs = np.atleast_2d(model.interval)
    unit = np.ptp(pairs, axis=1).sum() if is_ccdf and name.startswith("equal") else 1.0
    return float(unit * getattr(metrics, f"partial_{name}_gap")(rows.y, scores, **given))


def partial_count(model: Any, rows: Rows, intersectional: bool) -> Count:
    groups = {"sensitive_features": rows.sensitive_features} if model.is_group_aware_ else {}
    scores = model.decision_function(rows.X, **groups)
    counted = partial_disparity(model, scores, rows, intersectional)
    if np.isnan(counted):
        return Count([], model.train_disparity_ - model.effective_disparity_ - EXACT)
    pairs = [Pair("train_disparity_", model.train_disparity_, counted)]
    return Count(pairs, counted - model.effective_disparity_ - EXACT)


def draw_partial(rng: np.random.Generator) -> dict[str, Any]:
    constraint = pick(rng, PARTIAL)
    return {
        "interval": pick(rng, INTERVALS),
        "constraint": constraint,
        "max_disparity": pick(rng, [0.0, 0.1, 0.2, 0.4]),
        "scale": "conditional" if constraint == "group_auc" else pick(rng, ["conditional", "ccdf"]),
    }


def partial_classifier(rng: np.random.Generator) -> Fit:
    rows, intersectional = draw_rows(rng, MANY), bool(rng.integers(2))
    drawn, is_partition = draw_partial(rng), len(rows.columns(intersectional)) == 1
    ranks = ["class"] if drawn["scale"] == "ccdf" else ["class", "class", "group"]
    drawn["constraint"] = IntervalConstraint(drawn["constraint"], pick(rng, ranks))
    estimator = PartialParityClassifier(
        **drawn,
        group_aware=is_partition and bool(rng.integers(2)),
        sensitive=Sensitive(crossed=intersectional),
        max_iter=30,
        random_state=0,
    )
    return Fit(
        estimator,
        rows,
        lambda model: partial_count(model, rows, intersectional),
        rows.y,
        weighted(rows),
    )


def partial_calibrator(rng: np.random.Generator) -> Fit:
    rows = draw_rows(rng, MANY)
    cv = pick(rng, [None, None, 2])
    estimator = PartialParityCalibrator(
        pick(rng, [None, GaussianNB(), DecisionTreeClassifier(max_depth=2, random_state=0)]),
        **draw_partial(rng),
        cv=cv,
    )

    def count(model: Any) -> Count:
        if cv is None:
            return partial_count(model, rows, intersectional=True)
        # The scores of the folds are not kept.
        return Count([], model.train_disparity_ - model.effective_disparity_ - EXACT)

    return Fit(estimator, rows, count, rows.y, weighted(rows))


# --- rankings -----------------------------------------------------------------------------------


def fair_ranker(rng: np.random.Generator) -> Fit:
    rows = draw_rows(rng, [9, 14, 24, 40, 60], 4, has_weights=False)
    intersectional = bool(rng.integers(2))
    query_id = rng.integers(0, int(rng.integers(1, 6)), rows.n)
    estimator = FairRanker(
        pick(rng, LIMITS),
        sensitive=Sensitive(crossed=intersectional),
        query_share=pick(rng, [0.95, 1.0, 0.5]),
        max_iter=40,
        random_state=0,
    )

    def count(model: Any) -> Count:
        by_query = gaps_of_queries(rows, model.predict(rows.X), query_id, intersectional)
        known = [gap for gap in by_query if gap is not None]
        within = [gap <= model.max_disparity + EXACT for gap in known]
        share = float(np.mean(within)) if known else 1.0
        pairs = [
            Pair("train_disparity_", model.train_disparity_, max(known, default=0.0)),
            Pair("share_within_", model.share_within_, share),
        ]
        return Count(pairs, model.query_share - share - EXACT)

    return Fit(estimator, rows, count, rows.y, {"query_id": query_id})


def gaps_of_queries(rows: Rows, scores: Any, query_id: Any, intersectional: bool) -> list[Any]:
    """The gap of each query, of its worst attribute; None where none is defined."""
    by_attribute = [
        ranking.pair_error_gaps(rows.y, scores, query_id, groups)
        for groups in rows.columns(intersectional)
    ]
    of_queries = zip(*by_attribute, strict=True)
    return [max((g for g in gaps if g is not None), default=None) for gaps in of_queries]


# --- clusterings --------------------------------------------------------------------------------


def draw_limit(rng: np.random.Generator, rows: Rows, intersectional: bool) -> dict[str, Any]:
    """Draw a limit on the composition of clusters; most groups are too small for many clusters."""
    if rng.random() < 0.1:
        return {"min_balance": 0.0}
    if rng.random() < 0.3:
        return {"min_balance": None, "share_bounds": pick(rng, [0.5, 0.8, 0.95, 1.0])}
    wanted = pick(rng, [0.0, 0.5, 0.8, 0.8, 0.95, 1.0])
    if rng.random() < 0.3:
        attained = min(balances(np.zeros(rows.n, int), rows, intersectional, 1))
        return {"min_balance": wanted * attained * (1 - 1e-9), "relative_balance": False}
    return {"min_balance": wanted}


def ones_or_weights(rows: Rows) -> np.ndarray:
    return np.ones(rows.n) if rows.weights is None else rows.weights


def balances(labels: Any, rows: Rows, intersectional: bool, n_clusters: int) -> np.ndarray:
    """The balance of each cluster, of its worst attribute."""
    columns, weights = rows.columns(intersectional), ones_or_weights(rows)
    return naive.cluster_balances(labels, columns, weights, range(n_clusters))


def tables(labels: Any, rows: Rows, intersectional: bool, n_clusters: int) -> list[np.ndarray]:
    """The weight of each group in each cluster, for each attribute."""
    weights = ones_or_weights(rows)
    return [
        np.array(
            [
                [weights[(labels == k) & (groups == g)].sum() for g in sorted(set(groups))]
                for k in range(n_clusters)
            ]
        )
        for groups in rows.columns(intersectional)
    ]


def rows_missed(model: Any, labels: Any, rows: Rows, n_clusters: int) -> float:
    """What limits are missed by beyond a row: at most 0 if each is missed by less than one."""
    weights = ones_or_weights(rows)
    heaviest, worst = float(weights.max()), -np.inf
    for table in tables(labels, rows, model._sensitive.crossed, n_clusters):
        sums = table.sum(axis=0)
        if model.share_bounds is not None:
            shares, f = sums / sums.sum(), model.share_bounds
            sizes = table.sum(axis=1, keepdims=True)
            low = f * shares * sizes - table
            high = table - np.minimum(1.0, shares / f) * sizes
            worst = max(worst, low.max(), high.max())
        elif model.min_balance and sums.size > 1:
            unit = sums.min() / sums.max() if model.relative_balance else 1.0
            worst = max(
                worst, (model.min_balance * unit * table.max(axis=1) - table.min(axis=1)).max()
            )
            if table.min() == 0:
                worst = max(worst, 2 * heaviest)
    return (worst - heaviest * (1 - 1e-7)) / heaviest


def cluster_count(model: Any, rows: Rows, n_clusters: int) -> Count:
    counted = balances(model.labels_, rows, model._sensitive.crossed, n_clusters)
    pairs = [Pair("balance_", model.balance_, float(counted.min()))]
    return Count(pairs, rows_missed(model, model.labels_, rows, n_clusters))


def clustering(estimator: Any, rows: Rows, n_clusters: int) -> Fit:
    count = partial(cluster_count, rows=rows, n_clusters=n_clusters)
    return Fit(estimator, rows, count, given=weighted(rows))


BALANCED = [name for name in CLUSTERING_SOLVERS if CLUSTERING_SOLVERS[name].keeps_balance]


def fair_kmeans(rng: np.random.Generator) -> Fit:
    rows, intersectional = draw_rows(rng, ties=OFTEN_TIED), bool(rng.integers(2))
    few = rows.n if rows.n < 15 else 5
    n_clusters = min(pick(rng, [1, 2, 2, 3, 4, few, few]), rows.n)
    estimator = FairKMeans(
        n_clusters,
        **draw_limit(rng, rows, intersectional),
        init=pick(rng, ["k-means++", "random"]),
        n_init=pick(rng, ["auto", 1, 2]),
        sensitive=Sensitive(crossed=intersectional),
        random_state=0,
    )
    is_simple = rows.weights is None and len(rows.columns(intersectional)) == 1
    if is_simple and estimator.share_bounds is None and rng.random() < 0.6:
        estimator.set_params(solver=pick(rng, BALANCED))
    return clustering(estimator, rows, n_clusters)


def fair_assignment(rng: np.random.Generator) -> Fit:
    rows, intersectional = draw_rows(rng), bool(rng.integers(2))
    n_clusters = min(pick(rng, [1, 2, 2, 3, 4]), rows.n)
    kinds = [KMeans(n_clusters, n_init=1), MiniBatchKMeans(n_clusters, n_init=1)]
    if rows.weights is None:
        kinds.append(GaussianMixture(n_clusters))
    inner = pick(rng, kinds)
    estimator = FairAssignment(
        inner,
        **draw_limit(rng, rows, intersectional),
        sensitive=Sensitive(crossed=intersectional),
        random_state=0,
    )
    return clustering(estimator, rows, n_clusters)


def fair_spectral(rng: np.random.Generator) -> Fit:
    rows = draw_rows(rng, [9, 14, 24, 40, 60], has_weights=False)
    intersectional, n_clusters = bool(rng.integers(2)), pick(rng, [2, 2, 3, 4])
    estimator = FairSpectralClustering(
        n_clusters,
        **draw_limit(rng, rows, intersectional),
        affinity=pick(rng, ["rbf", "rbf", "nearest_neighbors"]),
        n_neighbors=min(5, rows.n - 1),
        gamma=1 / max(float(rows.X.var()), 1e-300),
        n_init=2,
        sensitive=Sensitive(crossed=intersectional),
        random_state=0,
    )
    return clustering(estimator, rows, n_clusters)


def pareto_kmeans(rng: np.random.Generator) -> Fit:
    rows, intersectional = draw_rows(rng), bool(rng.integers(2))
    n_clusters = min(pick(rng, [2, 2, 3]), rows.n)
    estimator = ParetoFairKMeans(
        n_clusters,
        balances=pick(rng, [3, 5]),
        n_init=1,
        max_iter=30,
        sensitive=Sensitive(crossed=intersectional),
        random_state=0,
    )

    def count(model: Any) -> Count:
        pairs, missed = [], -np.inf
        whole = balances(np.zeros(rows.n, int), rows, intersectional, 1)
        pairs.append(Pair("data_balance_", model.data_balance_, float(whole.min())))
        for i, labels in enumerate(model.labels_):
            own = balances(labels, rows, intersectional, n_clusters)
            pairs.append(Pair(f"balances_[{i}]", model.balances_[i], float(own.min())))
            asked = float(model.relative_balances_[i])
            reached = model.select(min_balance=asked).balance_ / model.data_balance_
            if len(rows.columns(intersectional)) == 1:
                missed = max(missed, asked - reached - EXACT)
        return Count(pairs, missed)

    return Fit(estimator, rows, count, given=weighted(rows))


FITS: dict[str, Callable[[np.random.Generator], Fit]] = {
    "ConstrainedERMClassifier": erm_classifier,
    "ConstrainedERMRegressor": erm_regressor,
    "FairDecisionClassifier": fair_decisions,
    "PartialParityClassifier": partial_classifier,
    "PartialParityCalibrator": partial_calibrator,
    "FairRanker": fair_ranker,
    "FairKMeans": fair_kmeans,
    "ParetoFairKMeans": pareto_kmeans,
    "FairAssignment": fair_assignment,
    "FairSpectralClustering": fair_spectral,
}
