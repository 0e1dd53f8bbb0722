"""Every constraint of the registry keeps the contract, under every comparison; bad ones do not."""

import pytest

from skfair.constraints.moments import Rate
from skfair.constraints.rates import RateParity
from tests.constraints.contract import breaches
from tests.registries import CONSTRAINT_KINDS, CONSTRAINTS
from tests.small_problems import references_of, trained_constraints


def variants():
    """Every constraint with every value of what it may compare, and how."""
    for name in trained_constraints():
        constraint = CONSTRAINT_KINDS[name]
        parameters = constraint().get_params()
        for reference in references_of(name):
            for comparison in ("difference", "ratio") if "comparison" in parameters else (None,):
                options = {"reference": reference, "comparison": comparison}
                given = {key: value for key, value in options.items() if key in parameters}
                given = {key: value for key, value in given.items() if value is not None}
                yield pytest.param(constraint(**given), id="-".join([name, *given.values()]))


@pytest.mark.filterwarnings("ignore:The value says nothing about groups")  # all scores are positive
@pytest.mark.parametrize("constraint", list(variants()))
def test_constraints_keep_the_contract(constraint):
    assert breaches(constraint) == []


class WithoutMetric(RateParity):
    """Nothing says what it should be measured by."""


class CountsOthers(RateParity):
    """Counts selection among negatives, and says that it is demographic parity."""

    parity = "demographic_parity"
    subset = "negative"


class Confident(Rate):
    """Claims to depend on the sign of a score, but does not."""

    def strict(self, scores):
        return (scores > 0.3).astype(float)


class DependsOnSize(RateParity):
    """What the threshold scan is told of it does not hold."""

    parity = "demographic_parity"

    def moment(self, rows):
        return Confident()


class WrongSlope(Rate):
    def parts(self, scores, temperature, rows=None):
        value, slope, curvature = super().parts(scores, temperature, rows)
        return value, 2 * slope, curvature


class WrongDerivative(RateParity):
    parity = "demographic_parity"

    def moment(self, rows):
        return WrongSlope()


class ForgetsWeights(RateParity):
    parity = "demographic_parity"

    def prepare(self, rows, max_disparity):
        return super().prepare(rows._replace(sample_weight=None), max_disparity)


@pytest.mark.parametrize(
    ("constraint", "breach"),
    [
        (WithoutMetric(), "names no metric"),
        (CountsOthers(), "that of its metric"),
        (CountsOthers(), "its scan reports"),
        (DependsOnSize(), "that of its metric"),
        (WrongDerivative(), "its slope is not"),
        (ForgetsWeights(), "not repetitions"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_bad_constraints_are_refused(constraint, breach):
    assert any(breach in one for one in breaches(constraint)), breaches(constraint)


def test_the_contract_sees_constraints_that_are_added():
    CONSTRAINT_KINDS["planted"] = CONSTRAINTS.register("planted")(CountsOthers)
    try:
        added = [param for param in variants() if param.id.startswith("planted")]
    finally:
        del CONSTRAINTS["planted"], CONSTRAINT_KINDS["planted"]
    assert len(added) == 4
    assert all(breaches(param.values[0]) for param in added)
