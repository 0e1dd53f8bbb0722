"""The fit of PartialParityClassifier: from the limits to the problem and its solution.

The order is that of a fit: what is promised, whether the model may use the group, the problem in
score space, its solver, what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from skfair._typing import Callback, FloatArray, IntervalLike
from skfair.base import SensitiveFeaturesMixin
from skfair.constraints.partial import Surrogate, read_constraint
from skfair.constraints.partial.surrogates import Kind
from skfair.enforcement.partial.promise import Promise
from skfair.enforcement.partial.strict import (
    PartialResult,
    Target,
    best_factor,
    measured,
    solve_partially,
)
from skfair.enforcement.rounds import MAX_ROUNDS, SolveOptions
from skfair.enforcement.truth import Verdict
from skfair.estimators.erm.problem import NEWTON_FEATURES
from skfair.groups.training_data import TrainingData
from skfair.losses import LOSSES, Loss, make_loss
from skfair.models.choice import read_model
from skfair.models.grouped import GroupedLinearScore
from skfair.models.linear import LinearScore
from skfair.models.plug_in import PlugInScore, ScoreFunction
from skfair.problems.erm.in_memory import LinearConstrainedERM
from skfair.problems.partial.objectives import BoundObjective, MeanLoss, Objective
from skfair.problems.partial.problem import PartialParityProblem
from skfair.problems.partial.ranking import PAIR_LOSSES
from skfair.solvers.base import DC_SOLVERS, SOLVERS, Solver, check_needs
from skfair.solvers.erm.al_lbfgs import ALLBFGS
from skfair.solvers.erm.al_newton import ALNewton
from skfair.utils.older import CallbackSupportMixin
from skfair.utils.text import did_you_mean
from skfair.utils.warn import warn_user

# Half-widths of the smooth steps in units of the score (0.5 is the paper's), and the rounding of a
# ramp's corners.
WIDTHS = {"ramp": 0.5, "smoothstep": 0.6, "sigmoid": 0.25}
ROUNDING = 0.2
# Standard deviation of scores for which these widths are, where they follow it.
SPREAD = 1.5


def make_objective(
    loss: str | Loss | Objective,
    interval: IntervalLike,  # of the constraint
    targets: FloatArray,
    shares: FloatArray,
) -> BoundObjective:
    """Return what is minimised: a mean loss of rows, or of pairs of rows."""
    if isinstance(loss, str) and loss in PAIR_LOSSES:
        pairs = PAIR_LOSSES[loss]
        if loss == "partial_auc":
            if isinstance(interval, dict):
                raise ValueError(
                    "loss='partial_auc' ranks the negatives of all groups together, so its "
                    "interval must be the same for all groups. Pass one as "
                    "loss=PairLoss(interval=...)."
                )
            pairs = replace(pairs, interval=interval)
        return pairs.prepare(targets, shares)
    if isinstance(loss, Objective):
        return loss.prepare(targets, shares)
    fitting = [name for name in LOSSES if "classification" in LOSSES[name].tasks]
    if isinstance(loss, str) and loss not in fitting:
        known = [*fitting, *PAIR_LOSSES]
        raise ValueError(
            f"There is no loss {loss!r} for classification.{did_you_mean(loss, known)} The losses "
            f"are {', '.join(map(repr, known))}."
        )
    return MeanLoss(make_loss(loss, "classification"), targets, shares)


def make_surrogate(
    surrogate: Kind | Surrogate, solver: Solver, spread: float = SPREAD
) -> Surrogate:
    """Return the smooth step; as wide as scores are spread, unless it is the user's own.

    It has no corners for solvers that run until they have converged.
    """
    if isinstance(surrogate, Surrogate):
        return surrogate
    rounding = ROUNDING if surrogate == "ramp" and solver.is_precise else 0.0
    made = Surrogate(surrogate, WIDTHS[surrogate], rounding)
    return made.narrowed(spread / SPREAD) if spread else made


Model = LinearScore | GroupedLinearScore | PlugInScore

# A group has weights of its own from this many rows per feature on.
ROWS_PER_FEATURE = 10
# Steps of the solver per round, and its tolerance: a later round goes on where they end. Twice the
# steps, or a third of the tolerance, cost 1.4 and 1.3 times as much and bring no accuracy on the
# test rows of 600-row samples (COMPAS, Adult, Bank) and of simulated ones.
ROUND_ITERATIONS, ROUND_TOL = 150, 3e-3
# Rounds of smooth problems before repair makes the promise exact.
ROUNDS_BEFORE_REPAIR = 2


class PartialFitting(SensitiveFeaturesMixin, CallbackSupportMixin, BaseEstimator):
    """Finds the parameters of a model under a constraint within percentile intervals."""

    model: Literal["linear"] | ScoreFunction

    # --- what is promised and by which model ----------------------------------------------------

    def _decide_awareness(self, promise: Promise) -> bool:
        if self.group_aware and promise.groups.n_attributes > 1:
            raise ValueError(
                "A group-aware model needs groups that do not overlap, but "
                f"Sensitive(crossed=False) keeps {promise.groups.n_attributes} attributes apart. "
                "Use crossed=True or group_aware=False."
            )
        if self.solver == "repair" and not self.group_aware:
            raise ValueError(
                "solver='repair' maps the scores of each group, so predictions need the group. Set "
                "group_aware=True, or use solver='al_lbfgs'."
            )
        if self.solver == "repair" and not promise.constraint.metric:
            raise ValueError(
                f"solver='repair' cannot keep constraint={self.constraint!r}. Use "
                "solver='al_lbfgs'."
            )
        return bool(self.group_aware)

    def _make_model(self, data: TrainingData) -> Model:
        function = read_model(self.model).function
        if function is not None:
            return PlugInScore(function, data.X)
        if not self.is_group_aware_:
            return LinearScore(data.X, sample_weight=data.sample_weight)
        groups = data.groups
        is_counted = None if data.sample_weight is None else data.sample_weight > 0
        own = groups.sums(is_counted) >= ROWS_PER_FEATURE * data.X.shape[1]
        own &= groups.n_groups > 1
        return GroupedLinearScore(
            data.X, groups.codes[0], own.tolist(), sample_weight=data.sample_weight
        )

    # --- solution -------------------------------------------------------------------------------

    def _optimise(
        self, data: TrainingData, promise: Promise, model: Model, callback: Callback | None
    ) -> PartialResult:
        """Fit the model, under the smooth constraint unless scores are only repaired."""
        targets, constraint = promise.targets, promise.constraint
        weights = np.ones(targets.size) if data.sample_weight is None else data.sample_weight
        n_rows = float(weights.sum())
        free = PartialParityProblem(
            model,
            make_objective(self.loss, self.interval, targets, weights / n_rows),
            [],
            promise.tolerance,
            alpha=1 / n_rows if self.alpha is None else float(self.alpha),
        )
        params: SolveOptions = {
            "tol": self.tol,
            "random_state": check_random_state(self.random_state),
            "callback": callback,
        }
        if self.max_iter is not None:
            params["max_iter"] = self.max_iter
        solver = self._make_solver()
        if solver is None or promise.is_vacuous or not promise.of_attributes():
            return _fit_freely(free, params)
        check_needs(solver, free)
        if constraint.ranks_whole_groups and not solver.can_continue:
            raise ValueError(
                f"solver={self.solver!r} is for differences of convex functions, which no "
                "constraint with rank_within='group' is. Use solver='al_lbfgs', or 'repair' if the "
                "model is group-aware."
            )
        target = Target(
            measure=promise.load,
            quality=free.objective.share_right,
            max_disparity=promise.bound,
            weights=data.sample_weight,
        )
        if self.enforce == "strict" and solver.can_continue:
            in_rounds = partial(self._solve_in_rounds, promise, solver, target, params)
            if not free.objective.uses_interval:
                return in_rounds(free)
            unlimited = measured(free, _fit_freely(free, params).result, target)
            if unlimited.verdict.is_feasible:
                return unlimited
            return _go_on(in_rounds(_with_log_loss(free)), free, in_rounds)
        # Zeros for linear scores, as in the paper.
        start = model.start(check_random_state(params["random_state"]))
        if solver.is_precise:
            start = _fit_freely(free, params).result.theta
        surrogate = make_surrogate(constraint.surrogate, solver)
        problems = self._problems(promise, free, solver, surrogate)
        for problem in problems:  # what they offer depends on their constraints
            check_needs(solver, problem)
        return solve_partially(problems, solver, start, surrogate, target, n_rounds=1, **params)

    def _solve_in_rounds(
        self,
        promise: Promise,
        solver: Solver,
        target: Target,
        params: SolveOptions,
        free: PartialParityProblem,
        start: FloatArray | None = None,  # None for the free model, if that misses the limit
    ) -> PartialResult:
        """Solve smooth problems, from a start on."""
        is_last = start is None and not self._is_repaired()
        if start is None:
            unlimited = measured(free, _fit_freely(free, params).result, target)
            start = unlimited.result.theta
            if unlimited.verdict.is_feasible:
                return unlimited
        spread = target.spread(free.model.forward(start)[0])
        surrogate = make_surrogate(promise.constraint.surrogate, solver, spread)
        return solve_partially(
            self._problems(promise, free, solver, surrogate),
            solver,
            start,
            surrogate,
            target,
            n_rounds=MAX_ROUNDS if is_last else ROUNDS_BEFORE_REPAIR,
            wanders=is_last,
            **{"max_iter": ROUND_ITERATIONS, **params, "tol": max(self.tol, ROUND_TOL)},
        )

    def _make_solver(self) -> Solver | None:
        """Return the solver of the smooth problem, or None if there is nothing to solve."""
        name = self.solver
        if not isinstance(name, str):
            return cast(Solver, name)  # check_needs says whether it is one
        if name == "repair" or (name == "auto" and self._is_repaired()):
            return None
        name = "al_lbfgs" if name == "auto" else name
        for registry in (SOLVERS, DC_SOLVERS):
            if name in registry:
                return registry[name]()
        known = ["auto", "repair", *DC_SOLVERS, *SOLVERS]
        raise ValueError(
            f"There is no solver {name!r}.{did_you_mean(name, known)} The solvers are "
            f"{', '.join(map(repr, known))}."
        )

    def _problems(
        self, promise: Promise, free: PartialParityProblem, solver: Solver, surrogate: Surrogate
    ) -> list[PartialParityProblem]:
        """Return the problem in each form of its constraint; the paper's algorithms get one."""
        limited = promise.of_attributes()
        if solver.ignores_tolerance:
            limited = [replace(part, limit=0.0) for part in limited]
        is_printed = solver.compares_pairs or self.enforce == "paper"
        constraint = promise.constraint
        rows = [
            part.rows(a, part.percentiles(constraint.n_percentiles))
            for part in limited
            for a in range(part.groups.n_attributes)
        ]
        forms = [constraint.moments(of, surrogate, printed=is_printed) for of in rows]
        if is_printed or not solver.can_continue:
            forms = [attribute[-1:] for attribute in forms]
        tolerance = 0.0 if solver.ignores_tolerance else promise.tolerance
        ratios = promise.ratios if isinstance(promise.limit, Mapping) else None
        return [
            PartialParityProblem(
                free.model, free.objective, moments, tolerance, alpha=free.alpha, ratios=ratios
            )
            for moments in zip(*forms, strict=True)
        ]

    # --- result ---------------------------------------------------------------------------------

    def _state(self, model: Model, theta: FloatArray) -> dict[str, Any]:
        """Return the attributes that prediction needs."""
        weights, intercept = model.raw(theta[: model.n_parameters])
        of_model: dict[str, Any] = {"model_": self.model, "parameters_": weights}
        if intercept is not None:
            of_model = {"coef_": np.atleast_2d(weights), "intercept_": np.atleast_1d(intercept)}
        return {
            **of_model,
            "thresholds_": np.zeros(self._group_levels.n_groups),
            "calibration_": None,
        }

    def _store_solution(self, solved: PartialResult) -> None:
        problem, result = solved.problem, solved.result
        at = problem.evaluate(result.theta)
        self.objective_ = at.objective
        self.multipliers_ = result.multipliers
        self.kkt_residual_ = max(problem.kkt_residual(at, result.multipliers).values())
        names = [name for moment in problem.moments for name in moment.row_names]
        self.constraint_names_ = np.array(names, dtype=object)
        self.percentiles_ = np.concatenate(
            [np.empty(0), *(moment.percentiles for moment in problem.moments)]
        )
        self.percentile_thresholds_ = result.theta[problem.model.n_parameters :].copy()
        self.n_iter_ = int(result.n_iter)
        self.n_solves_ = solved.n_solves
        self.status_ = result.status
        self.history_ = result.history
        # Rounds go on where the last one ended. A partial AUC has kinks, where descent ends, and so
        # may a user's model.
        is_final = self.enforce != "strict" or not problem.moments
        is_smooth = problem.objective.is_smooth and problem.model.has_curvature
        runs_to_the_end = solved.is_precise and is_smooth
        if result.status == "max_iter" and is_final and runs_to_the_end:
            warn_user(
                f"The solver stopped after {self.n_iter_} steps with a residual of "
                f"{self.kkt_residual_:.2g} (tol={self.tol:g}). Raise max_iter, or standardise the "
                "columns.",
                ConvergenceWarning,
            )

    def _is_repaired(self) -> bool:
        """Whether the scores are repaired in the end."""
        wanted = self.solver in ("auto", "repair") or self.enforce == "strict"
        return bool(wanted and self.is_group_aware_ and read_constraint(self.constraint).metric)


