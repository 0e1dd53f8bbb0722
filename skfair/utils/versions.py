"""The table behind :func:`skfair.show_versions`.

Versions are read from installed metadata, so nothing is imported to print them.
"""

import platform
import sys
from importlib import metadata

from skfair._version import __version__
from skfair.utils.namesakes import namesakes

_PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "pandas",
    "joblib",
    "threadpoolctl",
    "matplotlib",
    "rich",
    "pyarrow",
)


def version_table() -> str:
    """Return one line per component: its name and its installed version."""
    rows = [("skfair", __version__), ("python", sys.version.split()[0])]
    rows.append(("platform", platform.platform()))
    for name in _PACKAGES:
        try:
            rows.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            rows.append((name, "not installed"))
    for name, version in namesakes().items():
        rows.append(("conflict", f"{name} {version} installs a package skfair too: uninstall it"))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {version}" for name, version in rows)
