"""The steps of PartialParityClassifier's fit after its rows are read and its limit is bound.

``fit`` binds the limit to the rows by :func:`skfair.partial_parity.promise.promise_of_fit`, and
calls these functions in their order:

1. :func:`maps_follow`: whether the scores will be repaired by maps of the groups at the end.
2. :func:`make_model`, :func:`free_problem`, :func:`make_solver`: the model, its problem without the
   limit, and the solver of the problem with the limit. There is no solver if maps alone satisfy the
   limit.
3. :func:`solve` on an :class:`IntervalFit`, by the function in ``ENFORCED`` for ``enforce``.
4. :func:`model_state` and :func:`report`: the fitted attributes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, check_random_state

from skfair._typing import FloatArray, IntArray, IntervalLike, Rows
from skfair.enforcement.rounds import MAX_ROUNDS, SolveOptions
from skfair.enforcement.strict_evaluation import Verdict
from skfair.estimators.erm.solve import NEWTON_FEATURES
from skfair.groups.training_data import TrainingData
from skfair.losses import LOSSES, Loss, make_loss
from skfair.models.base import ScoreModel
from skfair.models.choice import read_model
from skfair.models.linear import LinearScore
from skfair.models.plug_in import PlugInScore, ScoreFunction
from skfair.partial_parity.grouped_scores import GroupedLinearScore
from skfair.partial_parity.objectives import BoundObjective, MeanLoss, Objective
from skfair.partial_parity.pair_losses import PAIR_LOSSES, PairwiseLoss
from skfair.partial_parity.prediction import settled
from skfair.partial_parity.problem import PartialParityProblem
from skfair.partial_parity.promise import Promise
from skfair.partial_parity.strict_rounds import (
    INTERVAL_SOLVERS,
    IntervalSolver,
    PartialResult,
    Target,
    best_factor,
    measured,
    solve_partially,
    stated,
)
from skfair.partial_parity.surrogates import Surrogate, make_surrogate
from skfair.problems.erm.problem import LinearConstrainedERM
from skfair.solvers.base import SOLVERS, Solver, SolverResult, check_needs
from skfair.solvers.erm.al_lbfgs import ALLBFGS
from skfair.solvers.erm.al_newton import ALNewton
from skfair.utils.endings import ENDINGS
from skfair.utils.registry import without_papers
from skfair.utils.text import did_you_mean
from skfair.utils.warn import warn_user

# The default widths of smooth steps suit scores of this standard deviation. For
# scores of another one, the widths are scaled in proportion.
SPREAD = 1.5
# A group has weights of its own if it has at least this many rows per feature.
ROWS_PER_FEATURE = 10
# The number of steps of the solver in a round, and its tolerance. They are coarse, because the next
# round continues where the last one ends. Twice the steps, or a third of the tolerance, take 1.4
# and 1.3 times as long and do not raise the accuracy on the test rows of 600-row samples (COMPAS,
# Adult, Bank, simulated data).
ROUND_ITERATIONS, ROUND_TOL = 150, 3e-3
# The number of rounds if maps of the groups satisfy the limit exactly afterwards.
ROUNDS_BEFORE_REPAIR = 2


def make_objective(
    loss: str | Loss | Objective,
    interval: IntervalLike,  # the interval of the constraint
    targets: FloatArray,  # (n_samples,): -1 and 1
    shares: FloatArray,  # (n_samples,): weights of the rows, with a sum of 1
) -> BoundObjective:
    """Return ``loss=`` bound to the rows: a mean loss of rows, of pairs, or the user's own."""
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


def maps_follow(promise: Promise, group_aware: bool, solver: str | Solver, enforce: str) -> bool:
    """Return whether scores are repaired at the end; raise if parameters contradict each other."""
    groups = promise.groups
    if group_aware and groups.n_attributes > 1:
        raise ValueError(
            "A group-aware model needs groups that do not overlap, but "
            f"Sensitive(intersectional=False) keeps {groups.n_attributes} attributes apart. Use "
            "intersectional=True or group_aware=False."
        )
    is_wanted = solver in ("auto", "repair") or enforce == "strict"
    is_repaired = bool(is_wanted and group_aware and promise.constraint.metric)
    if solver == "repair" and not is_repaired:
        raise ValueError(
            f"solver='repair' cannot keep constraint={promise.constraint.constraint!r}. Use "
            "solver='al_lbfgs'."
            if group_aware
            else "solver='repair' maps the scores of each group, so predictions need the group. "
            "Set group_aware=True, or use solver='al_lbfgs'."
        )
    return is_repaired


