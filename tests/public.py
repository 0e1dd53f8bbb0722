"""What the package offers: its public names, its estimators, its modules."""

import importlib
import inspect
import pkgutil
import pydoc
import re
from pathlib import Path

from sklearn.base import BaseEstimator

import skfair
from skfair.utils.wings import names_of_wings

# The public packages of the core that have estimators.
ESTIMATORS = [
    f"skfair.{name}" for name in ("classification", "cluster", "preprocessing", "regression")
]


def public_packages():
    """The names of the public sub-packages; the algorithms of papers may be missing."""
    has_papers = (Path(skfair.__file__).parent / "papers").exists()
    return [*skfair._SUBPACKAGES, *["papers"] * has_papers]


def public_objects():
    """Every (qualified name, object) that the public sub-packages list in ``__all__``."""
    for name in ("show_versions", *skfair._OBJECTS):
        yield f"skfair.{name}", getattr(skfair, name)
    for name in public_packages():
        module = importlib.import_module(f"skfair.{name}")
        for attribute in getattr(module, "__all__", ()):
            yield f"skfair.{name}.{attribute}", getattr(module, attribute)


def option_objects():
    """Every other (qualified name, object) that parameters of estimators are said to take."""
    public = dict(public_objects())
    for estimator in discover_estimators().values():
        parameters = (inspect.getdoc(estimator) or "").partition("\nAttributes\n")[0]
        for name in re.findall(r"skfair\.[a-z_]+\.\w+(?:\.\w+)*", parameters):
            if name in public or name.startswith("skfair.papers."):  # which may be missing
                continue
            thing = pydoc.locate(name)
            if inspect.ismodule(thing):
                yield from ((f"{name}.{entry}", getattr(thing, entry)) for entry in thing.__all__)
            else:
                yield name, thing


def discover_estimators():
    """Every public estimator class of the package, found through ``__all__``."""
    estimators = {}
    of_wings = names_of_wings("skfair").values()
    for package in (*ESTIMATORS, *of_wings):
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if inspect.isclass(thing) and issubclass(thing, BaseEstimator):
                estimators[name] = thing
    return estimators


def package_modules(but=None):
    """Import every module of the package, ``but`` those of a folder, and return their names."""
    walked = [module.name for module in pkgutil.walk_packages(skfair.__path__, "skfair.")]
    names = [name for name in walked if not name.startswith(f"skfair.{but}")]
    return [importlib.import_module(name).__name__ for name in names]


def names_in(registry, *, of_papers):
    """The names of a registry that are those of papers, or the others."""
    return [name for name in registry if (".papers." in registry[name].__module__) == of_papers]


def documented_parameters(doc, section):
    """Names listed in a section of a numpydoc docstring."""
    match = re.search(rf"^{section}\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", doc, re.M | re.S)
    if match is None:
        return []
    heads = [line for line in match[1].splitlines() if line and not line[0].isspace()]
    names = []
    for head in heads:
        if ":" in head or head.startswith("*"):
            names += [part.strip().lstrip("*") for part in head.split(":")[0].split(",")]
    return names
