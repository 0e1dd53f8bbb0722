"""Jobs whose time is watched, each with the nearest one of scikit-learn and a goal.

The jobs are ones that people run: small fits, limits that bind, many groups, half a million rows,
first fits.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import laplacian
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import kneighbors_graph

from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
    PartialParityClassifier,
)
from skfair.cluster import FairKMeans, FairSpectralClustering, ParetoFairKMeans
from skfair.metrics import (
    demographic_parity_difference,
    fairness_report,
    group_report,
    partial_statistical_parity_gap,
)
from skfair.regression import ConstrainedERMRegressor

Run = Callable[[], Any]


class Job(NamedTuple):
    """A job and its yardstick, how often both are run, and the ratio that is to be reached."""

    name: str
    ours: Run
    yardstick: Run
    rounds: int
    goal: float | None = None


def labelled(n: int, d: int, n_groups: int, seed: int, shift: float = 0.5) -> tuple[Any, Any, Any]:
    """Return rows, classes and groups; the first columns and the classes differ between groups."""
    rng = np.random.default_rng(seed)
    groups, X = rng.integers(0, n_groups, n), rng.normal(size=(n, d))
    X[:, : min(5, d)] += shift * groups[:, None] / max(n_groups - 1, 1)
    return X, (X[:, : min(5, d)].sum(axis=1) + rng.logistic(size=n) > shift).astype(int), groups


def blobs(n: int, k: int, d: int) -> tuple[Any, Any]:
    """Return points around random centres, and three groups that differ in the first column."""
    rng = np.random.default_rng(n)
    X = rng.normal(0, 3, (k, d))[rng.integers(0, k, n)] + rng.normal(size=(n, d))
    groups = rng.integers(0, 3, n)
    X[:, 0] += 0.7 * groups
    return X, groups


def words(n: int, d: int, n_topics: int) -> tuple[Any, Any]:
    """Return counts of 30 words a text, mostly of its topic, and groups that prefer topics."""
    rng = np.random.default_rng(4001)
    topic = rng.integers(n_topics, size=n)
    places = rng.geometric(0.01, (n, 30)) + topic[:, None] * (d // n_topics)
    rows = np.repeat(np.arange(n, dtype=np.int32), 30)
    columns = np.minimum(places.ravel(), d - 1).astype(np.int32)
    X = sparse.csr_array((np.ones(rows.size), (rows, columns)), (n, d))
    return X, (rng.random(n) < np.where(topic % 2, 0.3, 0.6)).astype(int)


def fitting(model: Any, *rows: Any) -> Run:
    *data, groups = rows
    return lambda: model.fit(*data, sensitive_features=groups)


def kmeans() -> Iterator[Job]:
    def plain(X: Any, k: int) -> Run:
        return lambda: KMeans(k, n_init=1, random_state=0).fit(X)

    for n, k, d, rounds, goal in (
        *((1000, 10, 20, 7, 8), (10_000, 10, 20, 7, 3)),
        (1_000_000, 20, 10, 3, 0.5),
    ):
        X, groups = blobs(n, k, d)
        fair = FairKMeans(k, random_state=0)
        yield Job(f"k-means, {n:,} rows", fitting(fair, X, groups), plain(X, k), rounds, goal)
    X, _, groups = labelled(20_000, 20, 16, 1)
    fair = FairKMeans(10, random_state=0)
    yield Job("k-means, 16 groups", fitting(fair, X, groups), plain(X, 10), 3, 5)
    front, few = ParetoFairKMeans(5, random_state=0), X[:5000]
    yield Job("k-means, front", fitting(front, few, groups[:5000] % 2), plain(few, 5), 3, 30)
    X, _, groups = labelled(100_000, 20, 3, 2)
    fair, other = fitting(FairKMeans(20, random_state=0), X, groups)(), plain(X, 20)()
    yield Job(
        "k-means, predict",
        lambda: fair.predict(X, sensitive_features=groups),
        lambda: other.predict(X),
        *(7, 1.5),
    )
    texts, groups = words(20_000, 10_000, 10)
    fair = FairKMeans(10, random_state=0)
    yield Job("k-means, sparse rows", fitting(fair, texts, groups), plain(texts, 10), 3)


def erm() -> Iterator[Job]:
    X, y, groups = labelled(500_000, 50, 2, 3, 0.6)

    def logistic(n: int, **params: Any) -> Run:
        return lambda: LogisticRegression(**params).fit(X[:n], y[:n])

    def fit(model: Any, n: int) -> Run:
        return fitting(model, X[:n], y[:n], groups[:n])

    model = ConstrainedERMClassifier(max_disparity=0.05)
    yield Job("linear, 1,000 rows", fit(model, 1000), logistic(1000), 9, 12)
    for name, constraint, limit, goal in (
        ("slack", "demographic_parity", 0.9, 1.6),
        ("active", "demographic_parity", 0.02, 3),
        ("equalized odds", "equalized_odds", 0.02, 4),
    ):
        model = ConstrainedERMClassifier(constraint, limit)
        yield Job(f"linear, {name}", fit(model, y.size), logistic(y.size), 3, goal)
    model = ConstrainedERMClassifier(max_disparity=0.1, certificate=0.95, random_state=0)
    yield Job("linear, certified", fit(model, 5000), logistic(5000), 3, 25)
    many = np.random.default_rng(4001).integers(20, size=100_000).astype(str)
    yield Job(
        "linear, 20 groups",
        fitting(ConstrainedERMClassifier(), X[:100_000], y[:100_000], many),
        *(logistic(100_000, solver="newton-cholesky"), 3),
    )
    values = X[:2000, :5].sum(axis=1) + 0.2 * X[:2000, 7]
    mean = ConstrainedERMRegressor("mean_score_parity", 0.5, certificate=0.95, random_state=0)
    yield Job(
        "regression, certified",
        fitting(mean, X[:2000], values, groups[:2000]),
        *(lambda: Ridge().fit(X[:2000], values), 5, 40),
    )


def partial() -> Iterator[Job]:
    X, y, groups = labelled(40_000, 20, 3, 4)
    for n, rounds, goal in ((400, 5, 20), (40_000, 3, 15)):
        yield Job(
            f"partial parity, {n:,} rows",
            fitting(
                PartialParityClassifier((0.1, 0.5), max_disparity=0.1), X[:n], y[:n], groups[:n]
            ),
            lambda n=n: LogisticRegression().fit(X[:n], y[:n]),
            *(rounds, goal),
        )


def decisions() -> Iterator[Job]:
    X, y, groups = labelled(50_000, 20, 3, 5)
    trees = HistGradientBoostingClassifier(max_iter=40, random_state=0)
    for name, constraint, is_aware, more, goal in (
        ("group-aware", "demographic_parity", True, {}, 2.4),
        ("group-blind", "demographic_parity", False, {}, 5.5),
        ("equalized odds", "equalized_odds", True, {}, 2.2),
        ("certified", "demographic_parity", True, {"certificate": 0.95}, 2.6),
    ):
        model = FairDecisionClassifier(
            trees, constraint, 0.05, group_aware=is_aware, cv=3, random_state=0, **more
        )
        run = fitting(model, X, y, groups)
        yield Job(f"decisions, {name}", run, lambda: trees.fit(X, y), 3, goal)
    fitted = FairDecisionClassifier(
        trees.fit(X, y), max_disparity=0.05, group_aware=True, cv="prefit"
    ).fit(X, y, sensitive_features=groups)
    yield Job(
        "decisions, predict",
        lambda: fitted.predict(X, sensitive_features=groups),
        *(lambda: trees.predict_proba(X), 7, 1.1),
    )
    linear = LogisticRegression()
    model = FairDecisionClassifier(linear, max_disparity=0.05, group_aware=True, random_state=0)
    yield Job(
        "decisions, linear, 1,000 rows",
        fitting(model, X[:1000], y[:1000], groups[:1000]),
        *(lambda: linear.fit(X[:1000], y[:1000]), 7, 8),
    )


def spectral() -> Iterator[Job]:
    rng, n = np.random.default_rng(6), 6000
    X = rng.normal(0, 2, (4, 5))[rng.integers(0, 4, n)] + rng.normal(size=(n, 5))
    groups, graph = rng.integers(0, 2, n), kneighbors_graph(X, 10)
    graph = 0.5 * (graph + graph.T)
    fair = FairSpectralClustering(4, affinity="precomputed", random_state=0)
    yield Job(
        "spectral clustering",
        fitting(fair, graph, groups),
        lambda: eigsh(laplacian(graph, normed=True), k=4, which="SM", tol=1e-6),
        *(3, 2),
    )
    X, groups = blobs(50_000, 10, 8)
    landmark = FairSpectralClustering(10, affinity="landmark", random_state=0)
    yield Job(
        "spectral clustering, landmarks",
        fitting(landmark, X, groups),
        lambda: KMeans(10, n_init=1, random_state=0).fit(X),
        3,
    )


def metrics() -> Iterator[Job]:
    """Compare metrics of a million rows with counting them, or with sorting their scores."""
    rng, n = np.random.default_rng(7), 1_000_000
    groups, y, p = rng.integers(0, 6, n), rng.integers(0, 2, n), rng.integers(0, 2, n)
    names = np.array(["white", "black", "asian", "other", "mixed", "not stated"])[groups]
    scores, gap = rng.normal(size=n), demographic_parity_difference

    def count() -> Any:
        return np.bincount(groups * 2 + p, minlength=12)

    def sort() -> Any:
        return np.sort(scores, kind="stable")

    def of_scores() -> Any:
        given = {"y_score": scores, "sensitive_features": groups}
        return fairness_report(y, None, n_bootstrap=20, **given)

    def partial_gap() -> Any:
        interval = (0.05, 0.3)
        return partial_statistical_parity_gap(
            y, scores, sensitive_features=groups, interval=interval
        )

    yield Job("metric", lambda: gap(y, p, sensitive_features=groups), count, 7, 5)
    yield Job("metric, groups by name", lambda: gap(y, p, sensitive_features=names), count, 7, 10)
    yield Job("report", lambda: group_report(y, p, sensitive_features=groups), count, 5, 7)
    yield Job("report of scores, 20 resamples", of_scores, sort, 3)
    yield Job("metric within an interval", partial_gap, sort, 5)


FAMILIES = (kmeans, erm, partial, decisions, spectral, metrics)

FIRST = {
    "k-means": ("cluster import FairKMeans as E", "E(3, random_state=0)", 2.5),
    "spectral": ("cluster import FairSpectralClustering as E", "E(3, random_state=0)", 3),
    "decisions": ("classification import FairDecisionClassifier as E", "E(random_state=0)", 1.5),
    "partial parity": (
        "classification import PartialParityClassifier as E",
        *("E((0.1, 0.5), max_disparity=0.2)", 1.5),
    ),
    "linear": ("classification import ConstrainedERMClassifier as E", "E(max_disparity=0.05)", 1),
}
IMPORT_GOAL = 0.15

_FIRST_FIT = """
import time, warnings
import numpy as np
from skfair.{imported}
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
groups, X = rng.integers(0, 2, 400), rng.normal(size=(400, 3))
X[:, 0] += groups
y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
model, times = {model}, [time.process_time()]
for _ in range(2):
    model.fit(X, y, sensitive_features=groups)
    times.append(time.process_time())
print(times[1] - times[0] - (times[2] - times[1]))
"""


def first_fits() -> Iterator[tuple[str, list[float], float]]:
    """Yield CPU seconds of first fits without stored kernels beyond second ones, and of imports."""
    for name, (imported, model, goal) in FIRST.items():
        code, seconds = _FIRST_FIT.format(imported=imported, model=model), []
        for _ in range(3):
            with tempfile.TemporaryDirectory() as folder:
                seconds.append(_printed(code, NUMBA_CACHE_DIR=folder))
        yield f"first fit, {name}", seconds, goal
    both = "skfair.classification", "sklearn.linear_model, sklearn.ensemble"
    taken = [
        [_printed(f"import time, {m}; print(time.process_time())") for m in both] for _ in "12345"
    ]
    yield "import", [ours - theirs for ours, theirs in taken], IMPORT_GOAL


def _printed(code: str, **environment: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return float(done.stdout.split()[-1])
