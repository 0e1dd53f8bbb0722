"""Convex parts of steps, constraints, objectives and problems: convex, and of the right sum."""

import numpy as np
import pytest

from skfair.papers.idca.idca_stochastic import strata_of
from skfair.papers.idca.parts import PARTS, ConvexStep, DCProblem, ObjectivePart, part_of_moment
from skfair.partial_parity.objectives import Objective
from skfair.partial_parity.pair_losses import PairwiseLoss
from tests.naive import partial as naive
from tests.partial_parity import test_constraints_of_intervals as intervals
from tests.partial_parity import test_pair_losses as ranking
from tests.partial_parity import test_pairwise_constraints as pairs
from tests.partial_parity import test_problem as problems
from tests.partial_parity.test_surrogates import FAR, STEPS, check_rates_and_slopes
from tests.seeds import generator

each_part = pytest.mark.parametrize("part", PARTS)
each_step = pytest.mark.parametrize("step", STEPS, ids=str)
each_rate_step = pytest.mark.parametrize(
    "step", [*intervals.SURROGATES[::2], intervals.SURROGATES[3]], ids=str
)


def bound(rows, *how):
    """The forms of a constraint that the solvers of the paper are given."""
    forms = zip(intervals.forms_of(*how[:2]), rows.bind(*how), strict=True)
    return [one for form, one in forms if form in (None, "shares", "pairs")]


def parts_of(moment):
    return [part_of_moment(moment, part) for part in PARTS]


# Steps


@each_step
def test_parts_are_convex_and_differ_by_the_step(step):
    plus, minus = (ConvexStep(**vars(step), part=part)(FAR) for part in PARTS)
    assert plus - minus == pytest.approx(step(FAR), abs=1e-12)
    for convex in (plus, minus):
        assert np.diff(convex, 2).min() >= -1e-12
        assert np.diff(convex, 2).max() > 1e-6


@each_step
@each_part
def test_rates_and_slopes_of_steps(step, part):
    convex = ConvexStep(**vars(step), part=part)
    how = part, step.kind, step.width, step.rounding
    check_rates_and_slopes(convex, lambda x: naive.part_of_step(x, *how))


# Constraints


@intervals.each_constraint
@intervals.each_interval
@each_rate_step
def test_rates(constraint, interval, step):
    """Along lines through scores and auxiliaries together; slopes are derivatives."""
    rng = generator(5)
    rows, few = intervals.random_rows(5), intervals.random_rows(3, n=30, is_weighted=True)
    way, steps = rng.normal(size=rows.scores.size), np.linspace(-2, 2, 25)
    for one in bound(rows, constraint, interval, step):
        aux, turn = rng.normal(size=(2, one.n_aux))
        whole, *parts = (
            np.array([f.evaluate(rows.scores + t * way, aux + t * turn).values for t in steps])
            for f in (one, *parts_of(one))
        )
        assert parts[0] - parts[1] == pytest.approx(whole, abs=1e-12)
        assert np.diff(parts, 2, axis=1).min() >= -1e-12
    for one in bound(few, constraint, interval, step):
        multipliers = generator(2).normal(size=one.n_constraints)
        for convex in parts_of(one):
            intervals.check_slopes(convex, few.scores, intervals.random_aux(one), multipliers)


@pairs.each_interval
@pairs.each_step
def test_pairs_of_rows(interval, step):
    rows, scores = pairs.some_rows(5, interval=interval)
    constraint = pairs.bind(rows, step=step)
    plus, minus = parts_of(constraint)
    rng = generator(6)
    # Also where scores are equal, and where differences sit on the corners of the ramp.
    for here in (scores, scores.round(1), np.zeros(scores.size), 0.5 * scores.round()):
        for length in (0.3, 1.0, 3.0):  # the selection changes along all of them
            there = here + length * rng.normal(size=scores.size)
            middle = 0.3 * here + 0.7 * there
            difference = pairs.values(plus, middle) - pairs.values(minus, middle)
            assert difference == pytest.approx(pairs.values(constraint, middle), abs=1e-13)
            for convex in (plus, minus):
                start, end = pairs.values(convex, here), pairs.values(convex, there)
                assert np.all(pairs.values(convex, middle) <= 0.3 * start + 0.7 * end + 1e-12)
                for row, unit in enumerate(np.eye(constraint.n_constraints)):
                    slope = pairs.slopes(convex, here, unit) @ (there - here)
                    assert end[row] - start[row] >= slope - 1e-12
    few, scores = pairs.some_rows(3, n=12, interval=interval)
    for convex in parts_of(pairs.bind(few, step=step)):
        pairs.check_slopes(convex, scores)


