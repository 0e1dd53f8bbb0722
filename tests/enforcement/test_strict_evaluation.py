"""The threshold scan against trying every threshold by hand."""

import numpy as np
import pytest

from skfair._kernels import thresholds as kernels
from skfair.constraints.base import TrainingRows, make_constraints
from skfair.constraints.rates import RateParity
from skfair.enforcement.strict_evaluation import StrictEvaluation
from skfair.groups.encoding import encode_groups
from skfair.losses import make_loss
from tests.naive import erm as naive
from tests.python_kernels import as_python
from tests.seeds import generator
from tests.small_problems import trained_constraints

RATE_CONSTRAINTS = [
    name
    for name in trained_constraints()
    if naive.CONSTRAINT_NAMES[name][1] in ("selected", "rejected", "right")
]


@pytest.fixture(params=["compiled", "python"], autouse=True)
def kernel(request, monkeypatch):
    if request.param == "python":
        scan = as_python(kernels.scan_thresholds)
        disparity = as_python(kernels._largest_disparity)
        monkeypatch.setitem(scan.__globals__, "_largest_disparity", disparity)
        monkeypatch.setattr(kernels, "scan_thresholds", scan)


def sample(seed, n=40, n_groups=3, n_attributes=1, ties=False, weighted=False):
    rng = generator(seed)
    columns = []
    for _ in range(n_attributes):
        codes = rng.integers(0, n_groups, n)
        codes[: 2 * n_groups] = np.repeat(np.arange(n_groups), 2)  # every group has both classes
        columns.append(codes)
    targets = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    targets[: 2 * n_groups] = np.tile([-1.0, 1.0], n_groups)
    scores = rng.normal(size=n) + 0.5 * targets
    if ties:
        scores = np.round(scores)
    weights = rng.integers(1, 4, n).astype(float) if weighted else None
    return scores, targets, columns, weights


def bind(names, bound, targets, columns, weights, reference="pairwise", comparison="difference"):
    groups = encode_groups(np.column_stack(columns), intersectional=False)
    rows = TrainingRows(groups, targets, weights, make_loss("log_loss", "classification"), (0, 1))
    constraints = make_constraints(names, "classification")
    options = {"reference": reference, "comparison": comparison}
    for constraint in constraints:
        constraint.set_params(**{k: v for k, v in options.items() if k in constraint.get_params()})
    return [constraint.prepare(rows, bound) for constraint in constraints]


def best_by_hand(names, bound, scores, targets, columns, weights, reference, comparison):
    """Try a threshold in every gap; return the best accuracy that satisfies all, or None."""
    levels = np.unique(scores)
    cuts = np.concatenate([[levels[0] - 1], (levels[1:] + levels[:-1]) / 2, [levels[-1] + 1]])
    w = np.ones(len(scores)) if weights is None else weights
    best = None
    for cut in cuts:
        gaps = [
            naive.disparity(
                name, reference, scores - cut, targets, columns, weights, comparison=comparison
            )
            for name in names
        ]
        if max(gaps) <= bound:
            accuracy = w @ ((scores > cut) == (targets > 0)) / w.sum()
            best = accuracy if best is None else max(best, accuracy)
    return best


@pytest.mark.parametrize("reference", ["pairwise", "overall"])
@pytest.mark.parametrize("comparison", ["difference", "ratio"])
@pytest.mark.parametrize(
    "names",
    [
        *([name] for name in RATE_CONSTRAINTS),
        ["demographic_parity", "equal_opportunity"],
        ["predictive_parity", "bounded_selection_rate"],
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_finds_the_best_threshold(names, reference, comparison, seed):
    scores, targets, columns, weights = sample(
        seed, n_attributes=1 + seed % 2, ties=seed == 3, weighted=seed > 1
    )
    bound = 0.173  # no rate of so few people is exactly there
    constraints = bind(names, bound, targets, columns, weights, reference, comparison)
    w = np.ones(len(scores)) if weights is None else weights
    found = StrictEvaluation.of_scores(constraints, targets, w / w.sum()).threshold(scores, 1e-9)
    expected = best_by_hand(names, bound, scores, targets, columns, weights, reference, comparison)
    assert found.verdict.is_feasible == (expected is not None)
    shifted = scores + found.shift
    worst = max(constraint.disparity(shifted) for constraint in constraints)
    assert found.verdict.excess == pytest.approx(worst - bound, abs=1e-9)
    if expected is not None:
        assert found.verdict.merit == pytest.approx(expected)
        assert w @ ((shifted > 0) == (targets > 0)) / w.sum() == pytest.approx(expected)
        assert worst <= bound


def test_gaps_that_rounding_could_close_are_not_used():
    scores = np.array([1.0, 0.3 + 1e-12, 0.3, -1.0])
    targets = np.array([1.0, 1.0, -1.0, -1.0])
    scan = StrictEvaluation.of_scores([], targets, np.full(4, 0.25)).threshold
    fine, coarse = scan(scores, 1e-15), scan(scores, 1e-9)
    assert (fine.verdict.merit, coarse.verdict.merit) == (1.0, 0.75)
    assert np.abs(scores + coarse.shift).min() > 1e-3


def test_an_own_constraint_whose_rates_are_bounded():
    """The scan once took the largest rate for a distance from the overall one."""

    class Capped(RateParity):
        subset = "negative"

    scores, targets, columns, _ = sample(1)
    groups = encode_groups(columns[0])
    rows = TrainingRows(groups, targets, None, make_loss("log_loss", "classification"), (0, 1))
    constraint = Capped(comparison="bounded").prepare(rows, 0.1)
    strict = StrictEvaluation.of_scores([constraint], targets, np.full(40, 1 / 40))
    found = strict.threshold(scores, 1e-9)
    rates = [
        (scores + found.shift > 0)[(targets < 0) & (columns[0] == group)].mean()
        for group in range(3)
    ]
    assert found.verdict.excess == pytest.approx(max(rates) - 0.1, abs=1e-9)
    assert found.verdict.is_feasible
