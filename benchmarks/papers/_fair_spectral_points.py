"""Points and graphs for the benchmark of fair_spectral_dc, after sets that the paper only shows.

The paper prints pictures of Elliptical and DS-577, which it takes from Feng et al. (2024), but no
parameters: only the numbers of clusters, of groups and (for DS-577) of points are its own. Of
RandLaplace it says: a random symmetric matrix, and two groups drawn with probability 0.3.
"""

import numpy as np
from sklearn.utils import check_random_state

from skfair._typing import FloatArray, IntArray, Seed
from skfair.datasets._packing import Sample, split_counts


def make_elliptical(n_samples: int = 400, random_state: Seed = None) -> Sample:
    """Draw two evenly filled ellipses of 6 by 1, two apart; 80% of each are of one group."""
    rng = check_random_state(random_state)
    labels, groups = _clusters_and_groups(n_samples, 2, 0.8)
    angle = rng.uniform(0, 2 * np.pi, n_samples)
    # The square root spreads the points evenly over the area instead of crowding the middle.
    radius = 0.5 * np.sqrt(rng.uniform(0, 1, n_samples))
    X = np.column_stack([6.0 * radius * np.cos(angle), radius * np.sin(angle)])
    X[:, 1] += 2.0 * (labels - 0.5)
    return _shuffled(X, labels, groups, rng)


def make_three_groups(n_samples: int = 577, random_state: Seed = None) -> Sample:
    """Draw three Gaussian clusters at the corners of a triangle; 60% of each are of one group."""
    rng = check_random_state(random_state)
    labels, groups = _clusters_and_groups(n_samples, 3, 0.6)
    corners = np.array([[0.0, 0.0], [3.0, 0.0], [1.5, 1.5 * np.sqrt(3.0)]])
    X = corners[labels] + rng.normal(scale=0.6, size=(n_samples, 2))
    return _shuffled(X, labels, groups, rng)


def make_random_laplacian(n: int, random_state: Seed = None) -> tuple[FloatArray, IntArray]:
    """Draw the uniform weights of all pairs of nodes, and the group of each node."""
    rng = check_random_state(random_state)
    groups = (rng.random_sample(n) < 0.3).astype(np.int64)
    upper = np.triu(1 - rng.random_sample((n, n)), k=1)
    return upper + upper.T, groups


def _clusters_and_groups(n_samples: int, n_clusters: int, purity: float) -> tuple[IntArray, ...]:
    """Return cluster and group of each point: exact counts, sorted by cluster, then group."""
    labels, groups = [], []
    for cluster, size in enumerate(split_counts(n_samples, [1 / n_clusters] * n_clusters)):
        shares = np.full(n_clusters, (1 - purity) / (n_clusters - 1))
        shares[cluster] = purity
        labels.append(np.full(size, cluster))
        groups.append(np.repeat(np.arange(n_clusters), split_counts(size, shares.tolist())))
    return np.concatenate(labels), np.concatenate(groups)


def _shuffled(
    X: FloatArray, labels: IntArray, groups: IntArray, rng: np.random.RandomState
) -> Sample:
    """Return the three arrays in one random order."""
    order = rng.permutation(len(X))
    return Sample(X[order], labels[order], groups[order])
