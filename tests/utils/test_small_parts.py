"""History, registry, messages, columns, responses, versions: the small shared parts."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV

import skfair
from skfair.groups.named_columns import column_positions, keep_columns, take_columns
from skfair.utils import factorize as module
from skfair.utils.factorize import factorize
from skfair.utils.history import History, count_passes
from skfair.utils.registry import Registry
from skfair.utils.response import get_response
from skfair.utils.validation import check_labels
from tests.messages import messages
from tests.seeds import generator


def test_history_lines_up_columns():
    history = History()
    history.record(objective=3.0)
    history.record(objective=2.0, gap=0.5)
    history.record(gap=0.25)
    columns = history.as_dict()
    assert len(history) == 3
    assert np.array_equal(columns["objective"], [3.0, 2.0, np.nan], equal_nan=True)
    assert np.array_equal(columns["gap"], [np.nan, 0.5, 0.25], equal_nan=True)
    assert (np.diff(columns["seconds"]) >= 0).all()
    assert History().as_dict() == {}


def test_passes_do_not_depend_on_what_was_counted_before():
    found = []
    for earlier in (0.0, 1000 / 7, 1e9 + 1 / 7):
        count_passes(earlier)
        history = History()
        for _ in range(20):
            count_passes(1 / 3)
            history.record()
        found.append(history.as_dict()["passes"])
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


def test_registry_finds_registers_and_explains():
    registry = Registry("constraint", "skfair.models")

    @registry.register("one")
    class One:
        pass

    assert registry["one"] is One
    assert list(registry) == ["one"]
    registry.register("one")(One)  # the same again is harmless
    again = type("One", (), {"__module__": One.__module__, "__qualname__": One.__qualname__})
    assert registry.register("one")(again) is registry["one"] is again  # a cell is run again
    with pytest.raises(ValueError, match="two constraints named 'one'"):
        registry.register("one")(object)
    with pytest.raises(ValueError, match="There is no constraint 'two'. The constraints are 'one'"):
        registry["two"]


@pytest.fixture
def registry_of_slow_plugins(tmp_path, monkeypatch):
    """The file of the one plugin tells that it is being imported, and waits to be let go on."""
    package = tmp_path / "slow_plugins_of_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    code = "import slow_plugins_of_test as home\nhome.begin()\nhome.REGISTRY.register('one')(3)\n"
    (package / "extra.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    import slow_plugins_of_test

    slow_plugins_of_test.REGISTRY = Registry("plugin", "slow_plugins_of_test")
    yield slow_plugins_of_test
    for name in ("slow_plugins_of_test", "slow_plugins_of_test.extra"):
        sys.modules.pop(name, None)


def test_a_registry_that_is_being_read_is_not_empty_for_others(registry_of_slow_plugins):
    begun, go_on = threading.Event(), threading.Event()
    home = registry_of_slow_plugins
    home.begin = lambda: (begun.set(), go_on.wait(10))
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(list, home.REGISTRY)
        assert begun.wait(10)
        second = pool.submit(list, home.REGISTRY)
        threading.Timer(0.05, go_on.set).start()
        assert first.result() == second.result() == ["one"]


def test_an_interrupted_import_does_not_empty_a_registry(registry_of_slow_plugins):
    home = registry_of_slow_plugins

    def interrupt():
        raise KeyboardInterrupt

    home.begin = interrupt
    with pytest.raises(KeyboardInterrupt):
        list(home.REGISTRY)
    home.begin = list
    assert list(home.REGISTRY) == ["one"]


def test_columns_of_every_table():
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4], 7: [5, 6]})
    assert column_positions(frame, ["b", 7]) == [1, 2]
    assert column_positions(frame, [0, -2]) == [0, 1]
    assert take_columns(frame, ["b"]).columns.tolist() == ["b"]
    assert keep_columns(frame, [0]).columns.tolist() == ["a"]
    assert take_columns([["f", 1], ["m", 2]], 1).tolist() == [[1], [2]]  # not "1" and "2"
    twice = frame.set_axis(["a", "b", "b"], axis=1)
    assert keep_columns(twice, [0, 1]).to_numpy().tolist() == [[1, 3], [2, 4]]
    array = frame.to_numpy()
    for table in (array, sparse.csr_array(array), sparse.dia_array(array), array.tolist()):
        assert np.array_equal(take_columns(table, [1]), [[3], [4]])
        rest = keep_columns(table, [0, 2])
        rest = rest.toarray() if sparse.issparse(rest) else rest
        assert np.array_equal(rest, array[:, [0, 2]])


def test_columns_of_other_data_frames():
    class Frame:
        columns = ("a", "b")

        def __getitem__(self, key):
            return {"a": [1, 2], "b": [3, 4]}[key] if isinstance(key, str) else list(key)

    assert take_columns(Frame(), "b") == {"b": [3, 4]}
    assert keep_columns(Frame(), [0]) == ["a"]


X, Y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array(["n", "n", "y", "y"])
MODEL, THREE = (LogisticRegression().fit(X, y) for y in (Y, list("abcc")))
LINE = LinearRegression().fit(X, X[:, 0])
MIXED = np.array(["a", None, "b"], dtype=object)
MIXED[1] = [1, 2]
test_what_cannot_be_used_is_named = messages(
    (
        *(TypeError, "must be a name, a position or a list of them, got 1.5"),
        lambda: column_positions(pd.DataFrame(X), 1.5),
    ),
    (
        *(AttributeError, "LinearRegression has none of the methods"),
        lambda: get_response(LINE, X, "predict_proba"),
    ),
    (
        *(ValueError, "pos_label='z' is not a class"),
        lambda: get_response(MODEL, X, "predict_proba", pos_label="z"),
    ),
    (ValueError, "need a binary class", lambda: get_response(THREE, X, "predict_proba")),
    (ValueError, "shape", lambda: check_labels(np.zeros((2, 3)), "y")),
    (TypeError, "A group or label must be a number or a string", lambda: factorize(MIXED)),
    (AttributeError, "no attribute 'clasification'", lambda: skfair.clasification),
)


def test_responses():
    model, y = MODEL, Y
    scores = model.decision_function(X)
    assert np.array_equal(get_response(model, X, "predict"), y)
    assert np.array_equal(get_response(model, X, "decision_function"), scores)
    assert np.array_equal(get_response(model, X, "decision_function", pos_label="n"), -scores)
    proba = get_response(model, X, ["nothing", "predict_proba"], pos_label="n")
    assert np.array_equal(proba, model.predict_proba(X)[:, 0])
    assert np.allclose(get_response(LINE, X, "predict"), X[:, 0])
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2).fit(X, y)
    assert np.array_equal(get_response(search, X, "decision_function"), scores)


def test_versions_are_printed(capsys, monkeypatch):
    skfair.show_versions()
    text = capsys.readouterr().out
    assert text.split()[:2] == ["skfair", skfair.__version__]
    assert "numba" in text
    monkeypatch.setattr("skfair.utils.versions._PACKAGES", ("no-such-package",))
    skfair.show_versions()
    assert "not installed" in capsys.readouterr().out


def test_sub_packages_are_listed():
    assert set(skfair.__all__) == set(dir(skfair))
    assert skfair.metrics.__name__ == "skfair.metrics"


@pytest.mark.parametrize("kind", ["U", "S", ">U"])
def test_texts_of_many_rows_have_the_codes_of_numpy(kind, monkeypatch):
    """Also those that begin, or end, as others do, and those that only one row has."""
    rng = generator(0)
    alike = ["ab", "abc", "b", "", "a b", "xbc", "abd", "abcdefghij"]
    several = [f"{i:03}" for i in range(200)]
    monkeypatch.setattr(module, "_FEW", 64)
    for levels in (alike[:1], alike, several, ["é", "e", "中", "ee"][: 4 if "U" in kind else 0]):
        for rare in ("", "abcdefghik", "b\x01"):
            values = rng.choice(levels or ["x", "y"], 3000)
            values = np.append(values, rare)[rng.permutation(3001)].astype(kind)
            for own in (values, np.stack([values, values[::-1]], axis=1)[:, 0]):
                expected, codes = np.unique(own, return_inverse=True)
                found = factorize(own)
                assert found.levels == expected.tolist()
                assert np.array_equal(found.codes, codes)
