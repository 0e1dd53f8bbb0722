"""Wings: families that the rest of skfair works without, each in a folder that can be deleted.

A wing has a file ``wing.py``, which imports nothing of the wing until it is asked to. There it says
which names it adds to public packages, and what else it does for parts that serve all families.
These parts ask for the wings here, and name none.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

_ROOT = Path(__file__).parents[1]


@cache
def wings() -> tuple[ModuleType, ...]:
    """Return the file ``wing.py`` of each wing that is there."""
    files = sorted([*_ROOT.glob("*/wing.py"), *_ROOT.glob("*/*/wing.py")])
    return tuple(
        import_module(".".join(("skfair", *file.relative_to(_ROOT).with_suffix("").parts)))
        for file in files
    )


def names_of_wings(package: str) -> dict[str, str]:
    """Return the names that wings add to a public package, and the module of each.

    Examples
    --------
    >>> from skfair.utils.wings import names_of_wings
    >>> names_of_wings("skfair.solvers")["Lanczos"]
    'skfair.cluster.spectral.eigen.lanczos'
    """
    return {
        name: f"{wing.__package__}.{module}"
        for wing in wings()
        for name, module in wing.NAMES.get(package, {}).items()
    }
