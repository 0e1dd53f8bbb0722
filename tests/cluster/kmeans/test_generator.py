"""The point sets: the paper's parameters, the promised group counts, seeds."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from skfair.datasets import make_grouped_blobs

# variant -> group sizes, blob sizes, centres, standard deviation, as the paper has them.
PAPER = {
    "equal": ([200, 200], [100] * 4, [(1, 1), (2.1, 1), (1, 5), (2.1, 5)], 0.1),
    "unequal": ([300, 100], [150, 150, 50, 50], [(1, 1), (2.1, 1), (1, 3.5), (2.1, 3.5)], 0.13),
    "two_equal": ([200, 200], [200, 200], [(1, 1), (2.1, 3.5)], 0.3),
    "two_unequal": ([300, 100], [300, 100], [(1, 1), (2.1, 3.5)], 0.3),
}


@pytest.mark.parametrize("variant", PAPER)
def test_blobs_have_the_groups_and_centres_of_the_paper(variant):
    group_sizes, blob_sizes, centers, spread = PAPER[variant]
    X, groups = make_grouped_blobs(variant=variant, random_state=1)
    assert X.shape == (400, 2)
    assert X.dtype == np.float64
    assert groups.dtype == np.int64
    assert np.bincount(groups).tolist() == group_sizes
    edges = np.cumsum([0, *blob_sizes])
    for start, stop, center in zip(edges[:-1], edges[1:], centers, strict=True):
        blob = X[start:stop]
        assert np.abs(blob.mean(axis=0) - center).max() < 4 * spread / np.sqrt(stop - start)
        assert blob.std(axis=0) == pytest.approx([spread, spread], rel=0.3)
        # The group is a matter of the height: the lower blobs are group 0.
        assert np.unique(groups[start:stop]).tolist() == [int(center[1] > 1)]


def test_blobs_are_sorted_by_group_unless_shuffled():
    X, groups = make_grouped_blobs(variant="unequal", random_state=1)
    assert (np.diff(groups) >= 0).all()
    X_mixed, mixed = make_grouped_blobs(variant="unequal", shuffle=True, random_state=1)
    assert (np.diff(mixed) < 0).any()
    order, order_mixed = np.lexsort(X.T), np.lexsort(X_mixed.T)
    np.testing.assert_array_equal(X[order], X_mixed[order_mixed])
    np.testing.assert_array_equal(groups[order], mixed[order_mixed])


@pytest.mark.parametrize(("variant", "cost"), [("equal", 0.3119), ("two_unequal", 0.1790)])
def test_blobs_cost_what_was_measured_on_the_published_sets(variant, cost):
    # Mean squared distance of plain 2-means, from runs on the sets of the published code.
    X, _ = make_grouped_blobs(variant=variant, random_state=1)
    inertia = KMeans(2, n_init=5, random_state=0).fit(X).inertia_
    assert inertia / len(X) == pytest.approx(cost, abs=5e-5)


@pytest.mark.parametrize("variant", PAPER)
def test_blobs_of_any_number_of_points_keep_the_shares(variant):
    X, groups = make_grouped_blobs(81, variant=variant, random_state=1)
    assert X.shape == (81, 2)
    expected = np.array(PAPER[variant][0]) * 81 / 400
    assert np.abs(np.bincount(groups) - expected).max() <= len(PAPER[variant][1])


def test_an_unknown_variant_is_named():
    with pytest.raises(ValueError, match="'variant' parameter of make_grouped_blobs"):
        make_grouped_blobs(variant="three")
