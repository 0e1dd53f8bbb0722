"""A classifier whose own predictions satisfy limits on disparity on the training rows.

``fit`` reads the rows, binds the constraints to them, solves the problem and reports what was
found. The algorithms of plada and of fairness_constrained_benchmark are solvers by name.
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
from skfair.classification.certifying import certified, takes_parts
from skfair.classification.fair_decisions import FairDecisionClassifier
from skfair.estimators.certified.certificate import Certificate
from skfair.estimators.classes import (
    PositiveClass,
    accuracy_in_blocks,
    check_known,
    classification_task,
    has_probabilities,
    positive_class,
    read_classes,
)
from skfair.estimators.erm import report, solve
from skfair.estimators.erm.bind import (
    ConstraintChoice,
    LossChoice,
    active_constraints,
    bind,
    finite_rows,
    row_checks,
)
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
    r"""Linear or neural classifier, trained under limits on the disparity between groups.

    Use it where predictions may not depend on the group; :class:`FairDecisionClassifier` takes any
    classifier. It minimises

    .. math:: \min_\theta \; \frac{1}{W} \sum_i w_i \, \ell(h_\theta(x_i), y_i)
       + \frac{\alpha}{2} \lVert \theta \rVert^2,

    under the constraints. On the training rows the disparity of its predictions, as
    :mod:`skfair.metrics` measures it, is at most ``max_disparity``. Unseen data may miss it in
    either direction by about one standard error.

    Parameters
    ----------
    constraint : str, Constraint or list of them, default="demographic_parity"
        Differences of rates of decisions: "demographic_parity", "equal_opportunity",
        "false_positive_parity", "false_negative_parity", "equalized_odds", "accuracy_parity",
        "predictive_parity"; largest rates: "bounded_selection_rate", "bounded_false_positive_rate",
        "bounded_false_negative_rate"; differences of losses or scores: "loss_parity",
        "positive_loss_parity", "class_loss_parity", "mean_score_parity"; largest losses:
        "bounded_group_loss", "excess_loss", "mean_excess_loss". Or objects.
    max_disparity : float or dict, default=0.05
        The limit; a dict has one for each attribute (or None), with ``Sensitive(crossed=False)``.
    min_rate : float or "as before", default=None
        Smallest true positive rate of a group if a constraint looks at positives (as equalized odds
        does), else selection rate.
    selection_rate : float, (float, float) or "as before", default=None
        Share of all rows that is predicted positive: exactly, from low to high, or as many as by
        the same model without the constraint.
    enforce : {"strict", "strict_loss", "surrogate"}, default="strict"
        "strict": the limit holds for the predictions; where that costs much accuracy, smooth errors
        replace the loss. "strict_loss": never. "surrogate": it holds for sigmoids of scores only.
    model : "linear", tuple of int or score model, default="linear"
        Linear scores, hidden layers such as ``(64, 32)``, or a
        :class:`~skfair.models.ScoreFunction` such as ``TorchScore(module)``.
    loss : {"log_loss", "hinge", "squared_hinge", "squared_error"}, default="log_loss"
        Only "log_loss" gives probabilities.
    alpha : float or None, default=None
        Weight of the penalty; None is ``C=1`` of LogisticRegression.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, not in rates.
    fit_intercept : bool, default=True
        Whether scores have an intercept.
    solver : str or solver object, default="auto"
        "auto" is "al_newton" or "al_lbfgs" for linear models, else "alm". Those of
        :mod:`skfair.papers`: "plada", "ssg", "ipp_ssg", "ipp_conex", "plada_stochastic",
        "multiplier_model", "ssl_alm", "ghost", "ssw", "penalty", "sgd" (no constraints). Or an
        object.
    max_iter : int or None, default=None
        Most steps of a run.
    tol : float, default=1e-6
        Largest residual of the first-order conditions.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes.
    coef_, intercept_, coefs_, intercepts_ : ndarray, or list of ndarray
        A linear model, threshold included; layers of a network.
    model_, parameters_, score_scale_, score_shift_ : object, ndarray, float, float
        With ``model``: scores are ``scale * model_.forward(parameters_, X)[0] + shift``.
    train_disparity_, train_disparities_ : float, dict of str to float
        Disparity on the training rows, and of each constraint.
    changes_ : dict of str to Change
        By "selection rate", what the limits change on the training rows: ``before`` is the share of
        selected rows by the same model without the limits, ``after`` the share with them,
        ``by_group`` has both for each group, and ``rows_up`` and ``rows_down`` are the numbers of
        rows that are newly selected and no longer selected. Empty with ``enforce="surrogate"``,
        after ``partial_fit``, and if a callback stopped the fit.
    disparity_by_group_ : dict of str to float
        Distance of each group from the overall rate.
    multipliers_, constraint_names_ : ndarray of shape (n_constraints,)
        What the objective loses per unit of a tighter limit; what each compares.
    objective_ : float
        Mean loss plus penalty.
    status_ : str
        "converged", "max_iter", "stopped", "infeasible", "certified" or "no_solution".
    kkt_residual_, temperature_, n_iter_, history_ : float, float, int, dict
        Residual, steepness, steps and course of the last smooth problem.
    n_solves_ : int
        Number of problems.
    decisions_ : FairDecisionClassifier
        With ``Certificate(by="cross")``: models of folds, in place of weights.

    See Also
    --------
    skfair.regression.ConstrainedERMRegressor : For real targets.
    skfair.model_selection.fairness_path : Accuracy against disparity.

    Notes
    -----
    Fair problems are not convex: solutions are stationary points. Data may be Dask
    collections, for linear scores.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.classification import ConstrainedERMClassifier
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 500)
    >>> X = rng.normal(size=(500, 3)) + (sex == "m")[:, None] * [1, 0, 0]
    >>> y = X[:, 0] + X[:, 1] + rng.normal(size=500) > 0.5
    >>> model = ConstrainedERMClassifier("demographic_parity", 0.05)
    >>> model = model.fit(X, y, sensitive_features=sex)
    >>> print(f"disparity {model.train_disparity_:.2f}, accuracy {model.score(X, y):.2f}")
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
        max_disparity: Any = 0.05,
        *,
        min_rate: float | Literal["as before"] | None = None,
        selection_rate: Any = None,
        enforce: Literal["strict", "strict_loss", "surrogate"] = "strict",
        sensitive: SensitiveLike = None,
        confidence: float | Certificate | None = None,
        pos_label: ClassLabel = None,
        model: ModelChoice = "linear",
        loss: LossChoice = "log_loss",
        alpha: float | None = None,
        class_weight: dict[Any, float] | str | None = None,
        fit_intercept: bool = True,
        solver: solve.SolverChoice = "auto",
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
        self.confidence = confidence
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
        groups: ColumnLike | None = None,
    ) -> ConstrainedERMClassifier:
        """Fit the model under its constraints.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Two classes; see ``pos_label``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in the loss and in the rates.
        """
        metadata: dict[str, Any] = {
            "sensitive_features": sensitive_features,
            "control_features": control_features,
            "sample_weight": sample_weight,
        }
        checks = row_checks(X, self.model, self.confidence)
        data = read_rows(self, X, y, groups=groups, **metadata, **checks)
        self._keep(data.reading)
        classes, limits = read_classes(data.y), (self.min_rate, self.selection_rate)
        active = active_constraints(self.constraint, "classification", data, self.max_disparity)
        positive = positive_class(self.pos_label, classes, active, *limits)
        own = {"classes_": classes, "pos_label_": positive}
        if self.confidence is not None and (
            shown := certified(self, data, classes, positive, active, X, metadata)
        ):
            return report.store(self, own | shown)
        scores = self.model, self.fit_intercept, self.alpha
        task = classification_task(data, classes, positive, self.loss, self.class_weight, *scores)
        how = solve.Settings(self.solver, self.enforce, self.tol, self.max_iter, self.random_state)
        with finite_rows(data, type(self).__name__):
            problem = bind(data, task, active, self.max_disparity, *limits, how=how)
        state = partial(report.state, self, own, problem, task)
        with report_iterations(self, X, y, max_iter=None, attributes=state) as callback:
            solved = solve.solve(problem, how, callback, is_classifier=True)
        attributes = report.of_fit(data, task, problem, solved, how)
        return report.store(self, own | attributes)

    @available_if(takes_parts)
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
        """Improve the model by some steps of the stochastic solver "alm" on a chunk of rows.

        Starts from the model of ``fit``, if there is one. The smooth constraints are pursued, not
        promised: a stream has no training sample to promise anything on. Every chunk must have
        rows of every group (and class where the constraint looks at classes).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            A chunk of rows.
        y : array-like of shape (n_samples,)
            Their classes.
        classes : array-like of shape (2,), default=None
            All classes; needed in the first call if the first chunk lacks one.
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
        limits = self.min_rate, self.selection_rate
        active = active_constraints(self.constraint, "classification", data, self.max_disparity)
        if stream:
            classes, positive = self.classes_, self.pos_label_
        else:
            self._keep(data.reading)
            classes = read_classes(data.y if classes is None else np.asarray(classes))
            positive = positive_class(self.pos_label, classes, active, *limits)
        check_known(data.y, classes)
        scores = self.model, self.fit_intercept, self.alpha
        task = classification_task(data, classes, positive, self.loss, self.class_weight, *scores)
        how = solve.Settings(self.solver, self.enforce, self.tol, self.max_iter, self.random_state)
        earlier = stream.weight if stream else 0.0
        problem = bind(data, task, active, self.max_disparity, *limits, how=how, earlier=earlier)
        stream = solve.advance(problem, stream, how, task.total_weight, vars(self))
        own = {"classes_": classes, "pos_label_": positive}
        return report.store(self, own | report.of_part(data, task, problem, stream), is_part=True)

    @by_block()
    def decision_function(self, X: MatrixLike) -> NDArray[Any]:
        """Return the scores of rows; a positive score predicts the second one of ``classes_``.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The scores.
        """
        check_is_fitted(self)
        if vars(self).get("_limits"):  # not while it is fitted
            warn_of_decider(self, "scores")
        rows = read_features(self, X, **ROW_CHECKS)
        if "decisions_" not in vars(self):
            return report.raw_scores(vars(self), rows, self._model_positions)
        # The log-odds at which decisions with offsets are even.
        margins = np.clip(self.decisions_.decision_function(rows), -1 + 1e-12, 1 - 1e-12)
        return np.asarray(2 * np.arctanh(margins))

    @by_block(dtype=lambda model: model.classes_.dtype)
    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Predict the class of rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The predicted classes.
        """
        scores = self.decision_function(X)  # checks that there is a model
        return self._decide(scores)

    def score(self, X: MatrixLike, y: ColumnLike, sample_weight: ColumnLike | None = None) -> float:
        """Return the accuracy of the predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Their true classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
            Weighted share of the rows whose class is predicted.
        """
        if not is_lazy(X, y, sample_weight):
            check_aligned(X=X, y=y, sample_weight=sample_weight)
            return float(super().score(X, y, sample_weight))
        return accuracy_in_blocks(self, X, y, sample_weight)

    @available_if(has_probabilities)
    @by_block(n_columns=lambda model: 2)
    def predict_proba(self, X: MatrixLike) -> NDArray[Any]:
        """Return probabilities of both classes.

        They include the threshold that strict enforcement chose, so that 1/2 separates the
        predicted classes; a chosen threshold makes them less calibrated.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, 2)
            Columns in the order of ``classes_``.
        """
        positive = expit(self.decision_function(X))
        return np.column_stack([1 - positive, positive])

    @available_if(has_probabilities)
    @by_block(n_columns=lambda model: 2)
    def predict_log_proba(self, X: MatrixLike) -> NDArray[Any]:
        """Return logarithms of the probabilities of both classes.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, 2)
            Columns in the order of ``classes_``.
        """
        scores = self.decision_function(X)
        return np.column_stack([-np.logaddexp(0, scores), -np.logaddexp(0, -scores)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
