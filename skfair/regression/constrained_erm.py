"""A regressor whose limit on disparity is kept, on the training data, by its own predictions.

The same parts as :mod:`skfair.classification.constrained_erm`; targets are standardised inside, so
that bounds, tolerances and smoothing mean the same whatever their unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import indexable
from sklearn.utils.validation import check_is_fitted

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, MatrixLike, Seed
from skfair.base import fit_method
from skfair.constraints.base import Constraint
from skfair.estimators.certified.certificate import Certificate
from skfair.estimators.certified.judges import certified_means
from skfair.estimators.certified.refits import MOST_ROWS_IN_FOLDS
from skfair.estimators.erm import report
from skfair.estimators.erm.bind import (
    ConstraintChoice,
    LossChoice,
    SolverChoice,
    TargetScale,
    Task,
    active_constraints,
    choose_solver,
)
from skfair.estimators.erm.solve import ConstrainedERMBase
from skfair.estimators.inner_scores import as_rows
from skfair.groups.sensitive import SensitiveLike
from skfair.groups.training_data import TrainingData
from skfair.losses import Loss, make_loss
from skfair.models.choice import ModelChoice, read_model
from skfair.problems.erm.in_memory import LinearConstrainedERM
from skfair.read import ROW_CHECKS, read_features, read_rows
from skfair.utils.docs import documented
from skfair.utils.threads import one_blas_thread
from skfair.utils.validation import check_numbers


@documented
class ConstrainedERMRegressor(RegressorMixin, ConstrainedERMBase):
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

    _task = "regression"

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
        solver: SolverChoice = "auto",
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
        data = read_rows(self, X, y, y_numeric=True, **metadata, **ROW_CHECKS)
        self._forget()
        task = self._regression(data.y, data.sample_weight)
        constraints = active_constraints(self.constraint, self._task, data, self.max_disparity)
        if constraints and self.confidence is not None:
            return self._certify(data, task, constraints, X, metadata)
        problem = self._build(data, task, constraints)
        solver = choose_solver(self.solver, problem)
        solution = self._solve(problem, solver, task, X, y)
        return self._report(data, task, problem, solver, solution)

    def _certify(
        self,
        data: TrainingData,
        task: Task,
        constraints: Sequence[Constraint],
        X: MatrixLike,
        metadata: Mapping[str, Any],
    ) -> ConstrainedERMRegressor:
        """Store a model whose limits can be shown to hold for unseen data."""
        is_linear = read_model(self.model).is_linear
        certificate = self._certificate
        if certificate.by == "cross" and not is_linear:
            raise ValueError(
                "by='cross' returns the mean of linear models, so it needs model='linear'. Use "
                "Certificate(by='split')."
            )
        rows, _ = indexable(as_rows(X), data.y)
        is_cross = is_linear and certificate.by != "split"
        if certificate.by == "auto":
            is_cross &= data.y.size <= MOST_ROWS_IN_FOLDS
        problem = self._build(data, task, constraints) if is_cross else None
        whole, unit = cast(LinearConstrainedERM | None, problem), task.scale.spread
        self._store_certified(certified_means(self, data, constraints, rows, metadata, whole, unit))
        if problem is not None:
            decisions = problem.decide(cast(FloatArray, self._own_scores(data, task)))
            self.__dict__.update(report.disparities(problem, decisions, task.scale))
        return self

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Predict the targets of rows.

        Returns
        -------
        predictions : ndarray of shape (n_samples,)
            The predictions.
        """
        check_is_fitted(self)
        rows = read_features(self, X, **ROW_CHECKS)
        return self._raw_scores(rows).astype(rows.dtype, copy=False)

    def _regression(self, y: FloatArray, weights: FloatArray | None) -> Task:
        """Say what is learned: targets are standardised, as far as the loss allows it."""
        loss, y = make_loss(self.loss, self._task), check_numbers(y, "y")
        middle = float(np.average(y, weights=weights)) if self.fit_intercept else 0.0
        middle = middle if _is_of_residuals(loss, y, middle) else 0.0
        size = float(np.abs(y - middle).max()) or 1.0  # squares of huge targets would overflow
        spread = size * float(np.sqrt(np.average(((y - middle) / size) ** 2, weights=weights)))
        spread = spread if spread > 0 and loss.degree else 1.0
        if not 1e-150 < spread < 1e150:
            raise ValueError(
                f"y has a spread of {spread:.3g}, whose square is no floating-point number. Divide "
                "y by a power of ten."
            )
        scale = TargetScale(middle, spread, loss.degree)
        return Task(scale.inside(y), loss, weights, scale=scale)


def _is_of_residuals(loss: Loss, y: FloatArray, middle: float) -> bool:
    """Whether a loss stays what it is if scores and targets are moved alike, as Poisson's does not.

    Scores are tried that are other targets.
    """
    targets = np.quantile(y, np.linspace(0.0, 1.0, 5))
    scores = np.roll(targets, 2)
    with np.errstate(all="ignore"):
        unmoved, moved = (loss.parts(scores - by, targets - by).value for by in (0.0, middle))
        return bool(
            np.allclose(unmoved, moved, rtol=1e-3, atol=1e-6 * np.abs(unmoved).max(initial=0.0))
        )
