"""Scores of a multilayer perceptron with rectified linear units, on dense or CSR rows.

Fits make an :class:`MLPScore`, and predictions call :func:`mlp_scores`.

All parameters are in one flat vector: for each layer its weights, (fan_in, fan_out), then its
intercepts. As for linear scores they belong to standardised columns (X - m) / s, but X is neither
copied nor centred. Instead, the first layer with weights W and intercepts b is *folded*: it gets
the weights W / s and the intercepts b - m'(W / s), which give the same on the columns as they are.
The unit s is the standard deviation, but for columns with only two values it is their range.
Deviations would magnify rare one-hot codes, whose few rows a network then learns by heart.

A pull-back is one backward pass whatever the number of constraints. Many rows are taken block by
block, and the forward pass of each block is run again on the way back. So memory does not grow with
the number of rows: the activations of all rows would need more than X itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray, Rows
from skfair.models.base import ScoreModel
from skfair.models.units import Units, compact_rows

# Number of rows in a block, whose activations fit into the cache.
BLOCK_ROWS = 1024


class _Network(NamedTuple):
    """Weights and intercepts of each layer."""

    coefs: list[NDArray[Any]]  # (fan_in, fan_out)
    intercepts: list[NDArray[Any]]  # (fan_out,)


class _Pass(NamedTuple):
    """The arrays of a forward pass that the backward pass needs."""

    batch: Any  # the rows, as :func:`_take` returns them
    hidden: list[NDArray[Any]]  # activations of each hidden layer
    is_on: list[NDArray[Any]]  # 1.0 where a unit is active: a product of floats is the fastest mask
    scores: NDArray[Any]


class MLPScore(ScoreModel):
    """Scores of fixed rows by a multilayer perceptron with one output.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.models import MLPScore
    >>> X = np.random.RandomState(0).normal(size=(50, 3))
    >>> model = MLPScore(X, (8, 4))
    >>> theta = model.start(np.random.RandomState(0))
    >>> scores, tape = model.forward(theta)
    >>> gradient = model.pullback(tape, np.full(50, 1 / 50))
    >>> scores.shape, gradient.shape
    ((50,), (73,))
    """

    def __init__(
        self,
        # (n_samples, n_features): the rows, float32 or float64; the network computes in
        # that precision
        X: Rows,
        # Number of units of each hidden layer; without any the scores are linear
        hidden_layer_sizes: Sequence[int],
        *,
        fit_intercept: bool = True,  # whether the layers have intercepts
        # (n_samples,): weights of the rows in means and deviations of the columns
        sample_weight: FloatArray | None = None,
    ) -> None:
        X = compact_rows(X)
        self.X = X
        self.hidden_layer_sizes = tuple(hidden_layer_sizes)
        self.fit_intercept = fit_intercept
        self.n_samples, self.n_features = X.shape
        self._shapes = list(pairwise((self.n_features, *self.hidden_layer_sizes, 1)))
        self.n_parameters = sum(
            (fan_in + int(fit_intercept)) * fan_out for fan_in, fan_out in self._shapes
        )
        # 1 for weights, 0 for intercepts, which have no penalty
        self._is_weight = np.zeros(self.n_parameters)
        for coef in self._layers(self._is_weight).coefs:
            coef[:] = 1
        self.units = self._own_units = Units.of_ranges(X, sample_weight, centered=fit_intercept)

    def start(self, rng: np.random.RandomState) -> FloatArray:
        """Return uniform weights and intercepts of variance 2 / (fan_in + fan_out).

        The draws are those of scikit-learn's multilayer perceptrons. Columns that are constant in
        the training rows get the weight 0, so that they have no effect on rows in which they vary.
        """
        theta = np.empty(self.n_parameters)
        network = self._layers(theta)
        for coef, intercept in zip(*network, strict=True):
            bound = np.sqrt(6 / sum(coef.shape))
            coef[:] = rng.uniform(-bound, bound, coef.shape)
            if self.fit_intercept:
                intercept[:] = rng.uniform(-bound, bound, intercept.shape)
        network.coefs[0][self._say_nothing()] = 0
        return theta

    def raw(self, theta: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return weights and intercepts of each layer for the columns as they are.

        They are new arrays, as scikit-learn's ``coefs_`` and ``intercepts_``.
        """
        coefs, intercepts = self._folded(theta, np.float64)
        return coefs, intercepts

    def standardised(
        self, coefs: Sequence[NDArray[Any]], intercepts: Sequence[NDArray[Any]]
    ) -> FloatArray:
        """Return the parameters of given weights and intercepts: the inverse of :meth:`raw`."""
        theta = np.empty(self.n_parameters)
        network = self._layers(theta)
        for parts, values_of_layers in zip(network, (coefs, intercepts), strict=True):
            for part, values in zip(parts, values_of_layers, strict=True):
                part[:] = values
        network.intercepts[0][:] += self.mean @ network.coefs[0]
        network.coefs[0][:] *= self.scale[:, None]
        return theta

    def forward(self, theta: FloatArray, rows: IntArray | None = None) -> tuple[FloatArray, Any]:
        """Return the scores of all or some rows, and the tape.

        The tape holds the folded network, the row numbers, and the pass of the block if there is
        only one. This takes O(n_rows n_parameters), and gathers the rows of one block at a time.
        """
        network = self._folded(theta, self.X.dtype)
        n = self.n_samples if rows is None else rows.size
        scores = np.empty(n)
        for part, chosen in _blocks(n, rows):
            done = _forward(network, _take(self.X, chosen))
            scores[part] = done.scores
        # If there are several blocks, :meth:`pullback` runs them again.
        return scores, (network, rows, done if 0 < n <= BLOCK_ROWS else None)

    def pullback(self, tape: Any, slopes: FloatArray) -> FloatArray:
        """Return the gradient of a function whose derivatives by the scores are ``slopes``.

        This costs as much as two forward passes, or three if there are several blocks.
        """
        gradient = np.zeros(self.n_parameters)
        sums = self._layers(gradient)
        network, rows, kept = tape
        n = self.n_samples if rows is None else rows.size
        for part, chosen in _blocks(n, rows):
            done = kept or _forward(network, _take(self.X, chosen))
            _backward(network, done, slopes[part], sums)
        # These are derivatives by the folded first layer. They become derivatives by the first
        # layer that solvers see.
        first = sums.coefs[0]
        first -= np.dot(self.mean[:, None], sums.intercepts[0][None])
        first /= self.scale[:, None]
        # The derivatives by the weights of constant columns are rounding errors. Adaptive steps
        # divide by the size of derivatives, so they would magnify them.
        first[self._say_nothing()] = 0
        return gradient

    def penalty_parts(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return half the squared norm of the weights of all layers, and its gradient.

        In contrast to linear scores, these are the weights of the standardised columns. The steps
        of a stochastic solver suit all columns equally only if the penalty does not depend on
        their scale.
        """
        gradient = theta * self._is_weight
        return 0.5 * float(gradient @ gradient), gradient

    def rounding(self, theta: FloatArray) -> float:
        """Return how far two computations of the same score may be apart.

        Errors of many terms cancel in part, so their squares are added. For each unit of a layer,
        ``size`` bounds the square of its value, and ``error`` bounds the square of its rounding
        error, divided by the precision of the data type.
        """
        (first, shift), *others = zip(*self._layers(theta), strict=True)
        centers = (self.mean / self.scale)[:, None] * first
        # Standardised inputs are taken to be at most 4, whose square is 16.
        size = 16 * np.square(first).sum(axis=0) + shift**2
        error = size + np.square(centers).sum(axis=0) + centers.sum(axis=0) ** 2
        for coef, intercept in others:
            size = size @ coef**2 + intercept**2
            error = error @ coef**2 + size
        return 32 * float(np.finfo(self.X.dtype).eps * (1 + np.sqrt(error[0])))

    def _folded(self, theta: FloatArray, dtype: Any) -> _Network:
        """Return a copy of the network with a folded first layer, for the columns as they are."""
        (first, *coefs), (shift, *intercepts) = self._layers(theta)
        first = first / self.scale[:, None]
        shift = shift - self.mean @ first
        return _Network(
            [part.astype(dtype) for part in (first, *coefs)],
            [part.astype(dtype) for part in (shift, *intercepts)],
        )

    def _say_nothing(self) -> NDArray[np.bool_]:
        """Return which columns are 0 in all rows, once they are standardised.

        If the units come from another model, a column may be constant in these rows but differ from
        the mean that is subtracted. It is then not 0.
        """
        own = self._own_units
        return np.asarray(own.is_empty & (own.mean == self.mean))

    def _layers(self, theta: FloatArray) -> _Network:
        """Return the layers as views of a flat vector, so that writing to them changes it.

        If the layers have no intercepts, these are new arrays of zeros and no views.
        """
        coefs, intercepts, start = [], [], 0
        for fan_in, fan_out in self._shapes:
            stop = start + fan_in * fan_out
            coefs.append(theta[start:stop].reshape(fan_in, fan_out))
            start = stop + fan_out * int(self.fit_intercept)
            intercepts.append(theta[stop:start] if self.fit_intercept else np.zeros(fan_out))
        return _Network(coefs, intercepts)


def mlp_scores(
    coefs: Sequence[NDArray[Any]],  # (fan_in, fan_out): weights of each layer
    intercepts: Sequence[NDArray[Any]],  # (fan_out,): intercepts of each layer
    # (n_samples, n_features): the rows, float32 or float64; the network computes in that
    # precision
    X: Rows,
) -> FloatArray:
    """Return the scores of a multilayer perceptron with one output, block by block.

    Returns
    -------
    scores : ndarray of shape (n_samples,)
        The scores, float64.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.models import mlp_scores
    >>> coefs = [np.array([[1.0, -1.0]]), np.array([[1.0], [1.0]])]
    >>> intercepts = [np.zeros(2), np.zeros(1)]
    >>> mlp_scores(coefs, intercepts, np.array([[-2.0], [3.0]]))  # the absolute value
    array([2., 3.])
    """
    network = _Network(
        [part.astype(X.dtype, copy=False) for part in coefs],
        [part.astype(X.dtype, copy=False) for part in intercepts],
    )
    scores = np.empty(X.shape[0])
    for part, chosen in _blocks(scores.size, None):
        scores[part] = _forward(network, _take(X, chosen)).scores
    return scores


def _blocks(n: int, rows: IntArray | None) -> Iterator[tuple[slice, slice | IntArray]]:
    """Yield the place of each block among the n scores, and its rows in X."""
    for start in range(0, n, BLOCK_ROWS):
        part = slice(start, min(start + BLOCK_ROWS, n))
        yield part, part if rows is None else rows[part]


def _take(X: Rows, chosen: slice | IntArray) -> Any:
    """Return some rows as a batch: a dense array, or the pair of a CSR matrix and row numbers."""
    if isinstance(chosen, slice):
        if isinstance(X, np.ndarray):
            return X[chosen]
        chosen = np.arange(chosen.start, chosen.stop)
    return X.take(chosen, axis=0) if isinstance(X, np.ndarray) else (X, chosen)


def _forward(network: _Network, batch: Any) -> _Pass:
    """Run the network on some rows."""
    hidden: list[NDArray[Any]] = []
    is_on: list[NDArray[Any]] = []
    for k, (coef, intercept) in enumerate(zip(*network, strict=True)):
        units = hidden[-1] @ coef if k else _times(batch, coef)
        units += intercept
        if k < len(network.coefs) - 1:
            is_on.append((units > 0).astype(units.dtype))
            units *= is_on[-1]
            hidden.append(units)
    return _Pass(batch, hidden, is_on, units[:, 0])


def _backward(network: _Network, done: _Pass, slopes: FloatArray, sums: _Network) -> None:
    """Add the derivatives by weights and intercepts to ``sums``; leave the pass as it is."""
    ones = np.ones(slopes.size, done.scores.dtype)  # a product adds up faster than sum(axis=0)
    units = slopes.astype(ones.dtype)[:, None]  # derivatives by the units of layer k
    for k in reversed(range(len(network.coefs))):
        sums.intercepts[k] += ones @ units
        if not k:
            sums.coefs[0] += _transposed_times(done.batch, units)
            return
        sums.coefs[k] += done.hidden[k - 1].T @ units
        units = np.dot(units, network.coefs[k].T)  # @ would not use BLAS for a single column
        units *= done.is_on[k - 1]


def _times(batch: Any, coef: NDArray[Any]) -> NDArray[Any]:
    """Return the rows times the weights of the first layer."""
    if isinstance(batch, np.ndarray):
        return np.asarray(batch @ coef)
    from skfair._kernels.mlp import rows_times

    X, rows = batch
    out = np.empty((rows.size, coef.shape[1]), coef.dtype)
    rows_times(X.data, X.indices, X.indptr, rows, coef, out)
    return out


def _transposed_times(batch: Any, units: NDArray[Any]) -> NDArray[Any]:
    """Return the transposed rows times the derivatives by the units of the first layer."""
    if isinstance(batch, np.ndarray):
        return np.asarray(batch.T @ units)
    from skfair._kernels.mlp import add_transposed_rows_times

    X, rows = batch
    out = np.zeros((X.shape[1], units.shape[1]), units.dtype)
    add_transposed_rows_times(X.data, X.indices, X.indptr, rows, units, out)
    return out
