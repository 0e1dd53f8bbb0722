"""Constraints within strata: what is compared there, and what is not."""

import numpy as np
import pytest

from skfair.constraints import ConditionalOn, DemographicParity
from skfair.groups.strata import Strata
from tests.constraints.contract import measured
from tests.naive import erm as naive
from tests.registries import CONSTRAINT_KINDS
from tests.seeds import generator
from tests.small_problems import people, trained_constraints

CONSTRAINT_NAMES = trained_constraints()
WHO = people(seed=4, n=240, n_levels=(3, 2))
SCORES = generator(0).normal(size=240)
NAMES = ("east", "north", "west")


def strata_of(who, seed=1):
    """Draw strata; one of them lacks a group, one of them has but one group."""
    codes = generator(seed).integers(0, 3, who.signs.size)
    codes[(codes == 1) & (who.columns[0] == "a")] = 0
    codes[(codes == 2) & (who.columns[0] != "b")] = 0
    return Strata(codes, NAMES)


def bind(constraint, who, strata, limit=0.2, **options):
    rows = who.training_rows()._replace(strata=strata)
    return ConditionalOn(constraint, **options).prepare(rows, limit)


@pytest.mark.parametrize(
    "wrapped", [lambda constraint: constraint, lambda constraint: [constraint]]
)
def test_a_limit_of_the_inner_constraint_goes_before_that_of_the_estimator(wrapped):
    constraint, strata = wrapped(DemographicParity(0.02)), strata_of(WHO)
    assert bind(constraint, WHO, strata).max_disparity == 0.02
    assert bind(constraint, WHO, strata, max_disparity=0.05).max_disparity == 0.05


@pytest.mark.parametrize("comparison", ["difference", "ratio"])
@pytest.mark.parametrize("name", CONSTRAINT_NAMES)
def test_the_disparity_is_that_of_the_metric_with_control_features(name, comparison):
    constraint, strata = CONSTRAINT_KINDS[name](), strata_of(WHO)
    if "comparison" in constraint.get_params():
        constraint.set_params(comparison=comparison)
    for weights in (None, generator(2).uniform(0.1, 3, 240)):
        who = WHO._replace(weights=weights)
        names = np.array(NAMES)[strata.codes]
        value = measured(constraint, who, SCORES, control_features=names)
        assert bind(constraint, who, strata).disparity(SCORES) == pytest.approx(value, abs=1e-12)


def test_only_groups_that_are_there_are_compared():
    bound = bind("demographic_parity", WHO._replace(columns=WHO.columns[:1]), strata_of(WHO))
    assert bound.rate_names == ("a, east", "b, east", "c, east", "b, north", "c, north", "b, west")
    assert bound.row_names == (
        "c, north - b, north",
        "a, east - middle",
        "b, east - middle",
        "c, east - middle",
    )
    assert bound.name == "DemographicParity within strata"


def test_a_class_that_a_stratum_lacks_is_no_fault():
    strata = strata_of(WHO)
    strata.codes[(strata.codes == 1) & (WHO.signs > 0)] = 0
    found = bind("equal_opportunity", WHO, strata)
    assert not any("north" in name for name in found.rate_names)
    twin = naive.disparity(
        "equal_opportunity",
        "pairwise",
        SCORES,
        WHO.signs,
        WHO.columns,
        strata=strata.codes.tolist(),
    )
    assert found.disparity(SCORES) == pytest.approx(twin, abs=1e-12)


def test_mistakes_are_explained():
    rows = WHO.training_rows()
    with pytest.raises(ValueError, match="needs control_features in fit"):
        ConditionalOn("demographic_parity").prepare(rows, 0.1)
    lonely = Strata((WHO.columns[0] == "a") + 2 * (WHO.columns[0] == "b"), NAMES)
    who = WHO._replace(columns=WHO.columns[:1])
    with pytest.raises(ValueError, match="No stratum has rows of two groups"):
        bind("demographic_parity", who, lonely)
    bind("bounded_selection_rate", who, lonely)  # caps compare nothing anyway
    for constraint, message in (
        ("parity", "no constraint 'parity'"),
        (["demographic_parity", "equal_opportunity"], "takes one constraint"),
        (7, "constraint must be a name"),
    ):
        with pytest.raises(ValueError, match=message):
            bind(constraint, WHO, strata_of(WHO))
    regression = WHO.training_rows("absolute_error")._replace(strata=strata_of(WHO))
    with pytest.raises(ValueError, match="is not for regression"):
        ConditionalOn("demographic_parity").prepare(regression, 0.1)
    ConditionalOn("mean_score_parity").prepare(regression, 0.1)
    with pytest.raises(ValueError, match="limits nothing"):
        bind("demographic_parity", WHO, strata_of(WHO), max_disparity=5)
