"""The direction of L-BFGS, by the two-loop recursion.

Called by ``skfair/solvers/erm/lbfgs.py`` and some papers. With fifty pairs there are a hundred
short loops, for which calls of numpy would take most of the time.
"""

from skfair._kernels.declaring import njit


@njit(cache=True)
def bend(steps, changes, products, newest, shares, d):
    """Multiply ``d`` by the estimate of the inverse curvature, in place.

    Pair i is a step s_i of the point, the change y_i of the gradient along it, and the product
    s_i'y_i in ``products``. From the newest pair to the oldest, a_i = s_i'd / s_i'y_i and
    d -= a_i y_i. Then d is multiplied by s'y / y'y of the newest pair. From the oldest pair to the
    newest, d += (a_i - y_i'd / s_i'y_i) s_i.

    The arrays of pairs are ring buffers: row ``newest`` holds the newest pair, the row above it
    holds the pair before, and so on, from row 0 back to the last row. ``shares`` has room for the
    a_i, and its size is the number of pairs that are used.
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
