"""The versions of what is installed: for :func:`skfair.show_versions`, and for records.

Versions are read from installed metadata, so nothing is imported to print them.
"""

import platform
import sys
from contextlib import suppress
from importlib import metadata

from skfair._version import __version__
from skfair.utils.namesakes import namesakes

_PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "pandas",
    "narwhals",
    "joblib",
    "threadpoolctl",
    "matplotlib",
    "rich",
    "pyarrow",
    "duckdb",
)
# The names that :func:`versions` may return
COMPONENTS = ("skfair", "python", *_PACKAGES)


def versions() -> dict[str, str]:
    """Return the version of each installed component by its name."""
    found = {"skfair": __version__, "python": sys.version.split()[0]}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def version_table() -> str:
    """Return one line per component: its name and its installed version."""
    installed = versions()
    rows = [(name, installed.pop(name)) for name in ("skfair", "python")]
    rows.append(("platform", platform.platform()))
    rows += [(name, installed.get(name, "not installed")) for name in _PACKAGES]
    for name, version in namesakes().items():
        rows.append(("conflict", f"{name} {version} installs a package skfair too: uninstall it"))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {version}" for name, version in rows)
