"""Tables of pyarrow and polars: read like any other, or refused in one line."""

import numpy as np
import pytest

from skfair.classification import ConstrainedERMClassifier
from skfair.groups.encoding import encode_groups
from skfair.metrics import demographic_parity_difference

SEX, REGION = ["f", "m", "f", "m"], ["n", "n", "s", "s"]


def test_a_pyarrow_table_is_read_like_a_dict_of_its_columns():
    pyarrow = pytest.importorskip("pyarrow")
    columns = {"sex": SEX, "region": REGION}
    table = encode_groups(pyarrow.table(columns))
    plain = encode_groups(columns)
    assert table.names == plain.names
    assert np.array_equal(table.codes, plain.codes)
    found = demographic_parity_difference(
        None, [1, 0, 1, 1], sensitive_features=pyarrow.table({"sex": SEX})
    )
    assert found == 0.5


def test_a_pyarrow_table_is_refused_at_prediction_as_at_fit():
    pyarrow, pandas = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    rows = pandas.DataFrame({"x": rng.normal(size=80), "sex": SEX * 20})
    model = ConstrainedERMClassifier(sensitive="sex").fit(rows, rows["x"] > 0)
    for columns in (["x", "sex"], ["x"]):
        with pytest.raises(TypeError, match=r"X is a pyarrow Table.*Pass X.to_pandas\(\)"):
            model.predict(pyarrow.table(rows[columns]))


def test_columns_of_a_pyarrow_table_cannot_be_taken_by_name():
    pyarrow = pytest.importorskip("pyarrow")
    rows = pyarrow.table({"x": np.arange(4.0), "sex": SEX})
    model = ConstrainedERMClassifier(sensitive="sex")
    with pytest.raises(TypeError, match=r"X is a pyarrow Table.*Pass X.to_pandas\(\)"):
        model.fit(rows, [0, 1, 0, 1])


def test_a_lazy_frame_is_refused_with_what_to_do():
    polars = pytest.importorskip("polars")
    lazy = polars.LazyFrame({"sex": SEX})
    with pytest.raises(TypeError, match=r"polars LazyFrame.*Pass sensitive_features.collect\(\)"):
        encode_groups(lazy)
    with pytest.raises(TypeError, match=r"X is a polars LazyFrame.*Pass X.collect\(\)"):
        ConstrainedERMClassifier().fit(lazy, [0, 1, 0, 1], sensitive_features=SEX)
    assert (
        demographic_parity_difference(None, [1, 0, 1, 1], sensitive_features=lazy.collect()) == 0.5
    )
