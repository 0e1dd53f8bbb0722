"""Sizes of the pieces that a pass takes at a time: one wherever the reason is the same.

Sizes do not depend on the number of threads, so neither do results.
"""

from __future__ import annotations

# Numbers that stay in the cache of one core: 2 MB in double precision. Twice as many leave it; with
# half as many threads wait for each other more often, between kernels.
NUMBERS = 1 << 18
# Rows that take a tenth of a microsecond each, of a few numbers. (Rows that take less:
# ``threads.BLOCK``.)
ROWS = 1 << 14
# Rows of a table with a column for each row, or some thousand columns.
MATRIX_ROWS = 64
# Few rows make this many pieces, if those have half as many numbers at least: threads share them.
_PIECES = 8


def piece_rows(n_rows: int, width: float) -> int:
    most = max(1, int(NUMBERS // max(width, 1.0)))
    return min(most, max(n_rows // _PIECES, -(-most // 2)))
