"""k-means, for the tests that go over all families (:mod:`tests.families`)."""

from functools import partial

import numpy as np

from skfair.cluster import FairKMeans, ParetoFairKMeans
from skfair.cluster.assignment import by_prices, points
from skfair.cluster.kmeans import prices
from skfair.cluster.kmeans.solver import CLUSTERING_SOLVERS
from tests.seeds import generator

rng = generator(0)
SEX = rng.choice(["f", "m"], 240)
FEW = np.where(np.arange(240) % 12, "many", "few")
X = rng.normal(size=(240, 3)) + 2 * (SEX == "m")[:, None] * [1, 0, 0]
MODEL, FRONT = FairKMeans(3, random_state=0), ParetoFairKMeans(3, random_state=0)


def in_another_order(method, X, sex, other):
    """Call a method of a fitted model with columns that are not in the order of X."""
    model = FairKMeans().fit(X, sensitive_features=sex)
    given = {"sensitive_features": sex} if method == "assign" else {}
    return getattr(model, method)(X, **given, **other)


ASSIGNING = {
    "FairKMeans": FairKMeans(3, n_init=1),
    "a point of ParetoFairKMeans": ParetoFairKMeans(3, balances=[0.8], n_init=1),
}
OF_ONE_GROUP = {"front": (FRONT, {})}
CLUSTERERS = {"FairKMeans": FairKMeans}
KINDS = [FairKMeans]
CONTRACTS = {
    "FairKMeans": (partial(FairKMeans, 3, n_init=1), "labels_", "min_balance"),
    "ParetoFairKMeans": (partial(ParetoFairKMeans, 3, n_init=1, balances=[0.5, 0.9]), "select", ""),
}
REGISTRIES = {"CLUSTERING_SOLVERS": CLUSTERING_SOLVERS}
SOLVER_TESTS = {
    "FairKMeans": "test_clusters_are_what_they_are_said_to_be",
    "ParetoFairKMeans": "test_points_of_fronts_are_what_they_are_said_to_be",
}
MISSPELT = [(FairKMeans, "solver", "pricess", "prices")]
SUMMARIES = [
    (FairKMeans(3), {"balance": None, "relative balance": 0.8}),
    (
        FairKMeans(3, min_balance=0.3, relative_balance=False),
        {"balance": 0.3, "relative balance": None},
    ),
    (
        FairKMeans(3, min_balance=None, share_bounds={"f": (0.2, 0.7)}),
        {
            "smallest share of f": 0.2,
            "largest share of f": 0.7,
            "smallest share of m": 0,
            "largest share of m": 1,
        },
    ),
    (
        FairKMeans(3, size_bounds=(0.2, 0.5)),
        {
            "balance": None,
            "relative balance": 0.8,
            "smallest size of a cluster": None,
            "largest size of a cluster": None,
        },
    ),
]
SMALL = [
    *((points, "_LARGE", 500), (points, "_MAX_KEPT", 500)),
    *((prices, "LARGE", 500), (prices, "SAMPLE", 300)),
]
THREADS = {
    "k-means": (MODEL, 600, *SMALL),
    "k-means by way of a larger sample": (MODEL, 600, *SMALL, (prices, "_MIDDLE", 190)),
    "front": (ParetoFairKMeans(3, balances=5, n_init=1, random_state=0), 600, *SMALL),
}
ON_ONE_THREAD = [(MODEL, by_prices, "maximise_dual"), (FRONT, by_prices, "maximise_dual")]
WRAPPED = {"k-means": FairKMeans(2, random_state=0)}
ONNX = {"``FairKMeans``: the nearest centre, without limits": FairKMeans(3, random_state=0)}
MISALIGNED = [partial(in_another_order, method) for method in ("score", "assign")]
FITS_OF_PARTITIONS = {
    "clusters": lambda X, y, sex: FairKMeans(2, random_state=0).fit(
        X, sensitive_features=sex, sample_weight=y + 1
    )
}
ROWS = {"X": X, "sensitive_features": SEX}
HEAVY = ROWS | {"sample_weight": np.r_[np.full(3, 400.0), np.ones(237)]}
ENDINGS = {
    FairKMeans: {
        "converged": (MODEL, ROWS),
        "max_iter": (FairKMeans(3, max_iter=1, tol=0), ROWS),
        "stopped": (FairKMeans(3, init=X[:3]), ROWS),
        "infeasible": (FairKMeans(4, min_balance=None, size_bounds=(0.2, 0.3)), HEAVY),
    },
    ParetoFairKMeans: {
        "converged": (FRONT, ROWS),
        "infeasible": (ParetoFairKMeans(4, size_bounds=(0.2, 0.3)), HEAVY),
    },
}
WARNINGS = [
    ("FairKMeans was fitted without", lambda: MODEL.fit_predict(X)),
    ("ParetoFairKMeans was fitted without", lambda: FRONT.fit(X)),
    ("1 group of fewer than 30 rows", lambda: FairKMeans(3).fit_predict(X, sensitive_features=FEW)),
    ("so there is nothing to compare", lambda: MODEL.fit(X, sensitive_features=["all"] * 240)),
    (
        "centres still move",
        lambda: FairKMeans(3, max_iter=1, tol=0).fit(X, sensitive_features=SEX),
    ),
]
FIRST_FITS = {"FairKMeans(3, random_state=0).fit(X, sensitive_features=g).predict(X)": (13, 7)}
