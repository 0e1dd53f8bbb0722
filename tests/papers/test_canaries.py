"""Canaries, which say whether benchmarks still give the results of their records."""

import ast
import importlib
import inspect
import json
import warnings

import pytest

harness = pytest.importorskip("benchmarks.harness", reason="benchmarks come with a checkout")
from benchmarks import _records, canaries, check  # noqa: E402

SCRIPTS = sorted(harness.HERE.rglob("*.py"))
RECORDED = sorted({path.stem for path in harness.RECORDS.glob("*.json")} - {"check"})


def of(canary, measured="2026-01-02"):
    """A record with a canary."""
    about = {"machine": "m", "python": "3", "commit": "c", "command": "make bench"}
    about |= {"versions": dict.fromkeys(harness.PARTS, "1.0"), "canary": canary}
    return {"benchmark": "monitor", "date": measured, **about}


class Module:
    """A benchmark whose canary gives what it is told."""

    def __init__(self, found):
        self.found = found

    def canary(self):
        if isinstance(self.found, Exception):
            raise self.found
        print("said while it runs")
        return self.found


@pytest.fixture
def record(monkeypatch, tmp_path):
    """A record of ``monitor`` in a folder of its own, and a way to set what its canary gives."""
    monkeypatch.setattr(canaries, "RECORDS", tmp_path)
    monkeypatch.setattr(canaries, "read_record", lambda name: harness.read(name, tmp_path))
    monkeypatch.setattr(canaries, "check_threads", lambda: None)
    (tmp_path / "monitor.json").write_text(json.dumps({**of(None), "results": [1]}))

    def give(found, *arguments):
        monkeypatch.setattr(canaries, "module_of", lambda name: Module(found))
        monkeypatch.setattr("sys.argv", ["canaries", "monitor", *arguments])
        with pytest.raises(SystemExit) as stopped:
            canaries.main()
        return stopped.value.code, harness.read("monitor", tmp_path)

    return give


def test_a_change_of_results_fails_and_marks_the_page(record, capsys):
    first = {"rates": [0.25, 0.5], "says": "converged", "cpu": 3.0}
    code, kept = record(first, "--keep")
    assert (code, kept["canary"]["results"], kept["results"]) == (0, first, [1])
    assert "runs" in capsys.readouterr().out
    assert "No part" in _records.origin(kept)
    code, kept = record({**first, "cpu": 9.0}, "--keep")  # only a time
    assert (code, _records.is_changed(kept)) == (0, False)
    assert "reproduced" in capsys.readouterr().out
    assert "reproduced on" in _records.origin(kept)
    code, kept = record({**first, "rates": [0.25, 0.375]})
    assert (code, _records.is_changed(kept)) == (1, False)  # written with --keep only
    assert "rates, 1: from 0.5 to 0.375" in capsys.readouterr().out
    code, kept = record({**first, "rates": [0.25, 0.375]}, "--keep")
    assert (code, _records.is_changed(kept), kept["canary"]["results"]) == (1, True, first)
    assert "results have changed since" in _records.origin(kept)
    assert "changed" in _records.standing(kept)
    code, kept = record(first, "--keep")  # mended
    assert (code, _records.is_changed(kept)) == (0, False)


@pytest.mark.parametrize(
    ("error", "word", "expected"),
    [
        (FileNotFoundError("adult.parquet"), "skipped", 0),
        (ModuleNotFoundError("no", name="oxonfair.group_metrics"), "oxonfair", 0),
        (ModuleNotFoundError("no", name="skfair.gone"), "it stops", 1),
        (ImportError("cannot import name 'gone'", name="skfair.metrics"), "it stops", 1),
        (TypeError("unexpected keyword 'confidence'"), "'confidence'", 1),
        ([object()], "not JSON serializable", 1),
    ],
)
def test_what_is_missing_is_skipped_and_what_stops_fails(error, word, expected, record, capsys):
    code, kept = record(error, "--keep")
    assert (code, kept["canary"]) == (expected, None)
    assert word in capsys.readouterr().out


def test_results_are_equal_up_to_rounding():
    was = {"n": 3, "share": 0.1, "none": None, "nan": float("nan"), "is_kept": True, "rows": [1, 2]}
    assert canaries.differences(was, {**was, "share": 0.1 * (1 + 1e-8)}) == []
    for other in ({"n": 4}, {"share": 0.1001}, {"none": 0.0}, {"is_kept": False}, {"rows": [1]}):
        (found,) = canaries.differences(was, was | other)
        assert found.startswith(next(iter(other)))
    assert canaries.differences(list(range(9)), list(range(1, 10)))[-1] == "and 6 more of 9 results"


