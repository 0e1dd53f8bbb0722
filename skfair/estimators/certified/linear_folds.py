"""Linear regressions that are fitted on folds under rising limits, and their mean.

:mod:`skfair.regression.certifying` calls :func:`linear_refits` once for each fold, and steps
through all folds together. A step has one model for each fold, fitted on the other folds and judged
on the rows of its fold. If the limits of a step can be certified, :func:`mean_model` returns the
mean of its models. So every row is used for fits and for the judgement.

The evidence is about the models of the folds. It holds for their mean, too, because the mean
model's mean prediction for a group is the mean of the models' mean predictions. (The rates of
decisions have no such property.) The mean of linear models is itself linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from skfair._typing import FloatArray, IntArray
from skfair.estimators.certificate import SHARES
from skfair.estimators.erm.report import model_attributes
from skfair.estimators.erm.settings import Settings
from skfair.estimators.erm.solve import choose_solver
from skfair.estimators.erm.task import penalty_of, regression_task
from skfair.groups.training_data import TrainingData
from skfair.losses import SquaredError
from skfair.models.linear import LinearScore
from skfair.models.units import product
from skfair.problems.erm.problem import ConstrainedERM, LinearConstrainedERM
from skfair.solvers.base import Solver
from skfair.solvers.erm.al_newton import ALNewton
from skfair.solvers.erm.elastic_step import elastic_step, inverse_factor


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A linear regression with given weights, which are named as in scikit-learn."""

    coef_: FloatArray  # (1, n_features)
    intercept_: FloatArray  # (1,)

    def predict(self, X: Any) -> FloatArray:
        return np.asarray(product(X, self.coef_[0]) + self.intercept_[0])


def linear_refits(
    settings: Settings,  # settings of a linear regressor
    data: TrainingData,
    whole: ConstrainedERM,  # the problem of all rows, of which only the constraints are read
    spread: float,  # one unit of the limits of ``whole`` is this many units of y
    rows: IntArray,  # the rows to fit on; the models learn nothing from the other rows
) -> Iterator[LinearFit]:
    """Yield one model for each share of the limits in ``SHARES``, from small shares to 1.

    Limits only change the bounds of a problem, so one problem is used for all shares.
    """
    task = regression_task(data.y[rows], None, settings)
    problem = LinearConstrainedERM(
        LinearScore(data.X[rows], fit_intercept=settings.fit_intercept),
        task.loss,
        task.targets,
        [constraint.refitted(rows) for constraint in whole.constraints],
        alpha=penalty_of(task),
    )
    solver = choose_solver(settings.solver, problem)
    # The bounds are multiplied by these. The targets of these rows have a unit of their own, so the
    # limits of ``whole`` are converted, too.
    factors = [share * spread / task.scale.spread for share in SHARES]
    # Problems with very many columns do not offer the Hessian, only products with it.
    has_hessian = "products" not in problem.offers
    if isinstance(task.loss, SquaredError) and isinstance(solver, ALNewton) and has_hessian:
        solutions = _solved_exactly(problem, factors)
    else:
        solutions = _solved_by(solver, problem, factors, settings)
    for theta in solutions:
        model = model_attributes(problem, task, theta)
        yield LinearFit(model["coef_"], model["intercept_"])


