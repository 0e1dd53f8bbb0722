"""Names of other libraries and packages: errors and pages say what is meant, and where it is."""

import copy
import pickle
import re
import traceback
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

from skfair import metrics
from skfair.classification import ConstrainedERMClassifier, FairDecisionClassifier
from skfair.metrics import fairness_report, group_report
from skfair.metrics.reports import Report
from skfair.preprocessing import Reweighing
from skfair.report import audit
from skfair.utils.other_names import parts, tables
from skfair.utils.wings import wings
from tests.processes import run
from tests.public import public_objects, public_packages

ROOT = Path(__file__).parents[2]
SEX, Y = ["f", "m"] * 10, [0, 1, 1, 0] * 5
# Where people look for them.
PACKAGES = ["metrics", "classification", "preprocessing", "constraints", "regression", "inspection"]
PACKAGES += ["model_selection", "datasets", "report", "cluster", "solvers"]
ROWS = [(library, row) for library, rows in tables().items() for row in rows]
NAMES = {
    name: (library, row)
    for library, row in reversed(ROWS)
    for name in row["names"]
    if "argument" not in row
}


@pytest.mark.parametrize("package", ["skfair", *(f"skfair.{name}" for name in PACKAGES)])
def test_errors_of_modules_know_the_names_of_other_libraries(package):
    module = import_module(package)
    for name, (library, row) in NAMES.items():
        assert not hasattr(module, name)
        assert getattr(module, name, None) is None
        found = re.findall(r"skfair(?:\.\w+)+", row["here"])
        for ask in (
            lambda name=name: getattr(module, name),
            lambda name=name: exec(f"from {package} import {name}"),
        ):
            with pytest.raises((AttributeError, ImportError)) as caught:
                ask()
            assert f"{name} is a name of {library}." in str(caught.value)
            assert all(path in str(caught.value) for path in found[:1])
    for name in ("no_such_name", "_hidden", "__wrapped__"):
        with pytest.raises(AttributeError, match=rf"has no attribute '{name}'$"):
            getattr(module, name)
    with pytest.raises(ImportError, match="cannot import name 'no_such_name'"):
        exec(f"from {package} import no_such_name")
    assert set(NAMES).isdisjoint(dir(module))


@pytest.mark.parametrize("make", [group_report, fairness_report])
def test_reports_know_the_attributes_of_metric_frames(make):
    report = make(Y, Y, sensitive_features=SEX)
    for name in ("by_group", "overall", "difference", "ratio", "group_min", "group_max"):
        assert not hasattr(report, name)
        with pytest.raises(AttributeError, match=f"no attribute '{name}'. {name} is a name of"):
            getattr(report, name)
        assert not hasattr(report.iloc[:, :1], name)
    with pytest.raises(AttributeError, match="'Report' object has no attribute 'no_such_name'"):
        report.no_such_name  # noqa: B018
    for other in (copy.copy(report), copy.deepcopy(report), pickle.loads(pickle.dumps(report))):
        assert isinstance(other, Report)
        pd.testing.assert_frame_equal(other, report)
    named = Report({"difference": [1.0], "overall": [2.0]})  # columns go first
    assert [named.difference[0], named.overall[0]] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("owner", "name", "said"),
    [
        (audit(Y, Y, sensitive_features=SEX), "disparity_df", "the tables rates and gaps of the"),
        (FairDecisionClassifier(), "interpolation_dict", "In skfair, use to_thresholds of"),
        (Reweighing(), "instance_weights", "In skfair, use train_weights_ of skfair.prepr"),
        (ConstrainedERMClassifier(), "best_gap", ""),
    ],
)
def test_objects_know_attributes_of_other_libraries(owner, name, said):
    assert not hasattr(owner, name)
    with pytest.raises(AttributeError) as caught:
        getattr(owner, name)
    text, kind = str(caught.value), type(owner).__name__
    assert text.startswith(f"{kind!r} object has no attribute {name!r}")
    assert said in text
    assert text.endswith("." if said else "'")
    for other in (copy.copy(owner), copy.deepcopy(owner)):
        assert type(other) is type(owner)


def test_the_error_of_a_property_is_not_replaced():
    class Broken(FairDecisionClassifier):
        @property
        def shape_(self):
            return None.shape

    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'shape'"):
        Broken().shape_  # noqa: B018


