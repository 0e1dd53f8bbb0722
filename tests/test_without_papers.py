"""The package and its tests do without ``skfair/papers``, and only one place imports it."""

import ast
import re
from pathlib import Path

import skfair
from tests import registries
from tests.processes import run
from tests.public import names_in

ROOT = Path(skfair.__file__).parent
HIDE_PAPERS = """
    import sys

    class Hidden:
        def find_spec(self, name, path=None, target=None):
            if name.startswith("skfair.papers"):
                raise ImportError(f"{name} is hidden", name=name)

    sys.meta_path.insert(0, Hidden())
"""


def test_everything_else_imports_and_fits():
    fits = """
    import importlib, warnings
    import numpy as np
    import skfair
    from tests.public import discover_estimators, package_modules

    names = package_modules(but="papers")
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X, sex = rng.normal(size=(120, 2)), np.tile(["f", "m"], 60)
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    models = discover_estimators()
    for name, kind in models.items():
        model = kind()
        arguments = (X, y, np.repeat(np.arange(12), 10)) if name == "FairRanker" else (X, y)
        model.fit(*arguments, sensitive_features=sex)
    print(len(names), len(models))
    for name, solver in (
        ("ConstrainedERMClassifier", "plada"),
        ("PartialParityClassifier", "idca"),
        ("FairKMeans", "swap"),
        ("FairSpectralClustering", "ffsc"),
    ):
        try:
            models[name](solver=solver).fit(X, y, sensitive_features=sex)
        except ValueError as error:
            print(error)
    """
    counts, *errors = run(HIDE_PAPERS + fits, cwd=ROOT.parent).splitlines()
    assert min(map(int, counts.split())) >= 12
    assert len(errors) == 4
    for error in errors:
        assert error.endswith("Algorithms of papers (skfair.papers) are not installed.")


def texts(tree):
    """What a file imports, and its texts that are no docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", "")
            yield from (f"{module}.{alias.name}".lstrip(".") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value if "\n" not in node.value and " " not in node.value else ""


def users_of_papers(root, names=()):
    """The files outside ``root / "papers"`` that import papers, or whose texts are such names."""
    for path in root.rglob("*.py"):
        place, found = path.relative_to(root).as_posix(), texts(ast.parse(path.read_text()))
        is_user = any(
            text in names or re.match(r"(skfair|tests)\.papers\b", text) for text in found
        )
        if is_user and not place.startswith("papers/"):
            yield place


def test_one_place_imports_papers():
    assert set(users_of_papers(ROOT)) == {"utils/registry.py"}


def test_tests_of_the_core_name_no_algorithms_of_papers():
    kinds = "CLUSTERING_SOLVERS", "CONSTRAINTS", "EIGEN_SOLVERS", "INTERVAL_SOLVERS", "SOLVERS"
    names = {x for kind in kinds for x in names_in(getattr(registries, kind), of_papers=True)}
    names -= {"penalty", "sgd", "smooth"}  # words that mean other things, too
    rules = {"public.py", "test_imports.py", "test_without_papers.py"}
    assert set(users_of_papers(Path(__file__).parent, names)) <= rules
