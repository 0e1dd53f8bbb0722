"""One limit for each attribute along a path, whose steps multiply all limits by one number.

``path.py`` calls these functions. ``limits`` are the limits of the estimator by attribute, or None
for an attribute without a limit. The disparity of each attribute is measured as a multiple of its
limit, so that attributes can be compared. The largest multiple is the disparity of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from sklearn.base import BaseEstimator

from skfair._typing import ColumnLike, Estimator, MatrixLike
from skfair.groups.encoding import encode_groups
from skfair.groups.limits import limits_of_attributes
from skfair.utils.response import GroupsInHand
from skfair.utils.text import listed
from skfair.utils.validation import check_number

Limits: TypeAlias = Mapping[str, float | None]


def limits_of(max_disparity: Any) -> Limits | None:
    """Return the limits of an estimator by attribute, or None if it has one limit for all.

    Limits of 0 have no multiples, so they raise.
    """
    if not isinstance(max_disparity, Mapping):
        return None
    limits = _present(max_disparity)
    for name, limit in limits.items():
        check_number(limit, f"max_disparity[{name!r}]", 0)
    if not limits or 0 in limits.values():
        raise ValueError(
            "A path multiplies the limits of attributes, so they must be above 0; got "
            f"max_disparity={max_disparity!r}."
        )
    return dict(max_disparity)


def multiple_within(wanted: Limits, limits: Limits | None) -> float:
    """Return the largest factor for which factor times ``limits`` is within the limits ``wanted``.

    ``limits`` are the limits of the path. If they are None, the path has one limit for all
    attributes, and this raises.
    """
    if limits is None:
        raise ValueError(
            "The models of this path have one disparity each, so max_disparity must be a number. "
            "For a limit of each attribute give these to the estimator before fairness_path."
        )
    units, present = _present(limits), _present(wanted)
    if set(units) != set(present):
        raise ValueError(
            f"max_disparity must have a limit for each of the attributes {listed(list(units))}, "
            f"got {dict(wanted)!r}."
        )
    return min(present[name] / unit for name, unit in units.items())


def disparity_reached(model: BaseEstimator, limits: Limits | None) -> float:
    """Return the disparity of a fitted model on its training rows.

    With ``limits`` it is the largest multiple of the limit that an attribute reaches.
    """
    if limits is None:
        return float(model.train_disparity_)
    if not hasattr(model, "train_disparities_"):
        raise TypeError(
            f"{type(model).__name__} does not say which disparity each attribute has, so it makes "
            "no path with a limit for each attribute. Give it one limit."
        )
    shares = []
    for constraint, disparity in model.train_disparities_.items():
        # The name of a constraint contains " of " and the attribute. If several attributes match,
        # such as "age" and "age group", the longest one is meant.
        own = max((name for name in limits if f" of {name}" in constraint), key=len, default=None)
        limit = None if own is None else limits[own]
        if limit is not None:
            shares.append(disparity / limit)
    return float(max(shares, default=0.0))


def in_multiples(disparity: Callable[..., float], limits: Limits) -> Callable[..., float]:
    """Return a function that measures each attribute, and returns the largest multiple of a limit.

    ``disparity`` measures a model for given groups. The returned function has the same arguments.
    """

    def largest_share(
        model: Estimator, X: MatrixLike, y: ColumnLike, *, sensitive_features: Any
    ) -> float:
        groups = encode_groups(sensitive_features, intersectional=False)
        asked = GroupsInHand(model, sensitive_features)
        return max(
            disparity(asked, X, y, sensitive_features=codes) / limit
            for codes, limit in zip(groups.codes, limits_of_attributes(limits, groups), strict=True)
            if limit is not None
        )

    return largest_share


def _present(limits: Limits) -> dict[str, float]:
    """Leave out attributes without a limit."""
    return {name: limit for name, limit in limits.items() if limit is not None}
