"""Constraints on rates within intervals: values, slopes, bounds, promises."""

from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from skfair.constraints.partial import Surrogate
from skfair.metrics import (
    partial_demographic_parity_gap,
    partial_equal_opportunity_gap,
    partial_equalized_odds_gap,
    partial_statistical_parity_gap,
)
from skfair.models import LinearScore
from skfair.partial_parity.problem import PartialParityProblem
from tests.naive import partial as naive
from tests.naive.soft import finite_differences
from tests.partial_parity.ranked_moments import ranked_moments
from tests.seeds import generator

INTERVALS = {
    "pair": (0.05, 0.3),
    "union": [(0, 0.2), (0.5, 0.7)],
    "per group": {"a": (0, 0.3), "b": [(0.1, 0.2), (0.4, 0.6)], "c": (0.2, 1.0)},
}
SURROGATES = [
    *(Surrogate("ramp", 0.5, rounding) for rounding in (0.0, 0.3)),
    Surrogate("smoothstep", 0.6),
    Surrogate("sigmoid", 0.2),
]
# Classes whose rates count; None for all rows together.
RATE_CONSTRAINTS = {
    "demographic_parity": [None],
    "equal_opportunity": [1],
    "false_positive_parity": [-1],
    "equalized_odds": [-1, 1],
}
# Ranks are taken within classes, as the constraints take them.
METRICS = {
    "demographic_parity": (partial_demographic_parity_gap, {}),
    "equal_opportunity": (partial_equal_opportunity_gap, {"rank_within": "class"}),
    "false_positive_parity": (
        partial_equal_opportunity_gap,
        {"rank_within": "class", "pos_label": -1.0},
    ),
    "equalized_odds": (partial_equalized_odds_gap, {"rank_within": "class"}),
}
CONSTRAINT_NAMES = ["statistical_parity", *RATE_CONSTRAINTS]
each_interval = pytest.mark.parametrize("interval", INTERVALS)
each_surrogate = pytest.mark.parametrize("surrogate", SURROGATES, ids=str)
each_constraint = pytest.mark.parametrize("constraint", CONSTRAINT_NAMES)
each_rate_constraint = pytest.mark.parametrize("constraint", RATE_CONSTRAINTS)
EXACT = Surrogate("smoothstep", 1e-9)


class Rows(NamedTuple):
    """Scored rows of three groups and two classes."""

    scores: np.ndarray
    groups: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None
    percentiles: np.ndarray = np.array([0.1, 0.5, 0.8])

    def bind(self, constraint, interval, surrogate):
        """All forms of a constraint on these rows."""
        if isinstance(interval, str):
            interval = INTERVALS[interval]
        of_rows = self.groups, self.targets, self.weights, interval, surrogate, self.percentiles
        forms = ranked_moments(constraint, *of_rows)
        return [
            *forms,
            *(ranked_moments(constraint, *of_rows, True) if constraint in RATE_CONSTRAINTS else []),
        ]

    def take(self, order):
        scores, groups, targets, weights = (
            None if column is None else column[order] for column in self[:4]
        )
        return self._replace(scores=scores, groups=groups, targets=targets, weights=weights)

    def gap(self, metric, interval, **options):
        """What a metric says about these rows."""
        return metric(
            self.targets,
            self.scores,
            sensitive_features=self.groups,
            interval=INTERVALS[interval],
            sample_weight=self.weights,
            **options,
        )


def random_rows(seed=0, n=60, is_weighted=False):
    rng = generator(seed)
    groups = rng.permutation(np.resize(list("aabbc"), n))
    targets = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    shift = dict(zip("abc", rng.normal(size=3), strict=True))
    scores = rng.normal(size=n) + 0.5 * targets + [shift[g] for g in groups]
    return Rows(scores, groups, targets, rng.integers(1, 4, n) * 1.0 if is_weighted else None)


def random_aux(constraint, seed=1):
    return generator(seed).normal(size=constraint.n_aux)


def bounds_of(interval):
    """The pieces of the interval of each group."""
    given = INTERVALS[interval]
    return [np.atleast_2d(given[g] if isinstance(given, dict) else given) for g in "abc"]


def forms_of(constraint, interval):
    if constraint == "statistical_parity":
        return [None]
    return [*(["ranks"] if interval != "per group" else []), "below", "above", "shares", "pairs"]


