"""The local loader: on a small folder made here, and on the benchmark folder when it is there."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from skfair.datasets import load_local
from tests.registries import local_datasets

DATA = os.environ.get("SKFAIR_DATA", "")
needs_data = pytest.mark.skipif(
    not Path(DATA, "datasets.json").is_file(),
    reason="the environment variable SKFAIR_DATA names no folder with datasets.json",
)

INDEX = {
    "people": {
        "file": "people.parquet",
        "n": 5,
        "target": "outcome",
        "positive_label": "yes",
        "meta_columns": ["id"],
        "leak_columns": ["after"],
        "sensitive": [
            {"name": "sex", "column": "sex", "meaning": "sex: as on the form"},
            {"name": "old", "rule": "age >= 40", "labels": {"True": "old", "False": "young"}},
            {"name": "adult", "rule": "age > 17"},
        ],
        "task": "classification",
        "notes": "Made up.",
        "licence": "none",
    },
    "scored": {
        "file": "people.parquet",
        "target": "age",
        "target_rule": "age > 41",
        "positive_label": "above 41",
        "sensitive": [{"name": "sex", "column": "sex"}],
    },
    "points": {
        "file": "people.parquet",
        "target": None,
        "positive_label": None,
        "meta_columns": None,
        "sensitive": [{"name": "group", "column": "id"}],
    },
    "graph": {
        "file": "nodes.parquet",
        "edges_file": "edges.parquet",
        "target": None,
        "sensitive": [{"name": "team", "column": "group"}],
    },
}


@pytest.fixture
def folder(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame(
        {
            "id": [7, 8, 9, 10, 11],
            "age": [12, 30, 40, 41, 70],
            "sex": pd.Categorical(["f", "m", "m", "f", "m"]),
            "after": [0.0, 1.0, np.nan, 1.0, 0.0],
            "outcome": ["no", "yes", "yes", "no", "yes"],
        }
    ).to_parquet(tmp_path / "people.parquet")
    pd.DataFrame({"node": range(4), "group": [0, 0, 1, 1]}).to_parquet(tmp_path / "nodes.parquet")
    # One edge listed twice (once backwards) and a loop.
    edges = pd.DataFrame({"node_1": [0, 1, 2, 3], "node_2": [1, 0, 3, 3]}, dtype=np.int32)
    edges.to_parquet(tmp_path / "edges.parquet")
    (tmp_path / "datasets.json").write_text(json.dumps(INDEX), encoding="utf-8")
    return tmp_path


def test_the_environment_variable_names_the_folder(folder, monkeypatch):
    monkeypatch.setenv("SKFAIR_DATA", str(folder))
    assert local_datasets() == local_datasets(folder) == list(INDEX)
    assert load_local("people").data.shape == (5, 2)


def test_a_table(folder):
    people = load_local("people", folder)
    assert people.feature_names == ["age", "sex"] == people.data.columns.tolist()
    assert people.dropped_columns == ["id", "after"]
    assert people.frame.shape == (5, 5)
    assert people.target.tolist() == [0, 1, 1, 0, 1]
    assert people.target.dtype == np.int64
    assert people.target.name == "outcome"
    assert people.sensitive_names == ["sex", "old", "adult"]
    groups = people.sensitive_features
    assert groups["sex"].tolist() == ["f", "m", "m", "f", "m"]
    assert groups["old"].tolist() == ["young", "young", "old", "old", "old"]
    assert groups["adult"].tolist() == ["not", "age > 17", "age > 17", "age > 17", "age > 17"]
    for text in ("people", "Made up.", "Licence: none", "as on the form"):
        assert text in people.DESCR
    assert "adjacency" not in people
    # A target rule goes before the label.
    scored = load_local("scored", folder)
    assert scored.target.tolist() == [0, 0, 0, 0, 1]
    assert "age" not in scored.feature_names


def test_without_a_target(folder):
    X, y, groups = load_local("points", folder, return_X_y=True)
    assert y is None
    assert X.shape == (5, 5)
    # Codes become names, as everywhere.
    assert groups["group"].tolist() == ["7", "8", "9", "10", "11"]


def test_a_graph(folder):
    graph = load_local("graph", folder)
    assert sp.issparse(graph.adjacency)
    assert graph.adjacency.dtype == np.float64
    expected = np.zeros((4, 4))
    expected[[0, 1, 2, 3], [1, 0, 3, 2]] = 1
    np.testing.assert_array_equal(graph.adjacency.toarray(), expected)
    assert graph.feature_names == []
    assert graph.data.shape == (4, 0)
    X, y, groups = load_local("graph", folder, return_X_y=True)
    assert (graph.adjacency != X).nnz == 0
    assert y is None
    assert groups["team"].tolist() == ["0", "0", "1", "1"]


@pytest.mark.parametrize("bad", [4, -1])
def test_an_edge_to_nowhere_is_an_error(folder, bad):
    edges = pd.DataFrame({"node_1": [0, bad], "node_2": [1, 1]})
    edges.to_parquet(folder / "edges.parquet")
    with pytest.raises(ValueError, match=f"name the node {bad}, but there are 4 nodes"):
        load_local("graph", folder)


def test_what_is_not_there_is_named(folder, monkeypatch):
    for wrong, said in (
        (folder / "nowhere", r"folder names '.*nowhere', which is no folder"),
        (folder.parent, r"which holds no datasets\.json"),
        (None, r"SKFAIR_DATA is not set\. Pass folder=, or set"),
    ):
        monkeypatch.delenv("SKFAIR_DATA", raising=False)
        with pytest.raises(FileNotFoundError, match=said):
            load_local("people", wrong)
    monkeypatch.setenv("SKFAIR_DATA", str(folder / "nowhere"))
    with pytest.raises(FileNotFoundError, match="the environment variable SKFAIR_DATA names"):
        load_local("people")
    with pytest.raises(ValueError, match=r"no data set 'peple' .* It holds people, scored, points"):
        load_local("peple", folder)
    (folder / "people.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"datasets\.json names 'people\.parquet', but"):
        load_local("people", folder)


def test_without_pyarrow_the_error_says_what_to_install(folder, monkeypatch):
    def no_engine(*_, **__):
        raise ImportError("Unable to find a usable engine")

    monkeypatch.setattr(pd, "read_parquet", no_engine)
    with pytest.raises(ImportError, match=r"Reading 'people\.parquet' .* pip install pyarrow"):
        load_local("people", folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"file": None}, "must have a 'file'"),
        ({"sensitive": None}, "must have a 'file'"),
        ({"sensitive": [{"column": "sex"}]}, "each of it with a 'name'"),
        ({"sensitive": [{"name": "sex"}]}, "a 'column' or a 'rule'"),
        ({"sensitive": [{"name": "sex", "column": "gender"}]}, "column 'gender', which is not in"),
        ({"sensitive": [{"name": "old", "rule": "years > 3"}]}, "years.*cannot be evaluated"),
        ({"sensitive": [{"name": "old", "rule": "age + 1"}]}, "not true or false for each row"),
        ({"sensitive": [{"name": "old", "rule": "age > 1", "labels": {"True": "o"}}]}, "labels of"),
        ({"target": "result"}, "column 'result', which is not in"),
        ({"positive_label": "Yes"}, "never is positive_label='Yes'; its labels are 'no', 'yes'"),
        ({"positive_label": None}, "never is positive_label=None"),
        ({"target_rule": "age * 2"}, "not true or false for each row"),
        ({"leak_columns": ["afterwards"]}, "column 'afterwards', which is not in"),
    ],
)
def test_an_entry_that_does_not_fit_its_file_is_named(folder, changes, message):
    entry = {key: one for key, one in (INDEX["people"] | changes).items() if one is not None}
    (folder / "datasets.json").write_text(json.dumps({"people": entry}), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        load_local("people", folder)


@pytest.mark.parametrize("text", ["{bad", "[1]"])
def test_a_broken_index_is_named(folder, text):
    (folder / "datasets.json").write_text(text, encoding="utf-8")
    for load in (local_datasets, lambda one: load_local("people", one)):
        with pytest.raises(ValueError, match="datasets.json"):
            load(folder)


def test_what_is_missing_makes_no_group_and_no_positive_answer(folder):
    table = pd.read_parquet(folder / "people.parquet")
    table["sex"] = ["f", None, "m", "f", "m"]
    table["outcome"] = pd.array([1, None, 1, 0, 0], dtype="Int64")
    table["age"] = pd.array([12, None, 40, 41, 70], dtype="Int64")
    table.to_parquet(folder / "people.parquet")
    entry = INDEX["people"] | {"positive_label": 1}
    (folder / "datasets.json").write_text(json.dumps({"people": entry}), encoding="utf-8")
    people = load_local("people", folder)
    assert people.target.tolist() == [1, 0, 1, 0, 0]
    assert people.sensitive_features["sex"].isna().tolist() == [False, True, False, False, False]
    assert people.sensitive_features["adult"].iloc[1] == "not"


# The facts below are those of the folder's README, written down by hand: rows, columns that are
# features, base rate, and (size, base rate) or the size of groups.
FACTS = {
    "adult": (48842, 14, 0.2393, {"sex": {"Male": (32650, 0.304), "Female": (16192, 0.109)}}),
    "bank": (41188, 19, 0.1127, {"age_25_60": {"25-60": (39210, 0.101), "other": (1978, 0.339)}}),
    "compas": (6172, 22, 0.4551, {"sex": {"Male": (4997, 0.479), "Female": (1175, 0.351)}}),
    "lastfm": (5576, 0, None, {"country": {"17": (1529,), "3": (505,)}}),
}
EDGES = {"lastfm": 19587}


@needs_data
@pytest.mark.data
@pytest.mark.parametrize("name", FACTS)
def test_benchmark_folder_agrees_with_its_readme(name):
    n, d, base_rate, attributes = FACTS[name]
    dataset = load_local(name)
    assert dataset.frame.shape[0] == n
    assert dataset.data.shape == (n, d)
    if base_rate is None:
        assert dataset.target is None
    else:
        assert dataset.target.mean() == pytest.approx(base_rate, abs=5e-5)
    for attribute, groups in attributes.items():
        column = dataset.sensitive_features[attribute]
        for group, (size, *rate) in groups.items():
            assert (column == group).sum() == size
            if rate:
                mean = dataset.target[column == group].mean()
                assert mean == pytest.approx(rate[0], abs=5e-4)
    if name in EDGES:
        adjacency = dataset.adjacency
        assert adjacency.shape == (n, n)
        assert adjacency.nnz == 2 * EDGES[name]
        assert (adjacency != adjacency.T).nnz == 0
        assert not adjacency.diagonal().any()
        assert set(adjacency.data) == {1.0}


@needs_data
@pytest.mark.data
def test_benchmark_folder_agrees_with_its_index():
    index = json.loads(Path(DATA, "datasets.json").read_text(encoding="utf-8"))
    assert local_datasets() == list(index)
    for name, entry in index.items():
        dataset = load_local(name)
        assert len(dataset.frame) == entry["n"]
        assert dataset.sensitive_names == [s["name"] for s in entry["sensitive"]]
        assert not dataset.sensitive_features.isna().any(axis=None)
        if "edges_file" not in entry:
            assert dataset.data.shape[1] == entry["d"] - len(entry.get("leak_columns") or [])
