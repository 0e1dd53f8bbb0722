import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import gaussian_kde, norm
from sklearn.linear_model import LogisticRegression

from skfair.inspection import GroupScoreDisplay
from skfair.inspection import _scores as module
from skfair.inspection._scores import interval_text, score_ranges
from tests.seeds import generator


@pytest.fixture
def sample():
    rng = generator(0)
    group = np.repeat(["a", "b"], [60, 40])
    return rng.normal(size=100) + 1.5 * (group == "a"), group


def draw(scores, group, **options):
    return GroupScoreDisplay.from_predictions(None, scores, sensitive_features=group, **options)


def test_densities_equal_scipys(sample, legend_of):
    scores, group = sample
    display = draw(scores, group)
    assert len(display.curves_) == 2
    assert not display.shades_
    for name, curve in zip(["a", "b"], display.curves_, strict=True):
        x, heights = curve.get_data()
        assert_allclose(heights, gaussian_kde(scores[group == name])(x))
        assert np.trapezoid(heights, x) > 0.99
    styles = {curve.get_linestyle() for curve in display.curves_}
    assert len(styles) == 2
    assert legend_of(display.ax_) == ["a", "b"]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("Score", "Density")
    assert display.ax_.get_ylim()[0] == 0


@pytest.mark.parametrize("bw_method", ["silverman", 0.3])
@pytest.mark.parametrize("unit", [1.0, 1e100])
def test_bandwidth_and_weights(sample, bw_method, unit):
    scores, group = sample
    weights = np.linspace(0, 2, 100)  # the first row has no weight
    display = draw(scores, group, sample_weight=unit * weights, bw_method=bw_method)
    row = group == "a"
    x, heights = display.curves_[0].get_data()
    expected = gaussian_kde(scores[row], bw_method=bw_method, weights=weights[row])
    assert_allclose(heights, expected(x))


def test_bins_are_spread_over_scores_that_count(sample):
    scores, group = sample
    far, weights = np.append(scores, 1e6), np.append(np.ones(100), 0.0)
    shown = [
        draw(values, groups, sample_weight=w, kind="hist", bins=10).curves_[0]
        for values, groups, w in ((scores, group, None), (far, np.append(group, "a"), weights))
    ]
    assert_allclose(shown[1].get_data().edges, shown[0].get_data().edges)
    assert_allclose(shown[1].get_data().values, shown[0].get_data().values)


def test_large_samples_are_counted_first_and_look_the_same():
    rng = generator(0)
    scores = rng.normal(size=2 * module._N_BINS)
    display = GroupScoreDisplay(scores=[scores], group_names=["all"]).plot()
    x, heights = display.curves_[0].get_data()
    assert_allclose(heights, gaussian_kde(scores)(x), atol=1e-4)
    # A far outlier leaves few bins to the others, which must not change the bandwidth.
    scores[0] = 1e5
    display = GroupScoreDisplay(scores=[scores], group_names=["all"]).plot()
    x, heights = display.curves_[0].get_data()
    expected = gaussian_kde(scores)
    assert_allclose(heights, expected(x), atol=0.05 * expected(x).max())
    low = scores.min() - 3 * np.sqrt(expected.covariance[0, 0])
    assert_allclose(x[0], low, rtol=1e-3)


def test_probabilities_do_not_leak():
    rng = generator(0)
    scores = rng.beta(0.5, 0.5, 500)
    display = GroupScoreDisplay(scores=[scores], group_names=["all"], bounds=(0, 1)).plot()
    x, heights = display.curves_[0].get_data()
    assert (x[0], x[-1]) == (0, 1)
    assert_allclose(np.trapezoid(heights, x), 1, atol=1e-3)
    # What leaks without bounds is what was reflected.
    free = gaussian_kde(scores)
    assert_allclose(heights, free(x) + free(-x) + free(2 - x))
    half = GroupScoreDisplay(scores=[scores], group_names=["all"], bounds=(0, np.inf)).plot()
    x, heights = half.curves_[0].get_data()
    assert_allclose(heights, free(x) + free(-x))


