"""Public names of a sub-package that are imported when one of them is first used.

The ``__init__.py`` of a sub-package lists its names in ``__all__``, and its file ``_all.py``
imports them. :func:`deferred` makes the functions that import ``_all`` only when it is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from skfair.utils.other_names import missing_attribute
from skfair.utils.wings import names_of_wings


def deferred(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for the ``__init__.py`` of a package.

    A file inside the package can then be imported without all others. Clustering, for example,
    needs only two metrics and a few solvers. Names that wings add are imported from the wings.

    Examples
    --------
    >>> from skfair.utils.deferred import deferred
    >>> get, names = deferred("skfair.metrics")
    >>> get("hypervolume").__module__, "hypervolume" in names()
    ('skfair.metrics.fronts', True)
    """

    def get(name: str) -> Any:
        public = vars(sys.modules[package])["__all__"] if package in sys.modules else ()
        if name in public:
            module = names_of_wings(package).get(name, f"{package}._all")
            home = import_module(module)
            if hasattr(home, name):
                return getattr(home, name)
            more = f" {package}.__all__ lists it. Define it in a file that {module} imports."
        else:
            more = _unlisted(package, name)
        raise missing_attribute(package, name, sys._getframe(1), more)

    def names() -> list[str]:
        return sorted(vars(import_module(package))["__all__"])

    return get, names


def _unlisted(package: str, name: str) -> str:
    """Return a remedy if a file of the package defines a name that ``__all__`` lacks, or ""."""
    found = getattr(sys.modules.get(f"{package}._all"), name, None)
    is_own = str(getattr(found, "__module__", "")).startswith(f"{package}.")
    return f" A file of {package} defines it: add it to {package}.__all__." if is_own else ""
