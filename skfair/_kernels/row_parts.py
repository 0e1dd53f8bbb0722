"""What a smooth rate or a loss is at the score of each row, and sums of such numbers over cells.

Called by :mod:`skfair.losses` and :mod:`skfair.constraints.bound`, in threads that read blocks of
rows. NumPy makes a pass over the block for each operation, and keeps Python's lock while
it adds to cells, so that threads would wait for each other.
"""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def sigmoid_parts(scores, small, value, slope, curvature):
    """Write sigmoid(score) and its first two derivatives; ``small`` is exp(-abs(score))."""
    for i in range(scores.size):
        larger = 1.0 / (1.0 + small[i])  # of sigmoid(score) and 1 - sigmoid(score)
        smaller = small[i] * larger
        value[i] = larger if scores[i] > 0.0 else smaller
        slope[i] = smaller * larger
        curvature[i] = slope[i] * (1.0 - 2.0 * value[i])


@njit(cache=True)
def cell_sums(cells, weights, values, sums):
    """Add weights[i] * values[i] to sums[i % 4, cells[i]].

    There are four rows of sums, because each addition waits for the one before to be stored. Cells
    are unsigned, because numba checks of each signed one whether it counts from the end.
    """
    n_cells, flat = np.uint64(sums.shape[1]), sums.ravel()
    for i in range(cells.size):
        first = np.uint64(i % 4) * n_cells
        flat[first + np.uint64(cells[i])] += weights[i] * values[i]
