"""A name stands for one solver in the whole package, whatever the estimator."""

from collections import Counter

from skfair import losses, solvers
from skfair.solvers import SOLVERS
from skfair.solvers.base import DC_SOLVERS
from skfair.solvers.clustering.base import CLUSTERING_SOLVERS
from skfair.solvers.eigen.base import EIGEN_SOLVERS

REGISTRIES = [SOLVERS, DC_SOLVERS, EIGEN_SOLVERS, CLUSTERING_SOLVERS]


def test_names_are_unique():
    counts = Counter(name for registry in REGISTRIES for name in registry)
    assert {name: n for name, n in counts.items() if n > 1} == {}


def test_what_only_a_solver_of_ones_own_needs_is_not_public():
    assert len(solvers.__all__) <= 15
    registries = {"SOLVERS", "CLUSTERING_SOLVERS"}  # where a solver of one's own goes
    assert registries <= set(solvers.__all__)
    others = {"Answer", "Step", "check_needs", "DC_SOLVERS", "EIGEN_SOLVERS"}
    assert not others & set(solvers.__all__)


def test_losses_offers_losses_and_what_makes_one():
    classes = {losses.LOSSES[name].__name__ for name in losses.LOSSES}
    assert set(losses.__all__) == {*classes, "Loss", "LOSSES", "RowParts", "make_loss"}