def test_a_longer_time_is_told_and_does_not_fail():
    found, before = canaries.Found("a", [1], 6.0), {"seconds": 3.0}
    assert "slower (was 3.0 s)" in found.text(before)
    assert "faster (was 30.0 s)" in found.text({"seconds": 30.0})
    assert "slower" not in found._replace(seconds=3.3).text(before)
    assert not found.differs


def test_a_page_says_what_was_not_compared():
    """A canary that was first run after its record says nothing about the time between."""
    canary = {"date": "2026-03-04", "reproduced": "2026-05-06", "seconds": 1.0, "results": [1]}
    assert "first measured on 2026-03-04, with later code" in _records.origin(of(canary))
    assert "first measured" not in _records.origin(of({**canary, "date": "2026-01-02"}))
    assert "was run again" in _records.origin(of(None))
    assert _records.standing(of(canary)) != _records.standing(of({**canary, "date": "2026-01-02"}))


@pytest.mark.parametrize("name", RECORDED)
def test_a_record_has_a_small_canary(name):
    canary = harness.read(name)["canary"]
    if canary is not None:  # what it needs was not installed
        assert canary["seconds"] <= 60
        assert 0 < len(list(canaries.leaves(canary["results"]))) <= 500


def public_names(path, tree):
    """The objects of skfair that a script imports, by the names that it gives them."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "skfair":
            module = importlib.import_module(node.module)
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")
                found[alias.asname or alias.name] = getattr(module, alias.name)
    return found


def called(function, names):
    """The object of skfair that is called, or None."""
    if isinstance(function, ast.Name):
        return names.get(function.id)
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        owner = names.get(function.value.id)
        if inspect.ismodule(owner):
            return getattr(owner, function.attr)  # a name that is gone stops the test
    return None


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_call_skfair_by_its_signatures(path):
    """Also those that nobody can run without a peer; ``**options`` are seen only by canaries."""
    tree = ast.parse(path.read_text())
    names, wrong = public_names(path, tree), []
    for node in ast.walk(tree):
        function = called(node.func, names) if isinstance(node, ast.Call) else None
        if function is None or not callable(function):
            continue
        given = [None for one in node.args if not isinstance(one, ast.Starred)]
        keywords = dict.fromkeys(one.arg for one in node.keywords if one.arg)
        try:
            inspect.signature(function).bind_partial(*given, **keywords)
        except TypeError as error:
            wrong.append(f"line {node.lineno}: {ast.unparse(node.func)}: {error}")
    assert wrong == []


@pytest.mark.slow
def test_the_jobs_that_are_timed_can_be_made():
    """A keyword that is gone stopped ``make bench-check`` before it measured anything."""
    jobs = [job for family in check.FAMILIES for job in family()]
    assert len({job.name for job in jobs}) == len(jobs) > 0


def by_time(long):
    """The names of all benchmarks; those that take long are marked as slow."""
    for name in harness.names():
        yield pytest.param(name, marks=[pytest.mark.slow] if name in long else [])


# Canaries of more than two seconds; the others take 16 seconds together.
LONG = {
    *("alternating", "certificate_edges", "dask_scaling", "decision_promise", "decision_speed"),
    *("disparity_tests", "equal_means", "external", "guarantee", "guarantee_classes"),
    *("guarantee_means", "intervals", "partial_fairness_deep", "persons", "plada"),
    *("pooled_rates", "procedures", "ranking", "safairkm", "stability", "year"),
}


@pytest.mark.parametrize("name", by_time(LONG))
def test_each_canary_runs(name):
    """``make bench-check`` compares them; here they only have to run, on any machine."""
    found = canaries.run(name)
    assert not found.differs
    if found.skipped:
        pytest.skip(found.skipped)
    assert list(canaries.leaves(found.results))


# Scripts whose shortest run takes more than a minute, nearly all of it in what their canary calls.
MINUTES = {"guarantee", "procedures", "small_fits"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*harness.names()} - MINUTES))
def test_each_script_runs_on_little_data(name):
    """Two scripts stopped after a rename in parts that a small cell does not reach."""
    with harness.quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some benchmarks provoke every warning there is
        try:
            harness.module_of(name).main(quick=True)
        except FileNotFoundError as error:
            pytest.skip(f"{error}")
