"""Sizes of the pieces that a pass over rows takes at a time.

They are the ``block`` of ``threads.over_blocks``, or steps of loops. Sizes do not depend on the
number of threads, and so results do not, either.
"""

from __future__ import annotations

# Numbers in a piece. They take 2 MB in double precision, which fit into the cache of one core,
# whereas twice as many do not. With half as many, threads wait for each other more often, between
# kernels.
NUMBERS = 1 << 18
# Rows in a piece, if each row has a few numbers and takes about a tenth of a microsecond. (For rows
# that take less time, see ``threads.BLOCK``.)
ROWS = 1 << 14
# Rows in a piece of a table with one column for each row, or with some thousand columns.
MATRIX_ROWS = 64
# Few rows are cut into about this many pieces, so that several threads share them, unless a piece
# would have less than half of NUMBERS.
_PIECES = 8


def piece_rows(n_rows: int, width: float) -> int:
    """Return the number of rows in a piece if a pass makes ``width`` numbers for each row."""
    most = max(1, int(NUMBERS // max(width, 1.0)))
    return min(most, max(n_rows // _PIECES, -(-most // 2)))
