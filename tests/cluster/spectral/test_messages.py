"""What spectral clustering says of wrong calls, and of results to be careful with."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from skfair.cluster import FairSpectralClustering
from skfair.cluster.affinities import Landmark
from skfair.solvers import Lanczos
from tests.messages import later, messages
from tests.seeds import generator

pytestmark = pytest.mark.filterwarnings("ignore::skfair.exceptions.SmallGroupWarning")
X = generator().normal(size=(240, 2))
GROUPS = np.tile(["f", "m"], 120)
WEIGHTS = rbf_kernel(X[:60])
ONES = {"affinity": "precomputed", "n_clusters": 2}
BY_PLACE = {"affinity": "nearest_neighbors", "n_clusters": 2}


@later
def cut(rows=X[:60], groups=None, n_clusters=3, **options):
    groups = GROUPS[: rows.shape[0]] if groups is None else groups
    return FairSpectralClustering(n_clusters, **options).fit(rows, sensitive_features=groups)


def with_entry(value, other=None):
    W = WEIGHTS.copy()
    W[0, 1], W[1, 0] = value, value if other is None else other
    return W


def columns_of_weights():
    return FairSpectralClustering(2, affinity="precomputed", sensitive=[0]).fit(WEIGHTS)


test_errors = messages(
    *(
        (ValueError, *row)
        for row in [
            ("n_samples=60 should be >= n_clusters=61", cut(n_clusters=61)),
            ("group constraints leave", cut(n_clusters=60, min_balance=0)),
            (r"'y' \(3 rows\)", cut(n_clusters=4, groups=["x"] * 57 + ["y"] * 3)),
            (
                "whole sample is",
                cut(min_balance=0.9, relative_balance=False, groups=["x"] * 35 + ["y"] * 25),
            ),
            ("cannot be used with", cut(min_balance=0.5, share_bounds=0.8)),
            ("negative weights", cut(affinity="linear")),
            ("affinity", cut(affinity="nope")),
            ("solver", cut(solver="nope")),
            (r"set beside affinity=Landmark\(30\)", cut(affinity=Landmark(30), gamma=1.0)),
            (r"set beside affinity=Landmark\(30\)", cut(affinity=Landmark(30), n_neighbors=3)),
            ("has no columns that could hold", columns_of_weights),
            *(
                (words, cut(form(W), **ONES))
                for form in (np.asarray, sparse.csr_array)
                for words, W in (
                    ("not symmetric", with_entry(0.5, 0.25)),
                    ("negative weights", with_entry(-1)),
                    ("contains NaN", with_entry(np.nan)),
                    ("contains infinity", with_entry(np.inf)),
                    ("needs a square matrix", WEIGHTS[:, :-1]),
                )
            ),
        ]
    )
)
FAR = np.repeat([[0.0], [50]], 30, 0) + X[:60, :1]
FEW_STEPS = {"solver": Lanczos(max_iter=1, block_size=3, tol=1e-9), "affinity": "precomputed"}
test_warnings = messages(
    (UserWarning, "symmetric matrix of 60 x 60.*'precomputed'", cut(WEIGHTS, **BY_PLACE)),
    (UserWarning, "symmetric matrix of 60", cut(sparse.csr_array(WEIGHTS), **BY_PLACE)),
    (UserWarning, "not connected", cut(FAR, **BY_PLACE)),
    (ConvergenceWarning, "made 1 iterations", cut(rbf_kernel(X), **FEW_STEPS)),
)
