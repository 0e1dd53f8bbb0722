"""Folds: linear regressors are certified on all rows, none of which is lost for the fit.

Models are fitted on folds, and each row is judged by the one that has not seen it. What is returned
is the mean of the models. Its mean prediction for a group is the mean of theirs, so what the rows
show of the models on average is shown of the mean. (Decisions have no such law: the rates of a mean
of models are not the mean of their rates.) The mean of linear models is one, too.

Limits only move the bounds of a problem. So each fold has one problem, and a solve under the next
limit starts on the line through the last two solutions: for squared errors solutions lie on it,
except where another pair of groups reaches its limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_random_state

from skfair._typing import FloatArray, IntArray, Seed
from skfair.enforcement.rounds import SolveOptions
from skfair.estimators.certified.certificate import SHARES
from skfair.estimators.chances import FEW_ROWS, FOLDS, FOLDS_OF_FEW, Split
from skfair.estimators.erm.problem import NEWTON_FEATURES, choose_solver, penalty_of
from skfair.groups.training_data import TrainingData
from skfair.models.linear import LinearScore
from skfair.models.units import product
from skfair.problems.erm.in_memory import LinearConstrainedERM
from skfair.problems.quadratic import QuadraticProblem

# With more rows, halves lose little, and take a tenth of the time.
MOST_ROWS = 50_000


class LinearFit(NamedTuple):
    """A linear model."""

    coef: FloatArray  # (1, n_features)
    intercept: FloatArray  # (1,)


class FoldPath:
    """The problem of the rows that a fold is fitted on, and how far its path has got."""

    def __init__(
        self,
        estimator: Any,  # a linear regressor
        data: TrainingData,  # all rows
        whole: LinearConstrainedERM,  # their problem, for targets in units of ``spread``
        spread: float,
        rows: IntArray,  # those that the fold is fitted on: nothing else is known of the others
    ) -> None:
        task = estimator._regression(data.y[rows], None)
        self.problem = problem = LinearConstrainedERM(
            LinearScore(data.X[rows], fit_intercept=estimator.fit_intercept),
            task.loss,
            task.targets,
            [rule.refitted(rows) for rule in whole.rules],
            alpha=penalty_of(task, estimator.alpha),
        )
        self._unit = spread / task.scale.spread
        self._model = partial(estimator._model, problem, task)
        self._solver = choose_solver(estimator.solver, problem)
        rng = check_random_state(estimator.random_state)
        self._options: SolveOptions = {"tol": estimator.tol, "random_state": rng}
        if estimator.max_iter is not None:
            self._options["max_iter"] = estimator.max_iter
        self._bounded: Any = problem
        if _is_quadratic(problem) and set(self._solver.needs) <= QuadraticProblem.offers:
            self._bounded = QuadraticProblem(problem)
        self._places = [(0.0, problem.start(rng), np.zeros(problem.n_constraints))] * 2

    def under(self, share: float) -> LinearFit:
        """Return the model under a share of the limits, larger than all before."""
        (s0, theta0, lam0), (s1, theta1, lam1) = self._places
        ahead, size = (share - s1) / (s1 - s0) if s1 > s0 > 0 else 0.0, share * self._unit
        result = self._solver.solve(
            self._bounded.bounded(size * self.problem.lower, size * self.problem.upper),
            theta1 + ahead * (theta1 - theta0),
            lam1 + ahead * (lam1 - lam0),
            **self._options,
        )
        self._places = [self._places[1], (share, result.theta, result.multipliers)]
        model = self._model(result.theta)
        return LinearFit(model["coef_"], model["intercept_"])


def _is_quadratic(problem: LinearConstrainedERM) -> bool:
    """Whether a matrix of second derivatives takes the place of the rows."""
    is_small = problem.model.n_parameters <= NEWTON_FEATURES and "products" not in problem.offers
    is_linear = all(rule.moment.unit == "score" for rule in problem.rules)
    return is_small and is_linear and problem.loss.is_quadratic


class Folds(NamedTuple):
    """Rows that are all for the fit, and all judge."""

    data: TrainingData
    problem: LinearConstrainedERM  # of all rows, for targets in units of ``spread``
    spread: float
    splits: list[Split]

    @classmethod
    def of(
        cls, data: TrainingData, problem: LinearConstrainedERM, spread: float, seed: Seed
    ) -> Folds:
        """Divide rows by chance, with as many of each group in each fold as there can be."""
        kinds = data.groups.cells().codes
        sizes = np.bincount(kinds)
        wanted = FOLDS_OF_FEW if kinds.size < FEW_ROWS else FOLDS
        n_folds = int(np.clip(sizes.max(), 2, wanted))
        kinds = np.where(sizes[kinds] >= n_folds, kinds, sizes.argmax())
        cut = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        return cls(data, problem, spread, list(cut.split(np.zeros(kinds.size), kinds)))

    @property
    def y(self) -> Any:
        """The targets of all rows."""
        return self.data.y

    @property
    def n_judging(self) -> int:
        """Number of rows that judge."""
        return int(self.data.y.size)

    def part(self, values: Any) -> Any:
        """Return what belongs to the rows that judge: all."""
        return values

    def path(self, estimator: Any, limits: Mapping[str, Any]) -> Iterator[list[LinearFit]]:
        """Yield for each share of the limits a model of each fold, fitted on the others."""
        whole = self.data, self.problem, self.spread
        paths = [FoldPath(estimator, *whole, rows) for rows, _ in self.splits]
        for share in SHARES:
            yield [path.under(share) for path in paths]

    def predict(self, fitted: list[LinearFit]) -> NDArray[Any]:
        """Predict each row by the model that has not seen it."""
        predicted, X = np.empty(self.n_judging), self.data.X
        for model, (_, rows) in zip(fitted, self.splits, strict=True):
            predicted[rows] = product(X[rows], model.coef[0]) + model.intercept[0]
        return predicted

    def deployed(self, fitted: list[LinearFit]) -> NDArray[Any]:
        """Predict all rows by the mean of the models."""
        mean = self.attributes(fitted)
        return np.asarray(product(self.data.X, mean["coef_"][0]) + mean["intercept_"][0])

    def attributes(self, fitted: list[LinearFit]) -> dict[str, Any]:
        """Return the mean of the models."""
        return {
            "coef_": np.mean([model.coef for model in fitted], axis=0),
            "intercept_": np.mean([model.intercept for model in fitted], axis=0),
        }
