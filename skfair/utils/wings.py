"""Wings: families that the rest of skfair works without, each in a folder that can be deleted.

A wing has a file ``wing.py``, which at first imports only the standard library. The file lists the
names that the wing adds to public packages, and has functions for parts that serve all families,
such as the command line. These parts call :func:`names_of_wings` and :func:`functions_of_wings`,
and never name a wing themselves. A wing that is a public package itself adds its name to
``skfair``. "Wings" in ``doc/developer/architecture.rst`` lists the possible content of ``wing.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

_ROOT = Path(__file__).parents[1]


@cache
def wings() -> tuple[ModuleType, ...]:
    """Return the module ``wing.py`` of each wing that is installed."""
    files = sorted([*_ROOT.glob("*/wing.py"), *_ROOT.glob("*/*/wing.py")])
    return tuple(map(_run, files))


def _run(file: Path) -> ModuleType:
    """Run a file ``wing.py`` without the packages around it, which import much more."""
    name = ".".join(("skfair", *file.relative_to(_ROOT).with_suffix("").parts))
    spec = spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def functions_of_wings(name: str) -> list[Callable[..., Any]]:
    """Return the functions of this name in files ``wing.py``."""
    return [getattr(wing, name) for wing in wings() if hasattr(wing, name)]


def names_of_wings(package: str) -> dict[str, str]:
    """Return the names that wings add to a public package, and the module of each.

    A name in a wing without a module is that of the wing itself.

    Examples
    --------
    >>> from skfair.utils.wings import names_of_wings
    >>> names_of_wings("skfair.solvers")["Lanczos"]
    'skfair.cluster.spectral.eigen.lanczos'
    """
    return {
        name: f"{wing.__package__}.{module}".rstrip(".")
        for wing in wings()
        for name, module in wing.NAMES.get(package, {}).items()
    }
