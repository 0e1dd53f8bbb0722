"""Calls of spectral clustering as users write them (see ``tests/typed_calls.py``)."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

from skfair.cluster import FairSpectralClustering


def options_and_results(X: NDArray[np.float64]) -> None:
    """What is not among the choices of an option is refused, and labels have a type."""
    FairSpectralClustering(assign_labels="discretize")  # type: ignore[arg-type]
    assert_type(FairSpectralClustering(2).fit_predict(X), NDArray[np.int32])
