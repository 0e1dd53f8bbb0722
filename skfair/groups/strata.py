"""Strata: the levels of control features, within each of which groups are compared."""

from __future__ import annotations

from typing import NamedTuple

from skfair._typing import ColumnsLike, IntArray
from skfair.groups.attributes import CONTROL
from skfair.groups.encoding import encode_groups
from skfair.groups.levels import GroupLevels


class Strata(NamedTuple):
    """The stratum of each row."""

    codes: IntArray  # (n_samples,): number of the stratum of each row
    names: tuple[str, ...]  # one readable name per stratum
    levels: GroupLevels | None = None  # levels to encode new rows; None if there will be none


def read_strata(control_features: ColumnsLike, *, n_samples: int | None = None) -> Strata:
    """Read control features as sensitive features are read; several columns are crossed.

    Examples
    --------
    >>> from skfair.groups.strata import read_strata
    >>> read_strata(["sales", "law", "law"]).names
    ('law', 'sales')
    """
    encoding = encode_groups(control_features, n_samples=n_samples, role=CONTROL)
    return Strata(encoding.codes[0], encoding.names, encoding.levels)
