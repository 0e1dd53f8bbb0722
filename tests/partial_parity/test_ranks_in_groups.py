"""Constraints on classes with ranks in the whole group: Definitions A.2, A.3."""

import numpy as np
import pytest

from skfair.classification import PartialParityClassifier
from skfair.constraints.partial import IntervalConstraint, Surrogate
from skfair.metrics import partial_equal_opportunity_gap, partial_equalized_odds_gap
from tests import naive
from tests.naive.row_pairs import step
from tests.partial_parity.ranked_moments import ranked_moments
from tests.seeds import generator

METRICS = {
    "equal_opportunity": (partial_equal_opportunity_gap, [1]),
    "equalized_odds": (partial_equalized_odds_gap, [-1, 1]),
}
INTERVALS = {"pair": (0.1, 0.6), "union": [(0.0, 0.25), (0.5, 0.8)]}
each_constraint = pytest.mark.parametrize("name", METRICS)
each_interval = pytest.mark.parametrize("interval", INTERVALS.values(), ids=list(INTERVALS))
STEP = Surrogate("smoothstep", 0.6)


def rows(seed=0, n=60, weighted=True):
    rng = generator(seed)
    groups = rng.choice(["a", "b", "c"], n)
    scores = rng.normal(size=n) + 0.4 * (groups == "b")
    targets = np.where(scores + rng.normal(size=n) > 0, 1.0, -1.0)
    for g in "abc":  # both classes in any four ranks, so that none is absent from an interval
        ranked = np.flatnonzero(groups == g)[np.argsort(scores[groups == g])]
        targets[ranked[::4]], targets[ranked[1::4]] = 1.0, -1.0
    weights = rng.uniform(0.3, 2, n) if weighted else None
    return scores, groups, targets, weights


def bind(name, groups, targets, weights, interval, surrogate=STEP):
    given = groups, targets, weights, interval, surrogate
    return ranked_moments(name, *given, rank_within="group")


def rates(scores, groups, targets, weights, interval, labels, function):
    """By class and group, one row at a time: masses of ranks in the whole group."""
    pairs = interval if isinstance(interval, list) else [interval]
    weights = np.ones(scores.size) if weights is None else weights
    found = []
    for label in labels:
        for g in "abc":
            here = groups == g
            masses = naive.overlap_masses(scores[here], weights[here], pairs)
            above = inside = 0.0
            for z, t, m in zip(scores[here], targets[here], masses, strict=True):
                if t == label:
                    inside += m
                    above += m * function(z)
            found.append(above / inside)
    return np.array(found)


@each_constraint
@each_interval
@pytest.mark.parametrize("ties", [False, True])
def test_values_are_those_of_single_rows(name, interval, ties):
    scores, *others = rows(1)
    scores = scores.round(1) if ties else scores
    labels = METRICS[name][1]
    constraint = bind(name, *others, interval)[-1]
    centers = np.arange(len(labels)) * 0.1
    found = constraint.evaluate(scores, centers).values
    expected = rates(scores, *others, interval, labels, lambda x: step(x, "smoothstep", 0.6))
    assert found == pytest.approx(expected - np.repeat(centers, 3), abs=1e-12)


@each_constraint
@each_interval
def test_slopes_are_finite_differences_where_ranks_stay(name, interval):
    scores, *others = rows(2)
    constraint = bind(name, *others, interval)[-1]
    at = constraint.evaluate(scores, np.zeros(constraint.n_aux))
    multipliers = generator(0).normal(size=constraint.n_constraints)
    slopes, of_centers = constraint.pull(at, multipliers)
    gaps = np.diff(np.sort(scores)).min()
    h = min(1e-6, gaps / 4)

    def value(z, aux):
        return multipliers @ constraint.evaluate(z, aux).values

    zero = np.zeros(constraint.n_aux)
    for i in range(scores.size):
        up, down = scores.copy(), scores.copy()
        up[i] += h
        down[i] -= h
        assert slopes[i] == pytest.approx((value(up, zero) - value(down, zero)) / (2 * h), abs=1e-5)
    for j, unit in enumerate(np.eye(constraint.n_aux)):
        assert of_centers[j] == pytest.approx(value(scores, unit) - value(scores, zero), abs=1e-9)


@each_constraint
@each_interval
def test_with_a_sharp_step_it_is_the_metric(name, interval):
    scores, groups, targets, weights = rows(3)
    metric, labels = METRICS[name]
    constraint = bind(name, groups, targets, weights, interval, Surrogate("smoothstep", 1e-9))[-1]
    values = constraint.evaluate(scores, np.zeros(constraint.n_aux)).values.reshape(len(labels), 3)
    expected = metric(
        targets > 0,
        scores,
        sensitive_features=groups,
        interval=interval,
        sample_weight=weights,
        pos_label=True,
    )
    assert np.ptp(values, axis=1).max() == pytest.approx(expected, abs=1e-12)