def test_histogram_equals_numpys(sample):
    scores, group = sample
    display = draw(scores, group, kind="hist", bins=12)
    edges = np.histogram_bin_edges(scores, bins=12)
    for name, curve in zip(["a", "b"], display.curves_, strict=True):
        values, drawn_edges, _ = curve.get_data()
        assert_allclose(drawn_edges, edges)
        assert_allclose(values, np.histogram(scores[group == name], edges, density=True)[0])


def test_histogram_of_weights_and_own_bins(sample):
    scores, group = sample
    weights = np.linspace(1, 2, 100)
    display = draw(scores, group, sample_weight=weights, kind="hist", bins=[0, 1, 3])
    row = group == "b"
    inside = [((scores >= 0) & (scores < 1)), ((scores >= 1) & (scores <= 3))]
    shares = [weights[row & bin_].sum() / weights[row].sum() for bin_ in inside]
    # Scores beside the bins count: the bars are shares of the whole group per unit of score.
    assert_allclose(display.curves_[1].get_data()[0], [shares[0], shares[1] / 2])


@pytest.mark.parametrize("kind", ["density", "hist"])
def test_bins_or_intervals_beside_all_scores(sample, kind):
    scores, group = sample
    display = draw(scores, group, kind=kind, bins=[50, 60], layout="rows", interval=(0.1, 0.2))
    assert len(display.shades_) == (2 if kind == "density" else 0)


def naive_range(scores, low, high):
    """Walk down from the best row; row i owns the ranks i / n to (i + 1) / n."""
    order = sorted(scores, reverse=True)
    n = len(order)
    inside = [s for i, s in enumerate(order) if (i + 1) / n > low + 1e-9 and i / n < high - 1e-9]
    return min(inside), max(inside)


@pytest.mark.parametrize("interval", [(0.05, 0.3), (0.4, 0.6), (0.1, 0.11), (1 / 3, 2 / 3)])
@pytest.mark.parametrize("n", [1, 2, 7, 10, 40])
def test_interval_covers_the_rows_that_own_its_ranks(n, interval):
    rng = generator(n)
    scores = np.round(rng.normal(size=n), 1)  # ties
    found = score_ranges(scores, np.ones(n), np.array([interval]))
    assert_array_equal(found[0], naive_range(scores, *interval))
    no_end = score_ranges(scores, np.ones(n), np.array([[0, 0.2], [0.9, 1]]))
    assert (no_end[0, 1], no_end[1, 0]) == (np.inf, -np.inf)
    # A row of weight 2 is two rows.
    weights = rng.integers(1, 4, n)
    repeated = np.repeat(scores, weights)
    assert_array_equal(
        score_ranges(scores, weights.astype(float), np.array([interval]))[0],
        naive_range(repeated, *interval),
    )


def test_interval_in_words():
    assert interval_text([np.array([[0.05, 0.3]])] * 2) == "5% to 30%"
    assert interval_text([np.array([[0, 0.125], [0.5, 1]])]) == "0% to 12.5% and 50% to 100%"
    different = [np.array([[0, 0.5]]), np.array([[0, 0.4]])]
    assert interval_text(different) == "in the group's own interval"


@pytest.mark.parametrize("layout", ["overlay", "rows"])
def test_shaded_part_of_a_density(layout):
    # Scores at the quantiles of the normal law: the interval has known ends and a known area.
    scores = norm.ppf((np.arange(2000) + 0.5) / 2000)
    display = draw(
        np.concatenate([scores, scores + 3]),
        np.repeat(["a", "b"], 2000),
        interval=(0.1, 0.4),
        layout=layout,
    )
    assert display.ax_.get_xlabel() == "Score (shaded: ranks 10% to 40% of each group)"
    assert len(display.shades_) == 2
    highest = max(curve.get_ydata().max() for curve in display.curves_)
    for g, shade in enumerate(display.shades_):
        outline = shade.get_paths()[0].vertices
        ends = outline[:, 0].min(), outline[:, 0].max()
        assert_allclose(ends, 3 * g + norm.ppf([0.6, 0.9]), atol=0.01)
        x, y = outline.T
        area = abs(np.sum(x[1:] * y[:-1] - x[:-1] * y[1:])) / 2
        if layout == "overlay":
            assert_allclose(area, 0.3, atol=0.02)
            assert y.max() <= highest
        else:
            assert y.max() == g
            assert y.min() > g - 1
    hatches = {shade.get_hatch() for shade in display.shades_}
    assert len(hatches) == 2


