"""Losses row by row: against formulas, finite differences and what their docstrings promise."""

import numpy as np
import pytest
from scipy.special import expit

from skfair.classification import ConstrainedERMClassifier, PartialParityClassifier
from skfair.losses import (
    Hinge,
    LogLoss,
    Loss,
    RowParts,
    SmoothErrors,
    SquaredError,
    check_loss,
    gives_probabilities,
    make_loss,
    sigmoid,
)
from skfair.metrics import loss_parity_difference
from skfair.regression import ConstrainedERMRegressor
from tests.naive import erm as naive
from tests.registries import LOSSES
from tests.small_problems import task_of

each_loss = pytest.mark.parametrize("name", list(LOSSES))
SMOOTHED = [name for name in LOSSES if hasattr(LOSSES[name](), "smoothing")]


def rows_for(name, n=400, spread=3.0, seed=0):
    rng = np.random.default_rng(seed)
    targets = (
        rng.choice([-1.0, 1.0], n) if task_of(name) == "classification" else rng.normal(0, 1, n)
    )
    return spread * rng.normal(size=n), targets


def row(loss, score, target=1.0):
    return [float(part[0]) for part in loss.parts(np.array([score]), np.array([target]))]


def test_there_are_kinks_to_smooth():
    assert set(SMOOTHED) == {"hinge", "absolute_error"}


@each_loss
def test_values_are_those_of_the_formulas(name):
    scores, targets = rows_for(name)
    loss = LOSSES[name]()
    expected = naive.EXACT_LOSSES[name](scores, targets)
    assert loss.exact(scores, targets) == pytest.approx(expected, abs=1e-12)
    expected = naive.SMOOTH_LOSSES[name](scores, targets)
    assert loss.parts(scores, targets).value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", SMOOTHED)
@pytest.mark.parametrize("smoothing", [None, 0.5])
def test_smoothing_is_a_moreau_envelope(name, smoothing):
    """The parabola is not any: it is min over u of loss(u) + (u - score)^2 / (2 smoothing)."""
    loss = LOSSES[name]() if smoothing is None else LOSSES[name](smoothing)
    scores, targets = rows_for(name, 60, 1.0)
    grid = np.linspace(-8, 8, 40001)
    for z, t, value in zip(scores, targets, loss.parts(scores, targets).value, strict=True):
        u = t + grid  # the kink is on the grid
        envelope = naive.EXACT_LOSSES[name](u, t) + (u - z) ** 2 / (2 * loss.smoothing)
        assert value == pytest.approx(envelope.min(), abs=1e-6)


@each_loss
def test_max_curvature_is_the_largest_slope_of_the_slope(name):
    loss = LOSSES[name]()
    scores = np.linspace(-3, 3, 60001)
    parts = loss.parts(scores, np.ones_like(scores))
    steepest = np.abs(np.diff(parts.slope)).max() / (scores[1] - scores[0])
    assert steepest == pytest.approx(loss.max_curvature, rel=1e-6)
    assert parts.curvature.min() >= 0
    assert parts.curvature.max() == pytest.approx(loss.max_curvature, rel=1e-6)


@pytest.mark.parametrize(("steepness", "unit"), [(1.0, 1.0), (10.0, 0.3), (200.0, 5.0)])
def test_smooth_errors(steepness, unit):
    rng = np.random.default_rng(0)
    scores, targets, h = unit * rng.normal(size=2000), rng.choice([-1.0, 1.0], 2000), 1e-6 * unit
    loss = SmoothErrors(steepness, unit)
    up, down, here = (loss.parts(scores + s, targets) for s in (h, -h, 0.0))
    z = scores / unit
    expected = 0.5 - 0.5 * np.tanh(0.5 * steepness * targets * z) + 0.005 * z**2
    assert here.value == pytest.approx(expected, abs=1e-12)
    assert here.slope == pytest.approx((up.value - down.value) / (2 * h), abs=1e-4 / unit)
    assert here.curvature == pytest.approx((up.slope - down.slope) / (2 * h), abs=1e-2 / unit**2)
    assert np.abs(here.curvature).max() <= loss.max_curvature
    errors = loss.exact(scores, targets)
    assert (errors == (np.sign(scores) != targets)).all()
    gaps = [
        np.abs(SmoothErrors(steepness * k, unit, anchor=0.0).parts(scores, targets).value - errors)
        for k in (1, 10, 100)
    ]
    assert gaps[0].mean() > gaps[1].mean() > gaps[2].mean()
    with np.errstate(all="raise", under="ignore"):
        loss.parts(1e6 * scores, targets)


@each_loss
@pytest.mark.parametrize("size", [1e4, 1e6])
def test_large_scores_do_not_overflow(name, size):
    scores, targets = np.array([-size, -size, size, size]), np.array([-1.0, 1, -1, 1])
    loss = LOSSES[name]()
    with np.errstate(all="raise", under="ignore"):
        parts = loss.parts(scores, targets)
        exact = loss.exact(scores, targets)
    assert all(np.isfinite(part).all() for part in parts)
    assert exact == pytest.approx(naive.EXACT_LOSSES[name](scores, targets), rel=1e-12)
    assert loss.reported * parts.value == pytest.approx(exact, rel=1e-4, abs=1e-12)