def _fit_freely(problem: PartialParityProblem, params: SolveOptions) -> PartialResult:
    """Fit the model without the constraint, by Newton steps where the loss allows."""
    model, objective = problem.model, problem.objective
    start = model.start(check_random_state(params["random_state"]))
    if objective.uses_interval:
        easy = _fit_freely(_with_log_loss(problem), params)
        start = best_factor(problem, easy.result.theta) * easy.result.theta
        # Descent on kinks never ends: 5000 steps on COMPAS brought .05% after the first 300.
        params = {"max_iter": ROUND_ITERATIONS, **params}
    is_small = model.n_parameters <= NEWTON_FEATURES
    if isinstance(objective, MeanLoss) and model.has_curvature and is_small:
        plain = LinearConstrainedERM(
            problem.model,
            objective.loss,
            objective.targets,
            [],
            sample_weight=objective.weights,
            alpha=problem.alpha,
        )
        result = ALNewton().solve(plain, start, **params)
    else:
        result = ALLBFGS().solve(problem, start, **params)
    return PartialResult(problem, result, Verdict())


def _with_log_loss(problem: PartialParityProblem) -> PartialParityProblem:
    objective = problem.objective
    return problem.with_objective(
        MeanLoss(LOSSES["log_loss"](), objective.targets, objective.weights)
    )


def _go_on(
    first: PartialResult, free: PartialParityProblem, in_rounds: Callable[..., PartialResult]
) -> PartialResult:
    """Go on from the solution under a smooth loss; return the better of both.

    Descent on an objective with kinks may end anywhere, so what is reached is kept. Scores that
    are multiplied rank the same, and a factor makes them no worse than constant ones.
    """
    form = first.problem.with_objective(free.objective)
    start = best_factor(form, first.result.theta) * form.model_part(first.result.theta)
    smoothed = in_rounds(free, start)
    best = min(replace(first, problem=form), smoothed, key=lambda candidate: candidate.verdict.rank)
    factor = best_factor(best.problem, best.result.theta)
    return replace(
        best,
        result=best.result._replace(theta=factor * best.result.theta),
        n_solves=first.n_solves + smoothed.n_solves,
    )