# Objectives


@ranking.each_kind
@ranking.each_interval
def test_losses_of_pairs(kind, interval):
    targets, weights, scores = ranking.some_rows(4)
    objective = PairwiseLoss(targets, weights, interval, kind=kind)
    plus, minus = (ObjectivePart(objective, part) for part in PARTS)
    rng = generator(5)
    # Also where scores are equal, and where pairs sit on the corner of the hinge.
    for here in (scores, scores.round(), np.zeros(scores.size)):
        difference = plus.evaluate(here)[0] - minus.evaluate(here)[0]
        assert difference == pytest.approx(objective.evaluate(here)[0], rel=1e-12)
        for length in (0.3, 1.0, 3.0):
            there = here + length * rng.normal(size=here.size)
            for convex in (plus, minus):
                value, slopes = convex.evaluate(here)
                end, _ = convex.evaluate(there)
                middle, _ = convex.evaluate((here + there) / 2)
                assert middle <= (value + end) / 2 + 1e-12
                assert end >= value + slopes @ (there - here) - 1e-12
    for convex in (plus, minus):
        ranking.check_slopes(convex, scores)


@ranking.each_kind
def test_full_auc_is_convex(kind):
    targets, weights, scores = ranking.some_rows(6)
    minus = ObjectivePart(PairwiseLoss(targets, weights, kind=kind), "minus")
    value, slopes = minus.evaluate(scores)
    assert value == 0.0
    assert not slopes.any()


class Difference(Objective):
    """The mean square of scores minus targets, less half of it: convex, by two convex parts."""

    def evaluate(self, scores, targets, weights):
        return float(weights @ (scores - targets) ** 2) / 2, weights * (scores - targets)

    def minus(self, scores, targets, weights):
        return float(weights @ scores**2), 2 * weights * scores


def test_parts_of_a_users_objective_differ_by_the_whole():
    targets, weights, scores = ranking.some_rows(3)
    bound = Difference().prepare(targets, weights / weights.sum())
    both = [ObjectivePart(bound, part) for part in PARTS]
    (plus, up), (minus, down), (whole, slopes) = (f.evaluate(scores) for f in (*both, bound))
    assert plus - minus == pytest.approx(whole)
    assert minus == pytest.approx(weights @ scores**2 / weights.sum())  # as it was given
    assert up - down == pytest.approx(slopes)
    assert bound.share_right(scores) == pytest.approx(
        weights @ ((scores > 0) == (targets > 0)) / weights.sum()
    )


# Problems


def build(*args, **options):
    whole = problems.build(*args, **options)
    return DCProblem(whole.model, whole.objective, whole.moments, 0.1, alpha=whole.alpha)


@problems.each_stack
@problems.each_model
def test_parts_of_problems(constraints, model):
    problem = build(problems.people(), constraints, model=model)
    theta, _ = problems.random_point(problem)
    way = generator(3).normal(size=theta.size)
    along = []
    for t in np.linspace(-2, 2, 21):
        whole, (plus, minus) = problem.evaluate(theta + t * way), problem.parts(theta + t * way)
        value, _ = problem.objective_minus(plus)
        rows = (whole.objective, plus.objective, value), (whole, plus, minus)
        along.append([[o, *at.constraints] for o, at in zip(*rows, strict=True)])
    whole, plus, minus = np.array(along).transpose(1, 0, 2)
    assert plus - minus == pytest.approx(whole, abs=1e-12)
    assert np.diff([plus, minus], 2, axis=1).min() >= -1e-12


def test_strata_have_one_dimension_with_every_numpy(monkeypatch):
    """With ``axis=``, numpy 2.0.0 gives the inverse as many dimensions as the array."""
    problem = build(problems.people(), ["statistical_parity"])
    expected, unique = strata_of(problem), np.unique

    def unique_of_2_0_0(*args, **kwargs):
        values, inverse = unique(*args, **kwargs)
        return values, inverse.reshape(1, -1)

    monkeypatch.setattr(np, "unique", unique_of_2_0_0)
    assert strata_of(problem).shape == (80,)
    assert np.array_equal(strata_of(problem), expected)
