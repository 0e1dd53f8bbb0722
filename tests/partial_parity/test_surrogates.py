"""Smooth steps: values, rates, slopes."""

import numpy as np
import pytest

from skfair.partial_parity._kernels import soft_steps as kernels
from skfair.partial_parity.surrogates import Surrogate
from tests.naive import partial as naive
from tests.python_kernels import as_python
from tests.seeds import generator

STEPS = [
    Surrogate("ramp", 0.5),
    Surrogate("ramp", 0.3, 0.4),
    Surrogate("ramp", 2.0, 1.0),
    Surrogate("smoothstep", 0.6),
    Surrogate("sigmoid", 0.2),
]
each_step = pytest.mark.parametrize("step", STEPS, ids=str)
# Symmetric, with 0 and the corners of the first step.
FAR = np.linspace(-6, 6, 1201)


def twin(step, x):
    return naive.step(x, step.kind, step.width, step.rounding)


def check_rates_and_slopes(step, twin):
    """Rates by loops; slopes are the derivatives of sums of rates."""
    rng = generator(0)
    scores, codes, thetas = rng.normal(size=25), rng.integers(0, 3, 25), np.array([-0.4, 0.1, 3])
    weights, pull = rng.uniform(0.1, 1, 25), rng.normal(size=(3, 3))
    pull[1, 2] = 0
    x = scores - 0.1
    assert step(x) == pytest.approx(twin(x), abs=1e-12)

    def rates(z, at):
        return step.rates(z, codes, weights, at, 3)

    total = np.bincount(codes, weights, 3)
    expected = naive.soft_rates(scores, codes, 3, weights, thetas, twin)
    assert rates(scores, thetas) == pytest.approx(expected * total, abs=1e-12)

    slopes, by_theta = step.slopes(scores, codes, weights, thetas, pull)
    h = 1e-6

    def change(z_step, theta_step):
        up = rates(scores + z_step, thetas + theta_step)
        return (pull * (up - rates(scores - z_step, thetas - theta_step))).sum() / (2 * h)

    assert slopes == pytest.approx([change(h * e, 0) for e in np.eye(25)], abs=1e-8)
    assert by_theta == pytest.approx([change(0, h * e) for e in np.eye(3)], abs=1e-8)


@each_step
@pytest.mark.parametrize("is_compiled", [True, False])
def test_kernels(step, is_compiled, monkeypatch):
    if not is_compiled:
        for name, kernel in list(vars(kernels).items()):
            monkeypatch.setattr(kernels, name, as_python(kernel))
    check_rates_and_slopes(step, lambda x: twin(step, x))


@pytest.mark.parametrize("rounding", [0.01, 0.2, 1.0])
def test_rounding_changes_the_ramp_by_an_eighth_of_it_at_most(rounding):
    """The largest change is at the corners; nothing changes away from them."""
    width = 0.7
    change = np.abs(Surrogate("ramp", width, rounding)(FAR) - Surrogate("ramp", width)(FAR))
    assert change.max() <= rounding / 8 + 1e-12
    corners = np.array([-width, width])
    assert Surrogate("ramp", width, rounding)(corners) == pytest.approx(
        [rounding / 8, 1 - rounding / 8]
    )
    is_near = np.abs(np.abs(FAR) - width) < rounding * width
    assert change[~is_near].max() <= 1e-12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("step", 1.0), "must be one of 'ramp', 'smoothstep', 'sigmoid', got 'step'"),
        (("ramp", 0.0), "width > 0"),
        (("ramp", -1.0), "width > 0"),
        (("sigmoid", np.inf), "width > 0"),
        (("sigmoid", np.nan), "width > 0"),
        (("ramp", 1.0, -0.1), r"rounding in \[0, 1\]"),
        (("ramp", 1.0, 1.1), r"rounding in \[0, 1\]"),
    ],
)
def test_bad_steps(arguments, message):
    with pytest.raises(ValueError, match=message):
        Surrogate(*arguments)


@each_step
@pytest.mark.parametrize("is_compiled", [True, False])
def test_a_step_is_the_difference_of_convex_parts_with_their_slopes(step, is_compiled):
    """Part 1 minus part 2 is the step, no slope of a part falls, and slopes are differences."""
    of_one = kernels._step if is_compiled else as_python(kernels._step)
    kind = ("ramp", "smoothstep", "sigmoid").index(step.kind)
    at, h = generator(0).uniform(-3, 3, 60), 1e-6

    def parts(x):
        return np.array(
            [[of_one(z, kind, step.width, step.rounding, part) for z in x] for part in range(3)]
        )

    (whole, plus, minus), up, down = parts(at), parts(at + h), parts(at - h)
    assert (plus - minus)[:, 0] == pytest.approx(whole[:, 0], abs=1e-12)
    slopes = np.stack([whole, plus, minus])[:, :, 1]
    expected = (up - down)[:, :, 0] / (2 * h)
    far = np.min([np.abs(np.abs(at) - step.width), np.abs(at)], axis=0) > 1e-5  # from corners
    assert slopes[:, far] == pytest.approx(expected[:, far], abs=1e-5)
    for part in (plus, minus):
        assert (np.diff(part[np.argsort(at), 1]) >= -1e-12).all()
