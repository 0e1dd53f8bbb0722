"""The largest values of ranges, against looking at each range."""

import numpy as np
import pytest

from skfair.enforcement.thresholds.cuts import RangeMaxima


@pytest.mark.parametrize("size", [1, 2, 3, 8, 33])
def test_every_range_is_looked_up(size):
    values = np.random.default_rng(size).integers(0, 5, size).astype(float)  # with ties
    first, last = np.meshgrid(np.arange(size + 1), np.arange(size + 1), indexing="ij")
    place, best = RangeMaxima(values)(first, last)
    for i, j, found, value in zip(
        *(one.ravel() for one in (first, last, place, best)), strict=True
    ):
        inside = values[i:j]
        if inside.size:
            assert value == inside.max()
            assert found == i + int(inside.argmax())
        else:
            assert (found, value) == (0, -np.inf)
