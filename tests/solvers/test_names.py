"""A name stands for one solver in the whole package, whatever the estimator."""

from collections import Counter

from skfair import losses, solvers
from tests.families import by_families
from tests.registries import SOLVERS

OF_FAMILIES = by_families("REGISTRIES")
REGISTRIES = [SOLVERS, *OF_FAMILIES.values()]


def test_names_are_unique():
    counts = Counter(name for registry in REGISTRIES for name in registry)
    assert {name: n for name, n in counts.items() if n > 1} == {}


def test_what_only_a_solver_of_ones_own_needs_is_not_public():
    assert len(solvers.__all__) <= 15
    registries = {"SOLVERS", *OF_FAMILIES}
    bases = {"Solver", "IterativeSolver", "SolverResult", "EigenResult", "Answer", "Step"}
    assert not (registries | bases | {"check_needs"}) & set(solvers.__all__)


def test_losses_offers_losses_and_their_base():
    classes = {losses.LOSSES[name].__name__ for name in losses.LOSSES}
    assert set(losses.__all__) == {*classes, "Loss", "check_loss"}
