"""A classifier whose own predictions satisfy limits on disparity on the training rows.

``fit`` reads the rows, binds the constraints to them, solves the problem and reports the result.
The last three steps are in the files of ``skfair/estimators/erm``. With ``certificate=``
:mod:`skfair.classification.certifying` replaces these steps. ``partial_fit`` binds and reports each
part in the same way, but makes only some steps of a stochastic solver.
"""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, MatrixLike, Seed
from skfair.base import fit_method, report_iterations
from skfair.classification.certifying import certified
from skfair.classification.fair_decisions import FairDecisionClassifier
from skfair.estimators.certificate import Certificate
from skfair.estimators.classes import (
    PositiveClass,
    accuracy_in_blocks,
    check_known,
    has_probabilities,
    positive_class,
    read_classes,
)
from skfair.estimators.erm import report, solve
from skfair.estimators.erm.bind import active_constraints, bind, finite_rows, row_checks
from skfair.estimators.erm.settings import ConstraintChoice, LossChoice, SolverChoice
from skfair.estimators.erm.task import classification_task
from skfair.groups.attributes import check_aligned
from skfair.groups.sensitive import SensitiveLike
from skfair.models.choice import ModelChoice
from skfair.read import ROW_CHECKS, read_features, read_part, read_rows, refuse_lazy
from skfair.utils.availability import available_if
from skfair.utils.dask_collections import by_block, is_lazy
from skfair.utils.docs import documented
from skfair.utils.threads import one_blas_thread
from skfair.utils.wrappers import warn_of_decider


