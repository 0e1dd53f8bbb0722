import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone, is_clusterer
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    BaggingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skfair import Sensitive
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.export import to_onnx
from skfair.regression import ConstrainedERMRegressor
from tests.families import by_families
from tests.seeds import generator

# Limits on small samples are tight here. tests/estimators/test_explained.py is about the warning.
pytestmark = pytest.mark.filterwarnings("ignore:The limits lower R2")

pytest.importorskip("skl2onnx", reason="skl2onnx is not installed (extra onnx)")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


ENOUGH = 3000  # rows for a certificate


def people(n=300, seed=0):
    rng = generator(seed)
    sex = rng.choice(["f", "m"], n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += sex == "m"
    return X, X[:, 0] + rng.normal(size=n) > 0.5, sex


def run(graph, X):
    session = runtime.InferenceSession(graph.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {session.get_inputs()[0].name: X}), strict=True))


def rounding(model, dtype=np.float32):
    """How far sums of scores and offsets may be off."""
    largest = np.abs(getattr(getattr(model, "decisions_", model), "offsets_", 1.0)).max()
    return (2e-5 if dtype == np.float32 else 1e-10) * max(1.0, largest)


def assert_same_labels(labels, model, X, dtype=np.float32):
    """Compare the labels of all rows that do not lie within rounding of another one."""
    if hasattr(model, "decision_function"):
        lead = np.abs(model.decision_function(X))
    else:
        lead = np.ptp(np.sort(model.transform(X), axis=1)[:, :2], axis=1)
    is_sure = lead > rounding(model, dtype)
    assert is_sure.mean() > 0.9
    assert np.array_equal(labels[is_sure], model.predict(X)[is_sure])


CLUSTERERS = by_families("ONNX")  # by their rows in the table of the page
WORDS = np.array(["no", "yes"])
BLIND = FairDecisionClassifier(LogisticRegression(), max_disparity=0.02, group_aware=False, cv=3)
SCALED = make_pipeline(StandardScaler(), LogisticRegression())
# By the rows of the table of the page: models, and what they are fitted to
MODELS = {
    "``ConstrainedERMClassifier``, linear": (ConstrainedERMClassifier(max_disparity=0.1), WORDS),
    "``ConstrainedERMClassifier`` with layers in ``model``": (
        ConstrainedERMClassifier(max_disparity=0.2, model=(5, 4), random_state=0),
        np.array([3, 7]),
    ),
    "``ConstrainedERMClassifier`` with ``certificate``": (
        ConstrainedERMClassifier(max_disparity=0.2, certificate=0.9, random_state=0),
        WORDS,
    ),
    "``ConstrainedERMRegressor``": (ConstrainedERMRegressor(), np.array([0.0, 2.5])),
    **{name: (model, np.array([0, 1])) for name, model in by_families("ONNX_SCORES").items()},
    "``FairDecisionClassifier(group_aware=False)``": (BLIND, WORDS),
    "``FairDecisionClassifier`` of a pipeline": (clone(BLIND).set_params(estimator=SCALED), WORDS),
    "``FairDecisionClassifier`` with several sensitive attributes": (
        clone(BLIND).set_params(sensitive=Sensitive(intersectional=False)),
        WORDS,
    ),
    "``FairDecisionClassifier`` with ``certificate``": (
        clone(BLIND).set_params(certificate=0.9, max_disparity=0.2, cv=5),
        WORDS,
    ),
    **{name: (model, WORDS) for name, model in CLUSTERERS.items()},
}
# Rows of the table whose models other files test
OTHERS = [
    "``FairDecisionClassifier(group_aware=True)``",  # test_onnx_groups.py
    "``FairDecisionClassifier`` with ``ConditionalOn``",
    "``FairDecisionClassifier`` of boosted trees",  # test_onnx_steps.py
]
PAGE = (Path(__file__).parents[2] / "doc" / "how_to" / "onnx.rst").read_text()


def test_each_row_of_the_table_of_the_page_is_tested():
    rows = re.findall(r"^   \* - (.*)$", PAGE, re.MULTILINE)
    assert rows[1:] == [*list(MODELS)[:-1], *OTHERS, list(MODELS)[-1]]