def column_order(X: Any) -> IntArray:
    """Return an order of the columns that depends on their values alone, not on where they stand.

    Where limits are hard to keep, one step more or less of the solver leads to other decisions. So
    the sums that it computes must not change with the order of the columns, not even by rounding.
    """
    return np.lexsort([np.ravel(X[::k].sum(axis=0)) for k in (3, 2, 1)])


def make_model(
    model: Literal["linear"] | ScoreFunction,
    data: TrainingData,
    group_aware: bool,
    order: IntArray,  # the columns in the order of the weights of a linear model
) -> LinearScore | GroupedLinearScore | PlugInScore:
    """Return the score model on the rows.

    If it is linear and group-aware, large groups have weights of their own.
    """
    function, weights, groups = read_model(model).function, data.sample_weight, data.groups
    if function is not None:
        return PlugInScore(function, data.X)
    X: Rows = _safe_indexing(data.X, order, axis=1)
    X = X if sparse.issparse(X) else np.ascontiguousarray(X)
    if not group_aware:
        return LinearScore(X, sample_weight=weights)
    if groups.has_group is not None:
        raise ValueError(
            "A group-aware model needs the group of each row that it learns from. Drop the rows "
            "without one, or use group_aware=False or PartialParityCalibrator."
        )
    counts = groups.sums(None if weights is None else weights > 0)
    own = (counts >= ROWS_PER_FEATURE * X.shape[1]) & (groups.n_groups > 1)
    return GroupedLinearScore(X, groups.codes[0], own.tolist(), sample_weight=weights)


def free_problem(
    model: ScoreModel, promise: Promise, loss: str | Loss | Objective, alpha: float | None
) -> PartialParityProblem:
    """Return the problem without the limit.

    The targets and weights of the loss are those of ``promise``. ``alpha=None`` is the penalty of
    ``LogisticRegression(C=1)``.
    """
    targets, weights = promise.targets, promise.weights
    weights = np.ones(targets.size) if weights is None else weights
    n_rows = float(weights.sum())
    objective = make_objective(loss, promise.interval, targets, weights / n_rows)
    alpha = 1 / n_rows if alpha is None else float(alpha)
    return PartialParityProblem(model, objective, [], promise.tolerance, alpha=alpha)


def make_solver(
    solver: str | Solver, promise: Promise, free: PartialParityProblem, is_repaired: bool
) -> Solver | None:
    """Return the solver of the problem with the limit, or None if no such problem is solved.

    It is None if repair alone satisfies the limit (solver "repair", or "auto" with maps), or if
    nothing is limited.
    """
    made = cast(Solver, solver)  # check_needs below raises if an object is no solver
    if isinstance(solver, str):
        if solver == "repair" or (solver == "auto" and is_repaired):
            return None
        name = "al_lbfgs" if solver == "auto" else solver
        if name not in SOLVERS and name not in INTERVAL_SOLVERS:
            known = ["auto", "repair", *INTERVAL_SOLVERS, *SOLVERS]
            raise ValueError(
                f"There is no solver {name!r}.{did_you_mean(name, known)} The solvers are "
                f"{', '.join(map(repr, known))}.{without_papers()}"
            )
        made = (SOLVERS if name in SOLVERS else INTERVAL_SOLVERS)[name]()
    if promise.is_vacuous or not promise.of_attributes():
        return None
    if not isinstance(made, IntervalSolver):  # an IntervalSolver checks the problem that it states
        check_needs(made, free)
    return made


@dataclass(frozen=True, eq=False)
class IntervalFit:
    """A limit within an interval, the problem without it, and how the limit is enforced."""

    promise: Promise  # the limit
    free: PartialParityProblem  # the problem without the limit
    enforce: str  # "strict", "surrogate" or "paper"
    is_repaired: bool  # whether the scores of the groups are mapped afterwards
    options: SolveOptions  # options of the solver

    @cached_property
    def unlimited(self) -> SolverResult:
        """The model without the limit, which is fitted when it is first read."""
        return fit_freely(self.free, self.options)

    @cached_property
    def target(self) -> Target:
        """The numbers by which solutions are compared."""
        promise, objective = self.promise, self.free.objective
        weights = np.ones(promise.targets.size) if promise.weights is None else promise.weights
        # Some constraints and losses allow rows of one class only, and then there is no AUC.
        has_both = np.ptp(promise.targets) > 0
        auc = PairwiseLoss(promise.targets, weights).share_right if has_both else lambda scores: 1.0
        decides = not isinstance(objective, PairwiseLoss)
        quality, bound = objective.share_right, promise.bound
        return Target(promise.load, quality, decides, auc, bound, promise.weights)

    @property
    def is_printed(self) -> bool:
        """Whether the constraint has the form that the paper prints."""
        return self.enforce == "paper"

    @property
    def is_strict(self) -> bool:
        """Whether the limit is on the true disparity, not only on the smooth one."""
        return self.enforce == "strict"


