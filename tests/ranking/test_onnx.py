"""Graphs of rankers read rows without the query."""

import numpy as np
import pytest

from skfair.export import to_onnx
from skfair.ranking import FairRanker
from tests.export.test_onnx import people, run


def test_rows_of_a_ranker_come_without_the_query_column():
    X, y, sex = people()
    rows = np.column_stack([np.arange(300) // 50, X])
    ranker = FairRanker(1.0, query_column=0, random_state=0)
    ranker.fit(rows, y.astype(int), sensitive_features=sex)
    found = run(to_onnx(ranker, X), X)
    np.testing.assert_allclose(found.popitem()[1].ravel(), ranker.predict(rows))
    with pytest.raises(ValueError, match=r"X has 5 columns.*reads 4.*without the query column"):
        to_onnx(ranker, rows)