@documented
class ConstrainedERMClassifier(PositiveClass, ClassifierMixin, report.ConstrainedERMBase):
    r"""Linear or neural classifier that is trained under fairness constraints.

    The training loss is minimised subject to limits on the disparity between groups. Predictions do
    not need the group. Use :class:`FairDecisionClassifier` for other kinds of classifiers, and if
    predictions may use the group.

    The problem that is solved is

    .. math:: \min_\theta \; \frac{1}{W} \sum_i w_i \, \ell(h_\theta(x_i), y_i)
       + \frac{\alpha}{2} \lVert \theta \rVert^2,

    subject to the constraints, where :math:`h_\theta` is the score of a row, :math:`w_i` its weight
    and W the sum of all weights. On the training rows, the disparity of the predictions is at most
    ``max_disparity``, as measured by :mod:`skfair.metrics`. On new data the disparity may lie above
    or below the limit by about one standard error.

    Parameters
    ----------
    constraint : str, Constraint or list of them, default="demographic_parity"
        The fairness constraint, or a list of constraints that all have to hold.

        - "demographic_parity", "equal_opportunity", "false_positive_parity",
          "false_negative_parity", "equalized_odds", "accuracy_parity" and "predictive_parity" limit
          differences of rates between groups.
        - "bounded_selection_rate", "bounded_false_positive_rate" and "bounded_false_negative_rate"
          limit the largest rate of a group.
        - "loss_parity" and "mean_score_parity" limit differences of mean losses or scores.
        - "bounded_group_loss" and "excess_loss" limit the loss of the groups.

        Pass an object from :mod:`skfair.constraints` for more options, such as a limit of its own
        (``DemographicParity(0.05)`` instead of ``max_disparity``) or a ratio.
    max_disparity : float or dict, default=None
        The limit on the disparity. A dict sets one limit for each attribute, which may be None for
        an attribute without a limit. Several attributes require
        ``Sensitive(intersectional=False)``. If None, it is 0.05. It must be left out if each
        constraint has a limit of its own.
    min_rate : float or "as before", default=None
        Minimum rate that every group must reach. This is the true positive rate for constraints
        conditioned on the positive class (such as equalized odds), otherwise the selection rate. If
        "as before", each group keeps at least the rate that the same model gives it without limits.
        If None, there is no minimum. It cannot be combined with ``certificate``.
    selection_rate : float, (float, float) or "as before", default=None
        Fraction of all rows that are predicted positive. A pair sets a range from low to high. If
        "as before", the fraction is the same as without limits. If None, the fraction may change
        freely.
    enforce : {"strict", "strict_loss", "surrogate"}, default="strict"
        Values that the limits apply to.

        - "strict": The limits hold for the predictions. If this costs much accuracy, the loss is
          replaced by smooth errors, which approximate the error rate.
        - "strict_loss": The limits hold for the predictions, and the loss is never replaced.
        - "surrogate": The limits hold for sigmoids of the scores, as in the papers. The disparity
          of the predictions may be larger.
    model : "linear", tuple of int or score model, default="linear"
        Model of the scores. A tuple such as ``(64, 32)`` sets the hidden layers of a network. Pass
        a :class:`~skfair.models.ScoreFunction`, such as ``TorchScore(module)``, for another model.
    loss : {"log_loss", "hinge", "squared_hinge", "squared_error"}, default="log_loss"
        Loss function. ``predict_proba`` requires "log_loss".
    alpha : float or None, default=None
        Weight of the L2 penalty. Larger values mean stronger regularisation. If None, the penalty
        is the same as with ``C=1`` in ``LogisticRegression``.
    class_weight : dict, "balanced" or None, default=None
        Class weights in the loss. They do not affect the rates that are constrained.
    fit_intercept : bool, default=True
        If True, the scores have an intercept. If False, ``intercept_`` only holds the decision
        threshold, which is not 0 if a limit on rates requires another one.
    solver : str or solver object, default="auto"
        Algorithm that solves the constrained problem.

        - "auto": "al_newton" or "al_lbfgs" is used for linear models, and "alm" for others.
        - "plada", "ssg", "ipp_ssg", "ipp_conex", "plada_stochastic", "multiplier_model", "ssl_alm",
          "ghost", "ssw", "penalty" and "sgd" are algorithms of :mod:`skfair.papers`. "sgd" ignores
          the constraints.

        Pass an object to set options of a solver.
    max_iter : int or None, default=None
        Maximum number of iterations in each run of the solver. If None, the solver uses its own
        default.
    tol : float, default=1e-6
        Tolerance of the solver for the residual of the first-order optimality conditions.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The class labels.
    coef_ : ndarray of shape (1, n_features)
        Coefficients of a linear model. They are 0 for the columns of ``sensitive``.
    intercept_ : ndarray of shape (1,)
        Intercept of a linear model, which includes the decision threshold.
    coefs_ : list of ndarray
        Weights of the layers of a network.
    intercepts_ : list of ndarray
        Intercepts of the layers of a network.
    model_ : ScoreFunction
        The object passed as ``model``, if there is one. The scores of rows X are then
        ``score_scale_ * model_.forward(parameters_, X)[0] + score_shift_``.
    parameters_ : ndarray
        Fitted parameters of ``model_``.
    score_scale_ : float
        Factor of the scores of ``model_``.
    score_shift_ : float
        Intercept of the scores of ``model_``.
    train_disparity_ : float
        Disparity of the predictions on the training rows. With several constraints, it is the
        largest disparity.
    train_disparities_ : dict of str to float
        Disparity of the predictions on the training rows for each constraint.
    changes_ : dict of str to Change
        Changes of the decisions on the training rows that are caused by the limits. The key
        "selection rate" holds an object with the attributes ``before`` (the selection rate of the
        same model without limits), ``after`` (the rate with limits), ``by_group`` (the same rates
        for each group), ``rows_up`` (the number of rows that are newly selected) and ``rows_down``
        (the number of rows that are no longer selected). The dict is empty with
        ``enforce="surrogate"``, after ``partial_fit``, and if a callback stopped the fit.
    disparity_by_group_ : dict of str to float
        Rate (or mean loss or score) of each group minus its overall value. For bounded constraints
        it is the value of the group itself. The keys also name the class if the constraint is
        about a class, and the constraint if there are several.
    multipliers_ : ndarray of shape (n_constraints,)
        Lagrange multipliers. Each one is the increase of the objective per unit by which the limit
        is tightened.
    constraint_names_ : ndarray of shape (n_constraints,)
        Names of the constraints that ``multipliers_`` belong to.
    objective_ : float
        Mean loss plus penalty.
    status_ : str
        How the fit ended. With ``enforce="surrogate"``, the smooth form of the limits counts.
    kkt_residual_ : float
        Residual of the first-order optimality conditions in the smooth problem whose solution is
        the model.
    temperature_ : float
        Steepness of the sigmoids that replace the decisions in this problem.
    n_iter_ : int
        Number of iterations of the solver in this problem.
    history_ : dict of str to ndarray
        Progress of the solver in this problem, for example "iteration" and "objective".
    n_solves_ : int
        Number of problems that were solved to satisfy the limits strictly.
    decisions_ : FairDecisionClassifier
        The certified classifier, if the certificate was found by cross-fitting, which
        ``Certificate(by="auto")`` also uses if possible. The coefficients, the multipliers, the
        progress of the solver and ``disparity_by_group_`` do not exist then.

    See Also
    --------
    FairDecisionClassifier : Post-processing of any classifier.
    skfair.regression.ConstrainedERMRegressor : The same method for regression.
    skfair.model_selection.fairness_path : Trade-off between accuracy and disparity.

    Notes
    -----
    The constrained problems are not convex, so the solutions are stationary points. Exceptions are
    linear models with a convex loss and "mean_score_parity" or "bounded_group_loss". If limits are
    on rates only, the fitted model is at least as accurate on the training rows as the same
    decision for all rows, if that satisfies the limits. Dask
    collections are accepted for linear models. If the model was fitted only by ``partial_fit``, the
    attributes ``constraint_names_``, ``objective_``, ``status_``, ``kkt_residual_``,
    ``temperature_``, ``history_`` and ``n_solves_`` do not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.classification import ConstrainedERMClassifier
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 500)
    >>> X = rng.normal(size=(500, 3)) + (sex == "m")[:, None] * [1, 0, 0]
    >>> y = X[:, 0] + X[:, 1] + rng.normal(size=500) > 0.5
    >>> for limit in (1.0, 0.05):
    ...     model = ConstrainedERMClassifier("demographic_parity", max_disparity=limit)
    ...     model = model.fit(X, y, sensitive_features=sex)
    ...     print(f"disparity {model.train_disparity_:.2f}, accuracy {model.score(X, y):.2f}")
    disparity 0.26, accuracy 0.80
    disparity 0.05, accuracy 0.73
    """

    __metadata_request__partial_fit = {"sensitive_features": True}

    _takes_partitions = True
    decisions_: FairDecisionClassifier

    _parameter_constraints = {
        **report.ConstrainedERMBase._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "enforce": [StrOptions({"strict", "strict_loss", "surrogate"})],
        "min_rate": [Interval(Real, 0, 1, closed="both"), StrOptions({"as before"}), None],
        "selection_rate": [
            *(Interval(Real, 0, 1, closed="both"), StrOptions({"as before"}), tuple, list, None)
        ],
        **PositiveClass._pos_label_constraints,
    }

    def __init__(
        self,
        constraint: ConstraintChoice = "demographic_parity",
        max_disparity: Any = None,
        *,
        min_rate: float | Literal["as before"] | None = None,
        selection_rate: Any = None,
        enforce: Literal["strict", "strict_loss", "surrogate"] = "strict",
        sensitive: SensitiveLike = None,
        pos_label: ClassLabel = None,
        certificate: float | Certificate | None = None,
        model: ModelChoice = "linear",
        loss: LossChoice = "log_loss",
        alpha: float | None = None,
        class_weight: dict[Any, float] | str | None = None,
        fit_intercept: bool = True,
        solver: SolverChoice = "auto",
        max_iter: int | None = None,
        tol: float = 1e-6,
        random_state: Seed = None,
    ) -> None:
        self.constraint = constraint
        self.max_disparity = max_disparity
        self.min_rate = min_rate
        self.selection_rate = selection_rate
        self.enforce = enforce
        self.sensitive = sensitive
        self.certificate = certificate
        self.pos_label = pos_label
        self.model = model
        self.loss = loss
        self.alpha = alpha
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
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
        control_features: ColumnsLike | None = None,
        units: ColumnLike | None = None,
    ) -> ConstrainedERMClassifier:
        """Fit the model under its constraints.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The training samples.
        y : array-like of shape (n_samples,)
            Labels of two classes. ``pos_label`` sets the positive class.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, which count in the loss and in the rates. If None, all samples
            have the same weight.
        """
        metadata: dict[str, Any] = {
            "sensitive_features": sensitive_features,
            "control_features": control_features,
            "sample_weight": sample_weight,
        }
        settings = self._settings()
        data = read_rows(self, X, y, units=units, **metadata, **row_checks(X, settings))
        self._keep(data.reading)
        classes, limits = read_classes(data.y), (self.min_rate, self.selection_rate)
        active = active_constraints(self.constraint, "classification", data, self.max_disparity)
        positive = positive_class(self.pos_label, classes, active, *limits)
        own = {"classes_": classes, "pos_label_": positive}
        if self.certificate is not None and (
            shown := certified(self, settings, data, classes, positive, active, X, metadata)
        ):
            return report.store(self, own | shown)
        task = classification_task(data, classes, positive, settings)
        with finite_rows(data, type(self).__name__):
            problem = bind(data, task, active)
        state = partial(report.state, self, own, problem, task)
        with report_iterations(self, X, y, max_iter=None, attributes=state) as callback:
            solved = solve.solve(problem, settings, callback)
        return report.store(self, own | report.of_fit(data, task, problem, solved))

    @available_if(solve.takes_parts)
    @fit_method
    @one_blas_thread
    def partial_fit(
        self,
        X: MatrixLike,
        y: ColumnLike,
        classes: Any = None,
        sample_weight: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
    ) -> ConstrainedERMClassifier:
        """Update the model on a chunk of rows by some steps of the stochastic solver "alm".

        The update starts from the model of ``fit``, if there is one. The limits are pursued for
        smooth rates, but they are not enforced strictly, because a stream has no fixed training
        sample. Each chunk must contain rows of every group, and of every class if the constraint
        depends on the true class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples of the chunk.
        y : array-like of shape (n_samples,)
            The class labels of the chunk.
        classes : array-like of shape (2,), default=None
            Both class labels. They are required in the first call if the first chunk does not
            contain both classes.
        """
        refuse_lazy(self, X, y, sensitive_features, sample_weight)
        columns: Any = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        stream: solve.Stream | None = vars(self).get("_stream")
        data = (read_part if stream else read_rows)(self, X, y, **columns, **ROW_CHECKS)
        if data.groups.people is not None:
            raise TypeError(
                "partial_fit needs the group of each row, not probabilities. Use fit, or pass rows "
                "of known groups."
            )
        active = active_constraints(self.constraint, "classification", data, self.max_disparity)
        if stream:
            classes, positive = self.classes_, self.pos_label_
        else:
            self._keep(data.reading)
            classes = read_classes(data.y if classes is None else np.asarray(classes))
            limits = self.min_rate, self.selection_rate
            positive = positive_class(self.pos_label, classes, active, *limits)
        check_known(data.y, classes)
        task = classification_task(data, classes, positive, self._settings())
        problem = bind(data, task, active, earlier=stream.weight if stream else 0.0)
        stream = solve.advance(problem, stream, task, vars(self))
        own = {"classes_": classes, "pos_label_": positive}
        return report.store(self, own | report.of_part(data, task, problem, stream), is_part=True)

    @by_block()
    def decision_function(self, X: MatrixLike) -> NDArray[Any]:
        """Return the score of each sample.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The scores. A positive score means that the second of ``classes_`` is predicted.
        """
        check_is_fitted(self)
        if vars(self).get("_limits"):  # missing in callbacks during the fit
            warn_of_decider(self, "scores")
        rows = read_features(self, X, **ROW_CHECKS)
        if "decisions_" not in vars(self):
            return report.raw_scores(vars(self), rows, self._model_positions)
        # The scores are log-odds that are 0 at the thresholds of the decisions with offsets.
        margins = np.clip(self.decisions_.decision_function(rows), -1 + 1e-12, 1 - 1e-12)
        return np.asarray(2 * np.arctanh(margins))

    @by_block(dtype=lambda model: model.classes_.dtype)
    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Predict the class of each sample.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The predicted class labels.
        """
        scores = self.decision_function(X)  # checks that the estimator is fitted
        return self._decide(scores)

    def score(self, X: MatrixLike, y: ColumnLike, sample_weight: ColumnLike | None = None) -> float:
        """Return the accuracy of the predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The test samples.
        y : array-like of shape (n_samples,)
            The true class labels.

        Returns
        -------
        score : float
            Weighted fraction of correct predictions.
        """
        if not is_lazy(X, y, sample_weight):
            check_aligned(X=X, sample_weight=sample_weight)
            return float(super().score(X, y, sample_weight))
        return accuracy_in_blocks(self, X, y, sample_weight)

    @available_if(has_probabilities)
    @by_block(n_columns=lambda model: 2)
    def predict_proba(self, X: MatrixLike) -> NDArray[Any]:
        """Return the probabilities of both classes.

        They include the decision threshold that was chosen to satisfy the limits, so the predicted
        class is always the one with a probability above 1/2. The threshold makes the probabilities
        less calibrated.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, 2)
            Probability of each class, with the columns in the order of ``classes_``.
        """
        positive = expit(self.decision_function(X))
        return np.column_stack([1 - positive, positive])

    @available_if(has_probabilities)
    @by_block(n_columns=lambda model: 2)
    def predict_log_proba(self, X: MatrixLike) -> NDArray[Any]:
        """Return the logarithms of the probabilities of both classes.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, 2)
            Logarithm of the probability of each class, with the columns in the order of
            ``classes_``.
        """
        scores = self.decision_function(X)
        return np.column_stack([-np.logaddexp(0, scores), -np.logaddexp(0, -scores)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
