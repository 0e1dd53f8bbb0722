"""Levels of an allowed attribute, within each of which groups are compared."""

from __future__ import annotations

from typing import NamedTuple

from skfair._typing import IntArray


class Strata(NamedTuple):
    """The stratum of each row.

    Attributes
    ----------
    codes : ndarray of shape (n_samples,)
        Number of the stratum of each row.
    names : tuple of str
        One readable name per stratum.
    """

    codes: IntArray
    names: tuple[str, ...]
