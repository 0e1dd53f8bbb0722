"""What tests that go over all families need of each one, from files that are deleted with it.

The folder of a family's tests may have two such files. ``family.py`` may have the tables

- ``CLUSTERERS``: estimators with ``n_clusters``, ``min_balance``, ``size_bounds`` and labels,
- ``REGISTRIES``: registries of solvers, by what they are called,
- ``SOLVER_TESTS``: the tests on real data of estimators that take a solver,
- ``MISSPELT``: (estimator, parameter, misspelt value, what is meant),
- ``SUMMARIES``: (estimator, the limits by name that its summary says),
- ``THREADS``: the model and the number of rows that it is fitted to with several threads, by name,
- ``ENDINGS``: what ends with each word of ``status_``, by estimator and word: (model, what it is
  fitted to), and ``BY_ROUNDING``, those of (estimator, word) that only rounding errors lead to,
- ``WARNINGS``: (words of a warning, call that makes it said),
- ``READERS_OF_LABELS``: what reads true and predicted labels and ``sensitive_features``, by name,
- ``READERS_OF_DECISIONS``: (what reads decisions and ``sensitive_features``, whether from Dask),
- ``RESULTS``: public classes of results that no package lists,
- ``ASSIGNING``: clusterers with ``assign``, by name; a front is named after the point of it,
- ``WITHIN_CLASSES``: (metric that compares groups within classes, its options),
- ``AROUND_MODELS``: (estimator around another model, that model, parameters), by name,
- ``OUT_OF_FOLD``: classes of classifiers around another model with ``train_predictions_``,
- ``OF_ONE_GROUP``: (estimator that nothing wraps, what its fit takes of 200 rows), by name,
- ``DRAWN``: what draws a display, by name,
- ``CONTINUED``: (what draws a display with ``name=`` and ``ax=``, its attribute of lines), by name,
- ``FIRST_FITS``: what is compiled in a first fit, and how many functions and seconds it may take.

``fuzz_cases.py`` may have the dicts ``FITS`` (functions that draw hard fits, by estimator),
``SETTINGS`` (cheap parameters of estimators), ``ARGUMENTS`` (as in :mod:`tests.fuzz.parameters`),
``OWNERS`` (estimators by the registry of their solvers), ``USES`` (what is done with an object of a
class).
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent


@cache
def _modules(name: str) -> list[Any]:
    files = sorted(TESTS.rglob(f"{name}.py"))
    parts = (file.relative_to(TESTS.parent).with_suffix("").parts for file in files)
    return [import_module(".".join(part)) for part in parts]


def rows_of_families(kind: str) -> list[Any]:
    """Return the rows that families have in a table of theirs."""
    return [row for module in _modules("family") for row in getattr(module, kind, [])]


def by_families(kind: str, file: str = "family") -> dict[Any, Any]:
    """Return the entries that families have in a dict of theirs."""
    found: dict[Any, Any] = {}
    for module in _modules(file):
        found |= getattr(module, kind, {})
    return found
