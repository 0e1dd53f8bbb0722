"""Calls of k-means as users write them (see ``tests/typed_calls.py``)."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from skfair.cluster import FairKMeans

Labels = NDArray[np.int32]
Numbers = NDArray[Any]


def options_and_rows(X: NDArray[np.float64], sex: list[str]) -> None:
    """What is not among the choices of an option is refused, and what is no table."""
    FairKMeans(n_init="all")  # type: ignore[arg-type]
    FairKMeans(solver=3)  # type: ignore[arg-type]
    FairKMeans().fit("table.csv")  # type: ignore[arg-type]


def results(X: NDArray[np.float64], sex: list[str]) -> None:
    """What a fit returns has a type."""
    clusters = FairKMeans(2, solver="my_own", min_balance=0.5).fit(X, sensitive_features=sex)
    assert_type(clusters, FairKMeans)
    assert_type(clusters.labels_, Labels)
    assert_type(clusters.predict(X, sensitive_features=sex), Labels)
    assert_type(clusters.fit_predict(X, sensitive_features=sex), Labels)
    assert_type(clusters.transform(X), Numbers)
    assert_type(clusters.fit_transform(X), Numbers)
