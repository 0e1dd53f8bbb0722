"""Small two-dimensional sets for clustering under representation constraints.

``make_grouped_blobs`` draws the four synthetic sets of the paper on stochastic alternating
balance fair k-means, number for number. ``make_elliptical`` and ``make_three_groups`` stand in
for the Elliptical and DS-577 sets shown by the paper on scalable fair spectral clustering; that
paper prints pictures of them but no parameters, so only the number of clusters, of groups and
(for DS-577) of points are its own.

The one idea: the shapes say what a clustering would like to do, the groups say why it may not.
"""

from numbers import Integral, Real

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from skfair._typing import FloatArray, IntArray
from skfair.datasets._packing import GroupedSample, Sample, checks, split_counts

# variant -> (relative sizes of the blobs, centres, standard deviation); the upper blobs are group 1
_BLOBS: dict[str, tuple[list[int], list[tuple[float, float]], float]] = {
    "equal": ([1, 1, 1, 1], [(1, 1), (2.1, 1), (1, 5), (2.1, 5)], 0.1),
    "unequal": ([3, 3, 1, 1], [(1, 1), (2.1, 1), (1, 3.5), (2.1, 3.5)], 0.13),
    "two_equal": ([1, 1], [(1, 1), (2.1, 3.5)], 0.3),
    "two_unequal": ([3, 1], [(1, 1), (2.1, 3.5)], 0.3),
}


@checks(
    {
        "n_samples": [Interval(Integral, 4, None, closed="left")],
        "variant": [StrOptions(set(_BLOBS))],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
    },
)
def make_grouped_blobs(
    n_samples: int = 400,
    *,
    variant: str = "equal",
    shuffle: bool = False,
    random_state: int | np.random.RandomState | None = 1,
) -> GroupedSample:
    """Draw one of the four synthetic sets of the fair k-means paper.

    Points in the plane in two or four Gaussian blobs, and two groups. The defaults
    ``n_samples=400, shuffle=False, random_state=1`` give the very points of the paper.

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
        Number of points, at least 4; the blobs of another number have the same shares.
    variant : {"equal", "unequal", "two_equal", "two_unequal"}, default="equal"
        Which of the four sets.
    shuffle : bool, default=False
        Put the rows in random order. Without it the rows are sorted by blob, hence by group.
    random_state : int, RandomState instance or None, default=1
        Seed of the points and of the shuffle.

    Returns
    -------
    data : ndarray of shape (n_samples, 2)
        The points, not scaled.
    sensitive_features : ndarray of shape (n_samples,)
        The group of each point, 0 or 1.

    See Also
    --------
    make_fair_sbm : A graph whose true clusters are perfectly balanced.

    Notes
    -----
    Two clusters are asked for in the paper, with all four sets. The cheapest ones are then the
    groups themselves (balance 0), and every step towards balance costs: these sets are made to
    show the whole trade-off. The published code shuffles nothing, and builds starting points
    that use the order of the rows.

    References
    ----------
    Liu, S. and Vicente, L. N. "A stochastic alternating balance k-means algorithm for fair
    clustering", Appendix D.1.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.datasets import make_grouped_blobs
    >>> X, groups = make_grouped_blobs(variant="two_unequal")
    >>> X.shape
    (400, 2)
    >>> np.bincount(groups).tolist()
    [300, 100]
    """
    rng = check_random_state(random_state)
    sizes, centers, spread = _BLOBS[variant]
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


