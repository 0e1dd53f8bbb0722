"""Steps before and inside fair decisions: trees, boosters, imputers, tables of texts and gaps."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skfair.classification import FairDecisionClassifier
from skfair.export import to_onnx
from tests.export.graphs import outputs
from tests.seeds import generator

pytest.importorskip("skl2onnx", reason="skl2onnx is not installed (extra onnx)")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

N = 400
HGB = HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=3)


def booster(name):
    """Return a small booster of a library, or skip the test."""
    if name == "scikit-learn":
        return clone(HGB)
    if name == "catboost":
        library = pytest.importorskip("catboost", reason="catboost is not installed")
        options = {"iterations": 20, "depth": 3, "verbose": False, "thread_count": 1}
        return library.CatBoostClassifier(allow_writing_files=False, **options)
    pytest.importorskip("onnxmltools", reason="onnxmltools is not installed")
    library = pytest.importorskip(name, reason=f"{name} is not installed")
    if name == "lightgbm":
        return library.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1)
    return library.XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1)


BOOSTERS = ["scikit-learn", "lightgbm", "xgboost", "catboost"]


def people(key=0):
    rng = generator(key)
    sex = rng.choice(["f", "m"], N)
    X = rng.normal(size=(N, 4))
    X[:, 0] += sex == "m"
    return X, (X[:, 0] + rng.normal(size=N) > 0.5).astype(int), sex


def table(dtype=np.float64, text="str"):
    """Return numbers, whole numbers, truth values and texts, with gaps; outcomes and groups."""
    X, y, sex = people()
    rng = generator("table")
    frame = pd.DataFrame(X[:, :2].astype(dtype), columns=["income", "debt"])
    frame.loc[rng.random(N) < 0.1, "debt"] = np.nan
    frame["years"] = rng.integers(0, 30, N)
    frame["married"] = rng.random(N) < 0.5
    frame["job"] = pd.Series(rng.choice(["x", "y", "z"], N), dtype=text)
    frame.loc[rng.random(N) < 0.1, "job"] = np.nan
    frame["town"] = pd.Series(rng.choice(["a", "b"], N), dtype=text)
    return frame, y, sex


def columns_of(frame):
    return {name: frame[[name]].to_numpy() for name in frame}


def assert_same(model, graph, X, rows, *, atol=1e-5, **given):
    found, scale = outputs(graph, rows), max(1.0, np.abs(model.offsets_).max())
    expected = model.decision_function(X, **given)
    lead = found["margins"][:, 1] - found["margins"][:, 0]
    np.testing.assert_allclose(lead, expected, atol=atol * scale)
    is_sure = np.abs(expected) > atol * scale
    assert is_sure.mean() > 0.9
    assert np.array_equal(found["label"][is_sure], model.predict(X, **given)[is_sure])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_trees_of_scikit_learn_have_the_same_leaves(n_classes, dtype):
    """Rows at the thresholds, in double precision, and missing values take the same way."""
    X, _, sex = people()
    X[::9, 1], X[::7, 0] = np.nan, np.nan
    X = X.astype(dtype)
    y = np.digitize(np.nan_to_num(X).sum(axis=1), [-1, 1][: n_classes - 1])
    model = FairDecisionClassifier(clone(HGB), max_disparity=1.0, cv=2)
    model.fit(X, y, sensitive_features=sex)
    nodes = [
        tree.nodes for inner in model.estimators_ for trees in inner._predictors for tree in trees
    ]
    inner = np.concatenate([own[own["is_leaf"] == 0] for own in nodes])
    assert set(np.unique(inner["missing_go_to_left"])) == {0, 1}
    at = np.tile(X[:1], (len(inner), 1)).astype(np.float64)
    at[np.arange(len(inner)), inner["feature_idx"]] = inner["num_threshold"]
    beyond = np.nextafter(at, np.inf)
    for rows in (X, at.astype(dtype), beyond.astype(dtype)):
        found = outputs(to_onnx(model, X), {"X": rows})["margins"]
        # a wrong leaf differs by far more than sums in single precision do
        np.testing.assert_allclose(found, model._margins(rows, None, None), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("group_aware", [False, True])
@pytest.mark.parametrize("name", BOOSTERS)
def test_boosters_are_converted_at_the_first_call(name, group_aware, dtype):
    X, y, sex = people()
    X = (np.round(4 * X) / 4).astype(dtype)
    model = FairDecisionClassifier(booster(name), max_disparity=0.02, group_aware=group_aware, cv=2)
    model.fit(X, y, sensitive_features=sex)
    assert model.offsets_.any()
    given = {"sensitive_features": sex} if group_aware else {}
    rows = {"X": X} | ({"sensitive_feature": sex[:, None]} if group_aware else {})
    for target_opset in (None, 18):
        graph = to_onnx(model, X, target_opset=target_opset, **given)
        assert_same(model, graph, X, rows, **given)


@pytest.mark.parametrize(
    "trees",
    [
        "xgboost",
        DecisionTreeClassifier(max_depth=4),
        RandomForestClassifier(8, max_depth=4),
        GradientBoostingClassifier(n_estimators=8),
    ],
)
def test_trees_of_single_precision_read_rows_in_double_precision(trees):
    X, y, sex = people()
    trees = booster(trees) if isinstance(trees, str) else trees
    inner = make_pipeline(StandardScaler(), trees)
    model = FairDecisionClassifier(inner, max_disparity=0.02, cv=2)
    model.fit(X, y, sensitive_features=sex)
    assert model.offsets_.any()
    assert_same(model, to_onnx(model, X), X, {"X": X})


@pytest.mark.parametrize("group_aware", [False, True])
@pytest.mark.parametrize(("strategy", "text"), [("constant", "str"), ("most_frequent", "object")])
@pytest.mark.parametrize("name", ["logistic regression", *BOOSTERS])
def test_a_table_with_texts_and_gaps_is_converted_at_the_first_call(
    name, strategy, text, group_aware
):
    frame, y, sex = table(text=text)
    dense = {"sparse_output": False} if name == "scikit-learn" else {}
    of_texts = make_pipeline(
        SimpleImputer(strategy=strategy, fill_value="missing" if strategy == "constant" else None),
        OneHotEncoder(handle_unknown="ignore", **dense),
    )
    steps = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["income", "debt", "years"]),
        (of_texts, ["job", "town"]),
        ("passthrough", ["married"]),
    )
    last = LogisticRegression() if name == "logistic regression" else booster(name)
    model = FairDecisionClassifier(
        make_pipeline(steps, last), max_disparity=0.02, group_aware=group_aware, cv=2
    )
    model.fit(frame, y, sensitive_features=sex)
    assert model.offsets_.any()
    given = {"sensitive_features": sex} if group_aware else {}
    rows = columns_of(frame) | ({"sensitive_feature": sex[:, None]} if group_aware else {})
    assert_same(model, to_onnx(model, frame, **given), frame, rows, **given)


@pytest.mark.parametrize("is_outside", [False, True])
def test_zeros_of_sparse_rows_are_missing_for_xgboost(is_outside):
    X, y, sex = people()
    frame = pd.DataFrame(
        {"a": np.round(2 * X[:, 0]).clip(-3, 3).astype(int).astype(str), "b": X[:, 1]}
    )
    frame["b"] = frame["b"].clip(lower=0)
    steps = make_column_transformer((OneHotEncoder(), ["a"]), remainder="passthrough")
    fair = FairDecisionClassifier(booster("xgboost"), max_disparity=0.1, cv=2)
    if is_outside:
        model = make_pipeline(steps, fair)
        model.fit(frame, y, fairdecisionclassifier__sensitive_features=sex)
        expected = fair.decision_function(steps.transform(frame))
    else:
        inner = make_pipeline(make_pipeline(steps), make_pipeline(fair.estimator))
        model = fair.set_params(estimator=inner)
        expected = model.fit(frame, y, sensitive_features=sex).decision_function(frame)
    assert fair.offsets_.any()
    found = outputs(to_onnx(model, frame), columns_of(frame))["margins"]
    atol = 1e-5 * max(1.0, np.abs(fair.offsets_).max())
    np.testing.assert_allclose(found[:, 1] - found[:, 0], expected, atol=atol)


@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "imputer",
    [
        SimpleImputer(),
        SimpleImputer(strategy="median"),
        SimpleImputer(strategy="constant", fill_value=-7.5),
        SimpleImputer(missing_values=-999.0),
        SimpleImputer(keep_empty_features=True),
        SimpleImputer(add_indicator=True),
    ],
)
def test_imputers_of_numbers(imputer, dtype):
    X, y, sex = people()
    X = X.astype(dtype)
    X[::3, 1] = X[1::4, 2] = missing = imputer.missing_values
    X[:, 3] = missing
    model = FairDecisionClassifier(make_pipeline(imputer, LogisticRegression()), max_disparity=0.02)
    model.fit(X, y, sensitive_features=sex)
    assert_same(model, to_onnx(model, X), X, {"X": X}, atol=1e-5 if dtype == np.float32 else 1e-9)


def test_missing_texts_without_an_imputer_are_a_category():
    frame, y, sex = table()
    steps = make_column_transformer((OneHotEncoder(), ["job", "town"]), remainder="passthrough")
    model = FairDecisionClassifier(make_pipeline(steps, clone(HGB)), max_disparity=0.02, cv=2)
    model.set_params(estimator__columntransformer__sparse_threshold=0)
    model.fit(frame, y, sensitive_features=sex)
    assert_same(model, to_onnx(model, frame), frame, columns_of(frame))


def test_categories_and_types_of_pandas_with_gaps_are_inputs():
    frame, y, sex = table()
    frame["job"] = frame["job"].fillna("none").astype("category")
    frame["years"] = frame["years"].astype("Int64").mask(frame["married"])
    steps = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["job", "town"]),
        (SimpleImputer(), ["income", "debt", "years"]),
    )
    model = FairDecisionClassifier(make_pipeline(steps, LogisticRegression()), max_disparity=0.02)
    model.fit(frame, y, sensitive_features=sex)
    rows = columns_of(frame)
    rows["years"] = frame[["years"]].to_numpy(np.float64, na_value=np.nan)
    assert_same(model, to_onnx(model, frame), frame, rows)


@pytest.mark.parametrize("kind", ["frame", "array", "array with groups"])
def test_rows_of_texts_only_need_no_transformer_of_columns(kind):
    frame, y, sex = table(text="object")
    texts = frame[["job", "town"]].fillna("none").assign(sex=sex)
    texts["town"] = np.array(list("abcd"), dtype=object)[np.digitize(frame["income"], [-1, 0, 1])]
    inner = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(), LogisticRegression()
    )
    model = FairDecisionClassifier(inner, max_disparity=0.02, cv=2)
    X = texts[["job", "town"]] if kind == "frame" else texts[["job", "town"]].to_numpy(object)
    given, rows = {"sensitive_features": sex}, {"X": X}
    if kind == "array with groups":
        X, given = texts[["sex", "job", "town"]].to_numpy(object), {}
        rows, model = {"X": X}, model.set_params(sensitive=0)
    if kind == "frame":
        rows = columns_of(X)
    model.fit(X, y, **given)
    assert model.offsets_.any()
    assert_same(model, to_onnx(model, X), X, rows)
