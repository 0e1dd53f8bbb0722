"""Certified means: linear regressions on folds, under rising limits.

All rows judge, and none is lost for the fit. The mean of the models of the folds is returned. Its
mean prediction for a group is the mean of the models' mean predictions, so evidence about the
models on average is evidence about the mean. (Decisions have no such law: the rates of a mean of
models are not the mean of their rates.) The mean of linear models is one, too.

Limits only move the bounds of a problem. So each fold has one problem, and a solve under the next
limit starts on the line through the last two solutions: for squared errors solutions lie on it,
except where another pair of groups reaches its limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

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
    """A linear regression."""

    coef_: FloatArray  # (1, n_features)
    intercept_: FloatArray  # (1,)

    def predict(self, X: Any) -> FloatArray:
        return np.asarray(product(X, self.coef_[0]) + self.intercept_[0])


def linear_refits(
    settings: Settings,  # of a linear regressor
    data: TrainingData,
    whole: ConstrainedERM,  # the problem of all rows, for targets in units of ``spread``
    spread: float,
    rows: IntArray,  # the rows to fit on: the models learn nothing from the others
) -> Iterator[LinearFit]:
    """Yield a model of some rows for each share of the limits."""
    task = regression_task(data.y[rows], None, settings)
    problem = LinearConstrainedERM(
        LinearScore(data.X[rows], fit_intercept=settings.fit_intercept),
        task.loss,
        task.targets,
        [constraint.refitted(rows) for constraint in whole.constraints],
        alpha=penalty_of(task),
    )
    solver = choose_solver(settings.solver, problem)
    sizes = [share * spread / task.scale.spread for share in SHARES]
    is_quadratic = isinstance(task.loss, SquaredError) and isinstance(solver, ALNewton)
    if is_quadratic and "products" not in problem.offers:
        solutions = _of_squares(problem, sizes)
    else:
        solutions = _of_solver(problem, sizes, settings, solver)
    for theta in solutions:
        model = model_attributes(problem, task, theta)
        yield LinearFit(model["coef_"], model["intercept_"])


def _of_squares(problem: ConstrainedERM, sizes: Sequence[float]) -> Iterator[FloatArray]:
    """Yield the solutions of squared errors, of which one evaluation says all.

    What is measured from a centre is compared pair by pair, for nothing says what a centre costs.
    """
    p, centers = problem.model.n_parameters, problem.constraint_rows.centers
    at = problem.evaluate(np.zeros(problem.n_parameters))
    gradient, slopes, values = at.gradient()[:p], at.jacobian()[:, :p], at.constraints
    hessian = at.hessian(np.zeros(problem.n_constraints))[:p, :p]
    hessian[np.diag_indices(p)] += 1e-12 * float(np.trace(hessian))
    back = inverse_factor(hessian)
    alone = np.flatnonzero(centers < 0)
    high, low = np.nonzero(
        (centers == centers[:, None]) & (centers >= 0) & ~np.eye(values.size, dtype=bool)
    )
    sides = np.vstack([slopes[alone], -slopes[alone], slopes[low] - slopes[high]])
    for size in sizes:
        lower, upper = size * problem.lower, size * problem.upper
        below, above = lower[alone] - values[alone], values[alone] - upper[alone]
        apart = values[high] - values[low] - (upper[high] - lower[low])
        least = np.concatenate([below, above, apart])
        yield elastic_step(hessian, gradient, sides, least, elastic=np.inf, back=back).d


def _of_solver(
    problem: ConstrainedERM, sizes: Sequence[float], settings: Settings, solver: Solver
) -> Iterator[FloatArray]:
    rng = check_random_state(settings.random_state)
    options: Any = {"tol": settings.tol, "max_iter": settings.max_iter, "random_state": rng}
    before = last = 0.0, problem.start(rng), np.zeros(problem.n_constraints)
    for size in sizes:
        (s0, theta0, lam0), (s1, theta1, lam1) = before, last
        ahead = (size - s1) / (s1 - s0) if s1 > s0 > 0 else 0.0
        result = solver.solve(
            problem.bounded(size * problem.lower, size * problem.upper),
            theta1 + ahead * (theta1 - theta0),
            lam1 + ahead * (lam1 - lam0),
            **options,
        )
        before, last = last, (size, result.theta, result.multipliers)
        yield result.theta


def mean_model(models: Sequence[Any]) -> Any:
    """Return what predicts for all rows: the model, or the mean of linear ones."""
    if len(models) == 1:
        return models[0]
    coefs, intercepts = ([getattr(m, name) for m in models] for name in ("coef_", "intercept_"))
    return LinearFit(np.mean(coefs, axis=0), np.mean(intercepts, axis=0))
