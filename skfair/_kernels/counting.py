"""Counting of codes."""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def count_triples(first, second, third, lowest, widths, strides, out):
    """Add to ``out`` how often three numbers occur together; return whether all have a place there.

    The place of numbers is the sum of strides times what they are above the lowest one.
    """
    for i in range(first.size):
        x, y, z = first[i] - lowest[0], second[i] - lowest[1], third[i] - lowest[2]
        # Numbers below the lowest one are large without their sign.
        if (
            np.uint64(x) >= np.uint64(widths[0])
            or np.uint64(y) >= np.uint64(widths[1])
            or np.uint64(z) >= np.uint64(widths[2])
        ):
            return False
        out[x * strides[0] + y * strides[1] + z * strides[2]] += 1
    return True
