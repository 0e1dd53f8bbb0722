"""A classifier that treats groups alike where the decision is contested: within an interval.

``fit`` reads the rows, binds the limit to them, fits a model (under the smooth constraint, if the
solver is one for it), maps its scores if the group is known at prediction, and reports what is
satisfied. Constraints, problem and solvers follow partial_fairness_idca; the default solvers, and
the check of the true disparity, are our own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from numbers import Integral, Real
from typing import Any, Literal

from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from skfair._typing import ColumnLike, ColumnsLike, IntervalLike, MatrixLike, Seed
from skfair.base import SensitiveFeaturesMixin, fit_method, report_iterations
from skfair.constraints.base import Constraint
from skfair.enforcement.partial.promise import promise_of_fit
from skfair.enforcement.rounds import SolveOptions
from skfair.estimators import partial_fitting
from skfair.estimators.certified.certificate import Certificate
from skfair.estimators.certified.judges import certified_interval
from skfair.estimators.partial_prediction import PartialPrediction, classes_of, model_scores, store
from skfair.groups.limits import Limit
from skfair.groups.sensitive import SensitiveLike
from skfair.losses import Loss
from skfair.models.choice import SCORE_FUNCTION
from skfair.models.plug_in import ScoreFunction
from skfair.problems.partial.objectives import Objective
from skfair.read import ROW_CHECKS, read_rows
from skfair.solvers.base import Solver
from skfair.utils.docs import documented
from skfair.utils.older import CallbackSupportMixin
from skfair.utils.threads import one_blas_thread


@documented
class PartialParityClassifier(
    PartialPrediction, SensitiveFeaturesMixin, CallbackSupportMixin, BaseEstimator
):
    r"""Linear classifier whose scores treat groups alike within an interval of ranks.

    Use it where a part of the ranks matters, such as a shortlist. It minimises a loss while a
    disparity inside the interval is limited: for ``constraint="statistical_parity"`` and groups k,
    k'

    .. math:: \max_\theta |P(s > \theta \mid k, \text{rank} \in I)
              - P(s > \theta \mid k', \text{rank} \in I)| \le \text{max\_disparity}

    where the rank of a row is the share of its group that scores higher. On the training rows this
    is at most ``effective_disparity_`` if ``is_within_limit_`` is True. New rows may miss it in
    either direction.

    Parameters
    ----------
    interval : pair, list of pairs, or dict of these per group, default=(0.0, 0.3)
        Ranks from the top: the best 30% of each group. A list is a union.
    constraint : str or Constraint, default="statistical_parity"
        "statistical_parity": the same scores at the same ranks. "demographic_parity",
        "equal_opportunity", "false_positive_parity", "equalized_odds": rates of decisions.
        "group_auc": no group outranks another. "group_auc_quadratic", "inter_group_pairwise",
        "intra_group_pairwise": comparators of the paper. Or an object, such as an
        :class:`~skfair.constraints.partial.IntervalConstraint`.
    max_disparity : float or dict, default=0.05
        The limit; a dict has one for each attribute (or None), with ``Sensitive(crossed=False)``.
    scale : {"conditional", "ccdf"}, default="conditional"
        Whether disparities are shares of the interval, or of whole groups.
    group_aware : bool, default=False
        Whether predictions use the group, which ``predict`` then needs and which may be disparate
        treatment in law.
    model : "linear" or score model, default="linear"
        Linear scores, or a :class:`~skfair.models.ScoreFunction`.
    loss : str or object, default="log_loss"
        "log_loss", "hinge", "squared_hinge", "squared_error"; of pairs "auc", "auc_hinge",
        "auc_quadratic", "auc_logistic", "partial_auc"; or an object, such as a ``PairLoss``.
    alpha : float, default=None
        Weight of the penalty; None is ``C=1`` of LogisticRegression.
    enforce : {"strict", "surrogate", "paper"}, default="strict"
        Whether the disparity itself is limited, or a smooth one, as in the paper.
    solver : str or Solver, default="auto"
        "auto" is "repair" (maps of scores) if the model is group-aware, else "al_lbfgs". "idca",
        "idca_stochastic", "dc_ssg" and "dc_penalty" are those of the paper [1]_. Or another of
        :mod:`skfair.solvers`.
    max_iter : int, default=None
        Most steps of a run of the solver.
    tol : float, default=1e-4
        Largest residual of the first-order conditions.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes; the second is the positive one.
    coef_, intercept_ : ndarray
        Weights and intercept, or those of each group.
    model_, parameters_ : object, ndarray
        With ``model``: scores before maps are ``model_.forward(parameters_, X)[0]``.
    is_group_aware_ : bool
        Whether predictions use the group.
    thresholds_, rates_ : ndarray of shape (n_groups,)
        Threshold and share of positive decisions of each group.
    calibration_ : GroupMaps or None
        Maps of repaired scores.
    train_disparity_ : float
        Disparity on the training rows.
    effective_disparity_ : float or dict
        The limit that was used: larger where few rows or ties leave no choice.
    changes_ : dict of str to Change
        By "selection rate", what the limits change on the training rows: ``before`` is the share of
        selected rows by the same model without the limits, ``after`` the share with them,
        ``by_group`` has both for each group, and ``rows_up`` and ``rows_down`` are the numbers of
        rows that are newly selected and no longer selected.
    is_within_limit_ : bool
        Whether ``train_disparity_`` is at most ``effective_disparity_``. This says nothing about
        the population, which ``confidence`` does.
    percentiles_, percentile_thresholds_ : ndarray
        Where the smooth constraint was imposed, and the scores there.
    multipliers_, constraint_names_ : ndarray of shape (n_constraints,)
        Multipliers of the smooth constraint; what each limits.
    objective_, kkt_residual_ : float
        Mean loss plus penalty; residual.
    n_iter_, n_solves_ : int
        Steps of the solver; problems.
    status_ : str
        "converged", "max_iter", "stopped", "infeasible", "certified" or "no_solution".
    history_ : dict of ndarray
        Course of the solver.

    See Also
    --------
    PartialParityCalibrator : For any scorer.
    ConstrainedERMClassifier : Without an interval.
    skfair.metrics.suggest_interval : Where a model is unfair.

    References
    ----------
    .. [1] Y. He, Y. Huang, Y. Yao and Q. Lin, "Enforcing fair predicted scores on intervals of
       percentiles by difference-of-convex constraints".

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.classification import PartialParityClassifier
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 600)
    >>> X = rng.normal(size=(600, 3)) + (sex == "m")[:, None] * [1, 0, 0]
    >>> y = X[:, 0] + X[:, 1] + rng.normal(size=600) > 0.5
    >>> model = PartialParityClassifier((0.1, 0.5), max_disparity=0.2)
    >>> model = model.fit(X, y, sensitive_features=sex)
    >>> print(f"disparity within the interval: {model.train_disparity_:.2f}")
    disparity within the interval: 0.17
    """

    _parameter_constraints: dict[str, Any] = {
        "interval": "no_validation",  # Intervals says more
        "constraint": [str, Constraint],
        "max_disparity": [Interval(Real, 0, None, closed="left"), dict],
        "scale": [StrOptions({"conditional", "ccdf"})],
        "solver": [str, HasMethods("solve")],
        "loss": [str, Loss, Objective],
        "group_aware": ["boolean"],
        "model": [StrOptions({"linear"}), SCORE_FUNCTION],
        "alpha": [Interval(Real, 0, None, closed="left"), None],
        "enforce": [StrOptions({"strict", "surrogate", "paper"})],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        **PartialPrediction._confidence_constraints,
        **SensitiveFeaturesMixin._group_constraints,
    }

    def __init__(
        self,
        interval: IntervalLike = (0.0, 0.3),
        constraint: str | Constraint = "statistical_parity",
        max_disparity: Limit = 0.05,
        *,
        scale: Literal["conditional", "ccdf"] = "conditional",
        enforce: Literal["strict", "surrogate", "paper"] = "strict",
        group_aware: bool = False,
        sensitive: SensitiveLike = None,
        confidence: float | Certificate | None = None,
        model: Literal["linear"] | ScoreFunction = "linear",
        loss: Any = "log_loss",
        alpha: float | None = None,
        solver: str | Solver = "auto",
        max_iter: int | None = None,
        tol: float = 1e-4,
        random_state: Seed = None,
    ) -> None:
        self.interval = interval
        self.constraint = constraint
        self.max_disparity = max_disparity
        self.scale = scale
        self.enforce = enforce
        self.group_aware = group_aware
        self.sensitive = sensitive
        self.confidence = confidence
        self.model = model
        self.loss = loss
        self.alpha = alpha
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @fit_method
    @one_blas_thread
    def fit(
        self,
        X: MatrixLike,
        y: ColumnLike,
        sample_weight: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        groups: ColumnLike | None = None,
    ) -> PartialParityClassifier:
        """Fit the model under its constraint.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Two classes; the last one in order is the positive one. Pass ``y == label`` to choose.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in the loss and in the ranks.
        """
        metadata: Any = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        data = read_rows(self, X, y, groups=groups, **metadata, **ROW_CHECKS)
        self._keep(data.reading)
        classes = classes_of(data.y, data.groups, self.constraint, self.interval, self.loss)
        if self.confidence is not None and data.groups.n_groups > data.groups.n_attributes:
            own = certified_interval(self, data, X, metadata, self.random_state)
            return store(self, own)
        data = data.counted().in_canonical_order()
        limits = self.constraint, self.interval, self.scale, self.max_disparity
        weights = data.groups.rate_weight(data.sample_weight)
        promise = promise_of_fit(*limits, data.groups, data.y, classes, weights)
        maps = partial_fitting.maps_follow(promise, self.group_aware, self.solver, self.enforce)
        model = partial_fitting.make_model(self.model, data, self.group_aware)
        loss_rows = replace(promise, weights=data.sample_weight)
        problem = partial_fitting.free_problem(model, loss_rows, self.loss, self.alpha)
        solver = partial_fitting.make_solver(self.solver, promise, problem, maps)
        how: Any = {"enforce": self.enforce, "is_repaired": maps}
        state = partial(partial_fitting.model_state, model, classes, self.group_aware)
        options: SolveOptions = {} if self.max_iter is None else {"max_iter": self.max_iter}
        options |= {"tol": self.tol, "random_state": check_random_state(self.random_state)}
        with report_iterations(self, X, y, max_iter=None, attributes=state) as callback:
            options["callback"] = callback
            how["freely"] = cache(partial(partial_fitting.fit_freely, problem, options))
            solved = partial_fitting.solve(promise, problem, solver, options, **how)
        attributes = state(solved.result.theta)
        scores = model_scores(attributes, data.X, data.groups.codes[0])
        attributes |= partial_fitting.report(promise, solved, scores, tol=self.tol, **how)
        return store(self, attributes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
