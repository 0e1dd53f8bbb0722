"""A regressor whose own predictions satisfy limits on disparity on the training rows.

``fit`` has the steps of :mod:`skfair.classification.constrained_erm`: read, bind, solve, report
(``skfair/estimators/erm``). Targets are standardised inside, so that limits, tolerances and
smoothing do not depend on the unit of y.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skfair._typing import ColumnLike, ColumnsLike, MatrixLike, Seed
from skfair.base import fit_method, report_iterations
from skfair.estimators.certificate import Certificate
from skfair.estimators.erm import report, solve
from skfair.estimators.erm.bind import active_constraints, bind
from skfair.estimators.erm.settings import ConstraintChoice, LossChoice, SolverChoice
from skfair.estimators.erm.task import regression_task
from skfair.groups.sensitive import SensitiveLike
from skfair.models.choice import ModelChoice
from skfair.read import ROW_CHECKS, read_features, read_rows
from skfair.regression.certifying import certified_means
from skfair.utils.docs import documented
from skfair.utils.threads import one_blas_thread


@documented
class ConstrainedERMRegressor(RegressorMixin, report.ConstrainedERMBase):
    r"""Linear or neural regressor that is trained under fairness constraints.

    The training loss is minimised subject to limits on the disparity between groups. Predictions do
    not need the group. Use :class:`FairDecisionRegressor` for other kinds of regressors, and if
    predictions may use the group.

    The problem that is solved is

    .. math:: \min_\theta \; \frac{1}{W} \sum_i w_i \, \ell(h_\theta(x_i), y_i)
       + \frac{\alpha}{2} \lVert \theta \rVert^2,

    subject to the constraints, where :math:`h_\theta` is the prediction, :math:`w_i` the weight of
    a row and W the sum of all weights. The limits hold for the predictions on the training rows. On
    new data the disparity may lie above or below the limit by about one standard error.

    Parameters
    ----------
    constraint : str, Constraint or list of them, default="mean_score_parity"
        The fairness constraint, or a list of constraints that all have to hold.

        - "mean_score_parity" limits the difference of mean predictions between groups.
        - "loss_parity" limits the difference of mean losses between groups.
        - "bounded_group_loss" limits the largest mean loss of a group.
        - "excess_loss" limits how much the mean loss of a group exceeds the mean loss of all rows.

        Pass an object from :mod:`skfair.constraints` for more options, such as a limit of its own.
    max_disparity : float, default=None
        The limit on the disparity. Its unit is the unit of y for mean predictions. For losses it is
        the mean squared (or absolute) error, as in :func:`skfair.metrics.largest_group_loss`. If
        None, it is 0.05. It must be left out if each constraint has a limit of its own.
    enforce : {"strict", "surrogate"}, default="strict"
        If "strict", the limit holds exactly. If "surrogate", it holds up to ``tol`` and the
        smoothing of the loss.
    model : "linear", tuple of int or score model, default="linear"
        Model of the predictions. A tuple such as ``(64, 32)`` sets the hidden layers of a network.
        Pass a :class:`~skfair.models.ScoreFunction`, such as ``TorchScore(module)``, for another
        model.
    loss : {"squared_error", "absolute_error"}, default="squared_error"
        Loss function. "squared_error" is half the squared error. "absolute_error" is smoothed
        around 0, within 5% of the standard deviation of y.
    alpha : float or None, default=None
        Weight of the L2 penalty. Larger values mean stronger regularisation. If None, 1 / n_samples
        (with sample weights, 1 over their sum) is used, which is the same penalty as with
        ``alpha=1`` in ``Ridge``. For absolute errors this default is divided by the standard
        deviation of y, so that the unit of y does not matter. A number is used as it is, so its
        effect on absolute errors depends on the unit of y.
    fit_intercept : bool, default=True
        If True, the predictions have an intercept.
    solver : str or solver object, default="auto"
        Algorithm that solves the constrained problem. The names are the same as in
        :class:`skfair.classification.ConstrainedERMClassifier`.
    max_iter : int or None, default=None
        Maximum number of iterations in each run of the solver. If None, the solver uses its own
        default.
    tol : float, default=1e-6
        Tolerance of the solver for the residual of the first-order optimality conditions, with
        standardised targets.
    certificate : float or Certificate, default=None
        Confidence level at which the limits are certified for the population, for example 0.95. It
        requires "mean_score_parity" with pairwise comparisons, and rows without sample weights.
        Pass a :class:`~skfair.Certificate` for more options. If None, the limits hold on the
        training rows only. The disparity in the population then exceeds them in about half of the
        fits.
    random_state : int, RandomState instance or None, default=None
        Seed of stochastic solvers and of the initial weights of hidden layers. Pass an int for
        reproducible results.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Coefficients of a linear model. They are 0 for the columns of ``sensitive``.
    intercept_ : ndarray of shape (1,)
        Intercept of a linear model.
    coefs_ : list of ndarray
        Weights of the layers of a network.
    intercepts_ : list of ndarray
        Intercepts of the layers of a network.
    model_ : ScoreFunction
        The object passed as ``model``, if there is one. The predictions for rows X are then
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
        Changes of the predictions on the training rows that are caused by the limits. The keys are
        "mean prediction", "mean squared error" and "R2", the part of the variance that predictions
        explain. With absolute errors the second key is "mean absolute error", and with a loss of
        your own "mean loss". Each object has these attributes.

        - ``before`` and ``without_limits``: The value of the same model without limits.
        - ``after``: The value within the limits.
        - ``by_group``: The same values for each group.
        - ``rows_up`` and ``rows_down``: The numbers of rows whose prediction, or error, is higher
          and lower than without limits. They are None for R2.

        R2 is NaN if all targets are equal. The dict is empty with ``enforce="surrogate"``, and if a
        callback stopped the fit.
    disparity_by_group_ : dict of str to float
        Mean prediction (or loss) of each group minus the overall mean. For "bounded_group_loss" it
        is the mean loss of the group itself.
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
        Residual of the first-order optimality conditions in the problem whose solution is the
        model.
    temperature_ : float
        Always 1, because there are no rates of decisions that have to be smoothed.
    n_iter_ : int
        Number of iterations of the solver.
    n_solves_ : int
        Number of problems that were solved.
    history_ : dict of str to ndarray
        Progress of the solver, for example "iteration", "objective" and "max_violation".

    See Also
    --------
    FairDecisionRegressor : Post-processing of any regressor, which may use the group. Equal means
        then cost much less.
    skfair.classification.ConstrainedERMClassifier : The same method for two classes.

    Notes
    -----
    For a linear model with "mean_score_parity", the problem is convex and solved to optimality.
    With "loss_parity", excess losses or a network, the problem is not convex, so solutions are
    stationary points.

    Limits may take away most of what a model explains, because its predictions do not use the
    group. If R2 on the training rows falls by more than a third, ``fit`` gives an
    :class:`~skfair.exceptions.ExplainedVarianceWarning`. Limits on differences of losses
    ("loss_parity", "excess_loss") are mostly satisfied by larger errors of the group with small
    ones, which ``summary_`` says. "bounded_group_loss" limits the largest error instead.

    For equal means, :class:`FairDecisionRegressor` around a linear regression is about as good if
    it does not use the group, and better if it does. At a fifth of the difference of means without
    limits, R2 of crimes in communities on new rows is 0.37 by training, 0.39 by post-processing,
    0.47 by group-aware post-processing, and 0.63 without limits (``benchmarks/equal_means.py``).

    If a certificate was found by cross-fitting, the multipliers and their
    names, ``objective_``, ``kkt_residual_``, ``temperature_``, ``n_iter_``, ``n_solves_`` and
    ``history_`` do not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.regression import ConstrainedERMRegressor
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 300)
    >>> X = rng.normal(size=(300, 2)) + (sex == "m")[:, None] * [1, 0]
    >>> y = 5 * X[:, 0] + 10 * X[:, 1] + rng.normal(size=300)
    >>> for limit in (100.0, 2.0):
    ...     model = ConstrainedERMRegressor(max_disparity=limit).fit(X, y, sensitive_features=sex)
    ...     means = [model.predict(X[sex == s]).mean() for s in ("f", "m")]
    ...     print(f"limit {limit}: group means {means[0]:.1f} and {means[1]:.1f}")
    limit 100.0: group means -0.2 and 3.3
    limit 2.0: group means 0.6 and 2.6
    """

    def __init__(
        self,
        constraint: ConstraintChoice = "mean_score_parity",
        max_disparity: Any = None,
        *,
        enforce: Literal["strict", "surrogate"] = "strict",
        sensitive: SensitiveLike = None,
        certificate: float | Certificate | None = None,
        model: ModelChoice = "linear",
        loss: LossChoice = "squared_error",
        alpha: float | None = None,
        fit_intercept: bool = True,
        solver: SolverChoice = "auto",
        max_iter: int | None = None,
        tol: float = 1e-6,
        random_state: Seed = None,
    ) -> None:
        self.constraint = constraint
        self.max_disparity = max_disparity
        self.enforce = enforce
        self.sensitive = sensitive
        self.certificate = certificate
        self.model = model
        self.loss = loss
        self.alpha = alpha
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
    ) -> ConstrainedERMRegressor:
        """Fit the model under its constraints.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            The target values.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, which count in the loss and in the constraints. If None, all
            samples have the same weight.
        """
        metadata: dict[str, Any] = {
            "sensitive_features": sensitive_features,
            "control_features": control_features,
            "sample_weight": sample_weight,
        }
        data = read_rows(self, X, y, units=units, y_numeric=True, **metadata, **ROW_CHECKS)
        self._keep(data.reading)
        settings = self._settings()
        task = regression_task(data.y, data.sample_weight, settings)
        active = active_constraints(self.constraint, "regression", data, self.max_disparity)
        if active and self.certificate is not None:
            return report.store(self, certified_means(self, data, task, active, X, metadata))
        problem = bind(data, task, active)
        # {}: the regressor has no attributes that are the same for all theta, such as classes.
        state = partial(report.state, self, {}, problem, task)
        with report_iterations(self, X, y, max_iter=None, attributes=state) as callback:
            solved = solve.solve(problem, settings, callback)
        return report.store(self, report.of_fit(data, task, problem, solved))

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Predict the target of each sample.

        Returns
        -------
        predictions : ndarray of shape (n_samples,)
            The predicted values.
        """
        check_is_fitted(self)
        rows = read_features(self, X, **ROW_CHECKS)
        scores = report.raw_scores(vars(self), rows, self._model_positions)
        return scores.astype(rows.dtype, copy=False)
