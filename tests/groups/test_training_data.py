"""Rows in memory and in blocks behind one type: the same groups, weights and strata."""

import numpy as np
import pytest

from skfair.classification import ConstrainedERMClassifier
from skfair.regression import ConstrainedERMRegressor

da = pytest.importorskip("dask.array")

N = 200
rng = np.random.default_rng(0)
X, Y, SEX = rng.normal(size=(N, 2)), rng.choice([0, 1], N), rng.choice(["f", "m"], N)
FACULTY, W = rng.choice(["art", "law", "med"], N), rng.integers(1, 5, N).astype(float)


def read(*, lazily, weights=W):
    columns = [X, Y, SEX, FACULTY, weights]
    if lazily:
        columns = [None if one is None else da.from_array(one, chunks=70) for one in columns]
    X_, y, sex, faculty, w = columns
    return ConstrainedERMClassifier()._read(
        X_, y, sensitive_features=sex, control_features=faculty, sample_weight=w
    )


@pytest.mark.parametrize("weights", [W, None])
def test_sums_over_kinds_are_sums_over_rows(weights):
    here, there = (read(lazily=one, weights=weights) for one in (False, True))
    assert here.n_samples == there.n_samples == N
    assert here.largest_weight == there.largest_weight == (4.0 if weights is not None else 1.0)
    assert here.weight_range == there.weight_range
    assert here.groups.names == there.groups.names
    assert here.strata.names == there.strata.names == ("art", "law", "med")
    for group in range(2):
        for stratum in range(3):
            for label in (0, 1):
                sums = []
                for data in (here, there):
                    w = np.ones(N) if data.sample_weight is None else data.sample_weight
                    inside = (data.groups.codes[0] == group) & (data.strata.codes == stratum)
                    sums.append(w[inside & (data.y == label)].sum())
                assert sums[0] == sums[1] > 0


def test_who_does_not_read_blocks_refuses_them():
    lazy = [da.from_array(one, chunks=70) for one in (X, X[:, 0], SEX)]
    with pytest.raises(TypeError, match="does not read Dask collections here"):
        ConstrainedERMRegressor().fit(lazy[0], lazy[1], sensitive_features=lazy[2])