def _solved_exactly(problem: ConstrainedERM, factors: Sequence[float]) -> Iterator[FloatArray]:
    """Yield the weights w that minimise squared errors, for each factor on the bounds.

    The objective is quadratic in w and the constraints are linear, so their values and derivatives
    at w = 0 describe the whole problem. The centres, auxiliary parameters from which some rows of
    constraints are measured, are eliminated by :class:`_LinearSides`. The objective does not depend
    on them, so the Hessian with them would be singular.
    """
    p = problem.model.n_parameters  # the centres are the parameters after these
    at = problem.evaluate(np.zeros(problem.n_parameters))
    hessian = at.hessian(np.zeros(problem.n_constraints))[:p, :p]
    # A tiny ridge is added, so that the Hessian always has a Cholesky factor.
    hessian[np.diag_indices(p)] += 1e-12 * float(np.trace(hessian))
    gradient, back = at.gradient()[:p], inverse_factor(hessian)
    sides = _LinearSides.of(problem.constraint_rows.centers, at.constraints, at.jacobian()[:, :p])
    for factor in factors:
        least = sides.least(factor * problem.lower, factor * problem.upper)
        # The price of a violation (``elastic``) is infinite, because no violation is needed: the
        # same prediction for all rows satisfies every limit on means.
        yield elastic_step(hessian, gradient, sides.slopes, least, elastic=np.inf, back=back).d


class _LinearSides(NamedTuple):
    """The constraints as one-sided rows ``slopes @ w >= least`` for the weights w, without centres.

    A row r without a centre has the value v_r + J_r w and gives two sides, one for each bound. For
    a row with a centre c, the value minus c must lie between the bounds l_r and u_r. There is such
    a c for all rows of the centre if and only if, for any two of these rows h and k, value h minus
    value k is at most u_h - l_k. So each ordered pair (h, k) gives one side.
    """

    alone: IntArray  # rows without a centre
    high: IntArray  # h of each pair
    low: IntArray  # k of each pair
    values: FloatArray  # (n_constraints,): v
    slopes: FloatArray  # (n_sides, p): lower bounds of ``alone``, their upper bounds, the pairs

    @classmethod
    def of(cls, centers: IntArray, values: FloatArray, jacobian: FloatArray) -> _LinearSides:
        """Return the sides; ``centers`` is -1 for rows without a centre."""
        alone = np.flatnonzero(centers < 0)
        high, low = np.nonzero(
            (centers == centers[:, None]) & (centers >= 0) & ~np.eye(values.size, dtype=bool)
        )
        slopes = np.vstack([jacobian[alone], -jacobian[alone], jacobian[low] - jacobian[high]])
        return cls(alone, high, low, values, slopes)

    def least(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """Return the right-hand sides under given bounds of the rows."""
        alone, high, low, values = self.alone, self.high, self.low, self.values
        below, above = lower[alone] - values[alone], values[alone] - upper[alone]
        apart = values[high] - values[low] - (upper[high] - lower[low])
        return np.concatenate([below, above, apart])


def _solved_by(
    solver: Solver, problem: ConstrainedERM, factors: Sequence[float], settings: Settings
) -> Iterator[FloatArray]:
    """Yield the parameters (weights and centres) that a solver finds for each factor.

    Once there are two solutions, parameters theta and multipliers lam start on the line through the
    last two. For squared errors the next solution lies on this line, unless another pair of groups
    reaches its limit.
    """
    rng = check_random_state(settings.random_state)
    options: Any = {"tol": settings.tol, "max_iter": settings.max_iter, "random_state": rng}
    # Factor, parameters and multipliers of the last two solutions. A factor of 0 means that there
    # is none yet.
    before = last = 0.0, problem.start(rng), np.zeros(problem.n_constraints)
    for factor in factors:
        (f0, theta0, lam0), (f1, theta1, lam1) = before, last
        ahead = (factor - f1) / (f1 - f0) if f1 > f0 > 0 else 0.0
        result = solver.solve(
            problem.bounded(factor * problem.lower, factor * problem.upper),
            theta1 + ahead * (theta1 - theta0),
            lam1 + ahead * (lam1 - lam0),
            **options,
        )
        before, last = last, (factor, result.theta, result.multipliers)
        yield result.theta


def mean_model(models: Sequence[Any]) -> Any:
    """Return the model for new rows: the only one, or the mean of several linear ones."""
    if len(models) == 1:
        return models[0]
    coefs, intercepts = ([getattr(m, name) for m in models] for name in ("coef_", "intercept_"))
    return LinearFit(np.mean(coefs, axis=0), np.mean(intercepts, axis=0))
