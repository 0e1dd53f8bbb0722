"""A name stands for one solver in the whole package, whatever the estimator."""

from collections import Counter

from skfair.solvers import CLUSTERING_SOLVERS, DC_SOLVERS, EIGEN_SOLVERS, SOLVERS

REGISTRIES = [SOLVERS, DC_SOLVERS, EIGEN_SOLVERS, CLUSTERING_SOLVERS]


def test_names_are_unique():
    counts = Counter(name for registry in REGISTRIES for name in registry)
    assert {name: n for name, n in counts.items() if n > 1} == {}
