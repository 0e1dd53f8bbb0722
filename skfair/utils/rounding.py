"""Sizes of rounding errors: the four that comparisons allow for.

A float has 16 digits. How many of them are lost depends on the numbers that it was computed from.
Kernels have numbers of their own, because numba freezes numbers of other files.
"""

from __future__ import annotations

# Shares, rates, levels and p-values that should be equal may differ by this much: they are results
# of a few operations on numbers up to 1. Rates of up to a million rows that differ truly are
# farther apart.
ROUNDING = 1e-12
# Sums over many rows, and statistics made of them, may differ by this much, since each of a million
# rows may add an error of one unit of the last place.
SUM_ROUNDING = 1e-9
# Relative changes of an objective below this are rounding: hundreds of units of the last place.
LAST_DIGITS = 1e-13
# Takes the place of 0 in denominators and logarithms: no share is as small, and its inverse is
# finite.
TINY = 1e-300
