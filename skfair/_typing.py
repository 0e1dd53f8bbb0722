"""Types that the annotations of the package share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
# Dense or CSR rows of data.
Rows = NDArray[Any] | sparse.csr_array
# Called by a solver after each iteration with its parameters; returning True stops it.
Callback = Callable[[Any], bool]
# What scikit-learn's ``check_random_state`` takes.
Seed = int | np.random.RandomState | None
