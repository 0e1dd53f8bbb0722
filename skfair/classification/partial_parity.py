"""A classifier that treats groups alike where the decision is contested: within an interval.

``fit`` reads as the method does: read the data and what is promised, fit a model (under the smooth
rule, if the solver is one for it), repair its scores if the group is known at prediction, measure
what is kept. Rules, problem and solvers follow partial_fairness_idca; the default solvers, and the
certificate on the true disparity, are our own.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from skfair.classification._classes import read_classes
from skfair.classification._partial import (
    RATE_RULES,
    REPAIRABLE,
    Promise,
    make_promise,
)
from skfair.classification._partial_prediction import PartialPrediction
from skfair.constraints.partial import PARTIAL_RULES, Surrogate
from skfair.losses import LOSSES, Loss, make_loss
from skfair.models.grouped import GroupedLinearScore, group_scores
from skfair.models.linear import LinearScore
from skfair.problems.constrained_erm import LinearConstrainedERM
from skfair.problems.objectives import OBJECTIVES, MeanLoss, Objective
from skfair.problems.partial_parity import PartialParityProblem
from skfair.solvers import ALLBFGS, ALNewton
from skfair.solvers.dc import DC_SOLVERS
from skfair.solvers.partial_strict import ROUNDS, PartialResult, solve_partially
from skfair.utils.callbacks import report_iterations
from skfair.utils.fitting import FitData, SensitiveFeaturesMixin, fit_method
from skfair.utils.text import listed
from skfair.utils.warn import warn_user

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_CHECKS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "order": "C",
}
# A group has weights of its own from so many rows per feature on.
ROWS_PER_FEATURE = 10
# Newton steps need a matrix of n_parameters x n_parameters.
NEWTON_PARAMETERS = 1500
# Half-widths of the smooth steps in units of the score (0.5 is the paper's), for scores with a
# standard deviation of SPREAD where widths follow the scores; and the rounding of a ramp's corners.
WIDTHS = {"ramp": 0.5, "smoothstep": 0.6, "sigmoid": 0.25}
SPREAD = 1.5
ROUNDING = 0.2
# Steps of the solver per round: a later round goes on where they end.
ROUND_ITERATIONS = 300
# Rounds of smooth problems before repair makes the promise exact.
ROUNDS_BEFORE_REPAIR = 2


def _has_probabilities(estimator: PartialParityClassifier) -> bool:
    if estimator.loss != "log_loss" and type(estimator.loss).__name__ != "LogLoss":
        raise AttributeError(
            f"predict_proba needs loss='log_loss'; the scores of loss={estimator.loss!r} are not "
            "log-odds."
        )
    return True


class PartialParityClassifier(
    PartialPrediction, SensitiveFeaturesMixin, CallbackSupportMixin, BaseEstimator
):
    r"""Linear classifier whose scores treat groups alike within a percentile interval.

    Minimises the mean loss plus a penalty while a disparity inside the interval is bounded: for
    ``constraint="statistical_parity"`` and groups k, k'

    .. math:: \max_\theta |P(s > \theta \mid k, \text{rank} \in I)
              - P(s > \theta \mid k', \text{rank} \in I)| \le \text{max\_disparity}

    where the rank of a row is the share of its group that scores higher. What is bounded and
    reported is this number itself on the training data, as measured by :mod:`skfair.metrics`, not a
    smooth stand-in; on other data the noise of sampling adds to it.

    Parameters
    ----------
    interval : pair, list of pairs, or dict of these per group, default=(0.0, 0.3)
        Percentile interval, ranks counted from the top: the best 30 % of each group. A list is a
        union. Longer intervals limit more.
    constraint : str, default="statistical_parity"
        "statistical_parity": the same scores at the same percentiles. "demographic_parity",
        "equal_opportunity", "equalized_odds": the same rates of decisions (among all rows, the
        positives, each class), ranks within the rows that count. "group_auc": no group outranks
        another. "group_auc_quadratic", "inter_group_pairwise", "intra_group_pairwise": the
        comparators of the paper; they look at no interval, and ``max_disparity`` bounds their
        quadratic surrogate.
    max_disparity : float, default=0.05
        The bound.
    scale : {"conditional", "ccdf"}, default="conditional"
        Whether disparities are shares of the interval, as in Definition 4.2, or shares of the whole
        groups, which is what the tables of the paper agree with and demands less
        (:func:`skfair.metrics.partial_ccdf_gap` for statistical parity).
    solver : {"auto", "repair", "alm", "idca", "ssg", "penalty"} or object, default="auto"
        "repair" fits the model without the rule and maps its scores, one monotone map per group;
        needs the group at prediction. "alm" is an augmented Lagrangian on the smooth rule. "idca",
        "ssg" and "penalty" are the algorithms of the paper, for comparison. "auto" is "repair" if
        the model is group-aware, else "alm".
    loss : str or object, default="log_loss"
        "log_loss", "hinge", "squared_hinge", "squared_error", an object of :mod:`skfair.losses`, or
        for rankings "auc" and "partial_auc" (false positive ranks within ``interval``).
    group_aware : bool or "auto", default="auto"
        Whether predictions use the group: weights and a map per group, read from
        ``sensitive_columns`` or passed to ``predict(X, sensitive_features=...)``. "auto": if and
        only if ``sensitive_columns`` is set, so that ``predict(X)`` works. Using the group may be
        disparate treatment in law; see the user guide.
    interactions : bool or "auto", default="auto"
        Whether groups of a group-aware model have weights of their own, as deviations from shared
        ones. "auto": those with at least 10 rows per feature.
    alpha : float, default=None
        Weight of the penalty on weights and deviations; None for 1 / n_samples, the default of
        ``LogisticRegression``.
    surrogate : {"smoothstep", "ramp", "sigmoid"}, default="smoothstep"
        Smooth step that stands for "above the threshold" in the solvers; "ramp" is the paper's.
    n_percentiles : int, default=10
        Percentiles at which smooth statistical parity is imposed. More leave less between them and
        cost more.
    enforce : {"strict", "surrogate"}, default="strict"
        Whether the true training disparity is bounded, or the smooth problem is solved once (in
        each of its forms), as in the paper.
    threshold : float or "accuracy", default=0.0
        Scores above it are decided positively; "accuracy" for the most accurate one on the training
        data. ``decision_function`` subtracts it.
    n_knots : int, default=None
        Largest number of knots of the map of a group, at least 3; None for all it takes to be
        exact.
    max_iter : int, default=None
        Largest number of steps of one run of the solver; None for the solver's own.
    tol : float, default=1e-4
        Largest residual of the first-order conditions.
    random_state : int, RandomState instance or None, default=None
        Passed to solvers; those of the package draw no random numbers.
    intersectional : bool, default=True
        Whether several attributes are crossed, or limited one by one (their groups overlap; only
        for models that are not group-aware).
    sensitive_columns : str, int or list of them, default=None
        Columns of X that hold the attributes, for work without metadata routing.
    drop_sensitive : bool, default=True
        Whether these columns are kept out of the model's features.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes; the second is the positive one.
    coef_ : ndarray of shape (1, n_features) or (n_groups, n_features)
        Weights, of each group if the model is group-aware.
    intercept_ : ndarray of shape (1,) or (n_groups,)
        Intercepts.
    is_group_aware_ : bool
        Whether predictions use the group.
    thresholds_ : ndarray of shape (n_groups,)
        Decision threshold of each group on the scores ``X @ coef_ + intercept_``.
    calibration_ : GroupMaps or None
        The maps of repaired scores: ``before`` and ``after`` are the knots of each group.
    rates_ : ndarray of shape (n_groups,)
        Share of positive decisions in each group of the training data.
    train_disparity_ : float
        The true disparity on the training data.
    effective_disparity_ : float
        The bound that was used: ``max_disparity``, or more where the numbers of rows, or ties,
        leave no choice.
    certified_ : bool
        Whether ``train_disparity_`` is at most ``effective_disparity_``.
    percentiles_ : ndarray of shape (n_percentiles,)
        Where smooth statistical parity was imposed, as shares of the interval.
    percentile_thresholds_ : ndarray
        The scores there, the theta_p of (15); the centres of rules on rates.
    multipliers_ : ndarray of shape (n_constraints,)
        Signed multipliers of the smooth rule; empty for "repair".
    constraint_names_ : ndarray of shape (n_constraints,)
        What each constraint limits.
    kkt_residual_ : float
        Largest of the residuals (28)-(30) of the smooth problem at its solution.
    objective_ : float
        Mean loss plus penalty of the model, before its scores were mapped.
    n_iter_ : int
        Steps of the solver on the problem whose solution is kept.
    n_solves_ : int
        Number of problems that were solved.
    status_ : str
        "converged", "max_iter", "stopped" or "infeasible".
    history_ : dict of ndarray
        Objective, violation and CPU seconds of each step.
    groups_ : ndarray of shape (n_groups,)
        Names of the groups.
    model_features_ : ndarray
        Names or positions of the columns of X that the model uses.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray
        Names of the columns of X, if it has them.

    See Also
    --------
    PartialParityCalibrator : Repair for any scorer.
    ConstrainedERMClassifier : Rules on all decisions, without an interval.
    skfair.metrics.suggest_interval : Intervals on which a model is unfair.

    Notes
    -----
    An evaluation of the smooth problem costs one product with X, one with its transpose and
    O(n_samples n_percentiles); "repair" one sort of the scores. With "repair" or a group-aware
    model under ``enforce="strict"`` the bound is kept exactly. Other models depend on the solver;
    ``certified_`` says whether they made it.

    References
    ----------
    .. [1] Y. He, Y. Huang, Y. Yao and Q. Lin, "Enforcing fair predicted scores on intervals of
       percentiles by difference-of-convex constraints".

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.classification import PartialParityClassifier
    >>> from skfair.metrics import partial_statistical_parity_gap
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 600)
    >>> X = rng.normal(size=(600, 3)) + (sex == "m")[:, None] * [1, 0, 0]
    >>> y = X[:, 0] + X[:, 1] + rng.normal(size=600) > 0.5
    >>> model = PartialParityClassifier((0.1, 0.5), max_disparity=0.1)
    >>> model = model.fit(X, y, sensitive_features=sex)
    >>> gap = partial_statistical_parity_gap(
    ...     y, model.decision_function(X), sensitive_features=sex, interval=(0.1, 0.5)
    ... )
    >>> bool(gap <= 0.1), model.certified_
    (True, True)
    """

    _parameter_constraints: dict[str, Any] = {
        "interval": "no_validation",  # Intervals says more
        "constraint": [str],
        "max_disparity": [Interval(Real, 0, None, closed="left")],
        "scale": [StrOptions({"conditional", "ccdf"})],
        "solver": [str, HasMethods("solve")],
        "loss": [str, Loss, Objective],
        "group_aware": ["boolean", StrOptions({"auto"})],
        "interactions": ["boolean", StrOptions({"auto"})],
        "alpha": [Interval(Real, 0, None, closed="left"), None],
        "surrogate": [StrOptions(set(WIDTHS)), Surrogate],
        "n_percentiles": [Interval(Integral, 1, None, closed="left")],
        "enforce": [StrOptions({"strict", "surrogate"})],
        "threshold": [Interval(Real, None, None, closed="neither"), StrOptions({"accuracy"})],
        "n_knots": [Interval(Integral, 3, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        **SensitiveFeaturesMixin._group_constraints,
    }

    def __init__(
        self,
        interval: Any = (0.0, 0.3),
        constraint: str = "statistical_parity",
        max_disparity: float = 0.05,
        *,
        scale: str = "conditional",
        solver: Any = "auto",
        loss: Any = "log_loss",
        group_aware: Any = "auto",
        interactions: Any = "auto",
        alpha: float | None = None,
        surrogate: Any = "smoothstep",
        n_percentiles: int = 10,
        enforce: str = "strict",
        threshold: Any = 0.0,
        n_knots: int | None = None,
        max_iter: int | None = None,
        tol: float = 1e-4,
        random_state: Any = None,
        intersectional: bool = True,
        sensitive_columns: Any = None,
        drop_sensitive: bool = True,
    ) -> None:
        self.interval = interval
        self.constraint = constraint
        self.max_disparity = max_disparity
        self.scale = scale
        self.solver = solver
        self.loss = loss
        self.group_aware = group_aware
        self.interactions = interactions
        self.alpha = alpha
        self.surrogate = surrogate
        self.n_percentiles = n_percentiles
        self.enforce = enforce
        self.threshold = threshold
        self.n_knots = n_knots
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.intersectional = intersectional
        self.sensitive_columns = sensitive_columns
        self.drop_sensitive = drop_sensitive

    @fit_method
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> PartialParityClassifier:
        """Fit the model under its rule.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Two classes; the one that sorts last is the positive one.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in the loss and in the ranks.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row.

        Returns
        -------
        self : PartialParityClassifier
            The fitted estimator.
        """
        data = self._read_fit_data(
            X,
            y,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            **_CHECKS,
        )
        self.classes_ = read_classes(data.y)
        targets = np.where(data.y == self.classes_[1], 1.0, -1.0)
        promise = self._promise(data, targets)
        self.is_group_aware_ = self._decide_awareness(promise)
        model = self._make_model(data)
        dtype = model.X.dtype
        with report_iterations(
            self, X, y, max_iter=None, attributes=lambda theta: self._state(model, theta, dtype)
        ) as callback:
            found = self._optimise(data, promise, model, callback)
        self.__dict__.update(self._state(model, found.result.theta, dtype))
        self._store_solution(found)
        codes = data.groups.codes[0] if self.is_group_aware_ else None
        scores = group_scores(self.coef_, self.intercept_, data.X, codes)
        min_gap = model.rounding(found.result.theta[: model.n_parameters])
        self._settle(promise, scores, is_repaired=self._is_repaired(), min_gap=min_gap)
        return self

    # --- what is promised and by which model ----------------------------------------------------

    def _promise(self, data: FitData, targets: FloatArray) -> Promise:
        rule = PARTIAL_RULES[self.constraint]
        return make_promise(
            self.constraint,
            self.interval,
            self.scale,
            self.max_disparity,
            data.groups,
            targets,
            data.sample_weight,
            tuple(self.classes_.tolist()),
            uses_interval=rule.uses_interval,
            by_class=rule.by_class,
        )

    def _decide_awareness(self, promise: Promise) -> bool:
        aware = self.group_aware
        if aware == "auto":
            aware = self.sensitive_columns is not None
        if aware and promise.groups.n_attributes > 1:
            raise ValueError(
                "A group-aware model needs groups that do not overlap, but intersectional=False "
                f"keeps {promise.groups.n_attributes} attributes apart. Use intersectional=True or "
                "group_aware=False."
            )
        if self.solver == "repair" and not aware:
            raise ValueError(
                "solver='repair' maps the scores of each group, so predictions need the group. Set "
                "sensitive_columns or group_aware=True, or use solver='alm'."
            )
        if self.threshold == "accuracy" and not aware and self.constraint in RATE_RULES:
            raise ValueError(
                f"threshold='accuracy' would move the decisions that constraint={self.constraint!r}"
                " limits. Give the threshold as a number, or make the model group-aware."
            )
        if self.solver == "repair" and self.constraint not in REPAIRABLE:
            raise ValueError(
                f"solver='repair' cannot keep constraint={self.constraint!r}. Use solver='alm'."
            )
        return bool(aware)

    def _make_model(self, data: FitData) -> Any:
        if not self.is_group_aware_:
            return LinearScore(data.X, sample_weight=data.sample_weight)
        groups = data.groups
        own = np.full(groups.n_groups, bool(self.interactions))
        if self.interactions == "auto":
            own = groups.counts >= ROWS_PER_FEATURE * data.X.shape[1]
        if groups.n_groups == 1:
            own[:] = False
        return GroupedLinearScore(
            data.X, groups.codes[0], own.tolist(), sample_weight=data.sample_weight
        )

    # --- solution -------------------------------------------------------------------------------

    def _optimise(
        self, data: FitData, promise: Promise, model: Any, callback: Any
    ) -> PartialResult:
        """Fit the model, under the smooth rule unless scores are only repaired."""
        targets = promise.targets
        n = targets.size
        weights = data.sample_weight
        shares = np.full(n, 1 / n) if weights is None else weights / weights.sum()
        n_rows = n if weights is None else float(weights.sum())
        alpha = 1 / n_rows if self.alpha is None else float(self.alpha)
        objective = self._objective(targets, shares)
        params: dict[str, Any] = {
            "tol": self.tol,
            "random_state": check_random_state(self.random_state),
            "callback": callback,
        }
        if self.max_iter is not None:
            params["max_iter"] = self.max_iter
        solver = self._make_solver()
        free = PartialParityProblem(model, objective, [], promise.tolerance, alpha=alpha)
        if solver is None or promise.is_vacuous:
            return self._fit_freely(free, shares, params)
        zero = self._fixed_threshold()
        start = np.zeros(model.n_parameters)  # as in the paper
        surrogate, n_rounds, retries = self._surrogate(solver), 1, []
        build = partial(self._problems, promise, model, objective, alpha, solver)
        if isinstance(solver, ALLBFGS):
            unlimited = self._fit_freely(free, shares, params)
            start = unlimited.result.theta
            if self.enforce == "strict":
                scores = model.forward(start)[0]
                if promise.measure(scores - zero) <= promise.bound:
                    return unlimited
                params["tol"] = max(self.tol, 1e-3)
                params.setdefault("max_iter", ROUND_ITERATIONS)
                spread = float(scores.std())
                if not isinstance(self.surrogate, Surrogate) and spread:
                    surrogate = surrogate.narrowed(spread / SPREAD)
                n_rounds = ROUNDS_BEFORE_REPAIR if self._is_repaired() else ROUNDS
                if self.constraint == "statistical_parity" and not self._is_repaired():
                    retries = build(surrogate, 2 * self.n_percentiles)
        problems = build(surrogate, self.n_percentiles)
        return solve_partially(
            problems,
            solver,
            start,
            surrogate,
            measure=lambda scores: promise.measure(scores - zero),
            quality=lambda scores: float(shares @ ((scores > zero) == (targets > 0))),
            max_disparity=promise.bound,
            retries=retries,
            n_rounds=n_rounds,
            **params,
        )

    def _objective(self, targets: FloatArray, shares: FloatArray) -> Objective:
        if isinstance(self.loss, Objective):
            return self.loss
        if isinstance(self.loss, str) and self.loss in set(OBJECTIVES):
            if not getattr(OBJECTIVES[self.loss], "uses_interval", False):
                return OBJECTIVES[self.loss](targets, shares)
            if isinstance(self.interval, dict):
                raise ValueError(
                    f"loss={self.loss!r} takes the false positive ranks from interval, which must "
                    "be the same for all groups."
                )
            pairs = np.atleast_2d(np.asarray(self.interval, dtype=np.float64))
            return OBJECTIVES[self.loss](targets, shares, pairs)
        fitting = [name for name in LOSSES if "classification" in LOSSES[name].tasks]
        if isinstance(self.loss, str) and self.loss not in fitting:
            raise ValueError(
                f"There is no loss {self.loss!r} for classification. The losses are "
                f"{listed([*fitting, *OBJECTIVES])}."
            )
        return MeanLoss(make_loss(self.loss, "classification"), targets, shares)

    def _make_solver(self) -> Any:
        """Return the solver of the smooth problem, or None if there is nothing to solve."""
        if not isinstance(self.solver, str):
            return self.solver
        name = self.solver
        if name == "auto":
            can_repair = self.is_group_aware_ and self.constraint in REPAIRABLE
            name = "repair" if can_repair else "alm"
        if name == "repair":
            return None
        if name != "alm" and name not in set(DC_SOLVERS):
            known = ["auto", "repair", "alm", *DC_SOLVERS]
            raise ValueError(f"There is no solver {name!r}. The solvers are {listed(known)}.")
        return ALLBFGS() if name == "alm" else DC_SOLVERS[name]()

    def _surrogate(self, solver: Any) -> Surrogate:
        if isinstance(self.surrogate, Surrogate):
            return self.surrogate
        rounding = ROUNDING if self.surrogate == "ramp" and isinstance(solver, ALLBFGS) else 0.0
        return Surrogate(self.surrogate, WIDTHS[self.surrogate], rounding)

    def _problems(
        self,
        promise: Promise,
        model: Any,
        objective: Objective,
        alpha: float,
        solver: Any,
        surrogate: Surrogate,
        n_percentiles: int,
    ) -> list[PartialParityProblem]:
        """Return the problem in each form of the rule; the algorithms of the paper get the last."""
        percentiles = promise.percentiles(n_percentiles)
        forms = [
            PARTIAL_RULES[self.constraint]().prepare(
                promise.rows(attribute, percentiles, self._fixed_threshold()), surrogate
            )
            for attribute in range(promise.groups.n_attributes)
        ]
        if not isinstance(solver, ALLBFGS):
            forms = [attribute[-1:] for attribute in forms]
        tolerance = 0.0 if getattr(solver, "ignores_tolerance", False) else promise.tolerance
        return [
            PartialParityProblem(model, objective, rules, tolerance, alpha=alpha)
            for rules in zip(*forms, strict=True)
        ]

    def _fit_freely(
        self, problem: PartialParityProblem, shares: FloatArray, params: dict[str, Any]
    ) -> PartialResult:
        """Fit the model without the rule, by Newton steps where the loss allows."""
        model = problem.model
        zeros = np.zeros(model.n_parameters)
        if isinstance(problem.objective, MeanLoss) and model.n_parameters <= NEWTON_PARAMETERS:
            plain = LinearConstrainedERM(
                model,
                problem.objective.loss,
                problem.objective.targets,
                [],
                sample_weight=shares,
                alpha=problem.alpha,
            )
            result = ALNewton().solve(plain, zeros, **params)
        else:
            result = ALLBFGS().solve(problem, zeros, **params)
        return PartialResult(problem, result, 0.0, 1)

    # --- result ---------------------------------------------------------------------------------

    def _fixed_threshold(self) -> float:
        """Return the decision threshold, or 0 where it is still to be chosen."""
        return 0.0 if self.threshold == "accuracy" else float(self.threshold)

    def _state(self, model: Any, theta: FloatArray, dtype: Any) -> dict[str, Any]:
        """Return the attributes that prediction needs."""
        coef, intercept = model.raw(theta[: model.n_parameters])
        return {
            "coef_": np.atleast_2d(coef).astype(dtype),
            "intercept_": np.atleast_1d(intercept).astype(dtype),
            "thresholds_": np.full(self._group_levels.n_groups, self._fixed_threshold()),
            "calibration_": None,
        }

    def _store_solution(self, found: PartialResult) -> None:
        problem, result = found.problem, found.result
        at = problem.evaluate(result.theta)
        self.objective_ = at.objective
        self.multipliers_ = result.multipliers
        self.kkt_residual_ = max(problem.kkt_residual(at, result.multipliers).values())
        names = [name for rule in problem.rules for name in rule.row_names]
        self.constraint_names_ = np.array(names, dtype=object)
        percentiles = [getattr(rule, "percentiles", np.empty(0)) for rule in problem.rules]
        self.percentiles_ = np.concatenate([np.empty(0), *percentiles])
        self.percentile_thresholds_ = result.theta[problem.model.n_parameters :].copy()
        self.n_iter_ = int(result.n_iter)
        self.n_solves_ = found.n_solves
        self.status_ = result.status
        self.history_ = result.history
        is_final = self.enforce == "surrogate" or not problem.rules
        if result.status == "max_iter" and is_final and self._converges():
            warn_user(
                f"The solver stopped after {result.n_iter} steps with a residual of "
                f"{self.kkt_residual_:.2g} (tol={self.tol:g}). Raise max_iter, or standardise the "
                "columns.",
                ConvergenceWarning,
            )

    def _converges(self) -> bool:
        """Whether the solver is one that runs until it has converged."""
        return self.solver in ("auto", "repair", "alm") or isinstance(self.solver, ALLBFGS)

    def _is_repaired(self) -> bool:
        """Whether the scores are repaired in the end."""
        wanted = self.solver in ("auto", "repair") or self.enforce == "strict"
        return wanted and self.is_group_aware_ and self.constraint in REPAIRABLE

    def _raw_scores(self, X: Any, codes: IntArray | None) -> FloatArray:
        """Return the scores of rows before they are repaired."""
        X = self._read_features(X, **_CHECKS)
        return group_scores(self.coef_, self.intercept_, X, codes)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """Return probabilities of both classes.

        They include thresholds and maps, so that 1/2 separates the predicted classes; that makes
        them less calibrated.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row, if the model is group-aware and X does not hold them.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, 2)
            Columns in the order of ``classes_``.
        """
        positive = expit(self.decision_function(X, sensitive_features=sensitive_features))
        return np.column_stack([1 - positive, positive])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
