"""Score models of users: the interface that they implement, and its adapter to score models.

A user's model (:class:`ScoreFunction`) computes scores from parameters and rows, and a gradient
from the slopes of the scores. It keeps no rows. :class:`PlugInScore` makes a
:class:`~skfair.models.base.ScoreModel` of it: it holds the rows of a fit and passes them on.
:func:`plugged_scores` is for predictions.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray, Rows
from skfair.models.base import ScoreModel
from skfair.models.units import Units


class ScoreFunction(Protocol):
    """Interface of a score model that can be passed as ``model=`` to an estimator.

    A score model computes the scores of rows from a vector of parameters, and gradients by these
    parameters. Use :func:`check_score_model` to check a model of your own.

    Attributes
    ----------
    n_parameters : int
        Length of the parameter vector.

    See Also
    --------
    check_score_model : Checks a score model.
    TorchScore : Makes one of a PyTorch module.

    Examples
    --------
    Scores that are linear in the squares of the columns:

    >>> class Squares:
    ...     n_parameters = 3
    ...
    ...     def start(self, rng):
    ...         return np.zeros(3)
    ...
    ...     def forward(self, theta, X):
    ...         return X**2 @ theta, X  # X is the tape: all that pullback needs
    ...
    ...     def pullback(self, tape, slopes):
    ...         return slopes @ tape**2
    >>> from skfair.models import check_score_model
    >>> check_score_model(Squares(), np.random.default_rng(0).normal(size=(20, 3)))
    """

    @property
    def n_parameters(self) -> int:
        """Length of the parameter vector."""

    def start(self, rng: np.random.RandomState) -> FloatArray:
        """Return parameters to start from.

        Parameters
        ----------
        rng : RandomState
            Source of random numbers. The same state must give the same parameters.

        Returns
        -------
        theta : ndarray of shape (n_parameters,)
            The parameters, in a new array.
        """

    def forward(self, theta: FloatArray, X: Any) -> tuple[NDArray[Any], Any]:
        """Return the scores of rows, and a tape for :meth:`pullback`.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters,)
            The parameters.
        X : ndarray or CSR matrix of shape (n_rows, n_features)
            Some rows, in the form in which the estimator received them.

        Returns
        -------
        scores : ndarray of shape (n_rows,)
            The scores. Each score may depend only on its row and the parameters.
        tape : object
            Any object that :meth:`pullback` needs. It may be passed to :meth:`pullback` once,
            several times or never, and also after later forward passes.
        """

    def pullback(self, tape: Any, slopes: FloatArray) -> FloatArray:
        """Return the gradient of a function whose derivatives by the scores are ``slopes``.

        Parameters
        ----------
        tape : object
            The tape of a forward pass.
        slopes : ndarray of shape (n_rows,)
            Derivatives of the function with respect to the scores.

        Returns
        -------
        gradient : ndarray of shape (n_parameters,)
            Derivatives of the function with respect to the parameters.
        """


class PlugInScore(ScoreModel):
    """Scores of fixed rows by a user's model; the penalty is on all parameters."""

    def __init__(self, function: ScoreFunction, X: Rows) -> None:
        self.function, self.X = function, X
        self.n_samples, n_features = X.shape
        if not isinstance(getattr(function, "n_parameters", None), Integral):
            raise TypeError(
                f"The attribute n_parameters of model={function!r} must be the number of its "
                "parameters, as an int. Try skfair.models.check_score_model."
            )
        self.n_parameters = function.n_parameters
        # The type of the scores that the last forward pass returned.
        self._dtype = np.dtype(np.float64)
        # Columns are not standardised: the mean is 0 and the scale 1.
        self.units = Units(
            np.zeros(n_features), np.ones(n_features), np.zeros(n_features, np.bool_)
        )

    def use_units(self, units: Units) -> None:
        """Do nothing: a user's model sees columns as they are."""

    def start(self, rng: np.random.RandomState) -> FloatArray:
        """Return the model's own start."""
        theta = np.array(self.function.start(rng), dtype=np.float64)
        if theta.shape != (self.n_parameters,):
            raise ValueError(
                f"{type(self.function).__name__}.start returned parameters of shape {theta.shape}, "
                f"but n_parameters is {self.n_parameters}. Try skfair.models.check_score_model."
            )
        return theta

    def raw(self, theta: FloatArray) -> tuple[FloatArray, None]:
        """Return a copy of the parameters, and None because no intercept is known."""
        return theta.copy(), None

    def standardised(self, weights: Any, intercepts: Any) -> FloatArray:
        """Return a copy of the parameters; ``intercepts`` is not used."""
        return np.array(weights)

    def forward(self, theta: FloatArray, rows: IntArray | None = None) -> tuple[FloatArray, Any]:
        """Return the scores of all or some rows, and the model's tape."""
        X = self.X if rows is None else self.X[rows]
        scores, tape = self.function.forward(theta, X)
        scores = np.asarray(scores)
        if scores.shape != (X.shape[0],):
            raise ValueError(
                f"{type(self.function).__name__}.forward returned scores of shape {scores.shape} "
                f"for {X.shape[0]} rows. Try skfair.models.check_score_model."
            )
        self._dtype = scores.dtype
        return scores.astype(np.float64), tape

    def pullback(self, tape: Any, slopes: FloatArray) -> FloatArray:
        """Return the model's gradient."""
        return np.asarray(self.function.pullback(tape, slopes), dtype=np.float64)

    def penalty_parts(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return half the squared norm of all parameters, and its gradient."""
        return 0.5 * float(theta @ theta), theta

    def rounding(self, theta: FloatArray) -> float:
        """Return how far two computations of the same score may be apart.

        The precision is that of the scores in the last forward pass.
        """
        return 1e4 * float(np.finfo(self._dtype).eps)


def plugged_scores(function: ScoreFunction, theta: FloatArray, X: Rows) -> FloatArray:
    """Return the scores of rows by a user's model, checked and in double precision."""
    return PlugInScore(function, X).forward(theta)[0]
