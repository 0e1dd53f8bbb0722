"""The base of affinities: objects that weigh pairs of rows, for the parameter ``affinity=``.

``choice.py`` turns the argument of the user into the object. ``FairSpectralClustering.fit`` then
calls :meth:`Affinity.build`, which checks X and the weights around ``weigh``, the method that
subclasses write. A subclass may register a name that users can pass instead of the object.
Parameters of the estimator with the name of one of its fields, such as ``gamma``, then set this
field.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from skfair._typing import Rows
from skfair.cluster.spectral.affinities.checks import check_dense, check_sparse, is_symmetric
from skfair.cluster.spectral.weights import DenseWeights, SparseWeights, Weights
from skfair.utils.registry import Registry
from skfair.utils.signatures import ReadableSignature
from skfair.utils.text import settings_repr
from skfair.utils.warn import warn_user


@dataclass(frozen=True, repr=False)
class Affinity(ABC):
    """How rows of X become weights; subclasses are frozen dataclasses of their parameters.

    A field is annotated with the values that it takes, ``Annotated[float, Interval(...)]``.
    ``dtype`` is the precision of the weights and of their products.
    """

    __signature__ = ReadableSignature()
    # Whether X may be sparse.
    reads_sparse: ClassVar[bool] = True
    # Whether X is itself a matrix between rows, (n_samples, n_samples).
    is_pairwise: ClassVar[bool] = False
    # Whether new rows have weights to the rows of the fit. Then ``new_rows`` of the weights is set.
    weighs_new_rows: ClassVar[bool] = True

    _: KW_ONLY
    dtype: Literal["float32", "float64"] = "float32"

    def __repr__(self) -> str:
        return settings_repr(self)

    @abstractmethod
    def weigh(self, X: Rows, *, dtype: DTypeLike, rng: np.random.RandomState) -> Weights:
        """Return the weights between the rows of X in the given precision."""

    def build(self, X: Rows, *, rng: np.random.RandomState) -> Weights:
        """Return the weights; raise if this affinity does not read X."""
        if sparse.issparse(X) and not self.reads_sparse:
            raise TypeError(
                f"The affinity {type(self).__name__} needs a dense X, got a sparse matrix. Use "
                "X.toarray(), reduce it with TruncatedSVD, or choose affinity='nearest_neighbors'."
            )
        if not self.is_pairwise and is_symmetric(X):
            warn_user(
                f"X is a symmetric matrix of {X.shape[0]} x {X.shape[1]} and is read as rows with "
                "features. If it holds the weights between the rows, use affinity='precomputed'.",
                UserWarning,
            )
        weights = self.weigh(X, dtype=self.dtype, rng=rng)
        name = type(self).__name__
        if not isinstance(weights, Weights):
            raise TypeError(
                f"{name}.weigh must return weights, such as DenseWeights(matrix), got "
                f"{type(weights).__name__}."
            )
        if weights.n_samples != X.shape[0]:
            raise ValueError(
                f"{name}.weigh returned weights of {weights.n_samples} rows, but X has "
                f"{X.shape[0]}."
            )
        if np.isnan(weights.degrees).any():
            raise ValueError(
                f"The affinity {name} made weights of which some are NaN. If the numbers in X are "
                "huge, scale them; else look at what weigh returns."
            )
        if not type(self).__module__.startswith("skfair."):
            if isinstance(weights, DenseWeights):
                check_dense(weights.matrix, self.dtype)
            elif isinstance(weights, SparseWeights):
                check_sparse(weights.matrix, self.dtype)
        return weights


# A function of two rows that returns their weight.
KernelFunction: TypeAlias = Callable[..., float]
AFFINITIES: Registry[type[Affinity]] = Registry("affinity", "skfair.cluster.spectral.affinities")
