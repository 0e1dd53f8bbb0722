"""Components that can be chosen by name: solvers, constraints, losses, score models.

A component's file registers it with a decorator. Parameter validation, documentation and the
contract tests read the registry, so a new component needs one file only. Files are imported when a
name is looked up that is not registered yet.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Generic, TypeVar

from skfair.utils.text import did_you_mean
from skfair.utils.wings import names_of_wings

T = TypeVar("T")

# Algorithms of papers are wings, and register themselves when they are imported. Only registries
# with this name among their packages import them.
PAPERS = "skfair.papers"


class Registry(Generic[T]):
    """A name for each component of one kind.

    Examples
    --------
    >>> from skfair.utils.registry import Registry
    >>> losses = Registry("loss", "skfair.constraints")
    >>> @losses.register("absolute")
    ... class Absolute: ...
    >>> losses["absolute"] is Absolute, list(losses)
    (True, ['absolute'])
    >>> del losses["absolute"]
    >>> list(losses)
    []
    """

    def __init__(
        self,
        kind: str,  # what the components are, for error messages ("solver")
        # The packages (or single modules) whose files register the components, perhaps with PAPERS.
        # The files of a package, and those that wings add to it, are imported if a name is looked
        # up that no earlier package registers
        *packages: str,
    ) -> None:
        self._kind = kind
        self._to_import = list(packages)
        self._takes_papers = PAPERS in packages
        self._components: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Decorate a component with its name.

        A class that is defined again, for example in a notebook, replaces the earlier one.
        """

        def add(component: T) -> T:
            earlier = self._components.get(name, component)
            if str(earlier) != str(component):  # they differ in module or name
                raise ValueError(
                    f"There are two {self._kind}s named {name!r}: {earlier} and {component}. "
                    "Give the second one another name."
                )
            self._components[name] = component
            return component

        return add

    def __contains__(self, name: object) -> bool:
        self._load(name)
        return name in self._components

    def __getitem__(self, name: str) -> T:
        # Known names are looked up in every fit, and are found without a search of the packages.
        if name not in self._components and name not in self:
            more = without_papers() if self._takes_papers else ""
            kinds = self._kind + ("es" if self._kind.endswith("s") else "s")
            raise ValueError(
                f"There is no {self._kind} {name!r}.{did_you_mean(name, self)} The {kinds} are "
                f"{', '.join(map(repr, sorted(self)))}.{more}"
            )
        return self._components[name]

    def __delitem__(self, name: str) -> None:
        """Remove a component, for example after a test."""
        del self._components[name]

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(sorted(self._components))

    def _load(self, name: object = None) -> None:
        """Import packages until the name is registered; all of them if the name is None.

        A package is removed from the list only after its import. So another thread that looks up a
        name in the meantime imports it, too, and Python lets it wait for the first thread.
        """
        for package in tuple(self._to_import):
            if name in self._components:
                return
            modules = [*names_of_wings(package).values()]
            modules += [] if package == PAPERS else within(package)
            for module in modules:
                import_module(module)
            self._to_import = [other for other in self._to_import if other != package]


def within(package: str) -> list[str]:
    """Return the names of the modules of a package, which may be a single module."""
    found = pkgutil.iter_modules(getattr(import_module(package), "__path__", []))
    return [f"{package}.{module.name}" for module in found]


def has_papers() -> bool:
    """Whether algorithms of papers are installed."""
    return bool(names_of_wings(PAPERS))


def without_papers() -> str:
    """Return the end of an error about an unknown name: papers may not be installed."""
    return "" if has_papers() else f" Algorithms of papers ({PAPERS}) are not installed."
