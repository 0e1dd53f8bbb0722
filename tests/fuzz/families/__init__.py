"""What the cases of a family need, in a file of its own, which is deleted with the family.

A file may have these dicts: ``FITS`` (functions that draw hard fits, by estimator), ``SETTINGS``
(cheap parameters of estimators), ``ARGUMENTS`` (as in :mod:`tests.fuzz.parameters`), ``OWNERS``
(estimators by the registry of their solvers), ``USES`` (what is done with an object of a class).
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any


@cache
def collected(kind: str) -> dict[Any, Any]:
    """Return what the files have of a kind, all together."""
    found: dict[Any, Any] = {}
    for module in iter_modules(__path__):
        found |= getattr(import_module(f"{__name__}.{module.name}"), kind, {})
    return found
