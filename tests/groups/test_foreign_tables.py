"""Tables of pyarrow, polars and narwhals: read like any other, or refused in one line."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from skfair.classification import ConstrainedERMClassifier, FairDecisionClassifier
from skfair.exceptions import RepeatedRowsWarning
from skfair.groups.encoding import encode_groups
from skfair.metrics import demographic_parity_difference
from skfair.preprocessing import Reweighing
from skfair.regression import FairDecisionRegressor
from tests.families import by_families
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


def in_library(table, library):
    """The same table of numbers in another library."""
    if library == "pandas":
        return table
    pytest.importorskip(library)
    if library == "pyarrow":
        return pytest.importorskip("pyarrow").Table.from_pandas(table, preserve_index=False)
    frame = pytest.importorskip("polars").DataFrame(
        {name: table[name].to_numpy() for name in table}
    )
    return frame if library == "polars" else pytest.importorskip("narwhals").from_native(frame)


WARNED = {
    "decisions": FairDecisionClassifier(max_disparity=0.5),
    "numbers": FairDecisionRegressor(LinearRegression(), max_disparity=5.0),
    "constrained": ConstrainedERMClassifier(max_disparity=0.5),
    "weights": Reweighing(),
    **by_families("BLIND"),
    **by_families("AWARE"),
}


@pytest.mark.parametrize("library", ["polars", "pyarrow", "narwhals"])
@pytest.mark.parametrize("name", WARNED)
def test_columns_are_warned_of_in_tables_of_all_libraries(name, library, recwarn):
    rng = generator(0)
    sex = rng.choice(["f", "m"], 400)
    rows = pd.DataFrame({"x": rng.normal(size=400), "z": rng.integers(0, 3, 400)})
    y = (rows["x"] + rng.logistic(size=400) > 0).astype(int).to_numpy()
    rows = rows.assign(leak=y, title=np.where(sex == "f", 2, 0))
    said = {}
    for own in ("pandas", library):
        clone(WARNED[name]).fit(in_library(rows, own), y, sensitive_features=sex)
        said[own] = [str(w.message) for w in recwarn if "tell" in str(w.message)]
        recwarn.clear()
    assert said[library] == said["pandas"]
    assert any("leak of X tells the target" in text for text in said[library])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "narwhals"])
def test_texts_that_tell_the_target_or_the_group_are_named_in_all_libraries(library, recwarn):
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = generator(0)
    sex = rng.choice(["f", "m"], 400)
    rows = pd.DataFrame({"x": rng.normal(size=400)})
    y = np.where(rows["x"] + rng.logistic(size=400) > 0, "yes", "no")
    rows = rows.assign(leak=np.where(y == "no", "a", "b"), title=np.where(sex == "f", "Mrs", "Mr"))
    encoded = make_column_transformer((OneHotEncoder(), ["leak", "title"]), remainder="passthrough")
    model = FairDecisionClassifier(
        make_pipeline(encoded, LogisticRegression()), max_disparity=0.5, pos_label="yes"
    )
    native = in_library(rows, library)
    model.fit(native, y, sensitive_features={"sex": sex})
    texts = [str(w.message) for w in recwarn]
    assert any("leak of X tells the target" in text for text in texts)
    assert any("title tells sex" in text for text in texts)
    # Predictions read the same tables.
    assert np.array_equal(model.predict(native), model.predict(rows))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "narwhals"])
@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize("model", [FairDecisionClassifier, ConstrainedERMClassifier])
def test_people_who_repeat_are_warned_of_in_all_libraries(model, is_named, library):
    rng = generator(0)
    person = np.repeat(np.arange(150), 8)
    x, sex = rng.normal(size=150)[person], rng.choice(["f", "m"], 150)[person]
    rows = pd.DataFrame({"x": x + rng.normal(size=1200), "place": rng.permutation(150)[person]})
    rows = rows.rename(columns={"place": "patient_id"}) if is_named else rows
    y = (x > np.median(x)).astype(int)
    with pytest.warns(RepeatedRowsWarning, match="has 150 values in 1,200 rows"):
        model(max_disparity=0.9, certificate=0.9).fit(
            in_library(rows, library), y, sensitive_features=sex
        )


@pytest.mark.parametrize("library", ["polars", "narwhals"])
def test_decisions_are_the_same_whatever_library_holds_the_rows(library):
    rng = generator(0)
    rows = pd.DataFrame({"x": rng.normal(size=300), "z": rng.normal(size=300)})
    rows["sex"] = rng.integers(0, 2, 300)
    y = (rows["x"] + rows["sex"] + rng.logistic(size=300) > 0).astype(int).to_numpy()
    for aware in (False, True):
        model = FairDecisionClassifier(
            max_disparity=0.3, sensitive="sex", group_aware=aware, random_state=0
        )
        found = []
        for own in ("pandas", library):
            native = in_library(rows, own)
            found.append(clone(model).fit(native, y).predict(native))
        assert np.array_equal(*found)


class Labelled:
    """An array that follows the protocol of Dask and is no collection, as those of xarray."""

    def __init__(self, values):
        self.values = np.asarray(values)
        self.shape, self.dtype, self.ndim = self.values.shape, self.values.dtype, self.values.ndim

    def __array__(self, *args, **kwargs):
        return np.array(self.values, *args, **kwargs)

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return iter(self.values)

    def __dask_graph__(self):
        return None


def test_an_array_that_could_be_a_dask_collection_and_is_none_is_an_array():
    pytest.importorskip("dask")
    rng = generator(0)
    X, sex = rng.normal(size=(200, 2)), rng.choice(["f", "m"], 200)
    y = (X[:, 0] + rng.logistic(size=200) > 0).astype(int)
    plain = demographic_parity_difference(None, y, sensitive_features=sex)
    assert demographic_parity_difference(None, Labelled(y), sensitive_features=sex) == plain
    assert demographic_parity_difference(None, y, sensitive_features=Labelled(sex)) == plain
    model = ConstrainedERMClassifier(max_disparity=0.5)
    expected = model.fit(X, y, sensitive_features=sex).coef_
    found = model.fit(Labelled(X), Labelled(y), sensitive_features=Labelled(sex)).coef_
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("library", ["polars", "duckdb"])
def test_lazy_tables_are_refused_where_rows_are_read(library):
    rows = pd.DataFrame({"sex": ["f", "m"] * 20, "y": [0, 1, 1, 0] * 10})
    if library == "polars":
        lazy = pytest.importorskip("polars").from_pandas(rows).lazy()
    else:
        duckdb = pytest.importorskip("duckdb")
        lazy = duckdb.from_df(rows)
    with pytest.raises(TypeError, match=rf"is a {library} \w+, which has no rows yet.*data=table"):
        demographic_parity_difference(None, rows["y"], sensitive_features=lazy)
    found = demographic_parity_difference(data=lazy, y_pred="y", sensitive_features="sex")
    assert found == demographic_parity_difference(None, rows["y"], sensitive_features=rows["sex"])