def naive_values(rows, constraint, form, interval, surrogate, aux):
    """The functions of a constraint, by loops over rows."""
    step = {"kind": surrogate.kind, "width": surrogate.width, "rounding": surrogate.rounding}
    of_step = partial(naive.step, **step)
    codes = np.array(["abc".index(g) for g in rows.groups])
    weights = np.ones(codes.size) if rows.weights is None else rows.weights
    if form is None:
        return naive.soft_rates(rows.scores, codes, 3, weights, aux, of_step).ravel()
    values = []
    for center, wanted in enumerate(RATE_CONSTRAINTS[constraint]):
        counts = weights * (True if wanted is None else rows.targets == wanted)
        (ranks,) = naive.soft_rates(rows.scores, codes, 3, counts, [0.0], of_step)
        if form in ("shares", "pairs"):
            ranks = naive.shares(ranks, bounds_of(interval))
        if form == "pairs":  # in ranks of the shortest interval
            unit = min(np.diff(pieces).sum() for pieces in bounds_of(interval))
            values.append(unit * (ranks[[0, 0, 1]] - ranks[[1, 2, 2]]))
            continue
        values.append(ranks - (aux[center] if form in ("shares", "ranks") else 0))
    return np.concatenate(values)


# Values and slopes


@each_constraint
@each_interval
@each_surrogate
def test_values(constraint, interval, surrogate):
    rows = random_rows(is_weighted=True)
    bound = rows.bind(constraint, interval, surrogate)
    for form, one in zip(forms_of(constraint, interval), bound, strict=True):
        aux = random_aux(one)
        values = one.evaluate(rows.scores, aux).values
        expected = naive_values(rows, constraint, form, interval, surrogate, aux)
        assert values == pytest.approx(expected, abs=1e-12)
        assert one.n_constraints == len(set(one.row_names)) == values.size


@each_constraint
@each_interval
@each_surrogate
def test_slopes(constraint, interval, surrogate):
    rows = random_rows(3, n=30, is_weighted=True)
    for one in rows.bind(constraint, interval, surrogate):
        aux = random_aux(one)
        multipliers = generator(2).normal(size=one.n_constraints)
        check_slopes(one, rows.scores, aux, multipliers)


def check_slopes(moment, scores, aux, multipliers):
    """Slopes are the derivatives of sums of values."""
    n = scores.size

    def total(x):
        return multipliers @ moment.evaluate(x[:n], x[n:]).values

    found = np.concatenate(moment.pull(moment.evaluate(scores, aux), multipliers))
    expected = finite_differences(total, np.concatenate([scores, aux]))
    assert found == pytest.approx(expected, abs=1e-7)


# Bounds


@pytest.mark.parametrize("interval", [(0.05, 0.3), (0.0, 0.3), (0.7, 1.0), (0.0, 1.0)], ids=str)
@pytest.mark.parametrize("kappa", [0.01, 0.2])
def test_bounds_are_those_of_the_paper(interval, kappa):
    """Problem (15): p <= rate <= p + kappa (beta - alpha), for shares that leave room for kappa."""
    alpha, beta = interval
    shares = np.array([0.0, 0.1, 0.5, 0.95])
    rows = random_rows()._replace(percentiles=shares)
    (one,) = rows.bind("statistical_parity", interval, EXACT)
    low, high = (bound.reshape(4, 3) for bound in one.bounds(kappa))
    p = alpha + np.minimum(shares, 1 - kappa) * (beta - alpha)
    room = p + kappa * (beta - alpha)
    for g in range(3):
        assert low[1:, g] == pytest.approx(p[1:])
        assert low[0, g] == -np.inf  # a share of 0 is never too small
        assert high[:3, g] == pytest.approx(room[:3])
        assert high[3, g] == (np.inf if 0.95 + kappa >= 1 else pytest.approx(room[3]))


@each_interval
@pytest.mark.parametrize("tolerance", [0.0, 0.1, 0.6, 1.0, 2.0])
def test_bounds_are_bounds_of_shares(interval, tolerance):
    """Ranks within them are those whose share is at least v and at most v plus the tolerance."""
    rows = random_rows()
    (one,) = rows.bind("statistical_parity", interval, EXACT)
    low, high = (bound.reshape(3, 3) for bound in one.bounds(tolerance))
    ranks = generator(0).random(400)
    for p, share in enumerate(np.minimum(rows.percentiles, max(0, 1 - tolerance))):
        for g, pairs in enumerate(bounds_of(interval)):
            covered = naive.shares(ranks, [pairs] * 400)
            expected = (covered >= share - 1e-12) & (covered <= share + tolerance + 1e-12)
            within = (ranks >= low[p, g]) & (ranks <= high[p, g])
            assert np.array_equal(within, expected)