@each_constraint
def test_the_other_forms_are_sufficient(name):
    """Scores that meet them have nobody, or everybody, of an interval above the threshold."""
    scores, groups, targets, weights = rows(4)
    below, above, _ = bind(name, groups, targets, weights, (0.1, 0.6), Surrogate("ramp", 1e-9))
    for constraint, shift in ((below, -9.0), (above, 9.0)):
        shifted = scores + shift
        values = constraint.evaluate(shifted, np.zeros(constraint.n_aux)).values
        low, high = constraint.bounds(0.1)
        assert ((values >= low) & (values <= high)).all()
        gap = METRICS[name][0](
            targets > 0,
            shifted,
            sensitive_features=groups,
            interval=(0.1, 0.6),
            pos_label=True,
        )
        assert gap == 0


def people(seed=0, n=500):
    rng = generator(seed)
    group = rng.choice(["a", "b"], n)
    X = rng.normal(size=(n, 3)) + (group == "b")[:, None] * [1.0, 0, 0]
    y = (X[:, 0] + X[:, 1] + 1.5 * rng.normal(size=n) > 0.5).astype(int)
    return X, y, group


INTERVAL = (0.1, 0.6)


def in_groups(name):
    return IntervalConstraint(name, rank_within="group")


def gap_of(name, model, X, y, group, rank_within="group"):
    given = {"sensitive_features": group} if model.is_group_aware_ else {}
    scores = model.decision_function(X, **given)
    return METRICS[name][0](
        y, scores, sensitive_features=group, interval=INTERVAL, rank_within=rank_within
    )


@each_constraint
@pytest.mark.parametrize(
    "options",
    [{"group_aware": True}, {"solver": "al_lbfgs"}, {"solver": "al_lbfgs", "group_aware": True}],
    ids=str,
)
def test_fits_keep_what_the_metric_measures_by_default(name, options):
    X, y, group = people()
    free = PartialParityClassifier(INTERVAL, in_groups(name), 1.0, **options)
    free.fit(X, y, sensitive_features=group)
    assert gap_of(name, free, X, y, group) > 0.06
    model = PartialParityClassifier(INTERVAL, in_groups(name), 0.05, **options)
    model.fit(X, y, sensitive_features=group)
    assert gap_of(name, model, X, y, group) <= 0.05 + 1e-9
    assert model.train_disparity_ == pytest.approx(gap_of(name, model, X, y, group), abs=1e-9)
    assert model.is_within_limit_
    assert model.noise_floor_ > 0


def test_ranks_within_classes_are_another_constraint():
    """Each fit keeps its own number; one that keeps one misses the other."""
    name, missed = "equal_opportunity", []
    for seed in range(4):
        X, y, group = people(seed)
        for ranks, other in (("group", "class"), ("class", "group")):
            model = PartialParityClassifier(
                INTERVAL, IntervalConstraint(name, ranks), 0.03, group_aware=True
            ).fit(X, y, sensitive_features=group)
            assert gap_of(name, model, X, y, group, ranks) <= 0.03 + 1e-9
            missed.append(gap_of(name, model, X, y, group, other) > 0.03)
    assert any(missed)


def test_constraints_on_all_rows_rank_whole_groups_in_any_case():
    X, y, group = people(1)
    for name in ("statistical_parity", "demographic_parity", "group_auc"):
        one, other = (
            PartialParityClassifier(INTERVAL, IntervalConstraint(name, ranks), 0.1).fit(
                X, y, sensitive_features=group
            )
            for ranks in ("group", "class")
        )
        assert (one.coef_ == other.coef_).all()


def test_what_has_no_meaning_is_refused():
    X, y, group = people()
    model = PartialParityClassifier(INTERVAL, in_groups("equalized_odds"), 0.1, scale="ccdf")
    with pytest.raises(ValueError, match="no meaning for rank_within='group'"):
        model.fit(X, y, sensitive_features=group)
    model.set_params(scale="conditional").fit(X, y, sensitive_features=group)
    with pytest.raises(ValueError, match="no such bound for rank_within='group'"):
        model.disparity_upper_bound(X, y, sensitive_features=group)
    for params in ({"rank_within": "groups"}, {"surrogate": "step"}, {"n_percentiles": 0}):
        for constraint in (
            IntervalConstraint("equalized_odds", **params),
            IntervalConstraint("equalized_odds").set_params(**params),
        ):
            with pytest.raises(ValueError, match=f"{next(iter(params))} must be"):
                PartialParityClassifier(INTERVAL, constraint).fit(X, y, sensitive_features=group)
