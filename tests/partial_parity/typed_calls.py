"""Calls of models within intervals as users write them (see ``tests/typed_calls.py``)."""

from typing import Any, assert_type

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfair.classification import PartialParityCalibrator, PartialParityClassifier
from skfair.metrics import partial_statistical_parity_gap


def options_and_results(X: NDArray[np.float64], y: "pd.Series[Any]", sex: "pd.Series[Any]") -> None:
    """What is not among the choices of an option is refused, and probabilities have a type."""
    parts = [(0, 0.1), (0.5, 1)]
    partial_statistical_parity_gap(None, [0.1, 0.2], interval=parts, sensitive_features=y)
    PartialParityCalibrator(scale="rank")  # type: ignore[arg-type]
    PartialParityClassifier(enforce="never")  # type: ignore[arg-type]
    calibrated = PartialParityCalibrator(interval=(0, 0.3)).fit(X, y, sensitive_features=sex)
    assert_type(calibrated.predict_proba(X, sensitive_features=sex), NDArray[Any])
