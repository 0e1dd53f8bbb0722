"""Counting of codes."""

from skfair._kernels.declaring import njit


@njit(cache=True)
def count_codes(codes, out):
    """Add to ``out`` how often each code occurs; codes must be places of ``out``."""
    for i in range(codes.size):
        out[codes[i]] += 1


@njit(cache=True)
def count_cells(labels, cells, weights, out):
    """Add the weight of each row to ``out`` at its label and cell."""
    for i in range(labels.size):
        out[labels[i], cells[i]] += weights[i]
