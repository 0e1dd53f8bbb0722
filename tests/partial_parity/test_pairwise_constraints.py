"""Constraints of pairs of rows against loops over all pairs; slopes, invariances."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from skfair.constraints.partial import Surrogate
from skfair.metrics import partial_group_auc_gap
from tests.naive import row_pairs
from tests.partial_parity.ranked_moments import ranked_moments
from tests.seeds import generator

INTERVALS = {
    "all": (0.0, 1.0),
    "top": (0.0, 0.4),
    "pair": (0.13, 0.61),
    "union": [(0.05, 0.3), (0.5, 0.71)],
    "per group": {0: (0.0, 0.3), 1: [(0.1, 0.2), (0.45, 0.9)], 2: (0.2, 0.45)},
}
STEPS = {
    "ramp": Surrogate("ramp", 0.5),
    "round": Surrogate("ramp", 0.5, 0.3),
    "rounder": Surrogate("ramp", 0.5, 1.0),
    "smoothstep": Surrogate("smoothstep", 0.6),
}
NO_AUX = np.zeros(0)

each_interval = pytest.mark.parametrize("interval", INTERVALS.values(), ids=list(INTERVALS))
each_step = pytest.mark.parametrize("step", STEPS.values(), ids=list(STEPS))


class Rows(NamedTuple):
    """Rows of groups that are numbered from 0."""

    codes: np.ndarray
    targets: np.ndarray
    sample_weight: np.ndarray | None
    interval: Any


def some_rows(seed=0, n=31, interval=(0.1, 0.6), weighted=True, n_groups=3):
    rng = generator(seed)
    codes = np.concatenate([np.repeat(np.arange(n_groups), 2), rng.integers(0, n_groups, n)])
    targets = np.where(rng.random(codes.size) < 0.5, 1.0, -1.0)
    targets[: 2 * n_groups] = np.tile([1.0, -1.0], n_groups)
    weights = rng.uniform(0.2, 2.0, codes.size) if weighted else None
    return Rows(codes, targets, weights, interval), rng.normal(size=codes.size)


def bind(rows, name="group_auc", step=STEPS["smoothstep"]):
    (constraint,) = ranked_moments(name, *rows, step)
    return constraint


def values(constraint, scores):
    return constraint.evaluate(scores, NO_AUX).values


def slopes(constraint, scores, multipliers):
    by_scores, by_aux = constraint.pull(constraint.evaluate(scores, NO_AUX), multipliers)
    assert by_aux.size == 0
    return by_scores


def check_slopes(constraint, scores, h=1e-6):
    multipliers = generator(1).normal(size=constraint.n_constraints)
    found = slopes(constraint, scores, multipliers)
    for i in range(scores.size):
        up, down = scores.copy(), scores.copy()
        up[i] += h
        down[i] -= h
        slope = multipliers @ (values(constraint, up) - values(constraint, down)) / (2 * h)
        assert found[i] == pytest.approx(slope, abs=1e-6)


def naive_values(rows, scores, step):
    weights = np.ones(scores.size) if rows.sample_weight is None else rows.sample_weight
    intervals = rows.interval
    if not isinstance(intervals, dict):
        intervals = dict.fromkeys(range(3), intervals)
    intervals = {g: np.atleast_2d(pairs) for g, pairs in intervals.items()}

    def function(x):
        return row_pairs.step(x, step.kind, step.width, step.rounding)

    return row_pairs.group_auc(scores, rows.codes, weights, intervals, function)


@each_interval
@each_step
def test_values_are_those_of_all_pairs(interval, step):
    for seed in range(3):
        rows, scores = some_rows(seed, interval=interval, weighted=seed != 1)
        scores = scores.round(1) if seed == 2 else scores  # many ties
        found = values(bind(rows, step=step), scores)
        np.testing.assert_allclose(found, naive_values(rows, scores, step), atol=1e-13)


@each_interval
@each_step
def test_slopes_are_those_of_the_values(interval, step):
    rows, scores = some_rows(3, n=12, interval=interval)
    check_slopes(bind(rows, step=step), scores)


@pytest.mark.parametrize(("offset", "scale"), [(1e6, 1.0), (0.0, 1e-3), (1e6, 1e-3), (-1e6, 1e3)])
@each_step
def test_precise_at_any_offset_and_scale(offset, scale, step):
    rows, scores = some_rows(4, interval=(0.0, 1.0))
    scores[[0, 2, 4]], scores[[1, 3, 5]] = 3e5, -3e5  # rows far away must not spoil the others
    scores = offset + scale * scores
    step = Surrogate(step.kind, step.width * scale, step.rounding)
    constraint = bind(rows, step=step)
    np.testing.assert_allclose(
        values(constraint, scores), naive_values(rows, scores, step), atol=1e-12
    )


def test_narrow_steps_give_the_metric():
    rows, scores = some_rows(8, n=60, interval=(0.1, 0.6))
    found = np.abs(values(bind(rows, step=Surrogate("ramp", 1e-9)), scores)).max()
    gap = partial_group_auc_gap(
        None,
        scores,
        sensitive_features=rows.codes,
        interval=(0.1, 0.6),
        sample_weight=rows.sample_weight,
    )
    assert found == pytest.approx(gap, abs=1e-12)


def test_bounds_names_and_limits():
    rows, scores = some_rows(11)
    constraint = bind(rows)
    assert constraint.row_names == ("0 above 1", "0 above 2", "1 above 2")
    lower, upper = constraint.bounds(0.07)
    assert lower.tolist() == [-0.07] * 3
    assert upper.tolist() == [0.07] * 3
    # All of a above all of b: the distance from 1/2 is 1/2, the other way round -1/2.
    far = scores + 100.0 * rows.codes
    np.testing.assert_allclose(values(constraint, far), -0.5, atol=1e-13)
    np.testing.assert_allclose(values(constraint, -far), 0.5, atol=1e-13)
    np.testing.assert_allclose(values(constraint, np.zeros(scores.size)), 0.0, atol=1e-13)


def test_one_group_has_no_rows():
    rows, scores = some_rows(12, n_groups=1)
    check_no_rows(bind(rows), scores)


def check_no_rows(constraint, scores):
    assert constraint.n_constraints == 0
    assert values(constraint, scores).size == 0
    assert not slopes(constraint, scores, np.zeros(0)).any()


def test_sigmoid_is_refused():
    rows, _ = some_rows(13)
    with pytest.raises(ValueError, match="'smoothstep' or 'ramp'"):
        bind(rows, step=Surrogate("sigmoid", 0.5))
