"""A regressor whose own predictions satisfy limits on disparity on the training rows.

``fit`` has the steps of :mod:`skfair.classification.constrained_erm`; targets are
standardised inside, so that limits, tolerances and smoothing mean the same whatever their unit.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skfair._typing import ColumnLike, ColumnsLike, MatrixLike, Seed
from skfair.base import fit_method, report_iterations
from skfair.estimators.certified.certificate import Certificate
from skfair.estimators.certified.judges import certified_means
from skfair.estimators.erm import report, solve
from skfair.estimators.erm.bind import (
    ConstraintChoice,
    LossChoice,
    active_constraints,
    bind,
    regression_task,
)
from skfair.groups.sensitive import SensitiveLike
from skfair.models.choice import ModelChoice
from skfair.read import ROW_CHECKS, read_features, read_rows
from skfair.utils.docs import documented
from skfair.utils.threads import one_blas_thread


@documented
class ConstrainedERMRegressor(RegressorMixin, report.ConstrainedERMBase):
    r"""Linear or neural regressor that is trained under limits on the disparity between groups.

    Use it where predictions may not depend on the group. It minimises the mean loss plus a penalty,
    :math:`\frac{1}{W} \sum_i w_i \, \ell(h_\theta(x_i), y_i) + \frac{\alpha}{2} \lVert \theta
    \rVert^2`, under the constraints. They hold for its predictions on the training rows; unseen
    data may miss them in either direction by about one standard error.

    Parameters
    ----------
    constraint : str, Constraint or list of them, default="mean_score_parity"
        "mean_score_parity" (differences of mean predictions), "loss_parity" (differences of mean
        losses), "bounded_group_loss" (largest mean loss of a group), "excess_loss" and
        "mean_excess_loss" (largest and mean excess of the losses of groups over that of all rows),
        or objects of :mod:`skfair.constraints`.
    max_disparity : float, default=0.05
        The limit, in units of y for mean predictions, and of the mean squared (or absolute) error
        for losses, as :func:`skfair.metrics.largest_group_loss` measures them.
    enforce : {"strict", "surrogate"}, default="strict"
        Whether the limit holds exactly, or up to ``tol`` and smoothing.
    model : "linear", tuple of int or score model, default="linear"
        Linear predictions, hidden layers such as ``(64, 32)``, or a
        :class:`~skfair.models.ScoreFunction` such as ``TorchScore(module)``.
    loss : {"squared_error", "absolute_error"}, default="squared_error"
        Half the squared error, or the absolute error, smoothed within 5% of the standard deviation
        of y.
    alpha : float or None, default=None
        Weight of the penalty; None is 1 / n_samples, ``alpha=1`` of Ridge. With absolute errors it
        is divided by the standard deviation of y, so that the unit of y does not matter.
    fit_intercept : bool, default=True
        Whether predictions have an intercept.
    solver : str or solver object, default="auto"
        As in :class:`skfair.classification.ConstrainedERMClassifier`.
    max_iter : int or None, default=None
        Most steps of one run of the solver; None for its own.
    tol : float, default=1e-6
        Largest residual of the first-order conditions, for standardised targets.
    confidence : float, default=None
        How sure the limits on means are to hold for the population, such as 0.95. None: the
        population exceeds them in about half of the fits.
    random_state : int, RandomState instance or None, default=None
        Seed of stochastic solvers and hidden layers.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (1, n_features) and (1,)
        A linear model; 0 for the columns of ``sensitive``.
    coefs_, intercepts_ : list of ndarray
        Layers of a network.
    model_, parameters_, score_scale_, score_shift_ : object, ndarray, float, float
        With ``model``: scores are ``scale * model_.forward(parameters_, X)[0] + shift``.
    train_disparity_, train_disparities_ : float, dict of str to float
        Largest disparity on the training rows, and that of each constraint.
    changes_ : dict of str to Change
        By "mean prediction", what the limits change on the training rows: ``before`` is the mean by
        the same model without the limits, ``after`` the mean with them, ``by_group`` has both for
        each group, and ``rows_up`` and ``rows_down`` are the numbers of rows that are predicted
        higher and lower. Empty with ``enforce="surrogate"``, and if a callback stopped the fit.
    disparity_by_group_ : dict of str to float
        Distance of each group from the overall mean prediction or loss.
    multipliers_, constraint_names_ : ndarray of shape (n_constraints,)
        What the objective loses per unit of a tighter limit; what each compares.
    objective_ : float
        Mean loss plus penalty.
    status_ : str
        "converged", "max_iter", "stopped" or "infeasible"; with ``confidence`` "certified" or
        "no_solution".
    kkt_residual_, temperature_ : float
        Residual of the last problem; 1.
    n_iter_, n_solves_ : int
        Steps of the solver, and number of problems.
    history_ : dict of ndarray
        Objective, violation and costs of each step.

    See Also
    --------
    skfair.classification.ConstrainedERMClassifier : The same for two classes.

    Notes
    -----
    "mean_score_parity" with a convex loss is a convex problem and is solved to optimality. Loss
    parity and excess losses are not convex, and solutions are stationary points: the best that
    nine starts lead to, at the cost of about one solve for squared errors of linear models.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.regression import ConstrainedERMRegressor
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 300)
    >>> X = rng.normal(size=(300, 2)) + (sex == "m")[:, None] * [1, 0]
    >>> y = 10 * X[:, 0] + rng.normal(size=300)
    >>> model = ConstrainedERMRegressor(max_disparity=2.0).fit(X, y, sensitive_features=sex)
    >>> means = [model.predict(X[sex == s]).mean() for s in ("f", "m")]
    >>> print(f"means of the groups: {means[0]:.1f} and {means[1]:.1f}")
    means of the groups: 4.0 and 6.0
    """

    def __init__(
        self,
        constraint: ConstraintChoice = "mean_score_parity",
        max_disparity: float = 0.05,
        *,
        enforce: Literal["strict", "surrogate"] = "strict",
        sensitive: SensitiveLike = None,
        confidence: float | Certificate | None = None,
        model: ModelChoice = "linear",
        loss: LossChoice = "squared_error",
        alpha: float | None = None,
        fit_intercept: bool = True,
        solver: solve.SolverChoice = "auto",
        max_iter: int | None = None,
        tol: float = 1e-6,
        random_state: Seed = None,
    ) -> None:
        self.constraint = constraint
        self.max_disparity = max_disparity
        self.enforce = enforce
        self.sensitive = sensitive
        self.confidence = confidence
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
        groups: ColumnLike | None = None,
    ) -> ConstrainedERMRegressor:
        """Fit the model under its constraints.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Real targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in the loss and in the constraints.
        """
        metadata: dict[str, Any] = {
            "sensitive_features": sensitive_features,
            "control_features": control_features,
            "sample_weight": sample_weight,
        }
        data = read_rows(self, X, y, groups=groups, y_numeric=True, **metadata, **ROW_CHECKS)
        self._keep(data.reading)
        scores = self.model, self.fit_intercept, self.alpha
        task = regression_task(data.y, data.sample_weight, self.loss, *scores)
        active = active_constraints(self.constraint, "regression", data, self.max_disparity)
        if active and self.confidence is not None:
            return report.store(self, certified_means(self, data, task, active, X, metadata))
        problem = bind(data, task, active, self.max_disparity)
        how = solve.Settings(self.solver, self.enforce, self.tol, self.max_iter, self.random_state)
        state = partial(report.state, self, {}, problem, task)
        with report_iterations(self, X, y, max_iter=None, attributes=state) as callback:
            solved = solve.solve(problem, how, callback, is_classifier=False)
        attributes = report.of_fit(data, task, problem, solved, how)
        return report.store(self, attributes)

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Predict the targets of rows.

        Returns
        -------
        predictions : ndarray of shape (n_samples,)
            The predictions.
        """
        check_is_fitted(self)
        rows = read_features(self, X, **ROW_CHECKS)
        scores = report.raw_scores(vars(self), rows, self._model_positions)
        return scores.astype(rows.dtype, copy=False)
