"""How often certificates are wrong where they are hardest: at limits that are just testable.

A certificate says that a limit holds in the population with 95% confidence. Far from what the rows
can show, no method errs. So each setting has the limit at which equal rates of all groups can just
be shown with these numbers of people, for two to ten groups of equal and unequal sizes, and for
each way to certify. The population is a finite one of simulated people, from which samples are
drawn, so the disparity of a model in the population is known exactly. A certificate *failed* if
this disparity exceeds the limit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from benchmarks._drawing import mark, rows_of_dots, small
from benchmarks.harness import Table, kept, timed
from skfair import Certificate, Sensitive
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
    PartialParityClassifier,
)
from skfair.constraints import ConditionalOn, DemographicParity
from skfair.metrics import (
    accuracy_parity_difference,
    demographic_parity_difference,
    demographic_parity_ratio,
    equal_opportunity_difference,
    equalized_odds_difference,
    mean_score_difference,
    partial_statistical_parity_gap,
)
from skfair.regression import ConstrainedERMRegressor

FIRST_SEED = 120_000_000
N_POPULATION, N_SAMPLES = 120_000, 160
INTERVAL = (0.0, 0.3)


class People(NamedTuple):
    """Simulated people: columns, classes or numbers, groups, strata, and the person of each row."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray  # (n,), or (n, 2) for two attributes
    strata: np.ndarray
    person: np.ndarray

    def part(self, rows: np.ndarray) -> People:
        """Return some of the rows."""
        return People(*(column[rows] for column in self))


