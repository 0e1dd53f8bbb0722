"""Metadata for the fit of an estimator inside another one, with and without routing.

With metadata routing on, the estimator inside gets the arguments that it has requested. Without
routing, it gets the weights if its fit takes them, and all other metadata that was passed to the
fit of the meta-estimator.

Meta-estimators call :func:`fit_arguments` in ``fit`` for each estimator inside, return
:func:`router_to` from ``get_metadata_routing``, and call :func:`refuse_misspelt` before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import signature
from typing import Any

from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from skfair._typing import ColumnLike
from skfair.utils.keywords import OF_GROUPS
from skfair.utils.text import did_you_mean


def router_to(owner: object, inside: object, name: str) -> MetadataRouter:
    """Return the routing of a meta-estimator whose fit calls the fit of an estimator inside."""
    mapping = MethodMapping().add(caller="fit", callee="fit")
    router = MetadataRouter(owner=owner).add_self_request(owner)
    return router.add(**{name: inside}, method_mapping=mapping)


def refuse_misspelt(owner: Any, inside: object, metadata: Iterable[str]) -> None:
    """Raise if a name in ``metadata`` seems to be a misspelt argument of the owner's ``fit``.

    Nothing is raised for an argument that the estimator inside takes, or for names of parameters
    of pipeline steps (``step__name``).
    """
    own = list(signature(owner.fit).parameters)[2:]  # all but X and y
    for name in metadata:
        hint = f" {OF_GROUPS[name]}" if name in OF_GROUPS else did_you_mean(name, own)
        if hint and "__" not in name and not has_fit_parameter(inside, name):
            raise TypeError(
                f"Neither {type(owner).__name__}.fit nor {type(inside).__name__}.fit has an "
                f"argument {name!r}.{hint}"
            )


def fit_arguments(
    owner: object,
    inside: object,
    # Weights of the rows, passed on if the estimator takes them and has not refused them
    sample_weight: ColumnLike | None,
    # Further arguments of the meta-estimator's fit, meant for the estimator inside
    metadata: Mapping[str, Any],
    # Arguments that the meta-estimator reads itself. They are passed on only if metadata routing is
    # on and the estimator has requested them
    others: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the metadata with which an estimator inside another is fitted."""
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    takes_weights = bool(weights) and has_fit_parameter(inside, "sample_weight")
    if not get_config()["enable_metadata_routing"]:
        return {**(weights if takes_weights else {}), **metadata}
    asked = {k: value for k, value in {**(others or {}), **weights}.items() if value is not None}
    request = get_routing_for_object(inside)
    router = MetadataRouter(owner=owner)
    router.add(inside=inside, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
    router.validate_metadata(params=metadata, method="fit")
    wanted = request.consumes("fit", [*asked, *metadata])
    routed = {name: value for name, value in {**asked, **metadata}.items() if name in wanted}
    fit_params = dict(
        router.route_params(caller="fit", params={**routed, **metadata})["inside"]["fit"]
    )
    # If the estimator inside neither requests nor refuses weights (its request is None), they are
    # passed on, as without routing.
    is_refused = getattr(request, "fit", None) is not None and (
        request.fit.requests.get("sample_weight") is not None
    )
    return {**(weights if takes_weights and not is_refused else {}), **fit_params}
