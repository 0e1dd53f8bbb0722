from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import DBSCAN, KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair.inspection import ClusterCompositionDisplay
from tests.seeds import generator


@pytest.fixture
def sample():
    rng = generator(0)
    labels = rng.choice(["x", "y", "z", "w"], 200)
    return labels, rng.choice(["a", "b", "c"], 200)


def draw(labels, group, **options):
    return ClusterCompositionDisplay.from_labels(labels, sensitive_features=group, **options)


def test_bars_equal_plain_counts(sample, legend_of):
    labels, group = sample
    display = draw(labels, group)
    clusters = ["w", "x", "y", "z"]
    assert len(display.bars_) == 3
    bottom = np.zeros(4)
    for bars, name in zip(display.bars_, ["a", "b", "c"], strict=True):
        shares = [np.mean(group[labels == cluster] == name) for cluster in clusters]
        assert_allclose([bar.get_height() for bar in bars], shares)
        assert_allclose([bar.get_y() for bar in bars], bottom)
        assert_allclose([bar.get_x() + bar.get_width() / 2 for bar in bars], range(4))
        bottom += shares
    assert_allclose(bottom, 1)
    (lines,) = display.overall_lines_
    overall = [np.mean(group == "a"), np.mean(group != "c")]
    assert_allclose([segment[0, 1] for segment in lines.get_segments()], overall)
    assert_allclose(lines.get_segments()[0][:, 0], [-0.5, 3.5])
    texts = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert texts == [f"{cluster}\nn = {(labels == cluster).sum()}" for cluster in clusters]
    # The legend lists the groups as they are stacked.
    assert legend_of(display.ax_) == ["c", "b", "a", "whole sample"]
    assert display.ax_.get_xlim() == (-0.5, 3.5)
    assert display.ax_.get_ylim() == (0, 1)
    assert len({bars.patches[0].get_hatch() for bars in display.bars_}) == 3
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == (
        "Cluster",
        "Share of the cluster",
    )


def test_weights_and_clusters_without_weight(sample):
    labels, group = sample
    weights = np.where(labels == "y", 0.0, np.linspace(1, 2, 200))
    display = draw(labels, group, sample_weight=weights)
    assert display.cluster_names == ["w", "x", "z"]
    row = labels == "x"
    assert_allclose(display.shares[0, 1], np.average(group[row] == "a", weights=weights[row]))
    assert_allclose(display.sizes[1], weights[row].sum())
    assert_allclose(display.overall_shares[2], np.average(group == "c", weights=weights))
    # Large sizes are written in full.
    display = draw(labels, group, sample_weight=np.full(200, 1_234_567 / row.sum()))
    texts = " ".join(text.get_text() for text in display.ax_.findobj(Text))
    assert "n = 1,234,567" in texts


def test_two_attributes(sample, legend_of):
    labels, group = sample
    sex = np.resize(["f", "m"], 200)
    both = pd.DataFrame({"sex": sex, "origin": group})
    crossed = draw(labels, both)
    assert crossed.shares.shape == (6, 4)
    assert_allclose(crossed.shares.sum(axis=0), 1)
    assert len(crossed.overall_lines_) == 1
    apart = draw(labels, both, intersectional=False)
    assert apart.group_names == ["sex=f", "sex=m", "origin=a", "origin=b", "origin=c"]
    # Two bars side by side, each of height 1, with the lines of its own attribute.
    for members, centre in (([0, 1], -0.2), ([2, 3, 4], 0.2)):
        assert_allclose(apart.shares[members].sum(axis=0), 1)
        bar = apart.bars_[members[0]].patches[0]
        assert_allclose(bar.get_x() + bar.get_width() / 2, centre)
    sex_lines, origin_lines = apart.overall_lines_
    assert_allclose(sex_lines.get_segments()[0], [[-0.4, 0.5], [0, 0.5]])
    assert len(origin_lines.get_segments()) == 8
    assert legend_of(apart.ax_)[-1] == "whole sample"
    assert len(legend_of(apart.ax_)) == 6


def test_one_group_has_no_line(sample, legend_of):
    labels, _ = sample
    display = draw(labels, ["a"] * 200)
    assert not display.overall_lines_
    assert_array_equal(display.shares, 1)
    assert legend_of(display.ax_) == ["a"]


def test_labels_are_turned_where_they_would_overlap(sample):
    _, group = sample
    many = draw(np.arange(200) % 40, group)
    assert many.ax_.get_xticklabels()[7].get_rotation() == 90
    assert many.ax_.get_xticklabels()[7].get_text() == "7  n = 5"
    few = draw(np.arange(200) % 5, group)
    assert few.ax_.get_xticklabels()[0].get_rotation() == 0
    _, (narrow, _, _) = plt.subplots(1, 3, figsize=(6, 3))
    assert few.plot(ax=narrow).ax_.get_xticklabels()[0].get_rotation() == 90


def test_no_label_is_clipped_or_overlaps_another():
    group = np.resize(["a group with a rather long name", "b"], 200)
    for n_clusters in (2, 8):
        display = draw(np.arange(200) % n_clusters, group)
        display.figure_.draw_without_rendering()
        width = display.figure_.bbox.width
        boxes = [text.get_window_extent() for text in display.ax_.get_xticklabels()]
        assert all(one.x1 < other.x0 for one, other in pairwise(boxes))
        assert display.ax_.get_legend().get_window_extent().x1 <= width
        assert display.ax_.get_window_extent().width > 0.3 * width


def test_fitted_clusterers(sample):
    _, group = sample
    X = generator(1).normal(size=(200, 2))
    clusterer = KMeans(3, n_init=1, random_state=0).fit(X)
    display = ClusterCompositionDisplay.from_estimator(clusterer, sensitive_features=group)
    assert_allclose(display.shares[0, 2], np.mean(group[clusterer.labels_ == 2] == "a"))
    # The groups from a column of the training rows, the labels from inside a pipeline.
    frame = pd.DataFrame(X, columns=["u", "v"]).assign(code=pd.factorize(group, sort=True)[0])
    pipeline = make_pipeline(StandardScaler(), clusterer).fit(frame[["u", "v"]])
    display = ClusterCompositionDisplay.from_estimator(pipeline, frame, sensitive="code")
    assert display.group_names == ["0", "1", "2"]
    noisy = DBSCAN(eps=0.3).fit(X)
    display = ClusterCompositionDisplay.from_estimator(noisy, sensitive_features=group)
    assert display.cluster_names[0] == "-1"
    assert_allclose(display.sizes[0], np.sum(noisy.labels_ == -1))


def test_options_and_again(sample):
    labels, group = sample
    display = draw(labels, group, ec="black", lw=2)
    assert display.bars_[0].patches[0].get_linewidth() == 2
    _, ax = plt.subplots()
    assert display.plot(ax=ax) is display
    assert (display.ax_, display.figure_) == (ax, ax.figure)
