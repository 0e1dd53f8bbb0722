"""The package does without ``skfair/papers``."""

from pathlib import Path

import skfair
from tests.processes import run

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
    from tests.seeds import generator

    names = package_modules(but="papers")
    warnings.simplefilter("ignore")
    rng = generator(0)
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
