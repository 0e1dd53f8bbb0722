"""The direction of L-BFGS, by the two-loop recursion: fifty pairs are hundred short loops."""

from skfair._kernels.declaring import njit


@njit(cache=True)
def bend(steps, changes, products, newest, shares, d):
    """Multiply ``d`` by the inverse curvature that pairs of steps and changes tell of, in place.

    The last pair is ``newest``, the one before it a row above, or the last row above the first.
    There are as many pairs as ``shares``, whose entries are overwritten.
    """
    rows, n_pairs = products.size, shares.size
    for k in range(n_pairs):
        i = (newest - k) % rows
        shares[k] = (steps[i] @ d) / products[i]
        for j in range(d.size):
            d[j] -= shares[k] * changes[i, j]
    scale = products[newest] / (changes[newest] @ changes[newest])
    for j in range(d.size):
        d[j] *= scale
    for k in range(n_pairs - 1, -1, -1):
        i = (newest - k) % rows
        share = shares[k] - (changes[i] @ d) / products[i]
        for j in range(d.size):
            d[j] += share * steps[i, j]