@pytest.mark.filterwarnings("ignore:All rows are taken as one query:UserWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MODELS)
def test_the_graph_predicts_as_the_model(name, dtype):
    X, y, sex = people(ENOUGH if "certificate" in name else 300)
    X = (np.round(4 * X) / 4).astype(dtype)  # many rows are tied
    groups = np.column_stack([sex, X[:, 1] > 0]) if "several" in name else sex
    model, targets = MODELS[name]
    model.fit(X, targets[y.astype(int)], sensitive_features=groups)
    decisions = getattr(model, "decisions_", model)
    assert getattr(decisions, "offsets_", np.ones(1)).any() or is_clusterer(model)
    assert model.get_params().get("certificate") is None or model.status_ == "certified"
    new = np.vstack([np.round(4 * people(seed=1)[0]) / 4, X]).astype(dtype)
    found = run(to_onnx(model, X), new)
    numbers = found.popitem()[1]
    assert numbers.dtype == dtype
    read = next(
        getattr(model, method)
        for method in ("transform", "decision_function", "predict")
        if hasattr(model, method)
    )
    expected = read(new).reshape(len(new), -1)
    if isinstance(model, FairDecisionClassifier):  # margins of both; the model has the difference
        numbers = numbers[:, 1:] - numbers[:, :1]
    np.testing.assert_allclose(numbers, expected, atol=rounding(model, dtype))
    if found:
        assert_same_labels(found["label"], model, new, dtype)


@pytest.mark.parametrize(
    "name", [name for name, (model, _) in MODELS.items() if "pos_label" in model.get_params()]
)
def test_the_first_class_may_be_the_positive_one(name):
    X, y, sex = people(ENOUGH if "certificate" in name else 300)
    X = np.round(4 * X) / 4
    groups = np.column_stack([sex, X[:, 1] > 0]) if "several" in name else sex
    model = clone(MODELS[name][0]).set_params(constraint="equal_opportunity", pos_label="approved")
    if model.certificate is not None:
        model.set_params(max_disparity=0.45, certificate=0.8)
    model.fit(X, np.where(y, "approved", "rejected"), sensitive_features=groups)
    found = run(to_onnx(model, X), X)
    numbers = found.popitem()[1]
    assert_same_labels(found.pop("label"), model, X, X.dtype)
    numbers = numbers[:, 1] - numbers[:, 0] if numbers.shape[1] == 2 else numbers.ravel()
    np.testing.assert_allclose(numbers, model.decision_function(X), atol=rounding(model, X.dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("inner", [DecisionTreeClassifier(), LogisticRegression()])
def test_rows_that_are_even_are_decided_as_by_the_model(inner, dtype):
    rng = generator(0)
    X = np.repeat(rng.integers(0, 3, (300, 2)), 2, axis=0).astype(dtype)
    y, sex = np.tile([0, 1], 300), np.repeat(rng.choice(["f", "m"], 300), 2)
    model = clone(BLIND).set_params(estimator=inner, cv=KFold(3))  # pairs stay together
    model.fit(X, y, sensitive_features=sex)
    assert (model.decision_function(X) == 0).mean() > 0.9
    assert np.array_equal(run(to_onnx(model, X), X)["label"], model.predict(X))


@pytest.mark.filterwarnings("ignore:sensitive_features has a single group")
@pytest.mark.parametrize("groups", [np.array(["a"]), np.array(["a", "b"])])
def test_a_budget_without_limits_between_groups_is_in_the_graph(groups):
    X, y, _ = people()
    model = FairDecisionClassifier(
        LogisticRegression(), max_disparity=1.0, selection_rate=0.1, group_aware=False, cv=3
    )
    model.fit(X, y, sensitive_features=groups[np.arange(len(X)) % groups.size])
    assert model.offsets_.any()
    assert np.array_equal(run(to_onnx(model, X), X)["label"], model.predict(X))


@pytest.mark.parametrize("limit", [1.0, 0.05])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_corrected_probabilities_are_in_the_graph(n_classes, limit):
    """Balanced weights give probabilities that are not the shares of the classes."""
    X, _, sex = people(1500)
    score = X[:, 0] + generator(0).logistic(size=len(X))
    y = np.digitize(score, np.quantile(score, [0.8, 0.9][: n_classes - 1]))
    inner = LogisticRegression(class_weight="balanced")
    options = {"max_disparity": limit, "objective": "balanced_accuracy"} if n_classes == 2 else {}
    model = clone(BLIND).set_params(estimator=inner, **options).fit(X, y, sensitive_features=sex)
    assert model._decider.corrections is not None
    found = run(to_onnx(model, X), X)
    assert (found["label"] == model.predict(X)).mean() > 0.99
    if n_classes == 2:
        lead = found["margins"][:, 1] - found["margins"][:, 0]
        np.testing.assert_allclose(lead, model.decision_function(X), atol=rounding(model))


def test_classes_that_the_models_of_groups_find_impossible_are_in_the_graph():
    X, y, sex = people()
    X = (np.round(4 * X) / 4).astype(np.float32)
    trees = DecisionTreeClassifier(random_state=0)
    model = clone(BLIND).set_params(group_estimator=trees).fit(X, y, sensitive_features=sex)
    assert model.offsets_.any()
    found = run(to_onnx(model, X), X)
    lead = found["margins"][:, 1] - found["margins"][:, 0]
    np.testing.assert_allclose(lead, model.decision_function(X), atol=rounding(model))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sensitive", [None, 1])
def test_a_pipeline_inside_chooses_among_the_columns_of_an_array(sensitive, dtype):
    X, y, sex = people()
    X[:, 1] = sex == "m"
    inner = make_pipeline(
        make_column_transformer((StandardScaler(), [0, 2]), remainder="passthrough"),
        LogisticRegression(),
    )
    model = clone(BLIND).set_params(estimator=inner, sensitive=sensitive)
    model.fit(X.astype(dtype), y, sensitive_features=sex if sensitive is None else None)
    assert model.offsets_.any()
    found = run(to_onnx(model, X.astype(dtype)), X.astype(dtype))
    assert_same_labels(found["label"], model, X.astype(dtype), dtype)


@pytest.mark.parametrize("is_outside", [False, True])
def test_a_pipeline_inside_reads_columns_of_any_kind(is_outside):
    X, y, sex = people()
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abcd"))
    frame.insert(1, "job", np.array(["x", "y", "z"])[np.arange(len(X)) % 3])
    columns = make_column_transformer((StandardScaler(), ["a", "b"]), (OneHotEncoder(), ["job"]))
    if is_outside:
        model = make_pipeline(columns, clone(BLIND))
        model.fit(frame, y.astype(int), fairdecisionclassifier__sensitive_features=sex)
    else:
        frame.insert(0, "sex", sex)
        inner = make_pipeline(columns, LogisticRegression())
        options = {"estimator": inner, "sensitive": "sex", "group_aware": False}
        model = clone(BLIND).set_params(**options).fit(frame, y)
    graph = to_onnx(model, frame)
    session = runtime.InferenceSession(graph.SerializeToString())
    rows = {name: frame[[name]].to_numpy() for name in frame}
    found = session.run(None, {one.name: rows[one.name] for one in session.get_inputs()})
    assert_same_labels(found[0], model, frame)


def test_versions_and_options_are_passed_on():
    X, y, sex = people()
    model = clone(BLIND).fit(X, y, sensitive_features=sex)
    options = {LogisticRegression: {"nocl": True, "zipmap": True}}
    for version in (15, {"": 18, "ai.onnx.ml": 3}):
        graph = to_onnx(model, X, target_opset=version, options=options)
        used = {one.domain: one.version for one in graph.opset_import}
        assert used[""] == (version if isinstance(version, int) else version[""])
        assert np.array_equal(run(graph, X)["label"], model.predict(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize(
    "inner",
    [
        RandomForestClassifier(8, max_depth=4, random_state=0),
        BaggingClassifier(LogisticRegression(), 3, random_state=0),
        CalibratedClassifierCV(LogisticRegression(), cv=2),
    ],
)
def test_models_that_are_made_of_others_are_converted_whole(inner, is_frozen, dtype):
    X, y, sex = people()
    X = X.astype(np.float32).astype(dtype)  # thresholds of trees have one side in both
    if is_frozen:
        others, classes, _ = people(seed=1)
        inner = FrozenEstimator(clone(inner).fit(others.astype(np.float32).astype(dtype), classes))
    model = FairDecisionClassifier(
        inner, max_disparity=0.05, group_estimator=LogisticRegression(), group_aware=False
    )
    model.fit(X, WORDS[y.astype(int)] if not is_frozen else y, sensitive_features=sex)
    found = run(to_onnx(model, X), X)
    margins = found["margins"][:, 1] - found["margins"][:, 0]
    np.testing.assert_allclose(margins, model.decision_function(X), atol=rounding(model))
    assert_same_labels(found["label"], model, X)


# Of many groups the group is estimated without the class, and within 0.02 all get one answer.
@pytest.mark.parametrize(("n_groups", "limit"), [(2, 0.02), (9, 0.1)])
def test_offsets_of_several_classes_are_in_the_graph(n_groups, limit):
    X, y, sex = people(900)
    sex = np.char.add(sex, (np.arange(900) % n_groups // 2).astype(str))
    three = np.array(list("abc"))[y.astype(int) + (X[:, 1] > 1)]
    model = FairDecisionClassifier(LogisticRegression(), max_disparity=limit, group_aware=False)
    model.fit(X, three, sensitive_features=sex)
    assert model.offsets_.any()
    assert model.groups_.size >= n_groups
    found = run(to_onnx(model, X), X)
    np.testing.assert_allclose(found["margins"], model.decision_function(X), atol=1e-10)
    assert np.array_equal(found["label"], model.predict(X))


@pytest.mark.parametrize("is_routed", [False, True])
def test_a_pipeline_is_one_graph_without_the_column_of_the_group(is_routed):
    X, y, sex = people()
    table, given = np.column_stack([X, sex == "m"]), {}
    if is_routed:
        given["sensitive_features"] = sex
    with config_context(enable_metadata_routing=True):
        last = ConstrainedERMClassifier(max_disparity=0.1, sensitive=None if is_routed else 4)
        model = make_pipeline(StandardScaler(), last).fit(table, y.astype(int), **given)
    found = run(to_onnx(model, table), table)
    np.testing.assert_allclose(found["scores"][:, 0], model.decision_function(table), atol=1e-10)
    table[:, 4] = 9.0  # nobody's group counts
    again = run(to_onnx(model, table), table)
    assert np.array_equal(again["scores"], found["scores"]) == (not is_routed)


@pytest.mark.parametrize("kind", ["plain", "columns", "text", "regressor", *CLUSTERERS])
def test_each_column_of_a_frame_is_an_input(kind):
    rng = generator(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    frame["c"] = rng.integers(0, 9, 200)  # of another type
    sex = rng.choice(["f", "m"], 200)
    y = (frame["a"] + (sex == "m") > 0).astype(int)
    groups = {"sensitive_features": sex}
    if kind in ("columns", "text"):
        frame.insert(1, "sex", sex if kind == "text" else (sex == "m").astype(int))
        model = ConstrainedERMClassifier(max_disparity=0.1, sensitive="sex").fit(frame, y)
    elif kind == "plain":
        model = ConstrainedERMClassifier(max_disparity=0.1).fit(frame, y, **groups)
    elif kind == "regressor":
        target = frame["a"] + frame["b"]
        model = ConstrainedERMRegressor(max_disparity=0.1).fit(frame, target, **groups)
    else:
        model = clone(CLUSTERERS[kind]).fit(frame, **groups)
    graph = to_onnx(model, frame)
    session = runtime.InferenceSession(graph.SerializeToString())
    names = [given.name for given in session.get_inputs()]
    assert names == list(frame.columns)
    found = session.run(None, {name: frame[[name]].to_numpy() for name in names})[0]
    np.testing.assert_allclose(np.ravel(found), model.predict(frame), rtol=1e-5)


def test_a_graph_for_rows_without_the_sensitive_column():
    X, y, sex = people()
    table = pd.DataFrame(X).add_prefix("x")
    table.insert(1, "sex", sex)
    model = ConstrainedERMClassifier(max_disparity=0.1, sensitive="sex").fit(table, y)
    found = run(to_onnx(model, X), X)
    np.testing.assert_allclose(found["scores"][:, 0], model.decision_function(table), rtol=1e-5)
    assert model.n_features_in_ == X.shape[1] + 1  # the model is as it was
