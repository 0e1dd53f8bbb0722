"""A classifier that treats groups alike where the decision is contested: within an interval.

``fit`` reads as the method does: read the data and what is promised, fit a model (under the smooth
constraint, if the solver is one for it), repair its scores if the group is known at prediction,
measure what is kept. Constraints, problem and solvers follow partial_fairness_idca; the default
solvers, and the certificate on the true disparity, are our own.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal

from sklearn.utils import indexable
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from skfair._typing import (
    ColumnLike,
    ColumnsLike,
    FloatArray,
    IntArray,
    IntervalLike,
    MatrixLike,
    Rows,
    Seed,
)
from skfair.base import ROW_CHECKS, SensitiveFeaturesMixin, fit_method, report_iterations
from skfair.constraints.base import Constraint
from skfair.estimators.certified.certificate import Certificate
from skfair.estimators.certified.judges import certified_interval
from skfair.estimators.classes import has_probabilities
from skfair.estimators.inner_scores import as_rows
from skfair.estimators.partial.fitting import PartialFitting
from skfair.estimators.partial.prediction import PartialPrediction
from skfair.groups.limits import Limit
from skfair.groups.sensitive import SensitiveLike
from skfair.losses import Loss
from skfair.models.choice import SCORE_FUNCTION
from skfair.models.grouped import group_scores
from skfair.models.plug_in import ScoreFunction, plugged_scores
from skfair.problems.partial.objectives import Objective
from skfair.solvers.base import Solver
from skfair.utils.docs import documented
from skfair.utils.threads import one_blas_thread


@documented
class PartialParityClassifier(PartialPrediction, PartialFitting):
    r"""Linear classifier whose scores treat groups alike within a percentile interval.

    Minimises the mean loss plus a penalty while a disparity inside the interval is limited: for
    ``constraint="statistical_parity"`` and groups k, k'

    .. math:: \max_\theta |P(s > \theta \mid k, \text{rank} \in I)
              - P(s > \theta \mid k', \text{rank} \in I)| \le \text{max\_disparity}

    where the rank of a row is the share of its group that scores higher. What is limited and
    reported is this number itself on the training data, as measured by :mod:`skfair.metrics`, not a
    smooth stand-in; on other data the noise of sampling adds to it.

    Parameters
    ----------
    interval : pair, list of pairs, or dict of these per group, default=(0.0, 0.3)
        Percentile interval, ranks counted from the top: the best 30% of each group. A list is a
        union. Longer intervals limit more.
    constraint : str or Constraint, default="statistical_parity"
        "statistical_parity": the same scores at the same percentiles. "demographic_parity",
        "equal_opportunity", "false_positive_parity", "equalized_odds": the same rates of decisions
        among all rows, the positives, the negatives, each class; ``DemographicParity(0.1)`` brings
        its own limit. "group_auc": no group outranks another. "group_auc_quadratic",
        "inter_group_pairwise", "intra_group_pairwise": the comparators of the paper; they look at
        no interval, and ``max_disparity`` limits their quadratic surrogate. An
        :class:`~skfair.constraints.partial.IntervalConstraint` says more: ranks within groups
        instead of classes, another smooth step, other percentiles.
    max_disparity : float or dict, default=0.05
        The limit of a constraint without one of its own; a dict has one for each attribute, None
        for none, and needs
        ``Sensitive(crossed=False)`` if there are several.
    scale : {"conditional", "ccdf"}, default="conditional"
        Whether disparities are shares of the interval, as in Definition 4.2, or shares of the whole
        groups, which is what the tables of the paper agree with and demands less
        (:func:`skfair.metrics.partial_ccdf_gap` for statistical parity).
    solver : str or Solver, default="auto"
        "repair" fits the model without the constraint and maps its scores, one monotone map per
        group; needs the group at prediction. "al_lbfgs" is an augmented Lagrangian on the smooth
        constraint, and other solvers of :mod:`skfair.solvers` that draw no batches, such as
        "plada", solve it too. "idca", "dc_ssg" and "dc_penalty" are the algorithms of the paper,
        for comparison; "idca_stochastic" draws batches, for networks under statistical parity.
        "auto" is "repair" if the model is group-aware, else "al_lbfgs".
    loss : str or object, default="log_loss"
        "log_loss", "hinge", "squared_hinge", "squared_error", or an object of :mod:`skfair.losses`.
        For rankings the losses of pairs "auc" (squared hinge), "auc_hinge", "auc_quadratic" and
        "auc_logistic", "partial_auc" (of false positive ranks within ``interval``), or an
        objective such as ``PairLoss("logistic", interval=(0.0, 0.2))``.
    group_aware : bool, default=False
        Whether predictions use the group of a person, by a map for each group, and weights of its
        own (deviations from shared ones) if it has at least 10 rows per feature; ``predict`` then
        needs it. Using the group may be disparate treatment in law; see the user guide.
    model : "linear" or score model, default="linear"
        What makes scores of the columns: linear weights, or a
        :class:`~skfair.models.ScoreFunction` of your own, such as ``TorchScore(module)``, which
        uses the group in maps of scores only.
    alpha : float, default=None
        Weight of the penalty on weights, ten times that on the deviations of groups; None for
        1 / n_samples, the default of ``LogisticRegression``.
    enforce : {"strict", "surrogate", "paper"}, default="strict"
        Whether the true training disparity is limited, or the smooth problem is solved once: in
        each of its forms, of which the one with the lowest objective within the smooth constraint
        is kept, or in the form of the paper only, (15), (21), (50) or (56). The last three compare
        pairs of groups in ranks.
    max_iter : int, default=None
        Largest number of steps of one run of the solver; None for the solver's own.
    tol : float, default=1e-4
        Largest residual of the first-order conditions, ``kkt_residual_``.
    random_state : int, RandomState instance or None, default=None
        Passed to the start of ``model`` and to solvers; "idca_stochastic" draws rows by it.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes; the second is the positive one.
    coef_ : ndarray of shape (1, n_features) or (n_groups, n_features)
        Weights, of each group if the model is group-aware.
    intercept_ : ndarray of shape (1,) or (n_groups,)
        Intercepts.
    model_, parameters_ : object, ndarray
        With ``model``: scores before maps are ``model_.forward(parameters_, X)[0]``.
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
    effective_disparity_ : float or dict
        The limit that was used: that of the constraint or ``max_disparity``, or more where the
        numbers of rows, or ties, leave no choice.
    certified_ : bool
        Whether ``train_disparity_`` is at most ``effective_disparity_``, each attribute by its own.
        This was checked on the training rows and says nothing about the population; for that see
        ``status_`` with ``confidence``, and ``disparity_upper_bound``.
    percentiles_ : ndarray of shape (n_percentiles,)
        Where smooth statistical parity was imposed, as shares of the interval.
    percentile_thresholds_ : ndarray
        The scores there, the theta_p of (15); the centres of constraints on rates.
    multipliers_ : ndarray of shape (n_constraints,)
        Signed multipliers of the smooth constraint; empty for "repair".
    constraint_names_ : ndarray of shape (n_constraints,)
        What each constraint limits.
    kkt_residual_ : float
        Largest of the residuals (28)-(30) of the smooth problem at its solution, as in
        :class:`ConstrainedERMClassifier`.
    objective_ : float
        Mean loss plus penalty of the model, before its scores were mapped.
    n_iter_ : int
        Steps of the solver on the problem whose solution is kept.
    n_solves_ : int
        Number of problems that were solved.
    status_ : str
        "converged", "max_iter", "stopped" or "infeasible"; with ``confidence`` "certified", or
        "no_solution" if nothing could be shown to satisfy the limit.
    history_ : dict of ndarray
        Number, objective, violation, CPU seconds and passes over the rows of each step.

    See Also
    --------
    PartialParityCalibrator : Repair for any scorer.
    ConstrainedERMClassifier : Constraints on all decisions, without an interval.
    skfair.metrics.suggest_interval : Intervals on which a model is unfair.

    Notes
    -----
    An evaluation of the smooth problem costs one product with X, one with its transpose and
    O(n_samples n_percentiles); "repair" one sort of the scores. With "repair" or a group-aware
    model under ``enforce="strict"`` the limit is satisfied exactly on the training rows. Other
    models depend on the solver; ``certified_`` says whether they satisfy it there.

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
    >>> model = PartialParityClassifier((0.1, 0.5), max_disparity=0.2)
    >>> model = model.fit(X, y, sensitive_features=sex)
    >>> gap = partial_statistical_parity_gap(
    ...     y, model.decision_function(X), sensitive_features=sex, interval=(0.1, 0.5)
    ... )
    >>> bool(gap <= 0.2), model.certified_
    (True, True)
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
        solver: str | Solver = "auto",
        loss: Any = "log_loss",
        group_aware: bool = False,
        model: Literal["linear"] | ScoreFunction = "linear",
        alpha: float | None = None,
        enforce: Literal["strict", "surrogate", "paper"] = "strict",
        max_iter: int | None = None,
        tol: float = 1e-4,
        sensitive: SensitiveLike = None,
        confidence: float | Certificate | None = None,
        random_state: Seed = None,
    ) -> None:
        self.interval = interval
        self.constraint = constraint
        self.max_disparity = max_disparity
        self.scale = scale
        self.solver = solver
        self.loss = loss
        self.group_aware = group_aware
        self.model = model
        self.alpha = alpha
        self.enforce = enforce
        self.max_iter = max_iter
        self.tol = tol
        self.sensitive = sensitive
        self.confidence = confidence
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
    ) -> PartialParityClassifier:
        """Fit the model under its constraint.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Two classes; the last one in order is the positive one. Pass ``y == label`` to choose.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in the loss and in the ranks.
        """
        metadata: dict[str, Any] = {
            "sensitive_features": sensitive_features,
            "sample_weight": sample_weight,
        }
        data = self._read(X, y, **metadata, **ROW_CHECKS)
        self._read_classes(data.y, data.groups, self.loss)
        self._forget("coef_", "intercept_", "model_", "parameters_")
        if self.confidence is not None and data.groups.n_groups > data.groups.n_attributes:
            rows, _ = indexable(as_rows(X), data.y)
            self.__dict__.update(certified_interval(self, data, rows, metadata, self.random_state))
            return self
        data = data.counted().in_canonical_order()
        promise = self._promise(data.y, data.groups, data.sample_weight)
        self.is_group_aware_ = self._decide_awareness(promise)
        model = self._make_model(data)
        with report_iterations(
            self, X, y, max_iter=None, attributes=lambda theta: self._state(model, theta)
        ) as callback:
            solution = self._optimise(data, promise, model, callback)
        self.__dict__.update(self._state(model, solution.result.theta))
        self._store_solution(solution)
        codes = data.groups.codes[0] if self.is_group_aware_ else None
        scores = self._scores_of(data.X, codes)
        min_gap = model.rounding(solution.result.theta[: model.n_parameters])
        self._settle(promise, scores, is_repaired=self._is_repaired(), min_gap=min_gap)
        if self.enforce == "strict" and not self.certified_:
            self.status_ = "infeasible"
        return self

    def _raw_scores(self, X: MatrixLike, codes: IntArray | None) -> FloatArray:
        """Return the scores of rows before they are repaired."""
        return self._scores_of(self._read_features(X, **ROW_CHECKS), codes)

    def _scores_of(self, X: Rows, codes: IntArray | None) -> FloatArray:
        if hasattr(self, "parameters_"):
            return plugged_scores(self.model_, self.parameters_, X)
        return group_scores(self.coef_, self.intercept_, X, codes)

    _check_probabilities = has_probabilities

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
