"""The rules of the house hold, and each guard catches the breach it is there for."""

import ast
import gc
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import skfair
from tests import house

ROOT = Path(skfair.__file__).parent


def run(code, cwd=None, **environment):
    """Run code in a fresh interpreter and return what it prints."""

    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=120,
        cwd=cwd,  # the folder of "python -c" comes first on the path
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def plant(tmp_path, name, source):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source))
    return tmp_path


def test_arrows_point_down():
    assert house.layer_breaches(ROOT) == []


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("utils/planted.py", "from skfair.metrics import group_report"),
        ("metrics/planted.py", "def f():\n    import skfair.constraints"),
        ("solvers/planted.py", "from skfair.cluster import FairKMeans"),
        ("problems/planted.py", "import skfair.solvers.base"),
        ("_kernels/planted.py", "from skfair import utils"),
        ("datasets/planted.py", "from skfair.metrics.labels import RATES"),
        ("solvers/erm/planted.py", "from skfair.papers.safairkm.swap import swap"),
        ("solvers/erm/planted.py", "from skfair.constraints.bound import BoundConstraint"),
        ("utils/planted.py", "from skfair.groups.encoding import GroupEncoding"),
    ],
)
def test_an_upward_arrow_is_caught(tmp_path, file, source):
    breaches = house.layer_breaches(plant(tmp_path, file, source))
    assert breaches
    assert breaches[0].startswith(file)


def test_no_files_import_each_other(tmp_path):
    assert house.circles(ROOT) == []
    plant(tmp_path, "utils/a.py", "from skfair.utils.b import x")
    plant(tmp_path, "utils/b.py", "def f():\n    from skfair.utils import a")
    assert house.circles(tmp_path) == ["skfair.utils.a", "skfair.utils.b"]


def test_every_part_has_its_floor():
    parts = {path.name.removesuffix(".py") for path in ROOT.iterdir() if path.name[0] != "."}
    assert parts - {"__init__", "__pycache__", "py.typed"} <= set(house.MAY_IMPORT)


def test_kernels_are_closed():
    assert house.kernel_breaches(ROOT) == []


CLOSED = '''
import numpy as np
from skfair._kernels.declaring import njit

@njit(cache=True)
def good(x, out):
    """Write x into out."""
    out[:] = x
'''


@pytest.mark.parametrize(
    ("file", "source", "message"),
    [
        ("_kernels/a.py", CLOSED, None),
        ("_kernels/a.py", CLOSED + "from skfair._kernels.b import helper", "closed"),
        ("_kernels/a.py", CLOSED.replace("skfair._kernels.declaring", "numba"), "closed"),
        ("_kernels/a.py", CLOSED.replace("cache=True", "cache=False"), "njit(cache=True)"),
        ("_kernels/a.py", CLOSED.replace("cache=True", "fastmath=True"), "njit(cache=True)"),
        ("_kernels/a.py", CLOSED.replace("(cache=True)", '("f8(f8)")'), "njit(cache=True)"),
        ("_kernels/a.py", CLOSED.replace('"""Write x into out."""', "pass"), "docstring"),
        ("_kernels/a.py", CLOSED + "    raise ValueError('no')", "raises"),
        ("utils/a.py", "def f():\n    from numba import njit", "kernels live in _kernels"),
    ],
)
def test_an_open_kernel_is_caught(tmp_path, file, source, message):
    breaches = house.kernel_breaches(plant(tmp_path, file, source))
    if message is None:
        assert breaches == []
    else:
        assert message in breaches[0]


def test_contracts_between_parts_are_typed(tmp_path):
    assert house.any_breaches(ROOT) == []
    plant(tmp_path, "solvers/a.py", "def solve(problem: Any, tol: Any): ...")
    assert house.any_breaches(tmp_path) == ["solvers/a.py: solve(problem: Any)"]


def test_names_say_what_is_in_them():
    assert house.name_breaches(ROOT) == []


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "x = [one for one in range(3)]",
        "def f(x, *, given=None): ...",
        "f = lambda one: 2 * one",
        "class A:\n    given: int = 0",
        "class Given: ...",
        "def _found(): ...",
        "self.found = 1",
        "if (one := f()): ...",
        "is_there = True",
    ],
)
def test_an_empty_name_is_caught(tmp_path, source):
    [breach] = house.name_breaches(plant(tmp_path, "utils/a.py", source))
    assert breach.startswith("utils/a.py:")


def test_nothing_prints(tmp_path):
    assert house.print_breaches(ROOT) == []
    assert house.print_breaches(plant(tmp_path, "solvers/a.py", "print('step')"))