def test_every_name_that_takes_the_place_of_another_is_public():
    public = dict(public_objects()) | {f"skfair.{name}": None for name in public_packages()}
    for _, row in ROWS:
        for path in re.findall(r"skfair(?:\.\w+)+", row["here"] + row.get("difference", "")):
            owner, _, method = path.rpartition(".")
            assert path in public or callable(getattr(public[owner], method))


def test_a_name_has_one_row_in_each_library():
    for rows in tables().values():
        names = [name for row in rows for name in row["names"]]
        assert len(names) == len(set(names))


def test_the_page_prints_the_tables(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "doc")
    printed = import_module("name_tables")
    source = (ROOT / "doc" / "how_to" / "from_other_libraries.rst").read_text()
    for library in printed.LIBRARIES:
        text = printed.text(library)
        assert f".. include:: ../generated/names_in_{library.replace(' ', '_')}.txt" in source
        assert text.count("   * - ") == len(tables()[library]) + 1
        assert all(row["here"] in text for row in tables()[library])
    assert source.count("/names_in_") == len(printed.LIBRARIES)


def test_a_public_name_is_found_from_every_other_package():
    for path, _ in public_objects():
        home, _, name = path.rpartition(".")
        for package in {"skfair", *(f"skfair.{name}" for name in PACKAGES)} - {home}:
            if home == "skfair" and package == "skfair":
                continue
            module = import_module(package)
            if hasattr(module, name):  # two packages may have objects of one name
                continue
            said = f"It is in {home}: from {home} import {name}."
            with pytest.raises(AttributeError, match=re.escape(said)):
                getattr(module, name)
            with pytest.raises(ImportError, match=re.escape(said)):
                exec(f"from {package} import {name}")
            exec(f"from {home} import {name}")


@pytest.mark.parametrize(
    ("package", "typed", "meant"),
    [
        ("skfair", "metrcs", "Did you mean 'metrics'?"),
        ("skfair", "FairKmeans", "Did you mean skfair.cluster.FairKMeans?"),
        ("skfair.metrics", "demographic_parity_diference", "'demographic_parity_difference'?"),
        ("skfair.classification", "FairDecisonClassifier", "Did you mean 'FairDecision"),
    ],
)
def test_a_typo_is_answered_by_the_most_similar_name(package, typed, meant):
    with pytest.raises(ImportError, match=re.escape(meant)):
        exec(f"from {package} import {typed}")


def test_the_names_of_parts_are_those_that_wings_add():
    """Without a wing its own list is gone, so errors read this one (tests/test_without.py)."""
    added = set()
    for wing in wings():
        for package, names in wing.NAMES.items():
            added |= {*names}
            if package == "skfair":
                added |= {own for name in names for own in import_module(f"skfair.{name}").__all__}
    assert added <= set(parts())


def test_the_table_is_read_only_for_an_error():
    assert "False" in run("import sys, skfair, skfair.metrics; print('tomllib' in sys.modules)")


@pytest.mark.parametrize("name", ["reductions", "postprocessing", "algorithms", "group"])
def test_modules_of_other_libraries_are_answered(name):
    with pytest.raises(ModuleNotFoundError, match=f"{name} is a name of .* In skfair, use"):
        import_module(f"skfair.{name}")
    with pytest.raises(ModuleNotFoundError, match=f"{name} is a name of .* In skfair, use"):
        import_module(f"skfair.{name}.deeper")


@pytest.mark.parametrize("name", ["skfair.nonsense", "skfair.metrics.reductions", "reductions"])
def test_other_modules_get_the_error_of_python(name):
    with pytest.raises(ModuleNotFoundError) as caught:
        import_module(name)
    assert "In skfair" not in str(caught.value)
    assert find_spec("skfair.nonsense") is None


def test_python_adds_no_guess_of_its_own():
    """It would guess at another metric: 'predictive_parity_difference'."""
    with pytest.raises(AttributeError) as caught:
        metrics.statistical_parity_difference  # noqa: B018
    (said,) = traceback.format_exception_only(caught.value)
    assert "Did you mean" not in said


def test_an_argument_is_not_taken_for_a_module():
    """aequitas has a module ``group``; as an argument it means the groups of the rows."""
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'group'") as caught:
        group_report(None, Y, group=SEX)
    assert "aequitas" not in str(caught.value)
    assert "sensitive_features" in str(caught.value)
