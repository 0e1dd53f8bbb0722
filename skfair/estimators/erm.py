"""What the constrained estimators share: from data to problem, from problem to solution.

The order of a fit is that of this file: options are read, the problem is built, a solver is chosen
and run (strictly or on the smooth problem), the result is stored.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from skfair._typing import FloatArray
from skfair.base import FitData, SensitiveFeaturesMixin
from skfair.blocks.kinds import Training
from skfair.constraints.base import Constraint, TrainingRows, make_constraints
from skfair.constraints.bound import BoundConstraint
from skfair.enforcement.strict import StrictResult, solve_strictly
from skfair.losses import Loss
from skfair.models import LinearScore, MLPScore
from skfair.models.mlp import mlp_scores
from skfair.models.units import Units, product
from skfair.problems.erm.in_blocks import PartitionedERM
from skfair.problems.erm.in_memory import ConstrainedERM, LinearConstrainedERM
from skfair.problems.erm.problem import RuledProblem
from skfair.solvers.base import SOLVERS, SolverResult, check_needs
from skfair.utils.validation import check_weights

# Newton steps need a matrix of n_features x n_features.
NEWTON_FEATURES = 1000
# A class is predicted for less than this share of the rows that have it: no use for anybody.
NEARLY_CONSTANT = 0.05
# Steps of partial_fit on a part of a stream, however few rows it has.
PART_STEPS = 100


def _unique_names(rules: list[BoundConstraint]) -> list[BoundConstraint]:
    """Number rules of the same name."""
    names = [rule.name for rule in rules]
    return [
        rule
        if names.count(rule.name) == 1
        else replace(rule, name=f"{rule.name} ({names[: k + 1].count(rule.name)})")
        for k, rule in enumerate(rules)
    ]


@dataclass
class _Stream:
    """What is kept between the parts of a stream."""

    training: Any
    units: Units  # of the columns of the first part
    rng: np.random.RandomState
    n_rows: int = 0


class ConstrainedERMBase(SensitiveFeaturesMixin, CallbackSupportMixin, BaseEstimator):
    """Fits a score model under fairness rules; subclasses say what the targets are."""

    refine = False  # a parameter of classifiers

    _parameter_constraints: dict[str, Any] = {
        "constraint": "no_validation",  # make_constraints says more
        "max_disparity": [Interval(Real, 0, None, closed="left")],
        "loss": [str, Loss],
        "alpha": [Interval(Real, 0, None, closed="left"), None],
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "solver": [str, HasMethods("solve")],
        "enforce": [StrOptions({"strict", "surrogate"})],
        "temperatures": ["array-like", Real],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        **SensitiveFeaturesMixin._group_constraints,
    }

    _task: str

    # --- options -------------------------------------------------------------------------------

    def _layers(self) -> tuple[int, ...]:
        sizes = self.hidden_layer_sizes
        layers = (sizes,) if isinstance(sizes, Integral) else tuple(sizes)
        if any(not isinstance(size, Integral) or size < 1 for size in layers):
            raise ValueError(
                f"hidden_layer_sizes must be positive integers, got {self.hidden_layer_sizes!r}."
            )
        return tuple(int(size) for size in layers)

    def _temperatures(self) -> tuple[float, ...]:
        try:
            values = tuple(float(value) for value in np.atleast_1d(self.temperatures))
        except (TypeError, ValueError):
            values = ()
        is_usable = all(0 < value < 1e100 for value in values)  # squares must not overflow
        if not values or not is_usable or list(values) != sorted(values):
            raise ValueError(
                f"temperatures must be positive and rising, got {self.temperatures!r}. The larger, "
                "the closer the smooth rates are to the true ones; 1e100 is too large."
            )
        return values

    def _make_solver(self, is_linear: bool, n_features: int) -> Any:
        if not isinstance(self.solver, str):
            return self.solver
        name = self.solver
        if name == "auto" and is_linear:
            name = "al_newton" if n_features <= NEWTON_FEATURES else "al_lbfgs"
        elif name == "auto":
            name = "alm"
        return SOLVERS[name]()

    # --- problem -------------------------------------------------------------------------------

    def _make_problem(
        self,
        data: FitData,
        targets: FloatArray,
        loss: Loss,
        class_names: Any,
        loss_weights: FloatArray | None,
        bound_factors: Callable[[BoundConstraint], float] | None = None,
    ) -> ConstrainedERM:
        """Build the problem; ``bound_factors`` turns bounds into the units of the targets."""
        rows = TrainingRows(data.groups, targets, data.sample_weight, loss, class_names)
        _, bound = self._prepared(rows)
        if bound_factors is not None:
            bound = [rule.scaled(bound_factors(rule)) for rule in bound]
        n_rows = targets.size if loss_weights is None else float(loss_weights.sum())
        if hasattr(self, "_stream"):
            n_rows += self._stream.n_rows
        alpha = 1 / n_rows if self.alpha is None else float(self.alpha)
        layers = self._layers()
        if layers:
            model: Any = MLPScore(
                data.X, layers, fit_intercept=self.fit_intercept, sample_weight=loss_weights
            )
            return ConstrainedERM(
                model, loss, targets, bound, sample_weight=loss_weights, alpha=alpha
            )
        model = LinearScore(data.X, fit_intercept=self.fit_intercept, sample_weight=loss_weights)
        return LinearConstrainedERM(
            model, loss, targets, bound, sample_weight=loss_weights, alpha=alpha
        )

    def _make_partitioned(
        self,
        data: Training,
        targets: FloatArray,
        loss: Loss,
        class_names: Any,
        loss_weights: FloatArray,
    ) -> PartitionedERM:
        """Build the problem of rows in blocks from the table of their kinds."""
        if self._layers():
            raise ValueError(
                "hidden_layer_sizes is not for Dask collections: networks are trained on batches. "
                "Use partial_fit on parts of the rows, or a linear model."
            )
        rows = TrainingRows(data.groups, targets, data.weights, loss, class_names)
        rules, bound = self._prepared(rows)
        alpha = 1 / float(loss_weights.sum()) if self.alpha is None else float(self.alpha)
        return PartitionedERM(
            data,
            targets,
            loss_weights,
            rules,
            bound,
            loss,
            class_names,
            fit_intercept=self.fit_intercept,
            alpha=alpha,
        )

    def _prepared(self, rows: TrainingRows) -> tuple[list[Constraint], list[BoundConstraint]]:
        """Return the rules, and the same bound to the rows."""
        rules = make_constraints(self.constraint, self._task)
        if rows.groups.n_groups == rows.groups.n_attributes:
            rules = []
        if not rules and rows.groups.levels.attributes:
            warnings.warn(
                f"sensitive_features has a single group, {rows.groups.names[0]!r}, so no fairness "
                "rule is active.",
                UserWarning,
                stacklevel=8,
            )
        return rules, _unique_names([rule.prepare(rows, self.max_disparity) for rule in rules])

    # --- solution ------------------------------------------------------------------------------

    def _optimise(
        self, problem: RuledProblem, theta0: FloatArray | None, callback: Any
    ) -> StrictResult:
        """Run the solver, within the outer loop if the promise is strict."""
        rng = check_random_state(self.random_state)
        is_linear = "hessian" in problem.offers
        solver = self._make_solver(is_linear, problem.model.n_parameters)
        check_needs(solver, problem)
        self._is_stochastic = bool(getattr(solver, "is_stochastic", False))
        start = problem.start(rng)
        if theta0 is not None:
            start = problem.centered(np.concatenate([theta0, np.zeros(problem.n_centers)]))
        params: dict[str, Any] = {"tol": self.tol, "random_state": rng, "callback": callback}
        if self.max_iter is not None:
            params["max_iter"] = self.max_iter
        if self.enforce == "strict":
            return solve_strictly(
                problem,
                solver,
                start,
                temperatures=self._temperatures(),
                min_gap=problem.model.rounding,
                is_classifier=self._task == "classification",
                refine=self.refine and is_linear and self.fit_intercept,
                **params,
            )
        found: SolverResult = solver.solve(problem, start, None, **params)
        return StrictResult(
            result=found,
            shift=0.0,
            scale=1.0,
            loss=problem.loss,
            temperature=1.0,
            is_feasible=True,
            is_constant=False,
            lower=problem.lower,
            upper=problem.upper,
            n_solves=1,
        )

    def _warm_theta(self, problem: RuledProblem) -> FloatArray | None:
        """Return the parameters of the last fit, if they are wanted and fit this problem."""
        if not self.warm_start or not hasattr(self, "_last_model"):
            return None
        return self._last_theta(problem)

    def _last_theta(self, problem: RuledProblem) -> FloatArray:
        """Return the parameters of the last fit; raise if the columns of X are others."""
        n_before, last = self._last_model
        if n_before != problem.model.n_parameters:
            raise ValueError(
                f"The last fit had {n_before} parameters and the columns of X make "
                f"{problem.model.n_parameters}, so it cannot be continued. Pass the same columns, "
                "or use warm_start=False (in partial_fit: a new estimator)."
            )
        # Kept for the columns as they are: the rows may be others, with other means and scales.
        return np.asarray(problem.model.standardised(*last))

    # --- result --------------------------------------------------------------------------------

    def _store_model(
        self, model: Any, theta: FloatArray, *, scale: float = 1.0, shift: float = 0.0
    ) -> dict[str, Any]:
        """Return the attributes of the scores ``scale * h_theta(X) + shift``."""
        raw = model.raw(theta)
        kept = {"_last_model": (model.n_parameters, raw)}
        if isinstance(model, LinearScore):
            coef, intercept = raw
            return kept | {
                "coef_": (scale * coef)[None, :],
                "intercept_": np.array([scale * intercept + shift]),
            }
        coefs, intercepts = raw
        coefs = [*coefs[:-1], scale * coefs[-1]]
        intercepts = [*intercepts[:-1], scale * intercepts[-1] + shift]
        return kept | {
            "coefs_": [layer.astype(model.X.dtype) for layer in coefs],
            "intercepts_": [layer.astype(model.X.dtype) for layer in intercepts],
        }

    def _set_model(self, attributes: dict[str, Any]) -> None:
        """Store a model; nothing is left of one of the other kind that was fitted before."""
        for name in ("coef_", "intercept_", "coefs_", "intercepts_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)

    def _raw_scores(self, X: Any) -> FloatArray:
        """Return the scores of validated rows."""
        if hasattr(self, "coef_"):
            return product(X, self.coef_[0]) + float(self.intercept_[0])
        return np.asarray(mlp_scores(self.coefs_, self.intercepts_, X), dtype=np.float64)

    def _store_solution(
        self,
        problem: RuledProblem,
        found: StrictResult,
        scores: Any,
        unit: Callable[[BoundConstraint], float] = lambda rule: 1.0,
        objective_unit: float = 1.0,
    ) -> None:
        """Store what the solver found; ``scores`` are those that the fitted estimator gives.

        ``unit`` turns the disparities of a rule into the units of the user's targets, and
        ``objective_unit`` the objective.
        """
        result = found.result
        solved = problem.with_loss(found.loss)
        solved.lower, solved.upper, solved.temperature = found.lower, found.upper, found.temperature
        at = solved.evaluate(result.theta)
        self.kkt_residual_ = max(solved.kkt_residual(at, result.multipliers).values())
        loss_at = at if found.loss is problem.loss else problem.evaluate(found.scale * result.theta)
        self.objective_ = objective_unit * loss_at.objective
        units = [np.full(rule.upper.size, objective_unit / unit(rule)) for rule in problem.rules]
        self.multipliers_ = result.multipliers * np.concatenate([np.empty(0), *units])
        self.constraint_names_ = np.array(
            [name for rule in problem.rules for name in rule.row_names], dtype=object
        )
        self.n_iter_ = int(result.n_iter)
        self.n_solves_ = found.n_solves
        self.temperature_ = found.temperature
        self.history_ = result.history

        by_rule = self._store_disparities(problem, scores, unit)
        bounds = {rule.name: unit(rule) * rule.max_disparity for rule in problem.rules}
        excess = {name: by_rule[name] - bounds[name] for name in by_rule}
        # Solves on the way ask for more than ``tol``, and rounding may keep them from it.
        is_solved = result.status == "max_iter" and self.kkt_residual_ <= self.tol
        self.status_ = "converged" if is_solved else result.status
        if self.enforce == "surrogate":
            if self.status_ == "max_iter" and not self._is_stochastic:
                self._warn_not_converged(problem.violation(at))
            return
        worst = max(excess, key=lambda name: excess[name], default=None)
        rounding = 1e-9 * max(1.0, abs(bounds.get(worst, 0.0))) if worst else 0.0
        if worst is not None and excess[worst] > rounding:
            self.status_ = "infeasible"
            warnings.warn(
                f"No model was found whose {worst} disparity on the training data is at most "
                f"{bounds[worst]:g}; the smallest reached is {by_rule[worst]:.4g}. Raise "
                "max_disparity, merge small groups or give the model more features.",
                ConvergenceWarning,
                stacklevel=6,
            )
        elif found.n_solves > 1 and self._is_nearly_constant(problem, scores):
            warnings.warn(
                "Only (nearly) constant predictions were found to keep the training disparity "
                f"within {self.max_disparity:g}. Raise max_disparity, or merge small groups.",
                ConvergenceWarning,
                stacklevel=6,
            )

    def _is_nearly_constant(self, problem: RuledProblem, scores: Any) -> bool:
        """Whether one class is predicted for far fewer rows than have it."""
        if self._task != "classification":
            return False
        predicted, actual = problem.decide(scores).positive, problem.positive_share
        if not 0 < actual < 1:  # a class without weight
            return False
        return min(predicted / actual, (1 - predicted) / (1 - actual)) < NEARLY_CONSTANT

    def _store_disparities(
        self,
        problem: RuledProblem,
        scores: Any,
        unit: Callable[[BoundConstraint], float] = lambda rule: 1.0,
    ) -> dict[str, float]:
        """Store the strict disparities of rows whose scores are given."""
        means = problem.decide(scores).means
        found = [(rule, unit(rule), one) for rule, one in zip(problem.rules, means, strict=True)]
        by_rule = {rule.name: size * rule.disparity_of_means(one) for rule, size, one in found}
        self.train_disparity_ = max(by_rule.values(), default=0.0)
        self.train_disparities_ = by_rule
        self.disparity_by_group_ = {
            (name if len(found) == 1 else f"{rule.name}: {name}"): float(value)
            for rule, size, one in found
            for name, value in zip(
                rule.rate_names, size * rule.differences_of_means(one), strict=True
            )
        }
        return by_rule

    # --- streams -------------------------------------------------------------------------------

    def _read_part(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> FitData:
        """Validate a later part of a stream."""
        groups = self._read_part_groups(X, sensitive_features)
        rows = self._read_features(
            X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C"
        )
        y = column_or_1d(y, warn=True)
        check_consistent_length(rows, y)
        return FitData(rows, y, check_weights(sample_weight, rows.shape[0]), groups)

    def _advance(self, problem: ConstrainedERM) -> None:
        """Make some steps, at least one pass over the rows, with a solver whose state is kept."""
        solver = self._make_solver(is_linear=False, n_features=0)
        if not hasattr(solver, "advance"):
            raise ValueError(
                f"partial_fit needs a stochastic solver, got solver={self.solver!r}. Use 'auto' or "
                "'alm'."
            )
        check_needs(solver, problem)
        if not hasattr(self, "_stream"):
            rng = check_random_state(self.random_state)
            start, lam = problem.start(rng), None
            if hasattr(self, "_last_model"):
                last = self._last_theta(problem)
                start = problem.centered(np.concatenate([last, np.zeros(problem.n_centers)]))
                if self.multipliers_.size == problem.n_constraints:  # the groups may be others
                    lam = self.multipliers_
            training = solver.begin(problem, start, lam)
            self._stream = _Stream(training, problem.model.units, rng)
        stream = deepcopy(self._stream)  # what is there stays as it is if something fails below
        problem.model.use_units(stream.units)
        n_steps = max(PART_STEPS, problem.model.n_samples // solver.n_loss)
        solver.advance(problem, stream.training, n_steps, stream.rng)
        stream.n_rows += problem.model.n_samples
        self._stream = stream
        self.n_iter_ = stream.training.n_steps

    def _warn_not_converged(self, violation: float) -> None:
        warnings.warn(
            f"The solver stopped after {self.n_iter_} iterations with a KKT residual of "
            f"{self.kkt_residual_:.2g} (tol={self.tol:g})"
            + (f"; the constraints are missed by {violation:.2g}" if violation else "")
            + ". Raise max_iter or tol, or choose another solver.",
            ConvergenceWarning,
            stacklevel=7,
        )
