"""The steps of a ranker's fit after its rows are read: problem on pairs, solution, report.

:func:`make_task` draws pairs and binds the limit of each query to them, :func:`solve` solves smooth
problems until enough queries satisfy it, and :func:`report` returns the fitted attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skfair._typing import Callback, ColumnLike, FloatArray, IntArray
from skfair.enforcement.rounds import PATIENCE, moved_bounds
from skfair.groups.limits import Limit, limits_of_attributes
from skfair.groups.training_data import TrainingData
from skfair.losses import Loss, make_loss
from skfair.models import LinearScore, MLPScore
from skfair.models.choice import ModelChoice, read_model
from skfair.models.units import Units, compact_rows
from skfair.problems.erm.problem import ConstrainedERM
from skfair.ranking.metrics import RankedRows, pair_error_gaps, pair_error_rates, ranked_rows
from skfair.ranking.pair_score import PairScore
from skfair.ranking.pairs import bind_pairs, draw_pairs
from skfair.solvers.base import SOLVERS, Solver, SolverResult, check_needs
from skfair.solvers.erm.al_lbfgs import ALLBFGS
from skfair.utils.endings import ENDINGS
from skfair.utils.rounding import SUM_ROUNDING
from skfair.utils.validation import check_numbers
from skfair.utils.warn import warn_user

# The largest number of pairs of each kind (query, group of the better and of the worse document) in
# the problem. More pairs take more time. Reported disparities are measured on all pairs.
MAX_PAIRS = 200
# Steps of the default solver in each round. It need not converge, because the next round continues.
AUTO_STEPS = 100
# The largest loss of a query that the default solver accepts for a unit of its disparity. Without
# this bound, the few queries that cannot satisfy the limit would spoil the order of all others.
AUTO_MULTIPLIER = 6.0
# Rising steepness of the smooth errors. Steeper ones are closer to the true errors and harder to
# solve.
TEMPERATURES = (1.0, 2.0)
# The largest number of problems that are solved.
MAX_ROUNDS = 10
# Bounds are tightened by the violation and by this part of the limit.
_MARGIN = 0.03


class RankingTask(NamedTuple):
    """A problem on pairs, and the documents on which its solution is measured."""

    # A row of this problem is a pair of documents, and a constraint compares two kinds of pairs of
    # one query. bind_pairs makes the constraints
    problem: ConstrainedERM
    pairs: PairScore  # the model of the problem; ``pairs.model`` gives the scores of documents
    compared: IntArray  # (n_constraints, 3): query and groups a, b of each constraint row
    limits: FloatArray  # (n_constraints,): the limit of each
    rows: RankedRows  # grades, queries and groups of the documents
    n_queries: int  # number of queries with pairs, which have equal weights in the loss

    def true_values(self, theta: FloatArray) -> FloatArray:
        """Return the true value of each constraint row, with errors counted on all pairs."""
        rates, (query, a, b) = pair_error_rates(self._scored(theta)), self.compared.T
        return np.asarray(rates[query, b, a] - rates[query, a, b])

    def disparities(self, theta: FloatArray) -> FloatArray:
        """Return the disparity of each query, or NaN if it is undefined."""
        return pair_error_gaps(self._scored(theta))

    def _scored(self, theta: FloatArray) -> RankedRows:
        """Return the documents with the scores that parameters give them."""
        scores, _ = self.pairs.model.forward(self.problem.model_part(theta))
        return self.rows._replace(y_score=scores)

    def fitted(self, theta: FloatArray) -> dict[str, Any]:
        """Return the attributes of an estimator with these scores."""
        weights, intercepts = self.pairs.raw(self.problem.model_part(theta))
        if isinstance(weights, np.ndarray):
            return {"coef_": weights}
        layers, dtype = {"coefs_": weights, "intercepts_": intercepts}, self.pairs.X.dtype
        return {name: [layer.astype(dtype) for layer in own] for name, own in layers.items()}


def make_task(
    data: TrainingData,  # a row per document
    query_id: ColumnLike,
    loss: str | Loss,  # loss of a difference of scores, which should be positive
    alpha: float | None,
    model: ModelChoice,
    max_disparity: Limit,  # limit of each query
    *,
    rng: np.random.RandomState,
) -> RankingTask:
    """Draw pairs and build the problem on them; warn if none of them is limited."""
    loss, layers = make_loss(loss, "classification"), read_model(model).layers
    grades, groups = check_numbers(data.y, "y"), data.groups
    rows = ranked_rows(grades, np.zeros(grades.size), query_id, groups)
    atoms = groups.cells()
    pairs = draw_pairs(grades, list(rows.queries()), atoms.codes, MAX_PAIRS, rng)
    constraint, compared, limits = bind_pairs(pairs, rows.query_names, groups, atoms, max_disparity)
    X = compact_rows(data.X)
    # An intercept would cancel, so the means of the columns do not matter.
    units = None if layers else Units.of_columns(X)
    documents = MLPScore(X, layers) if layers else LinearScore(X, fit_intercept=False, units=units)
    scores = PairScore(documents, pairs.first, pairs.second)
    problem = ConstrainedERM(
        scores,
        loss,
        np.ones(scores.n_samples),  # targets are 1: the first document of a pair is the better one
        [constraint] if limits.size else [],
        sample_weight=pairs.weights,
        alpha=1 / grades.size if alpha is None else float(alpha),
    )
    has_limit = any(limit is not None for limit in limits_of_attributes(max_disparity, groups))
    if limits.size:
        problem = problem.bounded(-limits, limits)
    elif has_limit and groups.n_groups > groups.n_attributes:
        warn_user(
            "No query has pairs of documents of two groups in both directions, so no fairness "
            "constraint is active. Check query_id and sensitive_features."
        )
    n_queries = len({kind.query for kind in pairs.kinds})
    return RankingTask(problem, scores, compared, limits, rows, n_queries)


class RankingSolution(NamedTuple):
    """The best solution of all rounds."""

    result: SolverResult  # what the solver returned
    problem: ConstrainedERM  # the problem that it solved, with the bounds of that round
    share_within: float  # share of the queries that satisfy the limit
    n_solves: int
    is_stochastic: bool  # whether the solver is, so that it always makes all of its steps


def solve(
    task: RankingTask,
    solver: str | Solver,
    query_share: float | None,  # None for one smooth problem
    tol: float,
    max_iter: int | None,
    rng: np.random.RandomState,
    callback: Callback,
) -> RankingSolution:
    """Return the solution with the most queries within the limit, of at most ``MAX_ROUNDS`` rounds.

    A round solves a smooth problem and measures the true disparity of every query on all its pairs.
    Rounds end when the share ``query_share`` of the queries is within the limit. The first rounds
    have lower temperatures, whose problems are easier, and are a good start for the last one.

    Then the bounds are moved. After the first round, and while the temperature changes, they are
    shifted by the difference between smooth and true values. This difference has two causes:
    sigmoids instead of errors, and a sample of the pairs. Later only the bounds of queries that
    violate the limit are tightened, by the violation. They are never loosened again, so that
    queries do not alternate in violating the limit. If bounds were shifted in all rounds, as for
    classifiers, 0.76 of the queries of 16 fits would be within the limit instead of 0.79.
    """
    problem, limit, share_asked = task.problem, task.limits, query_share or 0.0
    is_auto, is_strict = isinstance(solver, str) and solver == "auto", query_share is not None
    if is_auto:
        gives_up = is_strict and share_asked < 1
        solver = ALLBFGS(max_multiplier=AUTO_MULTIPLIER / task.n_queries if gives_up else np.inf)
        max_iter = AUTO_STEPS if max_iter is None else max_iter
    chosen = SOLVERS[solver]() if isinstance(solver, str) else solver
    check_needs(chosen, problem)
    options: Any = {"tol": tol, "max_iter": max_iter, "random_state": rng, "callback": callback}
    theta, multipliers = problem.start(rng), np.zeros(problem.n_constraints)
    best: RankingSolution | None = None
    # ``since`` is the number of rounds since the best one. Without query_share one round is made.
    since, n_rounds = 0, MAX_ROUNDS if is_strict else 1
    path = [*TEMPERATURES, *[TEMPERATURES[-1]] * n_rounds][:n_rounds]
    for n_solves, temperature in enumerate(path, 1):
        problem = problem.bounded(temperature=temperature)
        result = chosen.solve(problem, theta, multipliers, **options)
        theta, multipliers = result.theta, result.multipliers
        true = task.true_values(theta)
        share = _share_within(true, task.compared[:, 0], limit)
        if best is None or share > best.share_within:
            found = result, problem, share, n_solves, chosen.is_stochastic
            best, since = RankingSolution(*found), 0
        else:
            since += 1
        best = best._replace(n_solves=n_solves)
        is_last = n_solves >= len(TEMPERATURES)
        if share >= share_asked or result.status == "stopped" or (is_last and since >= PATIENCE):
            break
        smooth = problem.evaluate(theta).constraints
        if n_solves == 1 or not is_last:
            problem = problem.bounded(*moved_bounds(-limit, limit, true - smooth, 0.0))
        else:
            problem = _tightened(problem, smooth, true, limit)
    assert best is not None
    return best


def _share_within(true: FloatArray, query_of_row: IntArray, limit: FloatArray) -> float:
    """Return the share of queries that satisfy the limit in all of their constraint rows.

    Queries without a constraint row do not count. Without any constraint row, the share is 1.
    """
    is_over = np.abs(true) > limit + SUM_ROUNDING
    n_queries = np.unique(query_of_row).size
    return 1 - np.unique(query_of_row[is_over]).size / max(n_queries, 1)


def _tightened(
    problem: ConstrainedERM, smooth: FloatArray, true: FloatArray, limit: FloatArray
) -> ConstrainedERM:
    """Return the problem with tighter bounds where a true value exceeds the limit."""
    margin = _MARGIN * limit
    upper = np.minimum(problem.upper, smooth) - (true - limit) - margin
    lower = np.maximum(problem.lower, smooth) - (true + limit) + margin
    upper = np.where(true > limit, upper, problem.upper)
    lower = np.where(true < -limit, lower, problem.lower)
    # No bound crosses the middle of both, so that some value stays allowed.
    middle = 0.5 * (problem.lower + problem.upper)
    return problem.bounded(np.minimum(lower, middle), np.maximum(upper, middle))


def report(
    task: RankingTask,
    solution: RankingSolution,
    max_disparity: Limit,
    query_share: float | None,
) -> dict[str, Any]:
    """Return the fitted attributes; warn if the fit failed.

    It fails if fewer than ``query_share`` of the queries are within the limit or, without
    ``query_share``, if the solver stopped before it converged.
    """
    result, problem = solution.result, solution.problem
    at, gaps = problem.evaluate(result.theta), task.disparities(result.theta)
    residual = max(problem.kkt_residual(at, result.multipliers).values())
    names = [name for constraint in problem.constraints for name in constraint.row_names]
    worst, status = float(np.nan_to_num(gaps).max(initial=0.0)), result.status
    limits = {"limit": max_disparity}
    if isinstance(max_disparity, Mapping):
        limits = {f"limit of {name}": x for name, x in max_disparity.items() if x is not None}
    if query_share is not None and status != "stopped":
        status = "converged"
        if solution.share_within < query_share:
            status = "infeasible"
            message = (
                f"{solution.share_within:.1%} of the training queries have a disparity of at "
                f"most {max_disparity}, and query_share={query_share:g} were asked for; the "
                f"largest disparity is {worst:.4g}. Raise max_disparity, lower query_share, or "
                "give the model more features."
            )
            warn_user(message, ConvergenceWarning)
    elif status == "max_iter" and not solution.is_stochastic:
        warn_user(
            f"{ENDINGS['max_iter']} After {result.n_iter} iterations the KKT residual is "
            f"{residual:.2g}, so the scores may be far from the best ones, and the largest "
            f"disparity is {worst:.4g} at a limit of {max_disparity}. Raise max_iter or tol, or "
            "choose another solver.",
            ConvergenceWarning,
        )
    return {
        **task.fitted(result.theta),
        "objective_": at.objective,
        "kkt_residual_": residual,
        "multipliers_": result.multipliers,
        "constraint_names_": np.array(names, dtype=object),
        "n_iter_": int(result.n_iter),
        "n_solves_": solution.n_solves,
        "history_": result.history,
        "n_pairs_": task.pairs.n_samples,
        "queries_": np.asarray(task.rows.query_names),
        "disparity_by_query_": gaps,
        "train_disparity_": worst,
        "_limits": {"pair_error_gap": {"": worst} | limits},
        "share_within_": solution.share_within,
        "status_": status,
    }
