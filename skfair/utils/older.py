"""Stand-ins for parts of scikit-learn that only newer versions have.

Callbacks came with 1.9. Before it estimators have no ``set_callbacks``, and fits report nothing.
The names here are imported in the place of scikit-learn's.
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
        """The context of a fit that nobody follows."""

        def call_on_fit_task_begin(self, **kwargs: Any) -> None:
            """Tell nobody that a task begins."""

        def call_on_fit_task_end(self, **kwargs: Any) -> bool:
            """Tell nobody that a task ended, and do not stop."""
            return False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Has no callbacks to support."""

        def _init_callback_context(self, **kwargs: Any) -> _NoContext:
            return _NoContext()

    def with_callbacks(method: Any) -> Any:
        return method


try:
    from sklearn.utils._sparse import _align_api_if_sparse as align_sparse
except ImportError:  # scikit-learn < 1.9 returns sparse matrices and knows no other setting

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
