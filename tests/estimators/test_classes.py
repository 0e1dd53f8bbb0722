"""Two classes, read without sorting where labels are integers: the same as by sorting."""

import numpy as np
import pytest

from skfair.estimators.classes import read_classes


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int64, np.uint8, np.float64, "U3"])
def test_classes_are_the_sorted_labels(dtype):
    y = np.random.default_rng(0).integers(0, 2, 50).astype(dtype)
    classes = read_classes(y)
    assert classes.dtype == y.dtype
    assert classes.tolist() == np.unique(y).tolist()


@pytest.mark.parametrize("y", [[1, 1, 1], [0, 1, 2], [-3, 5, 0], [True, True]])
def test_other_numbers_of_classes_are_refused(y):
    with pytest.raises(ValueError, match="class"):
        read_classes(np.array(y))