@checks(
    {
        "n_samples": [Interval(Integral, 4, None, closed="left")],
        "separation": [Interval(Real, 0, None, closed="left")],
        "elongation": [Interval(Real, 1, None, closed="left")],
        "group_purity": [Interval(Real, 0, 1, closed="both")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
    },
)
def make_elliptical(
    n_samples: int = 400,
    *,
    separation: float = 2.0,
    elongation: float = 6.0,
    group_purity: float = 0.8,
    shuffle: bool = True,
    random_state: int | np.random.RandomState | None = None,
) -> Sample:
    """Draw two long elliptical clusters, one above the other, with two groups.

    Each cluster fills an ellipse evenly. Its half height is 0.5, its half width
    ``0.5 * elongation``, and the centres lie ``separation`` apart. Half of the points are in
    each cluster.

    Parameters
    ----------
    n_samples : int, default=400
        Number of points, at least 4.
    separation : float, default=2.0
        Distance between the centres; below 1 the ellipses overlap.
    elongation : float, default=6.0
        Width over height, at least 1. Long ellipses are cut across by k-means and found by
        spectral clustering.
    group_purity : float, default=0.8
        Share of group k among the points of cluster k. At 0.5 the clusters are perfectly balanced;
        the further from 0.5, the more a fairness constraint costs.
    shuffle : bool, default=True
        Put the rows in random order; otherwise they are sorted by cluster, then group.
    random_state : int, RandomState instance or None, default=None
        Seed. The same integer gives the same points.

    Returns
    -------
    data : ndarray of shape (n_samples, 2)
        The points.
    target : ndarray of shape (n_samples,)
        The ellipse of each point, 0 or 1.
    sensitive_features : ndarray of shape (n_samples,)
        The group of each point, 0 or 1.

    See Also
    --------
    make_three_groups : Three round clusters, three groups.
    make_fair_sbm : A graph whose true clusters are perfectly balanced.

    Notes
    -----
    The paper takes its set named Elliptical (two clusters, two groups) from Feng et al. (2024)
    and gives neither its size nor its shape. The parameters here are ours: do not compare
    numbers with the paper's.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.datasets.generators_points import make_elliptical
    >>> X, labels, groups = make_elliptical(200, random_state=0)
    >>> X.shape
    (200, 2)
    >>> np.bincount(groups[labels == 0]).tolist()
    [80, 20]
    """
    rng = check_random_state(random_state)
    labels, groups = _clusters_and_groups(n_samples, 2, group_purity)
    angle = rng.uniform(0, 2 * np.pi, n_samples)
    # The square root spreads the points evenly over the area instead of crowding the middle.
    radius = 0.5 * np.sqrt(rng.uniform(0, 1, n_samples))
    X = np.column_stack([elongation * radius * np.cos(angle), radius * np.sin(angle)])
    X[:, 1] += separation * (labels - 0.5)
    return _maybe_shuffled(X, labels, groups, shuffle, rng)


@checks(
    {
        "n_samples": [Interval(Integral, 9, None, closed="left")],
        "cluster_std": [Interval(Real, 0, None, closed="left")],
        "group_purity": [Interval(Real, 0, 1, closed="both")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
    },
)
def make_three_groups(
    n_samples: int = 577,
    *,
    cluster_std: float = 0.6,
    group_purity: float = 0.6,
    shuffle: bool = True,
    random_state: int | np.random.RandomState | None = None,
) -> Sample:
    """Draw three round clusters in the plane, with three groups.

    The centres are the corners of a triangle with sides of length 3; the points around them
    are Gaussian. The clusters have equal sizes (up to one point).

    Parameters
    ----------
    n_samples : int, default=577
        Number of points, at least 9.
    cluster_std : float, default=0.6
        Standard deviation of each cluster; above 1 the clusters merge.
    group_purity : float, default=0.6
        Share of group k among the points of cluster k; the other two groups split the rest. At
        1/3 the clusters are perfectly balanced; the further from it, the more a fairness
        constraint costs.
    shuffle : bool, default=True
        Put the rows in random order; otherwise they are sorted by cluster, then group.
    random_state : int, RandomState instance or None, default=None
        Seed. The same integer gives the same points.

    Returns
    -------
    data : ndarray of shape (n_samples, 2)
        The points.
    target : ndarray of shape (n_samples,)
        The cluster of each point: 0, 1 or 2.
    sensitive_features : ndarray of shape (n_samples,)
        The group of each point: 0, 1 or 2.

    See Also
    --------
    make_elliptical : Two long clusters, two groups.
    make_grouped_blobs : The four sets of the fair k-means paper.

    Notes
    -----
    Made after the set DS-577 (577 points, three clusters, three groups) that the paper on
    scalable fair spectral clustering takes from Feng et al. (2024). No parameters are
    published: size, clusters and groups are the paper's, everything else is ours.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.datasets.generators_points import make_three_groups
    >>> X, labels, groups = make_three_groups(random_state=0)
    >>> X.shape
    (577, 2)
    >>> np.unique(groups).tolist()
    [0, 1, 2]
    """
    rng = check_random_state(random_state)
    labels, groups = _clusters_and_groups(n_samples, 3, group_purity)
    corners = np.array([[0.0, 0.0], [3.0, 0.0], [1.5, 1.5 * np.sqrt(3.0)]])
    X = corners[labels] + rng.normal(scale=cluster_std, size=(n_samples, 2))
    return _maybe_shuffled(X, labels, groups, shuffle, rng)


def _clusters_and_groups(n_samples: int, n_clusters: int, purity: float) -> tuple[IntArray, ...]:
    """Return cluster and group of each point: exact counts, sorted by cluster, then group."""
    labels, groups = [], []
    for cluster, size in enumerate(split_counts(n_samples, [1 / n_clusters] * n_clusters)):
        shares = np.full(n_clusters, (1 - purity) / (n_clusters - 1))
        shares[cluster] = purity
        labels.append(np.full(size, cluster))
        groups.append(np.repeat(np.arange(n_clusters), split_counts(size, shares.tolist())))
    return np.concatenate(labels), np.concatenate(groups)


def _maybe_shuffled(
    X: FloatArray, labels: IntArray, groups: IntArray, shuffle: bool, rng: np.random.RandomState
) -> Sample:
    """Return the three arrays, in one common random order when ``shuffle`` is set."""
    if not shuffle:
        return Sample(X, labels, groups)
    order = rng.permutation(len(X))
    return Sample(X[order], labels[order], groups[order])