def test_make_loss_takes_names_and_objects():
    own = Hinge(smoothing=0.01)
    assert make_loss(own, "classification") is own
    assert isinstance(make_loss("log_loss", "classification"), LogLoss)
    for name in LOSSES:
        for task in LOSSES[name].tasks:
            assert isinstance(make_loss(name, task), LOSSES[name])


def test_an_unknown_name_is_told_the_others():
    with pytest.raises(ValueError, match="no loss 'logloss'") as error:
        make_loss("logloss", "classification")
    assert all(repr(name) in str(error.value) for name in LOSSES)


@pytest.mark.parametrize(
    ("name", "task"), [("log_loss", "regression"), ("absolute_error", "classification")]
)
def test_a_loss_of_the_other_task_is_told_what_fits(name, task):
    with pytest.raises(ValueError, match=f"'{name}' is not for {task}") as error:
        make_loss(name, task)
    _, alternatives = str(error.value).split("Choose")
    for other in LOSSES:
        assert (other in alternatives) == (task in LOSSES[other].tasks)


@pytest.mark.parametrize("wrong", [3, None, LogLoss, lambda scores, targets: scores])
def test_something_else_than_a_loss_is_refused(wrong):
    with pytest.raises((TypeError, ValueError), match="loss must be"):
        make_loss(wrong, "classification")


@pytest.mark.parametrize("name", SMOOTHED)
@pytest.mark.parametrize("smoothing", [0.0, -0.1])
def test_a_width_that_is_none_is_refused(name, smoothing):
    """A negative width would give a concave piece, 0 a division by zero in the middle of a fit."""
    with pytest.raises(ValueError, match="smoothing"):
        LOSSES[name](smoothing)


def loss_breaches(loss):
    """List what a loss claims and does not keep: the contract of every loss of the registry."""
    breaches, h = [], 1e-6
    scores = np.linspace(-5.03, 5.03, 4001)
    for target in (-1.0, 1.0, *([0.37] if "regression" in loss.tasks else [])):
        targets = np.full_like(scores, target)
        here = loss.parts(scores, targets)
        low, high = (loss.parts(scores + step, targets) for step in (-h, h))
        is_smooth = np.abs(high.curvature - low.curvature) < 1e-3
        near = {"rtol": 0.0, "atol": 1e-8}
        slope, curvature = ((high[k] - low[k]) / (2 * h) for k in (0, 1))
        is_slope = np.isclose(here.slope, slope, rtol=0.0, atol=np.where(is_smooth, 1e-8, 1e-6))
        if not is_slope.all():
            breaches.append("slope is not the derivative of value")
        if is_smooth.mean() < 0.99 or not np.allclose(
            here.curvature[is_smooth], curvature[is_smooth], **near
        ):
            breaches.append("curvature is not the derivative of slope")
        if np.abs(np.diff(here.slope)).max() > loss.max_curvature * np.diff(scores)[0] * (1 + 1e-6):
            breaches.append("max_curvature is exceeded")
        if loss.is_convex and (np.diff(here.slope) < -1e-12).any():
            breaches.append("is_convex, but the slope falls")
        if any(np.shares_memory(part, scores) for part in here):
            breaches.append("parts are not new arrays")
    share, log_odds = np.array([0.1, 0.5, 0.8]), np.log([1 / 9, 1.0, 4.0])
    if loss.gives_probabilities:
        right, wrong = (loss.parts(log_odds, np.full(3, t)).slope for t in (1.0, -1.0))
        if not np.allclose(share * right + (1 - share) * wrong, 0, atol=1e-9):
            breaches.append("gives_probabilities, but is not least at the log-odds")
    return sorted(set(breaches))


@each_loss
def test_contract(name):
    assert loss_breaches(LOSSES[name]()) == []


@each_loss
def test_every_loss_is_measured_by_a_metric(name):
    scores, targets = rows_for(name)
    groups = np.repeat(["a", "b"], 200)
    losses = LOSSES[name]().exact(scores, targets)
    gap = abs(losses[:200].mean() - losses[200:].mean())
    found = loss_parity_difference(
        targets, scores, sensitive_features=groups, loss=name, task=task_of(name)
    )
    assert found == pytest.approx(gap, abs=1e-12)


class WrongSlope(LogLoss):
    def parts(self, scores, targets):
        parts = super().parts(scores, targets)
        return parts._replace(slope=2 * parts.slope)


class WrongCurvature(LogLoss):
    def parts(self, scores, targets):
        parts = super().parts(scores, targets)
        return parts._replace(curvature=parts.curvature + 0.1)


class TooFlat(LogLoss):
    max_curvature = 0.1


class NotConvex(SmoothErrors):
    is_convex = True

    def __init__(self):
        super().__init__(3.0, 1.0)


