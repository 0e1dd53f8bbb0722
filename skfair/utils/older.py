"""Replacements for parts of scikit-learn that only newer versions have.

Callbacks exist since 1.9. In earlier versions estimators have no ``set_callbacks``, and fits report
nothing. Other files import the names from here and not from scikit-learn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import compute_class_weight

from skfair._typing import FloatArray

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class _NoContext:
        """The callback context of a fit without callbacks."""

        def call_on_fit_task_begin(self, **kwargs: Any) -> None:
            """Do nothing."""

        def call_on_fit_task_end(self, **kwargs: Any) -> bool:
            """Do nothing, and do not stop the fit."""
            return False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """The replacement of scikit-learn's mixin, without callbacks."""

        def _init_callback_context(self, **kwargs: Any) -> _NoContext:
            return _NoContext()

    def with_callbacks(method: Any) -> Any:
        return method


try:
    from sklearn.utils._sparse import _align_api_if_sparse as align_sparse
except ImportError:  # scikit-learn < 1.9 always returns sparse matrices

    def align_sparse(X: Any) -> Any:
        return X


def weights_of_classes(
    class_weight: Any, classes: NDArray[Any], y: NDArray[Any], sample_weight: FloatArray | None
) -> FloatArray:
    """Return the weight of each class; "balanced" counts rows by their weights."""
    if sample_weight is None or not isinstance(class_weight, str):
        return np.asarray(compute_class_weight(class_weight, classes=classes, y=y))
    # scikit-learn < 1.7 has no sample_weight here.
    mass = np.array([sample_weight[y == label].sum() for label in classes])
    return np.asarray(mass.sum() / (classes.size * mass))


__all__ = ["CallbackSupportMixin", "align_sparse", "weights_of_classes", "with_callbacks"]