def test_shaded_part_of_a_histogram():
    scores = np.arange(100.0)
    display = draw(
        scores,
        ["a"] * 100,
        interval=[(0, 0.1), (0.25, 0.5)],
        kind="hist",
        bins=np.linspace(0, 100, 11),
    )
    top, middle = display.shades_
    values, edges, baseline = middle.get_data()
    # From the row at rank 0.5 to the one just below rank 0.25: 50 to 74.
    assert_allclose(edges, [50, 60, 70, 74])
    assert_allclose(values, 0.01)
    assert_allclose(baseline, 0)
    assert_allclose(top.get_data().edges, [90, 100])


def test_interval_of_each_group(sample):
    scores, group = sample
    display = draw(scores, group, interval={"a": (0, 0.5), "b": [(0, 0.1), (0.5, 1)]})
    assert [len(pairs) for pairs in display.interval] == [1, 2]
    assert len(display.shades_) == 3
    assert "own interval" in display.ax_.get_xlabel()


def test_rows_show_all_groups(sample):
    scores, group = sample
    sex = np.resize(["f", "m"], 100)
    both = np.column_stack([sex, group])
    for kind in ("density", "hist"):
        display = draw(scores, both, layout="rows", kind=kind)
        assert len(display.curves_) == 4
        labels = [text.get_text().split() for text in display.ax_.get_yticklabels()]
        assert labels[0] == ["sensitive_feature_0=f,", "sensitive_feature_1=a", "n", "=", "30"]
        assert_array_equal(display.ax_.get_yticks(), range(4))
        assert display.ax_.get_ylim() == (3.1, -1.0)
        assert display.ax_.get_legend() is None
    apart = draw(scores, both, intersectional=False)
    assert [values.size for values in apart.scores] == [50, 50, 60, 40]


def test_constant_scores_are_a_line(sample, legend_of):
    scores, group = sample
    scores = np.where(group == "a", 0.1 + 0.2, scores)
    display = draw(scores, group, interval=(0.1, 0.5))
    constant, free = display.curves_
    assert_array_equal(constant.get_xdata(), [0.1 + 0.2] * 2)
    assert_array_equal(constant.get_ydata(), [0, free.get_ydata().max()])
    assert len(display.shades_) == 1
    assert legend_of(display.ax_) == ["a (all equal)", "b"]


@pytest.mark.parametrize("layout", ["overlay", "rows"])
@pytest.mark.parametrize("kind", ["density", "hist"])
@pytest.mark.parametrize("value", [0.0, 0.3, -1e6])
def test_all_scores_equal(kind, layout, value):
    options = {"interval": (0.1, 0.5), "kind": kind, "layout": layout}
    display = draw([value] * 6, list("aabbbb"), sample_weight=[1, 1, 1e-300, 1, 1, 1], **options)
    assert len(display.curves_) == 2
    assert not display.shades_
    tie = draw([1, 2, 2, 2, 2, 3], ["a"] * 6, interval=(0.3, 0.5))
    assert_array_equal(tie.score_ranges[0], [[2, 2]])
    assert not tie.shades_


def test_estimator(sample):
    scores, group = sample
    X = pd.DataFrame({"score": scores, "group": pd.Categorical(group)})
    y = np.where(scores > 0, "yes", "no")

    class FirstColumn(LogisticRegression):
        def decision_function(self, X):
            return super().decision_function(X[["score"]])

        def predict_proba(self, X):
            return super().predict_proba(X[["score"]])

    model = FirstColumn().fit(X[["score"]], y)
    margin = model.decision_function(X)
    display = GroupScoreDisplay.from_estimator(model, X, y, sensitive=["group"])
    assert_allclose(display.scores[1], margin[group == "b"])
    assert display.bounds is None
    display = GroupScoreDisplay.from_estimator(
        model, X, sensitive=1, response_method="predict_proba", pos_label="no", lw=4
    )
    assert_allclose(display.scores[0], 1 / (1 + np.exp(margin[group == "a"])))
    assert display.bounds == (0, 1)
    assert display.curves_[0].get_linewidth() == 4