# Starts


def start_of(one, scores, tolerance):
    """Where a problem of one constraint starts at these scores."""
    model = LinearScore(scores[:, None])
    problem = PartialParityProblem(model, None, [one], tolerance)
    return problem.start(model.standardised([1.0], 0.0))[model.n_parameters :]


@each_surrogate
@each_interval
def test_a_start_suits_the_scores(surrogate, interval):
    """The mean rank over the groups is that of the middles of their bounds."""
    rows = random_rows(2)
    (one,) = rows.bind("statistical_parity", interval, surrogate)
    ranks = one.evaluate(rows.scores, start_of(one, rows.scores, 0.0)).values.reshape(3, 3)
    middle = np.add(*one.bounds(0.0)).reshape(3, 3) / 2
    assert ranks.mean(axis=1) == pytest.approx(middle.mean(axis=1), abs=1e-9)


# What the constraints promise, by the metrics


def smallest_tolerance(one, scores):
    """The smallest one that the scores keep, by bisection."""
    values = one.evaluate(scores, start_of(one, scores, 0.0)).values

    def is_kept(tolerance):
        low, high = one.bounds(tolerance)
        return (values >= low - 1e-12).all() and (values <= high + 1e-12).all()

    low, high = 0.0, 5.0  # ranks may differ by more than all of the interval
    assert is_kept(high)
    for _ in range(35):
        middle = (low + high) / 2
        low, high = (low, middle) if is_kept(middle) else (middle, high)
    return high


@each_rate_constraint
@each_interval
def test_every_form_of_a_rate_constraint_is_sufficient(constraint, interval):
    """Scores that keep a form have shares within its tolerance; for shares it is also necessary."""
    metric, options = METRICS[constraint]
    drawn = [random_rows(seed, is_weighted=seed % 2 == 0) for seed in range(6)]
    nobody = drawn[0]._replace(scores=drawn[0].scores - 99)
    only_a = drawn[0]._replace(scores=drawn[0].scores + np.where(drawn[0].groups == "a", 99, -99))
    for rows, expected in [*((rows, None) for rows in drawn), (nobody, 0.0), (only_a, 1.0)]:
        gap = rows.gap(metric, interval, **options)
        assert expected is None or gap == expected
        bound = rows.bind(constraint, interval, EXACT)
        for form, one in zip(forms_of(constraint, interval), bound, strict=True):
            tolerance = smallest_tolerance(one, rows.scores)
            assert gap <= tolerance + 1e-9
            if form == "shares":
                assert gap == pytest.approx(tolerance, abs=1e-9)


@each_interval
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_statistical_parity_is_that_of_the_metric(interval, is_weighted, seed):
    """Lemma 5.1 on samples: the tolerance that scores keep at P percentiles is their gap.

    Up to 1 / P, because thresholds between two percentiles are not looked at, and up to the share
    of one row, because no threshold may have exactly the wanted share.
    """
    n_percentiles = 50
    rows = random_rows(seed, is_weighted=is_weighted)
    rows = rows._replace(percentiles=(np.arange(n_percentiles) + 0.5) / n_percentiles)
    (one,) = rows.bind("statistical_parity", interval, EXACT)
    ordered = np.sort(rows.scores)
    thresholds = np.concatenate([[-99], (ordered[1:] + ordered[:-1]) / 2, [99]])
    rates = [one.evaluate(rows.scores, np.full(n_percentiles, t)).values for t in thresholds]

    def is_kept(tolerance):
        low, high = one.bounds(tolerance)
        keeps = (rates >= low - 1e-12) & (rates <= high + 1e-12)
        return keeps.reshape(thresholds.size, n_percentiles, 3).all(axis=2).any(axis=0).all()

    gap = rows.gap(partial_statistical_parity_gap, interval)
    weights = np.ones(60) if rows.weights is None else rows.weights
    of_a_row = max(
        weights[rows.groups == g].max() / weights[rows.groups == g].sum() / np.diff(pairs).sum()
        for g, pairs in zip("abc", bounds_of(interval), strict=True)
    )
    assert gap > 0.1
    assert is_kept(gap + of_a_row + 1e-9)
    assert not is_kept(gap - 1 / n_percentiles - 1e-9)
