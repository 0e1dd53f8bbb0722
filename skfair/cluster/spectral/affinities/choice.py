"""The argument ``affinity=``, which is a name, a function or an object, as an affinity object.

``FairSpectralClustering`` calls :func:`make_affinity` in ``fit``, and :func:`affinity_kind` for its
tags.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeAlias

from sklearn.metrics.pairwise import KERNEL_PARAMS

from skfair.cluster.spectral.affinities.base import AFFINITIES, Affinity, KernelFunction
from skfair.cluster.spectral.affinities.kernels import Kernel
from skfair.utils.text import did_you_mean

# Parameters of the estimator that belong to an affinity, with their defaults. They must not be set
# if the affinity is an object.
_UNSET: Mapping[str, Any] = {"gamma": None, "n_neighbors": 10}
# Names for which ``n_neighbors`` of the estimator is not used: the field of the class is None.
_UNLINKED = ("nystroem", "precomputed")
# Users pass the name of an affinity, a function of two rows, or an object.
Choice: TypeAlias = str | KernelFunction | Affinity


def affinity_kind(choice: Choice) -> type[Affinity]:
    """Return the class of a choice; functions and unregistered names are kernels."""
    if isinstance(choice, Affinity):
        return type(choice)
    return AFFINITIES[choice] if isinstance(choice, str) and choice in AFFINITIES else Kernel


def make_affinity(choice: Choice, parameters: Mapping[str, Any]) -> Affinity:
    """Return the affinity object for a choice.

    ``parameters`` are the parameters of the estimator. They set the fields of the same names,
    unless the choice is an object.
    """
    if isinstance(choice, Affinity):
        beside = [name for name, unset in _UNSET.items() if parameters.get(name, unset) != unset]
        if beside:
            raise ValueError(
                f"{', '.join(beside)} was set beside affinity={choice!r}. Set it on the affinity."
            )
        return choice
    names = {*AFFINITIES, *KERNEL_PARAMS}
    if isinstance(choice, str) and choice not in names:
        raise ValueError(
            f"There is no affinity {choice!r}.{did_you_mean(choice, names)} The affinities are "
            f"{sorted(names)}."
        )
    kind = affinity_kind(choice)
    values = {**parameters, "kernel": choice}
    if isinstance(choice, str) and choice in _UNLINKED:
        values["n_neighbors"] = None
    shared = [field.name for field in fields(kind) if field.name in values]
    return kind(**{name: values[name] for name in shared})
