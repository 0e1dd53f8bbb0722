"""A call passes few functions of the package before its arithmetic begins."""

import numpy as np
import pytest

from skfair.groups.encoding import GroupEncoding
from skfair.metrics import demographic_parity_difference
from tests.walks import functions_before


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return {name: rng.integers(0, 2, 200) for name in ("y_true", "y_pred", "sensitive_features")}


@pytest.mark.parametrize(("groups", "most"), [("codes", 20), ("names", 25)])
def test_a_metric_enters_few_functions_before_it_counts_its_rows(rows, groups, most):
    if groups == "names":
        rows = rows | {"sensitive_features": np.array(["f", "m"])[rows["sensitive_features"]]}
    entered = functions_before(
        GroupEncoding.cross_counts, lambda: demographic_parity_difference(**rows)
    )
    assert len(entered) <= most, entered


def test_a_walk_ends_at_the_arithmetic_or_says_that_it_never_got_there():
    def arithmetic():
        raise AssertionError("entered")

    assert functions_before(arithmetic, lambda: [GroupEncoding, arithmetic()]) == []
    with pytest.raises(AssertionError, match="never reached"):
        functions_before(arithmetic, lambda: None)
