"""Spectral clusterings: hard fits."""

import numpy as np

from skfair import Sensitive
from skfair.cluster import FairSpectralClustering
from skfair.cluster.spectral.eigen.base import EIGEN_SOLVERS
from tests.cluster.fuzz_cases import clustering, draw_limit
from tests.fuzz.hard_fits import Fit
from tests.fuzz.hard_rows import draw_rows, pick


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
        sensitive=Sensitive(intersectional=intersectional),
        random_state=0,
    )
    return clustering(estimator, rows, n_clusters)


FITS = {"FairSpectralClustering": fair_spectral}
SETTINGS = {"FairSpectralClustering": {"n_clusters": 2, "n_init": 1}}
OWNERS = {FairSpectralClustering: EIGEN_SOLVERS}
