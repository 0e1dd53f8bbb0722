"""The fit of constrained estimators: their parameters, and its steps.

A fit reads the data, builds the problem, chooses a solver, solves and reports. What these steps do
is said by functions over plain values (:mod:`skfair.estimators.erm.bind`,
:mod:`skfair.estimators.erm.report`); here they get the parameters of the estimator.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Self, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _num_samples

from skfair._typing import ColumnLike, FloatArray, MatrixLike, Rows
from skfair.base import SensitiveFeaturesMixin, report_iterations
from skfair.constraints.base import Constraint
from skfair.enforcement.erm.path import StrictResult
from skfair.enforcement.erm.strict import solve_strictly
from skfair.enforcement.rounds import SolveOptions
from skfair.enforcement.truth import Verdict
from skfair.estimators.certified.certificate import Certified
from skfair.estimators.erm import report
from skfair.estimators.erm.bind import (
    Problem,
    Task,
    build_problem,
    choose_solver,
    rates_of_free_model,
)
from skfair.groups.limits import loosest
from skfair.groups.training_data import TrainingData
from skfair.losses import Loss
from skfair.models.choice import LINEAR_OR_LAYERS, SCORE_FUNCTION, ModelChoice, read_model
from skfair.models.mlp import mlp_scores
from skfair.models.plug_in import ScoreFunction, plugged_scores
from skfair.models.units import MANY_ROWS, Units, product
from skfair.problems.erm.in_blocks import LinearScores
from skfair.problems.erm.in_memory import ConstrainedERM
from skfair.read import ROW_CHECKS
from skfair.solvers.base import Solver, check_needs
from skfair.solvers.erm.stochastic import StochasticSolver, TrainingState
from skfair.utils.older import CallbackSupportMixin

# Steps on a part of a stream, however few rows it has.
PART_STEPS = 100

StreamSolver = StochasticSolver[Any]


@dataclass(frozen=True)
class Stream:
    """What is kept between the parts of a stream."""

    training: TrainingState
    units: Units  # of the columns of the first part
    rng: np.random.RandomState
    weight: float = 0.0  # of all rows so far, in the mean loss


class ConstrainedERMBase(Certified, SensitiveFeaturesMixin, CallbackSupportMixin, BaseEstimator):
    """Fits a score model under fairness constraints; subclasses say what the targets are."""

    __metadata_request__fit = {"control_features": True}

    _parameter_constraints: dict[str, Any] = {
        "constraint": "no_validation",  # make_constraints says more
        "max_disparity": [Interval(Real, 0, None, closed="left"), dict],
        "loss": [str, Loss],
        "alpha": [Interval(Real, 0, None, closed="left"), None],
        "model": [*LINEAR_OR_LAYERS, SCORE_FUNCTION],
        "fit_intercept": ["boolean"],
        "solver": [str, HasMethods("solve")],
        "enforce": [StrOptions({"strict", "surrogate"})],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        **Certified._confidence_constraints,
        **SensitiveFeaturesMixin._group_constraints,
    }

    _reads_probabilities = True
    _task: str
    _stream: Stream
    coef_: FloatArray
    intercept_: FloatArray
    model: ModelChoice
    model_: ScoreFunction
    parameters_: FloatArray
    score_scale_: float
    score_shift_: float
    coefs_: list[FloatArray]
    intercepts_: list[FloatArray]
    multipliers_: FloatArray
    kkt_residual_: float
    train_disparities_: dict[str, float]
    status_: str

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # --- steps of a fit ------------------------------------------------------------------------

    def _row_checks(self, X: MatrixLike) -> dict[str, Any]:
        """Return what rows must be.

        Whether all of very many numbers are finite is seen by the sums over the columns, which
        linear scores need anyway: so they are read once less.
        """
        has_numbers = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f"
        is_summed = read_model(self.model).is_linear and self.confidence is None
        is_summed = is_summed and has_numbers and _num_samples(X) >= MANY_ROWS
        return {**ROW_CHECKS, "ensure_all_finite": not is_summed}

    def _build(
        self,
        data: TrainingData,
        task: Task,
        constraints: Sequence[Constraint],
        min_rate: float | str | None = None,
        selection_rate: Any = None,
        *,
        earlier: float = 0.0,
    ) -> Problem:
        """Build the problem."""
        task = task._replace(
            model=read_model(self.model), fit_intercept=self.fit_intercept, alpha=self.alpha
        )
        try:
            floor: Any = min_rate
            if min_rate == "as before":
                floor = rates_of_free_model(data, task, constraints, self._solve_freely)
            return build_problem(
                data,
                task,
                constraints,
                self.max_disparity,
                min_rate=floor,
                selection_rate=selection_rate,
                earlier=earlier,
            )
        except ValueError:
            if isinstance(data.X, np.ndarray):  # it may be that of numbers not yet looked at
                assert_all_finite(data.X, estimator_name=type(self).__name__, input_name="X")
            raise

    def _solve_freely(self, problem: Problem) -> FloatArray:
        """Return the parameters that solve a problem without constraints."""
        rng = check_random_state(self.random_state)
        solver, start = choose_solver(self.solver, problem), problem.start(rng)
        params: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter}
        return solver.solve(problem, start, **params, random_state=rng).theta

    def _solve(
        self, problem: Problem, solver: Solver, task: Task, X: MatrixLike, y: ColumnLike
    ) -> StrictResult:
        """Run the solver: on the path of strict enforcement, or once.

        Callbacks follow it, with X and y as they were passed.
        """
        rng = check_random_state(self.random_state)
        params: SolveOptions = {"tol": self.tol, "random_state": rng}
        if self.max_iter is not None:
            params["max_iter"] = self.max_iter
        with report_iterations(
            self, X, y, max_iter=None, attributes=lambda theta: self._model(problem, task, theta)
        ) as callback:
            params["callback"] = callback
            start = problem.model.start(rng)
            if self.enforce == "surrogate":
                result = solver.solve(problem, problem.centered(start), **params)
                return StrictResult(problem, result, Verdict())
            refines = self.enforce == "strict" and self.fit_intercept
            return solve_strictly(
                problem,
                solver,
                start,
                min_gap=problem.model.rounding,
                is_classifier=task.class_names is not None,
                refine=refines and "hessian" in problem.offers,
                **params,
            )

    def _report(
        self, data: TrainingData, task: Task, problem: Problem, solver: Solver, ended: StrictResult
    ) -> Self:
        """Store the model and what it keeps of the constraints, and warn if that is not enough."""
        self._store_model(self._model(problem, task, ended.result.theta, ended.shift, ended.scale))
        known = report.scores_of_same_sign(problem, ended)
        decisions = problem.decide(self._own_scores(data, task) if known is None else known)
        solution = report.solution(problem, ended, task.scale, self.tol)
        self.__dict__.update(solution, **report.disparities(problem, decisions, task.scale))
        if self.enforce == "surrogate":
            if self.status_ == "max_iter" and not solver.is_stochastic:
                report.warn_not_converged(problem, ended, self.kkt_residual_, self.tol)
        elif report.warn_if_missed(problem, decisions, task.scale):
            self.status_ = "infeasible"
        elif ended.n_solves > 1 and task.class_names is not None:
            report.warn_if_nearly_constant(problem, decisions, loosest(self.max_disparity))
        return self

    # --- model ---------------------------------------------------------------------------------

    def _model(
        self,
        problem: Problem,
        task: Task,
        theta: FloatArray,
        shift: float = 0.0,
        scale: float = 1.0,
    ) -> dict[str, object]:
        """Return the attributes that prediction needs, of ``scale * (scores + shift)``."""
        w, scale = problem.model_part(theta), task.scale.spread * scale
        shift = task.scale.middle + scale * shift
        return report.model_attributes(read_model(self.model), problem.model, w, scale, shift)

    def _store_model(self, attributes: dict[str, object]) -> None:
        """Store a model; nothing is left of one of the other kind that was fitted before."""
        self._forget(*report.MODEL_ATTRIBUTES)
        self.__dict__.update(attributes)
        used, positions = vars(self).get("coef_"), self._model_positions
        # Weights that were certified have zeros for the sensitive columns already.
        if used is not None and positions is not None and used.shape[1] == positions.size:
            self.coef_ = np.zeros((1, self.n_features_in_))
            self.coef_[:, positions] = used

    @property
    def _used_weights(self) -> FloatArray:
        """Weights of the columns that the model uses: ``coef_`` is 0 for those of ``sensitive``."""
        return np.ravel(self.coef_[0][self._model_positions])  # all if there are no positions

    def _store_certified(self, attributes: dict[str, object]) -> Self:
        """Store what was certified; nothing is left of a problem that was solved before."""
        self._forget(*report.SOLUTION_ATTRIBUTES)
        self._store_model(attributes)
        return self

    def _raw_scores(self, rows: Rows) -> FloatArray:
        """Return the scores of validated rows."""
        if hasattr(self, "coef_"):
            return product(rows, self._used_weights) + float(self.intercept_[0])
        if hasattr(self, "parameters_"):
            scores = plugged_scores(self.model_, self.parameters_, rows)
            return self.score_scale_ * scores + self.score_shift_
        return np.asarray(mlp_scores(self.coefs_, self.intercepts_, rows), dtype=np.float64)

    def _own_scores(self, data: TrainingData, task: Task) -> FloatArray | LinearScores:
        """Return the scores that the fitted model gives the training rows, as problems take them.

        They are those of predictions, to the last bit: what is reported holds for these.
        """
        scale = task.scale
        if data.blocks is None:
            return scale.inside(self._raw_scores(data.X))
        intercept = float(scale.inside(self.intercept_)[0])
        return LinearScores(self._used_weights / scale.spread, intercept)

    # --- streams -------------------------------------------------------------------------------

    def _advance(
        self, data: TrainingData, task: Task, constraints: Sequence[Constraint], **limits: Any
    ) -> None:
        """Go on with a stream, or begin one where the last fit ended."""
        if data.groups.people is not None:
            raise TypeError(
                "partial_fit needs the group of each row, not probabilities. Use fit, or pass rows "
                "of known groups."
            )
        is_begun = hasattr(self, "_stream")
        earlier = self._stream.weight if is_begun else 0.0
        problem = self._build(data, task, constraints, **limits, earlier=earlier)
        solver = cast(StreamSolver, choose_solver(self.solver))
        check_needs(solver, problem)
        if not is_begun:
            rng = check_random_state(self.random_state)
            start, multipliers = problem.start(rng), None
            if hasattr(self, "_last_model"):
                n_before, last = self._last_model
                if n_before != problem.model.n_parameters:
                    raise ValueError(
                        f"The last fit had {n_before} parameters and the columns of X make "
                        f"{problem.model.n_parameters}, so it cannot be continued. Pass the same "
                        "columns, or use a new estimator."
                    )
                # Kept for the columns as they are: other rows have other means and scales.
                start = problem.centered(problem.model.standardised(*last))
                if self.multipliers_.size == problem.n_constraints:  # the groups may be others
                    multipliers = self.multipliers_
            training = solver.begin(cast(ConstrainedERM, problem), start, multipliers)
            self._stream = Stream(training, problem.model.units, rng)
        stream = deepcopy(self._stream)  # what is there stays as it is if something fails below
        problem.model.use_units(stream.units)
        n_steps = max(PART_STEPS, problem.model.n_samples // solver.n_loss)  # a pass or more
        training = stream.training
        solver.advance(cast(ConstrainedERM, problem), training, n_steps, stream.rng)
        self._stream = replace(stream, weight=stream.weight + task.total_weight)
        self._store_model(self._model(problem, task, training.solution))
        self.n_iter_ = training.n_steps
        self.multipliers_ = training.solution_multipliers
        decisions = problem.decide(self._own_scores(data, task))
        self.__dict__.update(report.disparities(problem, decisions, task.scale))
