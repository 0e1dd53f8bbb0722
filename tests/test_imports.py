"""What importing the package and its parts loads, and how long it takes."""

import pytest

import skfair
from tests.processes import run
from tests.public import package_modules, public_packages


def test_import_is_light():
    loaded = run("import sys, skfair; print(*sys.modules)").split()
    assert not {"numba", "pandas", "matplotlib", "sklearn", "numpy"} & set(loaded)


@pytest.fixture(scope="module")
def loaded_by_sub_packages():
    """Import each sub-package before any other of ours, and list what is loaded after it.

    Other libraries stay loaded, so the lists of later ones can only be too long.
    """
    said = run(f"""
        import importlib, sys
        for name in {public_packages()}:
            importlib.import_module("skfair." + name)
            print(*sys.modules)
            for ours in [one for one in sys.modules if one.split(".")[0] == "skfair"]:
                del sys.modules[ours]
    """)
    return dict(zip(public_packages(), map(str.split, said.splitlines()), strict=True))


@pytest.mark.parametrize("name", public_packages())
def test_sub_packages_load_neither_numba_nor_matplotlib(name, loaded_by_sub_packages):
    loaded = loaded_by_sub_packages[name]
    assert f"skfair.{name}" in loaded
    assert not {"numba", "matplotlib"} & set(loaded)


def test_clustering_imports_few_metrics_and_solvers(loaded_by_sub_packages):
    loaded = loaded_by_sub_packages["cluster"]
    assert "skfair.cluster.fair_assignment" in loaded
    assert not {"skfair.metrics._all", "skfair.solvers._all", "skfair.solvers.erm"} & set(loaded)


def test_default_solvers_load_no_algorithms_of_papers():
    loaded = run("""
        import sys, warnings
        from skfair.classification import ConstrainedERMClassifier
        from skfair.cluster import FairKMeans

        warnings.simplefilter("ignore")
        X, y, groups = [[i % 7] for i in range(80)], [0, 1] * 40, [0, 0, 1, 1] * 20
        ConstrainedERMClassifier("demographic_parity", 0.1).fit(X, y, sensitive_features=groups)
        FairKMeans(2).fit(X, sensitive_features=groups)
        print(*sys.modules)
    """).split()
    assert "skfair.solvers.erm.al_newton" in loaded
    assert "skfair.papers.plada.plada" not in loaded
    assert "skfair.papers.safairkm.swap" not in loaded


def test_import_costs_no_more_than_scikit_learn():
    """What is left once scikit-learn is loaded; one of three, for others may use the cores."""
    code = """
        import sklearn, time
        start = time.process_time()
        import skfair
        print(time.process_time() - start)
    """
    assert any(float(run(code)) <= 0.05 for _ in range(3))


def test_a_first_metric_waits_for_nothing(tmp_path):
    """Little is imported besides scikit-learn, and rates of labels need no compiler."""
    code = """
        import sys, time
        times = [time.process_time()]
        import sklearn.metrics
        times.append(time.process_time())
        from skfair.metrics import demographic_parity_difference
        times.append(time.process_time())
        groups = ["f", "m"] * 99
        demographic_parity_difference([0, 1] * 99, [0, 1, 1] * 66, sensitive_features=groups)
        times.append(time.process_time())
        print("numba" in sys.modules, *(b - a for a, b in zip(times, times[1:])))
    """
    has_numba, theirs, ours, call = run(code, NUMBA_CACHE_DIR=str(tmp_path)).split()
    assert has_numba == "False"
    assert float(ours) <= 0.5 * float(theirs)  # a tenth on a quiet machine
    assert float(call) <= 0.5  # a thousandth of a second


def test_every_module_can_be_imported():
    assert len(package_modules()) > 30


def test_all_lists_strings():
    for name in public_packages():
        module = getattr(skfair, name)
        assert all(isinstance(entry, str) for entry in getattr(module, "__all__", ()))
        assert all(hasattr(module, entry) for entry in getattr(module, "__all__", ()))