class NoLogOdds(Hinge):
    gives_probabilities = True


class OldArrays(SquaredError):
    def parts(self, scores, targets):
        return RowParts(0.5 * scores**2, scores, np.ones_like(scores))


@pytest.mark.parametrize(
    ("planted", "breach"),
    [
        (WrongSlope, "slope is not the derivative"),
        (WrongCurvature, "curvature is not the derivative"),
        (TooFlat, "max_curvature is exceeded"),
        (NotConvex, "the slope falls"),
        (NoLogOdds, "not least at the log-odds"),
        (OldArrays, "not new arrays"),
    ],
)
def test_a_planted_bad_loss_is_refused(planted, breach):
    assert any(breach in found for found in loss_breaches(planted()))
    with pytest.raises(AssertionError):
        check_loss(planted())


@each_loss
def test_losses_pass_their_check(name):
    for seed in range(5):
        check_loss(LOSSES[name](), random_state=seed)


def test_a_slope_of_the_wrong_sign_is_refused_before_the_fit():
    class Uphill(LogLoss):
        def parts(self, scores, targets):
            parts = super().parts(scores, targets)
            return parts._replace(slope=-parts.slope)

    X, y = np.arange(80.0)[:, None], np.arange(80) % 3 > 0
    with pytest.raises(ValueError, match="Uphill: the slope is .* differences of the value give"):
        ConstrainedERMClassifier(loss=Uphill()).fit(X, y, sensitive_features=np.arange(80) % 2)
    with pytest.raises(AssertionError, match="the slope is .* differences of the value give"):
        check_loss(Uphill())


class CautiousLogLoss(LogLoss):
    """Says that its scores are no log-odds."""

    gives_probabilities = False


class RenamedLogLoss(LogLoss):
    """Log loss under another name."""


def test_probabilities_are_a_claim_of_the_loss_and_not_its_name():
    for made in (RenamedLogLoss(), "log_loss", LogLoss()):
        assert gives_probabilities(made)
        assert hasattr(ConstrainedERMClassifier(loss=made), "predict_proba")
        assert hasattr(PartialParityClassifier(loss=made), "predict_proba")
    assert isinstance(CautiousLogLoss(), LogLoss)
    for made in (CautiousLogLoss(), "hinge", Hinge(), "unheard of", 3, LogLoss):
        assert not gives_probabilities(made)
        assert not hasattr(ConstrainedERMClassifier(loss=made), "predict_proba")
        assert not hasattr(PartialParityClassifier(loss=made), "predict_log_proba")


def test_a_subclass_predicts_what_log_loss_predicts():
    X, y, groups = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2, [0, 1] * 100
    groups = np.random.default_rng(1).permutation(groups)
    found = [
        ConstrainedERMClassifier(loss=loss).fit(X, y, sensitive_features=groups).predict_proba(X)
        for loss in ("log_loss", RenamedLogLoss())
    ]
    assert (found[0] == found[1]).all()


def test_sigmoid_is_that_of_scipy_and_overflows_nowhere():
    scores = np.concatenate([np.linspace(-40, 40, 4001), [-np.inf, -1e300, -800, 800, np.inf]])
    with np.errstate(all="raise", under="ignore"):
        found = sigmoid(scores)
    assert found == pytest.approx(expit(scores), rel=1e-14, abs=1e-300)


def own_loss(answer):
    class Own(Loss):
        def parts(self, scores, targets):
            return answer(scores, targets)

    return Own()


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (lambda z, t: (z, t, t), TypeError, "Own.parts must return .*RowParts.*got tuple"),
        (lambda z, t: RowParts(1.0, t, t), ValueError, r"a value of shape \(\) for scores"),
        (lambda z, t: RowParts(t, t[:1], t), ValueError, r"a slope of shape \(1,\)"),
        (lambda z, t: RowParts(t, t, t * np.nan), ValueError, "a curvature that is not finite"),
    ],
)
def test_a_loss_of_ones_own_that_answers_wrongly_is_named(answer, error, said):
    X, y = np.arange(80.0)[:, None], np.tile([0, 1], 40)
    model = ConstrainedERMClassifier(loss=own_loss(answer))
    with pytest.raises(error, match=said):
        model.fit(X, y, sensitive_features=np.repeat(["f", "m"], 40))


def test_targets_of_regression_may_be_out_of_the_range_of_a_probe():
    """Poisson deviance: its logarithm of the target is there for counts only."""

    class Deviance(Loss):
        tasks = frozenset({"regression"})

        def parts(self, scores, targets):
            mean = np.exp(scores)
            return RowParts(mean - targets * (1 + scores - np.log(targets)), mean - targets, mean)

    X, y = np.linspace(0, 1, 80)[:, None], np.tile([1, 2, 3, 4], 20)
    model = ConstrainedERMRegressor("mean_score_parity", 0.01, loss=Deviance())
    assert model.fit(X, y, sensitive_features=["f", "m"] * 40).train_disparity_ <= 0.01 + 1e-9
