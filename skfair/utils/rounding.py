"""Tolerances of comparisons for rounding errors.

A float has 16 digits. How many of them are lost depends on the numbers from which it was computed.
Kernels define their own tolerances, because numba freezes numbers of other files.
"""

from __future__ import annotations

# Shares, rates and p-values that should be equal may differ by this, because they are results of a
# few operations on numbers up to 1. Different rates of up to a million rows are farther apart.
ROUNDING = 1e-12
# Sums over many rows, and statistics of such sums, may differ by this, because each of a million
# rows may add an error of one unit in the last place.
SUM_ROUNDING = 1e-9
# Relative changes of an objective below this, hundreds of units in the last place, are rounding.
LAST_DIGITS = 1e-13
# This number replaces 0 in denominators and logarithms. No share is as small, and its inverse is
# finite.
TINY = 1e-300
