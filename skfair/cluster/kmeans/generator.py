"""Small two-dimensional sets for clustering under representation constraints.

``make_grouped_blobs`` draws exactly the four synthetic sets of the paper on stochastic alternating
balance fair k-means. Their natural clusters contain mainly one group, so balanced clusters must
differ from them.
"""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from skfair.datasets._packing import checks, split_counts


class GroupedSample(NamedTuple):
    """Rows without labels, and their groups."""

    data: Any
    sensitive_features: Any


@checks(
    {
        "n_samples": [Interval(Integral, 4, None, closed="left")],
        "variant": [StrOptions({"equal", "unequal", "two_equal", "two_unequal"})],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
    },
)
def make_grouped_blobs(
    n_samples: int = 400,
    *,
    variant: str = "equal",
    shuffle: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> GroupedSample:
    """Draw one of the four synthetic sets of the fair k-means paper.

    The points lie in the plane in two or four Gaussian blobs and belong to two groups. With
    ``random_state=1``, and ``n_samples`` and ``shuffle`` at their defaults, they are the points of
    the paper.

    ============== ================== ========================= ===== ======================
    variant        points per blob    centres                   sd    groups
    ============== ================== ========================= ===== ======================
    "equal"        100, 100, 100, 100 (1, 1), (2.1, 1),         0.1   lower pair, upper pair
                                      (1, 5), (2.1, 5)                (200 and 200)
    "unequal"      150, 150, 50, 50   (1, 1), (2.1, 1),         0.13  lower pair, upper pair
                                      (1, 3.5), (2.1, 3.5)            (300 and 100)
    "two_equal"    200, 200           (1, 1), (2.1, 3.5)        0.3   one per blob
    "two_unequal"  300, 100           (1, 1), (2.1, 3.5)        0.3   one per blob
    ============== ================== ========================= ===== ======================

    Parameters
    ----------
    n_samples : int, default=400
        Number of points, at least 4. The shares of the blobs do not depend on it.
    variant : {"equal", "unequal", "two_equal", "two_unequal"}, default="equal"
        The set to generate, as in the table above.
    shuffle : bool, default=False
        If True, the rows are in random order. If False, they are sorted by blob, and therefore by
        group.
    random_state : int, RandomState instance or None, default=None
        Seed of the points and of the shuffle.

    Returns
    -------
    data : ndarray of shape (n_samples, 2)
        The points, which are not scaled.
    sensitive_features : ndarray of shape (n_samples,)
        The group of each point, 0 or 1.

    See Also
    --------
    make_fair_sbm : Generate a graph whose true clusters are perfectly balanced.

    Notes
    -----
    The paper divides each of the four sets into two clusters. The cheapest clusters are then the
    groups themselves, with balance 0, and every increase in balance has a cost, so these sets show
    the whole trade-off. The published code does not shuffle the rows, and its starting points use
    their order.

    References
    ----------
    Liu, S. and Vicente, L. N. "A stochastic alternating balance k-means algorithm for fair
    clustering", Appendix D.1.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.datasets import make_grouped_blobs
    >>> X, groups = make_grouped_blobs(variant="two_unequal", random_state=1)
    >>> X.shape
    (400, 2)
    >>> np.bincount(groups).tolist()
    [300, 100]
    """
    rng = check_random_state(random_state)
    # Relative sizes of the blobs, their centres and standard deviation. The upper blobs are group
    # 1.
    sizes, centers, spread = {
        "equal": ([1, 1, 1, 1], [(1, 1), (2.1, 1), (1, 5), (2.1, 5)], 0.1),
        "unequal": ([3, 3, 1, 1], [(1, 1), (2.1, 1), (1, 3.5), (2.1, 3.5)], 0.13),
        "two_equal": ([1, 1], [(1, 1), (2.1, 3.5)], 0.3),
        "two_unequal": ([3, 1], [(1, 1), (2.1, 3.5)], 0.3),
    }[variant]
    sizes = split_counts(n_samples, np.divide(sizes, sum(sizes)).tolist()).tolist()
    X, blob = make_blobs(
        n_samples=sizes, centers=centers, cluster_std=spread, shuffle=False, random_state=rng
    )
    heights = np.array(centers)[:, 1]
    groups = (heights > heights.min()).astype(np.int64)[blob]
    if shuffle:
        order = rng.permutation(len(X))
        X, groups = X[order], groups[order]
    return GroupedSample(X, groups)