def solve(fit: IntervalFit, solver: Solver | None) -> PartialResult:
    """Return the fitted model, before maps of the groups.

    Without a solver it is the model without the limit.
    """
    if solver is None:
        return PartialResult(fit.free, fit.unlimited, Verdict())
    if isinstance(solver, IntervalSolver):
        return solver.fit_within(fit.promise, fit.free, fit.options, printed=fit.is_printed)
    return ENFORCED[fit.enforce](fit, solver)


def _strictly(fit: IntervalFit, solver: Solver) -> PartialResult:
    """Solve in rounds until the true disparity is within the limit.

    The model without the limit is returned if it satisfies the limit. An objective with kinks (a
    partial AUC) is first replaced by the log loss, and the fit continues from that solution.
    """
    solved = measured(fit.free, fit.unlimited, fit.target)
    if solved.verdict.is_feasible:
        return solved
    if not fit.free.objective.uses_interval:
        return _in_rounds(fit, solver, fit.free, fit.unlimited.theta, fit.unlimited)
    smooth = _with_log_loss(fit.free)
    unlimited = fit_freely(smooth, fit.options)
    first = measured(smooth, unlimited, fit.target)
    if not first.verdict.is_feasible:
        first = _in_rounds(fit, solver, smooth, unlimited.theta, unlimited)
    return _go_on(fit, solver, first)


def _as_stated(fit: IntervalFit, solver: Solver) -> PartialResult:
    """Solve the smooth problem once, without a check of the true disparity.

    Precise solvers start from the model without the limit. Other solvers start as in the paper,
    which for linear scores is from zeros.
    """
    start = fit.free.model.start(check_random_state(fit.options["random_state"]))
    if solver.is_precise:
        start = fit.unlimited.theta
    forms, surrogate = _forms(fit, solver, fit.free, SPREAD)
    return solve_partially(forms, solver, start, surrogate, fit.target, n_rounds=1, **fit.options)


# The function for each value of ``enforce``. "paper" differs from "surrogate" only in the form of
# the constraint (is_printed).
ENFORCED = {"strict": _strictly, "surrogate": _as_stated, "paper": _as_stated}


def _in_rounds(
    fit: IntervalFit,
    solver: Solver,
    problem: PartialParityProblem,
    start: FloatArray,  # weights of the model
    unlimited: SolverResult | None = None,  # see solve_partially; not used if maps follow
) -> PartialResult:
    """Solve a problem in rounds, fewer if maps of the groups follow or ``unlimited`` is None."""
    forms, surrogate = _forms(
        fit, solver, problem, fit.target.spread(problem.model.forward(start)[0])
    )
    options: SolveOptions = {"max_iter": ROUND_ITERATIONS, **fit.options}
    options["tol"] = max(options["tol"], ROUND_TOL)
    unlimited = None if fit.is_repaired else unlimited
    n_rounds = ROUNDS_BEFORE_REPAIR if unlimited is None else MAX_ROUNDS
    own = forms, solver, start, surrogate, fit.target
    return solve_partially(*own, n_rounds=n_rounds, unlimited=unlimited, **options)


def _forms(
    fit: IntervalFit, solver: Solver, problem: PartialParityProblem, spread: float
) -> tuple[list[PartialParityProblem], Surrogate]:
    """Return a problem with its limit in each form, and the smooth step of the first round.

    The step suits scores with the standard deviation ``spread``.
    """
    shape, is_printed = fit.promise.constraint.surrogate, fit.is_printed
    surrogate = make_surrogate(shape, spread=spread / SPREAD, is_rounded=solver.is_precise)
    forms = stated(fit.promise, problem, surrogate, printed=is_printed, last=is_printed)
    for form in forms:  # the offers of a problem depend on its constraints
        check_needs(solver, form)
    return forms, surrogate


def model_state(
    model: ScoreModel,
    classes: NDArray[Any],
    group_aware: bool,
    order: IntArray,  # the columns in the order of the weights of a linear model
    theta: FloatArray,
) -> dict[str, Any]:
    """Return the attributes that prediction needs, without maps of the groups.

    Callbacks during the fit predict with them. :func:`report` adds the maps.
    """
    weights, intercept = model.raw(theta[: model.n_parameters])
    if isinstance(model, PlugInScore):
        own: dict[str, Any] = {"model_": model.function, "parameters_": weights}
    else:
        coef = np.atleast_2d(weights)[:, np.argsort(order)]
        own = {"coef_": coef, "intercept_": np.atleast_1d(intercept)}
    return {**own, "classes_": classes, "is_group_aware_": bool(group_aware), "calibration_": None}


