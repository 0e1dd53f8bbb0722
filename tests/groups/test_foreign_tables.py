"""Tables of pyarrow and polars: read like any other, or refused in one line."""

import numpy as np
import pytest
from sklearn.base import clone

from skfair.classification import ConstrainedERMClassifier
from skfair.groups.encoding import encode_groups
from skfair.metrics import demographic_parity_difference
from tests.seeds import generator
from tests.test_wrappers import MODELS, NEED_GROUPS

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


@pytest.mark.parametrize("name", ["erm", "decisions", "numbers aware", "k-means", "weights"])
def test_tables_and_columns_of_pyarrow_are_read_as_those_of_pandas(name):
    pyarrow, pandas = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    rng = generator(0)
    rows = pandas.DataFrame({"x": rng.normal(size=80), "z": rng.normal(size=80), "sex": SEX * 20})
    y = pandas.Series(np.where(rows["x"] + rows["z"] > 0, "yes", "no"))
    y = rows["x"] + rows["z"] if name == "numbers aware" else y
    ways = [rows["sex"], pyarrow.array(SEX * 20), pyarrow.chunked_array([SEX * 15, SEX * 5])]
    ways += [pyarrow.array(SEX * 20).dictionary_encode(), pyarrow.table({"sex": SEX * 20})]
    found = []
    for number, sex in enumerate(ways):
        X = rows if number == 0 else pyarrow.table(rows)
        target = y if number == 0 else pyarrow.chunked_array([y[:30], y[30:]])
        model = clone(MODELS[name]).set_params(sensitive="sex").fit(X, target)
        assert model.feature_names_in_.tolist() == ["x", "z", "sex"]
        found.append(np.asarray(model.predict(X)))
        features = rows[["x", "z"]] if number == 0 else pyarrow.table(rows[["x", "z"]])
        apart = clone(MODELS[name]).fit(features, target, sensitive_features=sex)
        # With a group k-means keeps the balance of new rows; without one they go to the nearest.
        given = {"sensitive_features": sex} if name in (*NEED_GROUPS, "k-means") else {}
        found.append(np.asarray(apart.predict(features, **given)))
    assert all(np.array_equal(other, found[0]) for other in found)
    selected = pyarrow.array(found[0] == found[0][0])
    gaps = {
        demographic_parity_difference(selected, selected, sensitive_features=sex) for sex in ways
    }
    assert len(gaps) == 1


def test_a_lazy_frame_is_refused_with_what_to_do():
    polars = pytest.importorskip("polars")
    lazy, y = polars.LazyFrame({"sex": SEX}), [1, 0, 1, 1]
    with pytest.raises(TypeError, match=r"polars LazyFrame.*Pass sensitive_features.collect\(\)"):
        encode_groups(lazy)
    with pytest.raises(TypeError, match=r"X is a polars LazyFrame.*Pass X.collect\(\)"):
        ConstrainedERMClassifier().fit(lazy, y, sensitive_features=SEX)
    assert demographic_parity_difference(None, y, sensitive_features=lazy.collect()) == 0.5