def population(
    sizes: Sequence[float], kind: str, seed: int, *, visits: int = 1, n: int = N_POPULATION
) -> People:
    """Draw people whose groups have these relative sizes; ``kind`` is what is predicted."""
    rng = np.random.default_rng(seed)
    shares = np.asarray(sizes, float) / np.sum(sizes)
    person = np.repeat(np.arange(n // visits), visits)
    groups = rng.choice(shares.size, n // visits, p=shares)[person]
    strata = rng.integers(0, 3, n // visits)[person]
    X = rng.normal(size=(n // visits, 3))[person]
    if visits > 1:
        X = X + 0.3 * rng.normal(size=X.shape)
    X[:, 0] += 0.3 * (groups % 3)
    if kind == "numbers":  # regressors see a noisy trace of each group
        traces = (groups[:, None] == np.arange(shares.size)) + 0.5 * rng.normal(
            size=(n, shares.size)
        )
        X = np.column_stack([X, traces])
    score = 1.2 * X[:, 0] - 0.8 * X[:, 1]
    if kind == "numbers":
        y = score + rng.normal(size=n)
    elif kind == "three classes":
        y = np.searchsorted([-0.5, 0.9], score + rng.logistic(size=n))
    else:
        y = (rng.random(n) < special.expit(score - 0.4)).astype(int)
    if kind == "two attributes":
        groups = np.column_stack([groups, rng.integers(0, 2, n)])
    return People(X, y, groups, strata, person)


def edge(sets: Sequence[tuple[float, np.ndarray]], is_ratio: bool = False) -> float:
    """Return the limit that equal rates can just be shown to satisfy, at 95% confidence.

    ``sets`` are the compared rates: the common rate, and the number of people of each group. At the
    limit, the probabilities of errors beyond it add up to 5%, over all pairs and both directions.
    """
    errors = []
    for rate, n in sets:
        i, j = np.triu_indices(len(n), k=1)
        error = np.sqrt(rate * (1 - rate) * (1 / n[i] + 1 / n[j]))
        errors.append(error / rate if is_ratio else error)
    every = np.concatenate(errors)

    def excess(limit: float) -> float:
        return float(2 * special.ndtr(-limit / every).sum()) - 0.05

    return float(optimize.brentq(excess, 1e-4, 20.0))


class Setting(NamedTuple):
    """A way to certify, for groups of some sizes and samples of n rows."""

    name: str
    sizes: tuple[float, ...]
    n: int
    make: Callable[[float], Any]  # returns the estimator for a limit
    disparity: Callable[..., float]  # a metric of skfair
    kind: str = "classes"
    # Classes (or strata) of the population in each of which groups are compared
    within: str = ""
    is_ratio: bool = False
    visits: int = 1
    slack: float = 1.06  # the limit in units of the one that is just testable


def _decisions(constraint: Any = "demographic_parity", **options: Any) -> Callable[[float], Any]:
    options = {"group_aware": True, "certificate": 0.95, "random_state": 0} | options
    model = options.pop("model", LogisticRegression())
    return lambda limit: FairDecisionClassifier(model, constraint, limit, **options)


def _within_interval(y: Any, scores: Any, **groups: Any) -> float:
    return partial_statistical_parity_gap(None, scores, interval=INTERVAL, **groups)


def _stratified(y: Any, predicted: Any, *, sensitive_features: Any, strata: Any) -> float:
    return max(
        demographic_parity_difference(
            None, predicted[strata == k], sensitive_features=sensitive_features[strata == k]
        )
        for k in np.unique(strata)
    )


def _of_classes(y: Any, predicted: Any, *, sensitive_features: Any) -> float:
    return max(
        demographic_parity_difference(
            None, (predicted == k).astype(int), sensitive_features=sensitive_features
        )
        for k in np.unique(y)
    )


def _two(y: Any, predicted: Any, *, sensitive_features: Any) -> float:
    return max(
        demographic_parity_difference(None, predicted, sensitive_features=column)
        for column in sensitive_features.T
    )


TREES = HistGradientBoostingClassifier(max_iter=15, max_leaf_nodes=8, random_state=0)
_EQUAL: dict[int, tuple[float, ...]] = {k: (1.0,) * k for k in (2, 3, 4, 6, 10)}
_UNEQUAL: dict[int, tuple[float, ...]] = {
    2: (8, 2),
    3: (6, 3, 1),
    4: (5, 3, 1.5, 0.5),
    6: (4, 3, 2, 1, 1, 0.5),
    10: (4, 3, 2, 2, 1, 1, 1, 1, 0.5, 0.5),
}
PARITY = demographic_parity_difference
SETTINGS = (
    *(
        Setting(f"{k} groups, {name}", sizes[k], 400 * k, _decisions(), PARITY)
        for k in (2, 3, 4, 6, 10)
        for name, sizes in (("equal", _EQUAL), ("unequal", _UNEQUAL))
    ),
    Setting("2 groups, n = 6,000", (1, 1), 6000, _decisions(), PARITY),
    Setting("6 groups, n = 6,000", _EQUAL[6], 6000, _decisions(), PARITY),
    *(
        Setting(
            f"{k} groups, group-blind", _EQUAL[k], 800 * k, _decisions(group_aware=False), PARITY
        )
        for k in (2, 4)
    ),
    Setting("2 groups, boosted trees", (1, 1), 1600, _decisions(model=TREES), PARITY),
    Setting("4 groups, boosted trees", _EQUAL[4], 3200, _decisions(model=TREES), PARITY),
    Setting(
        "2 groups, rate as before", (1, 1), 1600, _decisions(selection_rate="as before"), PARITY
    ),
    Setting(
        "4 groups, rate as before", _EQUAL[4], 3200, _decisions(selection_rate="as before"), PARITY
    ),
    *(
        Setting(
            f"{k} groups, {rule.replace('_', ' ')}",
            _EQUAL[k],
            800 * k,
            _decisions(rule),
            disparity,
            within=within,
        )
        for rule, disparity, within in (
            ("equal_opportunity", equal_opportunity_difference, "positives"),
            ("equalized_odds", equalized_odds_difference, "classes"),
        )
        for k in (2, 4)
    ),
    Setting(
        "2 groups, equal accuracies",
        (1, 1),
        1600,
        _decisions("accuracy_parity"),
        accuracy_parity_difference,
        within="accuracy",
    ),
    *(
        Setting(
            f"{k} groups, ratio",
            _EQUAL[k],
            800 * k,
            _decisions(DemographicParity(comparison="ratio")),
            demographic_parity_ratio,
            is_ratio=True,
        )
        for k in (2, 4)
    ),
    Setting(
        "2 and 2 groups, two attributes",
        (1, 1),
        1600,
        _decisions(sensitive=Sensitive(intersectional=False)),
        _two,
        kind="two attributes",
    ),
    Setting(
        "2 groups, within three strata",
        (1, 1),
        2400,
        _decisions(ConditionalOn("demographic_parity")),
        _stratified,
        within="strata",
    ),
    *(
        Setting(
            f"{k} groups, three classes",
            _EQUAL[k],
            800 * k,
            _decisions(),
            _of_classes,
            kind="three classes",
        )
        for k in (2, 4)
    ),
    Setting("2 groups, five rows a person", (1, 1), 4000, _decisions(), PARITY, visits=5),
    Setting("4 groups, five rows a person", _EQUAL[4], 8000, _decisions(), PARITY, visits=5),
    *(
        Setting(
            f"{k} groups, trained {by}",
            _EQUAL[k],
            1600 * k // 2,
            lambda limit, by=by: ConstrainedERMClassifier(
                max_disparity=limit, certificate=Certificate(0.95, by=by), random_state=0
            ),
            PARITY,
            slack=1.06 if by == "cross" else 2.2,
        )
        for k in (2, 4)
        for by in ("cross", "split")
    ),
    *(
        Setting(
            f"{k} groups, regression {by}",
            _EQUAL[k],
            400 * k,
            lambda limit, by=by: ConstrainedERMRegressor(
                max_disparity=limit, certificate=Certificate(0.95, by=by), random_state=0
            ),
            mean_score_difference,
            kind="numbers",
            slack=1.1 if by == "cross" else 2.2,
        )
        for k in (2, 4, 6)
        for by in ("cross", "split")
    ),
    Setting(
        "2 groups, within an interval",
        (1, 1),
        2000,
        lambda limit: PartialParityClassifier(
            interval=INTERVAL, max_disparity=limit, certificate=0.95, random_state=0
        ),
        _within_interval,
        slack=1.0,
    ),
)


def limit_of(setting: Setting, everybody: People) -> float:
    """Return the limit of a setting: what equal rates show with these people, times the slack."""
    if setting.disparity is _within_interval:
        return 0.25
    shares = np.asarray(setting.sizes) / np.sum(setting.sizes)
    n = shares * setting.n
    if setting.visits > 1:  # rows of a person have a correlation of about .8 in decisions
        n = n / (1 + 0.8 * (setting.visits - 1))
    if setting.kind == "numbers":
        spread = _spread_of_fair_means(everybody)
        i, j = np.triu_indices(n.size, k=1)
        errors = spread * np.sqrt(1 / n[i] + 1 / n[j])
        limit = optimize.brentq(lambda t: 2 * special.ndtr(-t / errors).sum() - 0.05, 1e-5, 50)
        return setting.slack * float(limit)
    free = LogisticRegression().fit(everybody.X, everybody.y)
    selected, y = free.predict(everybody.X), everybody.y
    if setting.kind == "three classes":
        sets = [(float((selected == k).mean()), n) for k in np.unique(y)]
    elif setting.within == "strata":
        sets = [(float(selected.mean()), n / 3)] * 3
    elif setting.within == "accuracy":
        sets = [(float((selected == y).mean()), n)]
    elif setting.within:
        classes = (1,) if setting.within == "positives" else (0, 1)
        sets = [(float(selected[y == k].mean()), n * float((y == k).mean())) for k in classes]
    else:
        sets = [(float(selected.mean()), n)]
    if setting.kind == "two attributes":
        sets *= 2
    return setting.slack * edge(sets, setting.is_ratio)


def _spread_of_fair_means(everybody: People) -> float:
    """Return the standard deviation of predictions of a linear model with equal group means."""
    rng = np.random.default_rng(0)
    some = everybody.part(rng.choice(everybody.y.size, 20_000, replace=False))
    fair = ConstrainedERMRegressor(max_disparity=1e-3, random_state=0)
    return float(np.std(fair.fit(some.X, some.y, sensitive_features=some.groups).predict(some.X)))


def measured(setting: Setting, n_samples: int) -> dict[str, Any]:
    """Fit samples of a population; count certified fits and those that exceed the limit."""
    everybody = population(setting.sizes, setting.kind, FIRST_SEED, visits=setting.visits)
    limit, n_people = limit_of(setting, everybody), int(everybody.person.max()) + 1
    found: list[float] = []
    moved, cpu = 0, 0.0
    free_rate = float(
        LogisticRegression().fit(everybody.X, everybody.y > 0).predict(everybody.X).mean()
    )
    for seed in range(FIRST_SEED + 1, FIRST_SEED + 1 + n_samples):
        rng = np.random.default_rng(seed)
        drawn = rng.integers(0, n_people, setting.n // setting.visits)
        rows = (drawn[:, None] * setting.visits + np.arange(setting.visits)).ravel()
        sample = everybody.part(rows)
        options: dict[str, Any] = {"sensitive_features": sample.groups}
        model = setting.make(limit)
        if setting.within == "strata":
            options["control_features"] = sample.strata
        if setting.visits > 1:  # the same person may be drawn twice: two people
            options["units"] = np.repeat(np.arange(drawn.size), setting.visits)
        seconds, model = timed(lambda: model.fit(sample.X, sample.y, **options))  # noqa: B023
        cpu += seconds
        if model.status_ == "certified":
            predicted = _predicted(model, everybody, setting)
            extra = {"strata": everybody.strata} if setting.within == "strata" else {}
            value = float(
                setting.disparity(
                    everybody.y, predicted, sensitive_features=everybody.groups, **extra
                )
            )
            found.append(1 - value if setting.is_ratio else value)
            if setting.kind == "classes":
                moved += abs(float(np.mean(predicted > 0)) - free_rate) > 0.1
    failed = int(np.sum(np.array(found) > limit))
    own = {"name": setting.name, "n": setting.n, "limit": limit, "samples": n_samples}
    share = float(np.mean(found) / limit) if found else float("nan")
    own |= {"certified": len(found), "failed": failed, "moved": int(moved)}
    return own | {"share_of_limit": share, "cpu": cpu / n_samples}


def _predicted(model: Any, everybody: People, setting: Setting) -> np.ndarray:
    X, groups = everybody.X, {"sensitive_features": everybody.groups}
    if setting.within == "strata":
        groups["control_features"] = everybody.strata
    given = groups if getattr(model, "is_group_aware_", False) else {}
    if setting.disparity is _within_interval:
        return np.asarray(model.decision_function(X, **given))
    return np.asarray(model.predict(X, **given))


def main(*, quick: bool = False) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    n_samples = 3 if quick else N_SAMPLES
    rows = [
        kept(
            f"certificate-edges-{setting.name}",
            lambda: measured(setting, n_samples),  # noqa: B023
            quick=quick,
        )
        for setting in (SETTINGS[::6] if quick else SETTINGS)
    ]
    return {"settings": rows}


def canary() -> dict[str, Any]:
    """Return the results of a small cell."""
    return measured(SETTINGS[0], N_SAMPLES)


def numbers(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return how often certificates fail over all settings, and in the worst one."""
    rows = [row for row in results["settings"] if row["certified"]]
    shares = [row["failed"] / row["certified"] for row in rows]
    certified = sum(row["certified"] for row in rows)
    return {
        "n_settings": len(results["settings"]),
        "certified": certified,
        "failed": sum(row["failed"] for row in rows) / max(certified, 1),
        "worst": max(shares, default=float("nan")),
    }


def tables(results: Mapping[str, Any]) -> dict[str, Table]:
    """Show how often certificates are wrong in each setting."""
    shown = [
        [
            *(row["name"], f"{row['n']:,}", f"{row['limit']:.3f}"),
            f"{row['certified']} of {row['samples']}",
            f"{row['failed'] / row['certified']:.1%}" if row["certified"] else "-",
            f"{row['share_of_limit']:.2f}" if row["certified"] else "-",
        ]
        for row in results["settings"]
    ]
    columns = ["setting", "rows of a sample", "limit", "samples with a certificate"]
    columns += ["certificates that are wrong", "disparity in the population / limit (mean)"]
    return {"settings": Table("Certificates at limits that are just testable", columns, shown)}


def pictures(results: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the share of failures in each setting."""
    rows = [row for row in results["settings"] if row["certified"]]
    figure, (axes,) = small(height=8.0)
    rows_of_dots(axes, {row["name"]: [100 * row["failed"] / row["certified"]] for row in rows})
    mark(axes, 5, "nominal 5%")
    axes.set_xlabel("Certificates whose limit is exceeded in the population, %", loc="right")
    axes.set_xlim(left=-0.5)
    return {"picture": figure}