def test_nothing_depends_on_the_clock_or_turns_output_away():
    assert house.process_breaches(ROOT) == []


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.dup2(1, 2)",
        "from os import dup2",
        "options = {'time_limit': 1.0}",
        "solve(time_limit=1)",
        "from scipy.optimize import milp",
        "from scipy import optimize\noptimize.milp()",
        "import time",
        "from time import monotonic",
    ],
)
def test_what_depends_on_the_clock_is_caught(tmp_path, source):
    assert house.process_breaches(plant(tmp_path, "utils/a.py", source))


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
        for name in {house.public_packages()}:
            importlib.import_module("skfair." + name)
            print(*sys.modules)
            for ours in [one for one in sys.modules if one.split(".")[0] == "skfair"]:
                del sys.modules[ours]
    """)
    return dict(zip(house.public_packages(), map(str.split, said.splitlines()), strict=True))


@pytest.mark.parametrize("name", house.public_packages())
def test_sub_packages_load_neither_numba_nor_matplotlib(name, loaded_by_sub_packages):
    loaded = loaded_by_sub_packages[name]
    assert f"skfair.{name}" in loaded
    assert not {"numba", "matplotlib"} & set(loaded)


def test_clustering_imports_few_metrics_and_solvers(loaded_by_sub_packages):
    loaded = loaded_by_sub_packages["cluster"]
    assert "skfair.metrics.fronts" in loaded
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


# Two groups, of three people and of one. Little else is imported, and not scikit-learn: it takes
# longer than all the rest.
USE_A_KERNEL = """
    import sys
    import numpy as np
    from skfair._kernels.sorted_pairs import largest_gaps
    scores, level = np.array([4.0, 2.0, 1.0, 3.0]), np.array([1 / 3, 2 / 3, 1.0, 1.0])
    value = np.empty(1)
    largest_gaps(scores, level, np.array([0, 3, 4]), np.array([0]), np.array([1]), value)
    assert "sklearn" not in sys.modules
    stats = largest_gaps.stats
    print(value[0], sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


# What a process sees whose files are all read-only, but perhaps for temporary ones.
READ_ONLY = """
    import tempfile, warnings

    def refuse(place):
        real = getattr(tempfile, place)
        def write(*args, dir=None, **kwargs):
            if {nothing} or "skfair-kernels-" not in f"{{dir}} {{kwargs}}":
                raise OSError(30, "Read-only file system")
            return real(*args, dir=dir, **kwargs)
        setattr(tempfile, place, write)

    refuse("TemporaryFile")
    refuse("mkdtemp")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        {work}
    (one,) = told
    print("NUMBA_CACHE_DIR" in str(one.message), one.filename)
"""


def read_only(work, *, nothing=False):
    work = textwrap.dedent(work).strip().replace("\n", "\n" + 8 * " ")
    return READ_ONLY.format(work=work, nothing=nothing)


@pytest.mark.parametrize("nothing", [True, False])
def test_kernels_compile_where_nothing_can_be_written(tmp_path, nothing):
    """Uncached, or in a temporary folder that is gone afterwards, with one warning."""
    said = run(
        read_only(USE_A_KERNEL, nothing=nothing),
        NUMBA_CACHE_DIR=str(tmp_path / "cache"),
        TMPDIR=str(tmp_path),
    )
    value, hits, misses, names_it, line = said.split()
    assert float(value) == pytest.approx(2 / 3, abs=1e-5)
    assert int(hits) + int(misses) == 1  # what lies beside the package may be used
    assert hits == "0" or not nothing
    assert (names_it, line) == ("True", "<string>")
    assert not list(tmp_path.glob("skfair-kernels-*"))


@pytest.fixture(scope="module")
def first_use(tmp_path_factory):
    """A folder into which one process has compiled the kernel, and what it said."""
    folder = tmp_path_factory.mktemp("kernels")
    return folder, run(USE_A_KERNEL, NUMBA_CACHE_DIR=str(folder)).split()


def test_kernels_load_from_the_cache_in_a_fresh_process(tmp_path, first_use):
    """Also where the cache can be read and not written."""
    folder, first = first_use
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    second = run(USE_A_KERNEL, NUMBA_CACHE_DIR=str(tmp_path)).split()
    third = run(read_only(USE_A_KERNEL), NUMBA_CACHE_DIR=str(tmp_path)).split()
    assert first[1:] == ["0", "1"]
    assert second[1:] == third[1:3] == ["1", "0"]
    assert first[0] == second[0] == third[0]


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no shared memory")
def test_stored_kernels_load_where_only_shared_memory_can_be_written(tmp_path, first_use):
    """As in a container that is started read-only, without any folder for temporary files."""
    work = """
        given = tempfile.mkdtemp
        def only_shared(*args, dir=None, **kwargs):
            if dir != "/dev/shm":
                raise OSError(30, "Read-only file system")
            return given(*args, dir=dir, **kwargs)
        tempfile.mkdtemp = only_shared
    """
    shutil.copytree(first_use[0], tmp_path, dirs_exist_ok=True)
    code = read_only(textwrap.dedent(work) + textwrap.dedent(USE_A_KERNEL))
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)).split()[1:3] == ["1", "0"]
    assert not list(Path("/dev/shm").glob("skfair-kernels-*"))


