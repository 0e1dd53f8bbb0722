"""Losses row by row: against formulas, finite differences and what their docstrings promise."""

from functools import partial

import numpy as np
import pytest
from scipy.special import expit

from skfair._kernels import row_parts
from skfair.classification import ConstrainedERMClassifier
from skfair.losses import (
    MANY_SCORES,
    Hinge,
    LogLoss,
    Loss,
    RowParts,
    SmoothErrors,
    SquaredError,
    check_loss,
    gives_probabilities,
    make_loss,
    sigmoid_parts,
)
from skfair.metrics import loss_parity_difference
from skfair.regression import ConstrainedERMRegressor
from tests.families import rows_of_families
from tests.messages import messages
from tests.naive import erm as naive
from tests.python_kernels import compiled_and_python
from tests.registries import LOSSES
from tests.seeds import generator, seed_of
from tests.small_problems import task_of

kernel = compiled_and_python(row_parts)
each_loss = pytest.mark.parametrize("name", list(LOSSES))
SMOOTHED = [name for name in LOSSES if hasattr(LOSSES[name](), "smoothing")]


def rows_for(name, n=400, spread=3.0, seed=0):
    rng = generator(seed)
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
    rng = generator(0)
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


@each_loss
def test_losses_pass_their_check(name):
    for key in range(5):
        check_loss(LOSSES[name](), random_state=seed_of(key))


class CautiousLogLoss(LogLoss):
    """Says that its scores are no log-odds."""

    gives_probabilities = False


class RenamedLogLoss(LogLoss):
    """Log loss under another name."""


def test_probabilities_are_a_claim_of_the_loss_and_not_its_name():
    trained = [ConstrainedERMClassifier, *rows_of_families("TRAINED")]
    for made in (RenamedLogLoss(), "log_loss", LogLoss()):
        assert gives_probabilities(made)
        assert all(hasattr(kind(loss=made), "predict_proba") for kind in trained)
    assert isinstance(CautiousLogLoss(), LogLoss)
    for made in (CautiousLogLoss(), "hinge", Hinge(), "unheard of", 3, LogLoss):
        assert not gives_probabilities(made)
        assert not any(hasattr(kind(loss=made), "predict_proba") for kind in trained)
        assert not any(hasattr(kind(loss=made), "predict_log_proba") for kind in trained)


def test_a_subclass_predicts_what_log_loss_predicts():
    X, y, groups = generator(0).normal(size=(200, 3)), np.arange(200) % 2, [0, 1] * 100
    groups = generator(1).permutation(groups)
    found = [
        ConstrainedERMClassifier(loss=loss).fit(X, y, sensitive_features=groups).predict_proba(X)
        for loss in ("log_loss", RenamedLogLoss())
    ]
    assert (found[0] == found[1]).all()


@pytest.mark.parametrize("n_copies", [1, 3])  # the kernel reads many scores
def test_sigmoid_is_that_of_scipy_and_overflows_nowhere(kernel, monkeypatch, n_copies):
    monkeypatch.setattr(row_parts, "sigmoid_parts", kernel("sigmoid_parts"))
    scores = np.concatenate([np.linspace(-40, 40, 4001), [-np.inf, -1e300, -800, 800, np.inf]])
    scores = np.tile(scores, n_copies)
    assert (scores.size >= MANY_SCORES) == (n_copies > 1)
    with np.errstate(all="raise", under="ignore"):
        found = sigmoid_parts(scores)
        losses = LogLoss().parts(scores[np.isfinite(scores)], np.float64(1))
    assert found.value == pytest.approx(expit(scores), rel=1e-14, abs=1e-300)
    slope = expit(scores) * expit(-scores)
    assert found.slope == pytest.approx(slope, rel=1e-9, abs=1e-15)
    assert found.curvature == pytest.approx(slope * (1 - 2 * expit(scores)), rel=1e-9, abs=1e-15)
    margins = scores[np.isfinite(scores)]
    assert losses.value == pytest.approx(np.logaddexp(0, -margins), rel=1e-14, abs=1e-300)
    assert losses.slope == pytest.approx(-expit(-margins), rel=1e-14, abs=1e-300)
    assert losses.curvature == pytest.approx(expit(margins) * expit(-margins), rel=1e-9, abs=1e-15)


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


class WrongSlope(LogLoss):
    def parts(self, scores, targets):
        parts = super().parts(scores, targets)
        return parts._replace(slope=-parts.slope)


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


class Own(Loss):
    """A loss that answers as it is told."""

    def __init__(self, answer):
        self.answer = answer

    def parts(self, scores, targets):
        return self.answer(scores, targets)


def checked(loss):
    return lambda: check_loss(loss)


def made(loss, task="classification"):
    return lambda: make_loss(loss, task)


def fit(loss):
    X, y = np.arange(80.0)[:, None], np.tile([0, 1], 40)
    model = ConstrainedERMClassifier(loss=loss)
    return lambda: model.fit(X, y, sensitive_features=np.repeat(["f", "m"], 40))


test_bad_losses_are_refused = messages(
    (AssertionError, "slope is .* differences of the value give", checked(WrongSlope())),
    (AssertionError, "curvature is .* differences of the slope", checked(WrongCurvature())),
    (AssertionError, "max_curvature is 0.1, but", checked(TooFlat())),
    (AssertionError, "is_convex is True, but", checked(NotConvex())),
    (AssertionError, "not least at the log-odds", checked(NoLogOdds())),
    (AssertionError, "not new arrays", checked(OldArrays())),
    (ValueError, "WrongSlope: the slope is .* differences of the value give", fit(WrongSlope())),
    (TypeError, "Own.parts must return .*RowParts.*got tuple", fit(Own(lambda z, t: (z, t, t)))),
    (ValueError, r"of shape \(\) for scores", fit(Own(lambda z, t: RowParts(1.0, t, t)))),
    (ValueError, r"slope of shape \(1,\)", fit(Own(lambda z, t: RowParts(t, t[:1], t)))),
    (ValueError, "curvature that is not finite", fit(Own(lambda z, t: RowParts(t, t, t * np.nan)))),
    *((ValueError, f"no loss 'logloss'.*{name}", made("logloss")) for name in LOSSES),
    (
        ValueError,
        "'log_loss' is not for regression.*of absolute_error, squared_error",
        made("log_loss", "regression"),
    ),
    (ValueError, "'absolute_error' is not for class.*of hinge", made("absolute_error")),
    *((ValueError, "loss must be", made(wrong)) for wrong in (3, None, LogLoss, abs)),
    # A negative width would give a concave piece, 0 a division by zero in the middle of a fit.
    *(
        (ValueError, "smoothing", partial(LOSSES[name], width))
        for name in SMOOTHED
        for width in (0.0, -0.1)
    ),
)
