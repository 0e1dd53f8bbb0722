"""The input of constraints: parameters, names, cells that must not be empty, and errors."""

import numpy as np
import pytest
from scipy.special import expit

from skfair.classification import ConstrainedERMClassifier
from skfair.constraints import Constraint, DemographicParity
from skfair.constraints.base import make_constraints
from skfair.constraints.moments import Moment
from tests.naive import erm as naive
from tests.registries import CONSTRAINT_KINDS
from tests.seeds import generator
from tests.small_problems import make_constraint, people, trained_constraints

CONSTRAINT_NAMES = trained_constraints()
WHO = people(seed=1, n=90, n_levels=(3,))
SCORES = generator(3).normal(size=90)
each_constraint = pytest.mark.parametrize("name", CONSTRAINT_NAMES)


@each_constraint
def test_own_bound_overrides(name):
    rows = WHO.training_rows()
    assert CONSTRAINT_KINDS[name]().prepare(rows, 0.1).max_disparity == 0.1
    assert CONSTRAINT_KINDS[name](max_disparity=0.3).prepare(rows, 0.1).max_disparity == 0.3
    assert CONSTRAINT_KINDS[name](max_disparity=0).prepare(rows, 0.1).max_disparity == 0.0
    twice = CONSTRAINT_KINDS[name](0.3).prepare(rows, 0.1).scaled(2.0)
    assert twice.max_disparity == pytest.approx(0.6)
    assert twice.upper == pytest.approx(2 * CONSTRAINT_KINDS[name](0.3).prepare(rows, 0.1).upper)


@pytest.mark.parametrize("bound", [-0.1, np.nan])
def test_a_bound_below_zero_is_refused(bound):
    for constraint, given in ((DemographicParity(bound), 0.1), (DemographicParity(), bound)):
        with pytest.raises(ValueError, match=f"must be a number from 0 to inf, got {bound}"):
            constraint.prepare(WHO.training_rows(), given)


@pytest.mark.parametrize("bound", ["0.1", [0.1], (0.1, 0.2)])
def test_a_bound_that_is_no_number_is_refused(bound):
    with pytest.raises((TypeError, ValueError), match="max_disparity must be"):
        DemographicParity(bound).prepare(WHO.training_rows(), 0.1)


def test_names_objects_and_lists_of_both():
    own = DemographicParity(0.01)
    assert make_constraints(own, "classification") == [own]
    made = make_constraints([own, "equalized_odds"], "classification")
    assert made[0] is own
    assert type(made[1]) is CONSTRAINT_KINDS["equalized_odds"]
    with pytest.raises(ValueError, match="empty list"):
        make_constraints([], "classification")


def needed_classes(name):
    return {"all": [], "positive": [1], "negative": [-1], "class": [1, -1]}[
        naive.CONSTRAINT_NAMES[name][0]
    ]


@each_constraint
@pytest.mark.parametrize("by_weight", [False, True])
def test_empty_cells_are_named(name, by_weight):
    """Only cells that the constraint needs are named: others may well be empty."""
    cells = {("b", 1): "group 'b' with y='yes'", ("c", -1): "group 'c' with y='no'"}
    kept = np.ones(WHO.signs.size, bool)
    for group, label in cells:
        kept &= (WHO.columns[0] != group) | (WHO.signs != label)
    who = WHO._replace(weights=kept.astype(float)) if by_weight else WHO.take(np.flatnonzero(kept))
    needed = needed_classes(name)
    if not needed:
        make_constraint(name).prepare(who.training_rows(), 0.1)
        return
    with pytest.raises(ValueError, match="empty cell is undefined") as error:
        make_constraint(name).prepare(who.training_rows(), 0.1)
    for (_, label), words in cells.items():
        assert (words in str(error.value)) == (label in needed)


@each_constraint
def test_a_group_without_weight_is_named(name):
    rows = WHO._replace(weights=(WHO.columns[0] != "b").astype(float))
    with pytest.raises(ValueError, match="group 'b'"):
        make_constraint(name).prepare(rows.training_rows(), 0.1)


def steep(scores):
    value = expit(scores - 1)
    return value, value * (1 - value), value * (1 - value) * (1 - 2 * value)


def above_1(scores):
    return (scores > 1).astype(float)


@pytest.mark.parametrize(
    ("parts", "strict", "said"),
    [
        (steep, lambda scores: above_1(scores).mean(), r"strict value of shape \(\)"),
        (steep, lambda scores: above_1(scores)[:, None], "strict value of shape"),
        (steep, lambda scores: above_1(scores)[1:], "strict value of shape"),
        (steep, lambda scores: above_1(scores) * 1j, "type complex128"),
        (steep, lambda scores: above_1(scores) * np.nan, "strict value that is NaN"),
        (lambda scores: steep(scores)[:2], above_1, "tuple of value, slope and curvature"),
        (lambda scores: None, above_1, "tuple of value, slope and curvature"),
        (lambda scores: (steep(scores)[0].mean(), *steep(scores)[1:]), above_1, "a value of shape"),
        (lambda scores: (*steep(scores)[:2], steep(scores)[2][1:]), above_1, "a curvature of"),
    ],
)
def test_a_moment_that_answers_wrongly_is_refused_by_name(parts, strict, said):
    """A mean over all rows was taken for the value of each: groups were alike, and "converged"."""

    class Own(Moment):
        def parts(self, scores, temperature, rows=None):
            return parts(scores)

        def strict(self, scores):
            return strict(scores)

    class OwnConstraint(Constraint):
        def moment(self, rows):
            return Own()

    with pytest.raises((TypeError, ValueError), match=f"Own.*{said}"):
        OwnConstraint().prepare(WHO.training_rows(), 0.1)


@pytest.mark.parametrize("factor", [-1.0, 0.5])
def test_a_wrong_slope_is_named_before_anything_is_solved(factor):
    """The fit ended "infeasible", and its advice was to merge groups."""

    class Own(Moment):
        def parts(self, scores, temperature, rows=None):
            value, slope, curvature = steep(scores)
            return value, factor * slope, curvature

        def strict(self, scores):
            return scores > 1

    class OwnConstraint(Constraint):
        def moment(self, rows):
            return Own()

    rng = generator(5)
    X, sex = rng.normal(size=(200, 2)), rng.permutation(np.resize(["f", "m"], 200))
    model = ConstrainedERMClassifier(OwnConstraint())
    with pytest.raises(ValueError, match="Own: the slope is .* differences of the value give"):
        model.fit(X, X[:, 0] > 0, sensitive_features=sex)


def test_a_moment_with_a_kink_is_accepted():
    class Kink(Moment):
        def parts(self, scores, temperature, rows=None):
            return np.maximum(scores, 0.0), (scores > 0) * 1.0, np.zeros_like(scores)

        def strict(self, scores):
            return np.maximum(scores, 0.0)

    class OwnConstraint(Constraint):
        def moment(self, rows):
            return Kink()

    assert OwnConstraint().prepare(WHO.training_rows(), 0.1).max_disparity == 0.1


def test_a_moment_that_answers_rightly_may_count_with_booleans():
    class Own(Moment):
        def parts(self, scores, temperature, rows=None):
            return steep(scores)

        def strict(self, scores):
            return scores > 1

    class OwnConstraint(Constraint):
        def moment(self, rows):
            return Own()

    scores, rows = 2 * SCORES, WHO.training_rows()
    bound = OwnConstraint().prepare(rows, 0.1)
    rates = [np.mean(scores[WHO.columns[0] == g] > 1) for g in np.unique(WHO.columns[0])]
    assert bound.disparity(scores) == pytest.approx(np.ptp(rates))
