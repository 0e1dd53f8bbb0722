"""The point sets: the paper's parameters, the promised group counts, seeds."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from skfair.datasets.generators_points import (
    make_elliptical,
    make_grouped_blobs,
    make_three_groups,
)

# variant -> group sizes, blob sizes, centres, standard deviation, as the paper has them.
PAPER = {
    "equal": ([200, 200], [100] * 4, [(1, 1), (2.1, 1), (1, 5), (2.1, 5)], 0.1),
    "unequal": ([300, 100], [150, 150, 50, 50], [(1, 1), (2.1, 1), (1, 3.5), (2.1, 3.5)], 0.13),
    "two_equal": ([200, 200], [200, 200], [(1, 1), (2.1, 3.5)], 0.3),
    "two_unequal": ([300, 100], [300, 100], [(1, 1), (2.1, 3.5)], 0.3),
}
MIXED = [(make_elliptical, 2), (make_three_groups, 3)]


@pytest.mark.parametrize("variant", PAPER)
def test_blobs_have_the_groups_and_centres_of_the_paper(variant):
    group_sizes, blob_sizes, centers, spread = PAPER[variant]
    X, groups = make_grouped_blobs(variant=variant)
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
    X, groups = make_grouped_blobs(variant="unequal")
    assert (np.diff(groups) >= 0).all()
    X_mixed, mixed = make_grouped_blobs(variant="unequal", shuffle=True)
    assert (np.diff(mixed) < 0).any()
    order, order_mixed = np.lexsort(X.T), np.lexsort(X_mixed.T)
    np.testing.assert_array_equal(X[order], X_mixed[order_mixed])
    np.testing.assert_array_equal(groups[order], mixed[order_mixed])


@pytest.mark.parametrize(("variant", "cost"), [("equal", 0.3119), ("two_unequal", 0.1790)])
def test_blobs_cost_what_was_measured_on_the_published_sets(variant, cost):
    # Mean squared distance of plain 2-means, from runs on the sets of the published code.
    X, _ = make_grouped_blobs(variant=variant)
    inertia = KMeans(2, n_init=5, random_state=0).fit(X).inertia_
    assert inertia / len(X) == pytest.approx(cost, abs=5e-5)


@pytest.mark.parametrize("variant", PAPER)
def test_blobs_of_any_number_of_points_keep_the_shares(variant):
    X, groups = make_grouped_blobs(81, variant=variant)
    assert X.shape == (81, 2)
    expected = np.array(PAPER[variant][0]) * 81 / 400
    assert np.abs(np.bincount(groups) - expected).max() <= len(PAPER[variant][1])


def test_unknown_variant_is_refused():
    with pytest.raises(ValueError, match="'variant' parameter of make_grouped_blobs"):
        make_grouped_blobs(variant="three")


@pytest.mark.parametrize("make", [make_grouped_blobs, make_elliptical, make_three_groups])
def test_same_seed_same_points_other_seed_other_points(make):
    first, again, other = (make(random_state=seed) for seed in (3, 3, 4))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize(("make", "k"), MIXED)
@pytest.mark.parametrize("n", [61, 600])
def test_clusters_are_even_and_hold_the_asked_share_of_their_group(make, k, n):
    X, labels, groups = make(n, group_purity=0.7, random_state=0)
    assert X.shape == (n, 2)
    sizes = np.bincount(labels, minlength=k)
    assert sizes.max() - sizes.min() <= 1
    table = np.zeros((k, k))
    np.add.at(table, (labels, groups), 1)
    assert np.abs(np.diag(table) - 0.7 * sizes).max() < 1
    off = (table - np.diag(np.diag(table)))[~np.eye(k, dtype=bool)]
    assert np.abs(off - 0.3 / (k - 1) * n / k).max() < 2


@pytest.mark.parametrize(("make", "k"), MIXED)
def test_purity_of_one_over_k_is_perfectly_fair(make, k):
    _, labels, groups = make(k * k * 10, group_purity=1 / k, random_state=0)
    for cluster in range(k):
        assert np.bincount(groups[labels == cluster]).tolist() == [10] * k


@pytest.mark.parametrize(("make", "k"), MIXED)
def test_rows_are_sorted_without_shuffle(make, k):
    _, labels, groups = make(90, shuffle=False, random_state=0)
    assert (np.diff(labels * k + groups) >= 0).all()


def test_ellipses_are_long_and_apart():
    X, labels, _ = make_elliptical(2000, separation=3.0, elongation=8.0, random_state=0)
    for cluster, height in enumerate((-1.5, 1.5)):
        points = X[labels == cluster] - [0, height]
        # Inside the ellipse with half axes 4 and 0.5, and close to its rim in both directions.
        assert ((points / [4.0, 0.5]) ** 2).sum(axis=1).max() <= 1
        assert np.abs(points).max(axis=0) == pytest.approx([4.0, 0.5], rel=0.05)
        # Even filling: half of the points are in the ellipse of half the area.
        share = (((points / [4.0, 0.5]) ** 2).sum(axis=1) < 0.5).mean()
        assert share == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(1000))


def test_three_groups_sit_on_a_triangle():
    X, labels, _ = make_three_groups(random_state=0)
    assert np.bincount(labels).tolist() == [193, 192, 192]
    centers = np.array([X[labels == k].mean(axis=0) for k in range(3)])
    sides = [np.linalg.norm(centers[i] - centers[j]) for i, j in ((0, 1), (1, 2), (2, 0))]
    assert sides == pytest.approx([3, 3, 3], abs=0.3)


@pytest.mark.parametrize("make", [make_elliptical, make_three_groups])
@pytest.mark.parametrize("bad", [{"n_samples": 1}, {"group_purity": 1.1}, {"shuffle": "yes"}])
def test_bad_arguments_are_named(make, bad):
    with pytest.raises(ValueError, match=f"'{next(iter(bad))}' parameter of {make.__name__}"):
        make(**bad)