def test_every_kernel_can_be_declared_where_nothing_can_be_written(tmp_path):
    work = """
        from importlib import import_module
        from pkgutil import iter_modules
        from skfair import _kernels
        names = [one.name for one in iter_modules(_kernels.__path__, "skfair._kernels.")]
        found = [one for name in names for one in vars(import_module(name)).values()]
        print(sum(hasattr(one, "py_func") for one in found))
    """
    said = run(read_only(work), NUMBA_CACHE_DIR=str(tmp_path / "cache")).split()
    assert int(said[0]) > 50


def test_an_upgraded_kernel_gives_new_numbers(tmp_path):
    """numba hashes only the text of a kernel's own file, so a closed file cannot be stale."""
    package = tmp_path / "site" / "skfair"
    shutil.copytree(ROOT, package, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path / "site")}
    before = float(run(USE_A_KERNEL, tmp_path, **environment).split()[0])
    kernel = package / "_kernels" / "sorted_pairs.py"
    old, new = "largest = max(largest, abs(a - b))", "largest = max(largest, 10 * abs(a - b))"
    text = kernel.read_text()
    assert old in text
    kernel.write_text(text.replace(old, new))
    after = float(run(USE_A_KERNEL, tmp_path, **environment).split()[0])
    assert after == pytest.approx(10 * before)


def test_sessions_of_tests_collect_garbage_and_keep_bytecode():
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    assert not sys.dont_write_bytecode
    assert run("import sys; print(sys.dont_write_bytecode)") == "False"


PUBLIC, OPTIONS = dict(house.public_objects()), dict(house.option_objects())


@pytest.mark.parametrize("name", PUBLIC)
def test_public_objects_are_documented(name):
    assert house.doc_breaches(name, PUBLIC[name]) == []


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_estimators_are_documented(name):
    """Their methods are those of the base class, for those who write one."""
    breaches = house.doc_breaches(name, OPTIONS[name])
    assert [breach for breach in breaches if not breach.startswith(f"{name}.")] == []


def test_a_poor_docstring_is_caught():
    def lacking(a, b):
        """Do something.

        Parameters
        ----------
        a : int
            First.
        """

    breaches = house.doc_breaches("lacking", lacking)
    assert len(breaches) == 2

    def good(a, *, b=1, **options):
        """Do something.

        Parameters
        ----------
        a, b : int
            Both.
        **options
            The rest.

        Examples
        --------
        >>> 1 + 1
        2
        """

    assert house.doc_breaches("good", good) == []


def test_every_module_has_a_docstring_and_imports():
    names = house.package_modules()
    assert len(names) > 30
    assert all(sys.modules[name].__doc__ for name in names)


def test_all_lists_strings():
    for name in house.public_packages():
        module = getattr(skfair, name)
        assert all(isinstance(entry, str) for entry in getattr(module, "__all__", ()))
        assert all(hasattr(module, entry) for entry in getattr(module, "__all__", ()))


def test_modules_begin_with_what_they_offer():
    asked = tuple(f'"""{word} ' for word in ("What", "Where", "Which", "How"))
    assert not [path for path in ROOT.rglob("*.py") if path.read_text().startswith(asked)]


def test_names_are_words_of_the_field():
    """Constraints are no rules, but for rules of law; outside clustering nothing has a price."""
    law = ("report", "datasets", "monitoring", "model_selection/search", "papers")
    clusters = ("cluster", "papers", "metrics", "report", "problems/clustering", "solvers")
    rooms = {"rule": (*law, "_kernels/swaps"), "price": (*clusters, "_kernels/prices")}
    for path in ROOT.rglob("*.py"):
        text, place = path.read_text(), path.relative_to(ROOT).as_posix()
        assert "so many" not in text.lower(), place
        nodes, keys = list(ast.walk(ast.parse(text))), ("id", "arg", "name")
        names = " ".join(str(getattr(node, key, "")) for node in nodes for key in keys)
        words = {word.lower() for word in re.findall("[A-Z]?[a-z]+", names)}
        for word, where in rooms.items():
            assert place.startswith(where) or not words & {word, f"{word}s"}, f"{place}: {word}"
