"""A classifier that limits the disparity of groups within an interval of ranks, such as the top.

``fit`` reads the rows, binds the limit to them, fits a model (under the smooth constraint, unless
maps of the scores are enough), maps its scores if the group is known at prediction, and reports the
disparity. Constraints, problem and solvers follow partial_fairness_idca. The default solvers, and
the check of the true disparity, are skfair's own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal

from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from skfair._typing import ColumnLike, ColumnsLike, IntervalLike, MatrixLike, Seed
from skfair.base import SensitiveFeaturesMixin, fit_method, report_iterations
from skfair.constraints.base import Constraint
from skfair.enforcement.rounds import SolveOptions
from skfair.estimators.certificate import Certificate
from skfair.groups.limits import Limit
from skfair.groups.sensitive import SensitiveLike
from skfair.losses import Loss
from skfair.models.choice import SCORE_FUNCTION
from skfair.models.plug_in import ScoreFunction
from skfair.partial_parity import fitting
from skfair.partial_parity.certificate import certified_interval
from skfair.partial_parity.objectives import Objective
from skfair.partial_parity.prediction import PartialPrediction, classes_of, model_scores, store
from skfair.partial_parity.promise import promise_of_fit
from skfair.read import ROW_CHECKS, read_rows
from skfair.solvers.base import Solver
from skfair.utils.docs import documented
from skfair.utils.keywords import OF_TRAINING
from skfair.utils.older import CallbackSupportMixin
from skfair.utils.threads import one_blas_thread


@documented
class PartialParityClassifier(
    PartialPrediction, SensitiveFeaturesMixin, CallbackSupportMixin, BaseEstimator
):
    r"""Linear classifier that limits a disparity of its scores within an interval of ranks.

    Use it if only a part of the ranking matters, such as a shortlist of the best 30%. The training
    loss is minimised subject to a limit on the disparity between the scores of the groups inside
    the interval. The default constraint "statistical_parity" compares the distributions of the
    scores. For any two groups k and k' and any score threshold, it requires

    .. math:: \max_\theta |P(s > \theta \mid k, \text{rank} \in I)
              - P(s > \theta \mid k', \text{rank} \in I)| \le \text{max\_disparity}

    where the rank of a row is the fraction of its group with a higher score.

    On the training rows, the disparity is at most ``effective_disparity_`` if ``is_within_limit_``
    is True. On new data the disparity may lie above or below this value.

    Parameters
    ----------
    interval : pair, list of pairs, or dict of these per group, default=(0.0, 0.3)
        Interval of ranks within each group, as fractions counted from the top. The default is the
        best 30% of each group. A list is the union of its intervals. A dict sets the interval of
        each group.
    constraint : str or Constraint, default="statistical_parity"
        The fairness constraint within the interval.

        - "statistical_parity" limits the difference between the distributions of the scores.
        - "demographic_parity", "equal_opportunity", "false_positive_parity" and "equalized_odds"
          limit differences of rates of the decisions.
        - "group_auc" limits how far the probability that a row of one group is ranked above a row
          of another group is from 1/2.
        - "group_auc_quadratic", "inter_group_pairwise" and "intra_group_pairwise" are the
          constraints that the paper [1]_ compares with. They do not use the interval.

        Pass an object, such as an :class:`~skfair.constraints.partial.IntervalConstraint`, for more
        options.
    max_disparity : float or dict, default=None
        The limit on the disparity. A dict sets one limit for each attribute, which may be None for
        an attribute without a limit. Several attributes require
        ``Sensitive(intersectional=False)``. If None, it is 0.05. It must be left out if the
        constraint has a limit of its own.
    scale : {"conditional", "ccdf"}, default="conditional"
        Unit of the disparity. If "conditional", it is a fraction of the rows in the interval. If
        "ccdf", it is a fraction of all rows of a group.
    group_aware : bool, default=False
        If True, predictions use the group, so ``predict`` needs it; this may be disparate treatment
        under the law. If False, the group is not needed.
    model : "linear" or score model, default="linear"
        Model of the scores. Pass a :class:`~skfair.models.ScoreFunction` for another model than the
        linear one.
    loss : str or object, default="log_loss"
        Loss function. "log_loss", "hinge", "squared_hinge" and "squared_error" are losses of single
        rows. "auc", "auc_hinge", "auc_quadratic", "auc_logistic" and "partial_auc" are losses of
        pairs of rows. Pass an object, such as a ``PairLoss``, for more options.
    alpha : float, default=None
        Weight of the L2 penalty. Larger values mean stronger regularisation. If None, the penalty
        is the same as with ``C=1`` in ``LogisticRegression``.
    enforce : {"strict", "surrogate", "paper"}, default="strict"
        Values that the limit applies to. If "strict", the disparity itself is limited. If
        "surrogate", a smooth approximation of the disparity is limited. If "paper", the smooth
        approximation is exactly the one of the paper [1]_.
    solver : str or Solver, default="auto"
        Algorithm that solves the constrained problem.

        - "auto": "repair" is used if ``group_aware=True``, otherwise "al_lbfgs".
        - "repair": The model is fitted without a constraint, and its scores are mapped in each
          group.
        - "idca", "idca_stochastic", "dc_ssg" and "dc_penalty" are algorithms of the paper [1]_.

        Other solvers are in :mod:`skfair.solvers`.
    max_iter : int, default=None
        Maximum number of iterations in each run of the solver. If None, the solver uses its own
        default.
    tol : float, default=1e-4
        Tolerance of the solver for the residual of the first-order optimality conditions.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The class labels. The second one is the positive class.
    coef_ : ndarray
        Coefficients of a linear model. If the model is group-aware, each group has its own.
    intercept_ : ndarray
        Intercept of a linear model. If the model is group-aware, each group has its own.
    model_ : ScoreFunction
        The object passed as ``model``, if there is one. The scores of rows X before the maps of the
        groups are ``model_.forward(parameters_, X)[0]``.
    parameters_ : ndarray
        Fitted parameters of ``model_``.
    is_group_aware_ : bool
        True if predictions use the group.
    thresholds_ : ndarray of shape (n_groups,)
        Threshold of each group on the scores of the model.
    rates_ : ndarray of shape (n_groups,)
        Selection rate of each group on the training rows.
    calibration_ : GroupMaps or None
        Maps of the scores of the groups. It is None if the scores are not mapped.
    train_disparity_ : float
        Disparity on the training rows.
    effective_disparity_ : float or dict
        The limit that was used. It is larger than ``max_disparity`` if few rows or ties make a
        smaller disparity impossible.
    changes_ : dict of str to Change
        Changes of the decisions on the training rows that are caused by the limits. The key
        "selection rate" holds an object with the attributes ``before`` (the selection rate of the
        same model without limits), ``after`` (the rate with limits), ``by_group`` (the same rates
        for each group), ``rows_up`` (the number of rows that are newly selected) and ``rows_down``
        (the number of rows that are no longer selected). The dict is empty unless
        ``enforce="strict"``.
    is_within_limit_ : bool
        True if ``train_disparity_`` is at most ``effective_disparity_``. This refers to the
        training rows. Use ``certificate`` for a limit that holds for the population.
    percentiles_ : ndarray
        Percentiles at which smooth statistical parity was imposed. The array is empty for other
        constraints and for the solver "repair".
    percentile_thresholds_ : ndarray
        Scores at these percentiles.
    multipliers_ : ndarray of shape (n_constraints,)
        Lagrange multipliers of the smooth constraint.
    constraint_names_ : ndarray of shape (n_constraints,)
        Names of the constraints that ``multipliers_`` belong to.
    objective_ : float
        Mean loss plus penalty.
    kkt_residual_ : float
        Residual of the first-order optimality conditions.
    n_iter_ : int
        Number of iterations of the solver.
    n_solves_ : int
        Number of problems that were solved.
    status_ : str
        How the fit ended. With ``enforce="surrogate"``, the smooth form of the limit counts.
    history_ : dict of str to ndarray
        Progress of the solver.

    See Also
    --------
    PartialParityCalibrator : Post-processing of the scores of any classifier.
    ConstrainedERMClassifier : Constraints on all rows instead of an interval of ranks.
    skfair.metrics.suggest_interval : Finds the interval with the largest disparity.

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
    >>> for limit in (1.0, 0.2):
    ...     model = PartialParityClassifier((0.1, 0.5), max_disparity=limit)
    ...     model = model.fit(X, y, sensitive_features=sex)
    ...     print(f"disparity within the interval: {model.train_disparity_:.2f}")
    disparity within the interval: 0.71
    disparity within the interval: 0.17
    """

    _endings = ("converged", "max_iter", "stopped", "infeasible", "certified", "no_solution")
    _elsewhere = OF_TRAINING
    _parameter_constraints: dict[str, Any] = {
        "interval": "no_validation",  # Intervals checks it
        "constraint": [str, Constraint],
        "max_disparity": [Interval(Real, 0, None, closed="left"), dict, None],
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
        **PartialPrediction._certificate_constraints,
        **SensitiveFeaturesMixin._group_constraints,
    }

    def __init__(
        self,
        interval: IntervalLike = (0.0, 0.3),
        constraint: str | Constraint = "statistical_parity",
        max_disparity: Limit | None = None,
        *,
        scale: Literal["conditional", "ccdf"] = "conditional",
        enforce: Literal["strict", "surrogate", "paper"] = "strict",
        group_aware: bool = False,
        sensitive: SensitiveLike = None,
        certificate: float | Certificate | None = None,
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
        self.certificate = certificate
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
        units: ColumnLike | None = None,
    ) -> PartialParityClassifier:
        """Fit the model under its constraint.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels of two classes. The last class in sorted order is the positive one. Pass
            ``y == label`` to choose another.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, which count in the loss and in the ranks. If None, all samples
            have the same weight.
        """
        metadata: Any = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        data = read_rows(self, X, y, units=units, **metadata, **ROW_CHECKS)
        self._keep(data.reading)
        classes = classes_of(data.y, data.groups, self.constraint, self.interval, self.loss)
        if self.certificate is not None and data.groups.n_groups > data.groups.n_attributes:
            own = certified_interval(self, data, X, metadata, self.random_state)
            return store(self, own)
        # In a canonical order the result does not depend on the order of rows and columns.
        data = data.counted().in_canonical_order()
        limits = self.constraint, self.interval, self.scale, self.max_disparity
        weights = data.groups.rate_weight(data.sample_weight)
        promise = promise_of_fit(*limits, data.groups, data.y, classes, weights)
        maps = fitting.maps_follow(promise, self.group_aware, self.solver, self.enforce)
        order = fitting.column_order(data.X)
        model = fitting.make_model(self.model, data, self.group_aware, order)
        # Rows without a group count in the loss but not in the limit, so the weights differ.
        loss_rows = replace(promise, weights=data.sample_weight)
        problem = fitting.free_problem(model, loss_rows, self.loss, self.alpha)
        solver = fitting.make_solver(self.solver, promise, problem, maps)
        state = partial(fitting.model_state, model, classes, self.group_aware, order)
        options: SolveOptions = {} if self.max_iter is None else {"max_iter": self.max_iter}
        options |= {"tol": self.tol, "random_state": check_random_state(self.random_state)}
        with report_iterations(self, X, y, max_iter=None, attributes=state) as callback:
            options["callback"] = callback
            fit = fitting.IntervalFit(promise, problem, self.enforce, maps, options)
            solved = fitting.solve(fit, solver)
        attributes = state(solved.result.theta)
        scores = model_scores(attributes, data.X, data.groups.codes[0])
        attributes |= fitting.report(fit, solved, scores)
        return store(self, attributes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
