"""Validate what numpydoc reads of every public docstring, as it is once the package is imported.

``@documented`` adds parameters that many objects share, so the source alone does not show them.
The checks and exceptions are those of ``[tool.numpydoc_validation]`` in ``pyproject.toml``.
"""

import inspect
import sys
from pathlib import Path

from numpydoc.hooks.validate_docstrings import parse_config
from numpydoc.validate import validate

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.public import option_objects, public_objects  # noqa: E402


def is_own(method):
    """Whether a method has a docstring of this package; others inherit what is said."""
    return method.__module__.startswith("skfair") and bool(method.__doc__)


def names():
    """Yield (name, whether it is a method) of all that is public and can be called."""
    public = dict(public_objects())
    for name, thing in public.items():
        if inspect.isclass(thing):
            for member, method in inspect.getmembers(thing, inspect.isfunction):
                if not member.startswith("_") and is_own(method):
                    yield f"{name}.{member}", True
    # The methods of options are those of the base class, for those who write one.
    for name, thing in (public | dict(option_objects())).items():
        if callable(thing):
            yield name, False


def breaches():
    """Yield each fault of a docstring, with its place."""
    config = parse_config(ROOT)
    for name, is_method in names():
        if config["exclude"] and config["exclude"].search(name):
            continue
        found = validate(name)
        for code, message in found["errors"]:
            if code in config["checks"] and not (is_method and code in ("EX01", "SA01")):
                yield f"{found['file']}:{found['file_line']}: {name}: {code} {message}"


if __name__ == "__main__":
    faults = list(breaches())
    print("\n".join(faults) or "Public docstrings are complete.")
    sys.exit(bool(faults))
