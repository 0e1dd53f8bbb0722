"""Graphs that read the groups and strata of new rows decide as ``predict`` does."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair import Sensitive
from skfair.classification import FairDecisionClassifier
from skfair.constraints import ConditionalOn
from skfair.export import to_onnx
from tests.export.graphs import outputs
from tests.seeds import generator

pytest.importorskip("skl2onnx", reason="skl2onnx is not installed (extra onnx)")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

N = 400
WORDS = np.array(["no", "yes"])
# Groups of each kind, made of the numbers 0 and 1 or 0, 1 and 2
KINDS = {
    "texts": np.array(["f", "m", "x"]),
    "texts in objects": np.array(["f", "Männer", "x y"], dtype=object),
    "integers": np.array([3, 5, 70]),
    "booleans": np.array([False, True]),
    "doubles": np.array([0.1, 0.5, 1e300]),
    "singles": np.array([0.1, 0.5, 0.7], dtype=np.float32),
}


def people(key=0, n_groups=2):
    rng = generator(key)
    group = rng.integers(0, n_groups, N)
    X = rng.normal(size=(N, 3)) + group[:, None] * [0.7, 0, 0]
    return X, (X[:, 0] + rng.normal(size=N) > 0.5).astype(int), group


def fair(**options):
    options = {"max_disparity": 0.02, "group_aware": True, "cv": 2, **options}
    return FairDecisionClassifier(LogisticRegression(), **options)


def assert_same(model, X, rows, **given):
    """Compare all decisions and margins of a graph with those of a model."""
    found = outputs(to_onnx(model, X, **given), rows)
    lead = found["margins"][:, 1] - found["margins"][:, 0]
    expected, labels = model.decision_function(X, **given), model.predict(X, **given)
    single = any(own.dtype == np.float32 for own in rows.values())
    atol = (1e-4 if single else 1e-9) * max(1.0, np.abs(model.offsets_).max())
    np.testing.assert_allclose(lead, expected, atol=atol)
    is_sure = np.abs(expected) > atol
    assert is_sure.mean() > 0.9
    assert np.array_equal(found["label"][is_sure], labels[is_sure])
    return found


def column(values):
    return np.asarray(values)[:, None]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_groups_of_each_kind_are_an_input(kind, dtype):
    levels = KINDS[kind]
    X, y, group = people(n_groups=levels.size)
    X, sex = X.astype(dtype), levels[group]
    model = fair().fit(X, WORDS[y], sensitive_features=pd.Series(sex, name="sex"))
    assert np.ptp(model.to_thresholds()["threshold"]) > 0
    graph = to_onnx(model, X, sensitive_features=sex)
    assert [one.name for one in graph.graph.input] == ["X", "sex"]
    assert_same(model, X, {"X": X, "sex": column(sex)}, sensitive_features=sex)


@pytest.mark.parametrize("intersectional", [True, False])
def test_several_attributes_are_inputs_with_their_names(intersectional):
    X, y, group = people()
    groups = pd.DataFrame({"sex": KINDS["texts"][group], "age": generator(1).integers(0, 3, N)})
    model = fair(sensitive=Sensitive(intersectional=intersectional), max_disparity=0.1)
    model.fit(X, y, sensitive_features=groups)
    assert model.offsets_.any()
    rows = {"X": X, "sex": column(groups["sex"].astype(object)), "age": column(groups["age"])}
    assert_same(model, X, rows, sensitive_features=groups)
    # as predict does: columns are found by their names
    turned = to_onnx(model, X, sensitive_features=groups[["age", "sex"]])
    assert [one.name for one in turned.graph.input] == ["X", "sex", "age"]


@pytest.mark.parametrize("intersectional", [True, False])
@pytest.mark.parametrize("kind", ["texts", "doubles"])
def test_unseen_and_missing_groups_are_means_of_the_known_ones(kind, intersectional):
    X, y, group = people()
    other = generator(1).integers(0, 2, N)
    groups = pd.DataFrame({"a": KINDS[kind][group], "b": KINDS[kind][other]})
    groups = groups.astype(object) if kind == "texts" else groups
    model = fair(
        sensitive=Sensitive(intersectional=intersectional), unseen="overall", max_disparity=0.1
    )
    model.fit(X, y, sensitive_features=groups)
    assert model.offsets_.any()
    groups.iloc[::3, 0] = KINDS[kind][2]
    groups.iloc[::5, 1] = np.nan
    rows = {"X": X, **{name: column(own) for name, own in groups.items()}}
    assert_same(model, X, rows, sensitive_features=groups)


@pytest.mark.parametrize("targets", [WORDS, np.array([-1, 1]), np.array([False, True])])
@pytest.mark.parametrize("kind", ["texts", "integers", "doubles"])
def test_rows_of_groups_that_fit_did_not_know_get_no_decision(kind, targets):
    X, y, group = people()
    model = fair().fit(X, targets[y], sensitive_features=KINDS[kind][group])
    graph = to_onnx(model, X, sensitive_features=KINDS[kind][group])
    name = graph.graph.input[1].name
    assert name == "sensitive_feature"
    unknown = np.arange(N) % 4 == 0
    groups = KINDS[kind][np.where(unknown, 2, group)]
    with pytest.raises(ValueError, match="did not occur at fit"):
        model.predict(X, sensitive_features=groups)
    found = outputs(graph, {"X": X, name: column(groups)})
    assert np.array_equal(np.isnan(found["margins"]).all(axis=1), unknown)
    refused = "unknown group" if targets is WORDS else np.iinfo(np.int64).min
    assert np.array_equal(found["label"] == refused, unknown)
    known = {"sensitive_features": groups[~unknown]}
    assert np.array_equal(found["label"][~unknown], model.predict(X[~unknown], **known))


@pytest.mark.parametrize("kind", ["texts", "doubles"])
def test_missing_groups_may_be_allowed_and_unseen_ones_not(kind):
    X, y, group = people()
    sex = KINDS[kind][group].astype(object if kind == "texts" else float)
    sex[::7] = np.nan
    model = fair(sensitive=Sensitive(missing="loss")).fit(X, y, sensitive_features=sex)
    found = assert_same(
        model, X, {"X": X, "sensitive_feature": column(sex)}, sensitive_features=sex
    )
    assert not np.isnan(found["margins"]).any()
    sex[::2] = KINDS[kind][2]
    graph = to_onnx(model, X, sensitive_features=KINDS[kind][group])
    found = outputs(graph, {"X": X, "sensitive_feature": column(sex)})
    assert np.array_equal(np.isnan(found["margins"][:, 0]), np.arange(N) % 2 == 0)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("is_frame", [True, False])
def test_columns_of_X_that_hold_the_groups_are_used(is_frame, keep):
    X, y, group = people()
    table = np.column_stack([group * 2.0, X])
    frame = pd.DataFrame(table, columns=["sex", "b", "c", "d"])
    if is_frame and not keep:
        frame["sex"] = KINDS["texts in objects"][group]
    sensitive = Sensitive(["sex"] if is_frame else [0], keep=keep)
    model, X = fair(sensitive=sensitive), frame if is_frame else table
    model.fit(X, y)
    rows = {name: column(own) for name, own in frame.items()} if is_frame else {"X": table}
    assert_same(model, X, rows)
    if is_frame:  # as predict does: columns are found by their names
        graph = to_onnx(model, frame[["d", "sex", "c", "b"]])
        assert [one.name for one in graph.graph.input] == list(frame)


def test_a_pipeline_reads_groups_beside_its_rows_or_among_them():
    X, y, group = people()
    table, sex = np.column_stack([X, group]), KINDS["texts"][group]
    model = make_pipeline(StandardScaler(), fair())
    model.fit(X, y, fairdecisionclassifier__sensitive_features=sex)
    graph = to_onnx(model, X, sensitive_features=sex)
    found = outputs(graph, {"X": X, "sensitive_feature": column(sex)})
    scaled, last = model[:-1].transform(X), model[-1]
    assert np.array_equal(found["label"], last.predict(scaled, sensitive_features=sex))
    model = make_pipeline(StandardScaler(), fair(sensitive=3)).fit(table, y)
    found = outputs(to_onnx(model, table), {"X": table})
    assert np.array_equal(found["label"], model.predict(table))
    assert not np.isnan(found["margins"]).any()


def test_an_input_for_groups_has_another_name_than_a_column_of_X():
    X, y, group = people()
    frame = pd.DataFrame(X, columns=["sex", "b", "c"])
    sex = pd.Series(KINDS["texts"][group], name="sex")
    model = fair().fit(frame, y, sensitive_features=sex)
    rows = {name: column(own) for name, own in frame.items()} | {"sensitive_sex": column(sex)}
    rows["sensitive_sex"] = rows["sensitive_sex"].astype(object)
    assert_same(model, frame, rows, sensitive_features=sex)


@pytest.mark.parametrize("group_aware", [True, False, "mixed"])
@pytest.mark.parametrize("n_controls", [1, 2])
def test_strata_are_inputs(n_controls, group_aware):
    X, y, group = people()
    controls = pd.DataFrame(
        {"job": WORDS[generator(1).integers(0, 2, N)], "n": generator(2).integers(0, 2, N)}
    )
    controls = controls.iloc[:, :n_controls]
    limit = ConditionalOn("demographic_parity", max_disparity=0.1)
    model = fair(constraint=limit, max_disparity=None, group_aware=group_aware)
    groups = {"sensitive_features": KINDS["integers"][group]}
    model.fit(X, y, control_features=controls, **groups)
    assert model.offsets_.any()
    assert model.method_ != "mixtures"
    rows = {"X": X}
    if group_aware:
        rows["sensitive_feature"] = column(groups["sensitive_features"])
    else:
        groups = {}
    rows |= {name: column(own.astype(object)) for name, own in controls[["job"]].items()}
    rows |= {name: column(own) for name, own in controls.drop(columns="job").items()}
    assert_same(model, X, rows, control_features=controls, **groups)


def test_corrections_by_group_and_of_several_classes_are_in_the_graph():
    rng = generator()
    n, group = 3000, generator(1).integers(0, 3, 3000)
    X = rng.normal(size=(n, 2))
    three = np.digitize(X[:, 0] + (group - 1.0) * X[:, 1] + rng.normal(size=n) / 2, [-0.7, 0.7])
    model = fair(max_disparity=0.1).fit(X, three, sensitive_features=group)
    assert model._decider.corrections.is_by_group
    found = outputs(
        to_onnx(model, X, sensitive_features=group), {"X": X, "sensitive_feature": column(group)}
    )
    expected = model.decision_function(X, sensitive_features=group)
    np.testing.assert_allclose(found["margins"], expected, atol=1e-5)
    assert np.mean(found["label"] == model.predict(X, sensitive_features=group)) > 0.999


def test_terms_that_break_ties_are_in_the_graph():
    """Few fits of several classes have them, so this one gets one."""
    X, y, group = people()
    three = np.minimum(y + (X[:, 1] > 0), 2)
    model = fair(max_disparity=0.1).fit(X, three, sensitive_features=group)
    model._decider = replace(model._decider, tie_weight=0.3)
    given, rows = {"sensitive_features": group}, {"X": X, "sensitive_feature": column(group)}
    found = outputs(to_onnx(model, X, **given), rows)["margins"]
    np.testing.assert_allclose(found, model.decision_function(X, **given), atol=1e-9)


def test_groups_that_are_asked_for_may_be_estimated():
    """As where thresholds by group cost much; unknown groups are refused all the same."""
    X, y, group = people()
    model = fair(group_aware=False).fit(X, y, sensitive_features=group)
    assert model.group_estimators_
    assert model.offsets_.any()
    model.is_group_aware_ = True
    rows = {"X": X, "sensitive_feature": column(group)}
    assert_same(model, X, rows, sensitive_features=group)
    graph = to_onnx(model, X, sensitive_features=group)
    found = outputs(graph, rows | {"sensitive_feature": column(group + 5)})
    assert np.isnan(found["margins"]).all()


@pytest.mark.parametrize("group_aware", [False, True])
def test_a_single_model_is_one_model_in_the_graph(group_aware):
    X, y, group = people(key=21)
    several, single = (
        fair(group_aware=group_aware, ensemble=ensemble, cv=5).fit(X, y, sensitive_features=group)
        for ensemble in (True, False)
    )
    given = {"sensitive_features": group} if group_aware else {}
    rows = {"X": X, **({"sensitive_feature": group[:, None]} if group_aware else {})}
    names = [one.name for one in to_onnx(single, X, **given).graph.input]
    assert_same(single, X, dict(zip(names, rows.values(), strict=True)), **given)
    sizes = [len(to_onnx(model, X, **given).graph.node) for model in (several, single)]
    assert sizes[1] < 0.5 * sizes[0]