def report(
    fit: IntervalFit,
    solved: PartialResult,
    scores: FloatArray,  # scores of the model, before maps
) -> dict[str, Any]:
    """Return the fitted attributes; warn if the limit is exceeded or the solver stopped early."""
    problem, result = solved.problem, solved.result
    model, at = problem.model, problem.evaluate(result.theta)
    residual = max(problem.kkt_residual(at, result.multipliers).values())
    # "max_iter" is only a failure of a solver that had to converge. In a round it need not, because
    # the next round continues from there. At kinks (a partial AUC, a user's model) it cannot.
    is_final = not (fit.is_strict and problem.moments)
    is_smooth = problem.objective.is_smooth and model.has_curvature
    if result.status == "max_iter" and is_final and solved.is_precise and is_smooth:
        warn_user(
            f"{ENDINGS['max_iter']} After {result.n_iter} steps the residual is {residual:.2g} "
            f"(tol={fit.options['tol']:g}). Raise max_iter, or standardise the columns.",
            ConvergenceWarning,
        )
    min_gap = model.rounding(problem.model_part(result.theta))
    free = model.forward(fit.unlimited.theta)[0] if fit.is_strict else None
    how: Any = {"is_strict": fit.is_strict, "is_repaired": fit.is_repaired}
    attributes = settled(fit.promise, scores, free, **how, min_gap=min_gap)
    names = [name for moment in problem.moments for name in moment.row_names]
    percentiles = [moment.percentiles for moment in problem.moments]
    return {
        **attributes,
        "objective_": at.objective,
        "multipliers_": result.multipliers,
        "kkt_residual_": residual,
        "constraint_names_": np.array(names, dtype=object),
        "percentiles_": np.concatenate([np.empty(0), *percentiles]),
        "percentile_thresholds_": result.theta[model.n_parameters :].copy(),
        "n_iter_": int(result.n_iter),
        "n_solves_": solved.n_solves,
        "status_": "infeasible"
        if fit.is_strict and not attributes["is_within_limit_"]
        else result.status,
        "history_": result.history,
    }


def fit_freely(problem: PartialParityProblem, params: SolveOptions) -> SolverResult:
    """Fit the model without the limit, by Newton's method if the loss and the model allow it.

    An objective with kinks is solved from the solution under the log loss.
    """
    model, objective = problem.model, problem.objective
    start = model.start(check_random_state(params["random_state"]))
    if objective.uses_interval:
        easy = fit_freely(_with_log_loss(problem), params)
        start = best_factor(problem, easy.theta) * easy.theta
        # Descent on kinks does not converge. On COMPAS, 5000 steps lowered the objective by only
        # 0.05% after the first 300.
        params = {"max_iter": ROUND_ITERATIONS, **params}
    is_small = model.n_parameters <= NEWTON_FEATURES
    if isinstance(objective, MeanLoss) and model.has_curvature and is_small:
        loss, targets, shares = objective.loss, objective.targets, objective.weights
        plain = LinearConstrainedERM(
            model, loss, targets, [], sample_weight=shares, alpha=problem.alpha
        )
        return ALNewton().solve(plain, start, **params)
    return ALLBFGS().solve(problem, start, **params)


def _with_log_loss(problem: PartialParityProblem) -> PartialParityProblem:
    """Return the problem with the mean log loss as its objective."""
    objective = problem.objective
    return problem.with_objective(
        MeanLoss(LOSSES["log_loss"](), objective.targets, objective.weights)
    )


def _go_on(fit: IntervalFit, solver: Solver, first: PartialResult) -> PartialResult:
    """Start from ``first``, and minimise the objective of the fit; return the better solution.

    ``first`` is the solution for the log loss. Descent on an objective with kinks may end anywhere,
    so ``first`` may be the better one of the two. The start and the result are rescaled by the
    factor that suits the objective best, which does not change the ranks of the rows.
    """
    form = first.problem.with_objective(fit.free.objective)
    start = best_factor(form, first.result.theta) * form.model_part(first.result.theta)
    smoothed = _in_rounds(fit, solver, fit.free, start)
    best = min(replace(first, problem=form), smoothed, key=lambda candidate: candidate.verdict.rank)
    factor = best_factor(best.problem, best.result.theta)
    return replace(
        best,
        result=best.result._replace(theta=factor * best.result.theta),
        n_solves=first.n_solves + smoothed.n_solves,
    )
