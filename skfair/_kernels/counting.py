"""Counting of codes."""

from skfair._kernels.declaring import njit


@njit(cache=True)
def count_codes(codes, out):
    """Add to ``out`` how often each code occurs; codes must be places of ``out``."""
    for i in range(codes.size):
        out[codes[i]] += 1
