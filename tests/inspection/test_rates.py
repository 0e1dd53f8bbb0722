import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from skfair.inspection import GroupRatesDisplay
from skfair.inspection._style import look
from skfair.metrics import group_report
from tests import naive
from tests.seeds import generator

ALL_RATES = [
    "selection_rate",
    "true_positive_rate",
    "false_positive_rate",
    "positive_predictive_value",
    "accuracy",
    "base_rate",
    "negative_predictive_value",
]


@pytest.fixture
def sample():
    rng = generator(0)
    group = rng.choice(["a", "b", "c"], 300)
    y_true = rng.integers(0, 2, 300)
    y_pred = np.where(rng.random(300) < 0.7, y_true, group == "a").astype(int)
    return y_true, y_pred, group


def draw(y_true, y_pred, group, **options):
    return GroupRatesDisplay.from_predictions(y_true, y_pred, sensitive_features=group, **options)


def naive_rate(rate, y_true, y_pred):
    if rate == "base_rate":
        return np.mean(y_true)
    return naive.rates(y_true, y_pred, ["x"] * y_true.size, np.ones(y_true.size))[rate]["x"]


def wilson(rate, n):
    """Solve (p - rate)^2 = z^2 p (1 - p) / n for p."""
    z2 = 1.959963984540054**2
    return np.sort(np.roots([1 + z2 / n, -2 * rate - z2 / n, rate**2]))


def test_what_is_drawn_equals_plain_counts(sample, legend_of):
    y_true, y_pred, group = sample
    display = draw(y_true, y_pred, group, rates=ALL_RATES)
    assert len(display.artists_) == len(display.overall_lines_) == len(ALL_RATES)
    rows = [group == "a", group == "b", group == "c", np.ones(300, bool)]
    for i, rate in enumerate(ALL_RATES):
        expected = [naive_rate(rate, y_true[row], y_pred[row]) for row in rows]
        drawn, heights = display.artists_[i].lines[0].get_data()
        assert_allclose(drawn, expected)
        # Each rate has its place within the rows.
        assert_array_equal(np.round(heights), [0, 1, 2, 3])
        assert_allclose(np.diff(heights), 1)
        if rate == "selection_rate":
            (bars,) = display.artists_[i].lines[2]
            ends = [wilson(own, row.sum()) for own, row in zip(expected, rows, strict=True)]
            assert_allclose([segment[:, 0] for segment in bars.get_segments()], ends)
        assert_array_equal(display.overall_lines_[i].get_xdata(), [expected[-1]] * 2)
        assert display.overall_lines_[i].get_linestyle() is not None
    assert legend_of(display.ax_) == [rate.replace("_", " ") for rate in ALL_RATES]
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    sizes = [int(row.sum()) for row in rows]
    assert labels == [
        f"{name}\nn = {n}" for name, n in zip(["a", "b", "c", "overall"], sizes, strict=True)
    ]
    assert display.ax_.get_xlim() == (-0.02, 1.02)
    assert display.ax_.get_ylim() == (3.5, -0.5)
    assert not display.undefined_


def test_intervals_can_be_chosen_or_left_out(sample):
    y_true, y_pred, group = sample
    options = {"sensitive_features": group, "confidence": 0.8}
    display = GroupRatesDisplay.from_predictions(
        y_true, y_pred, method="bootstrap", n_bootstrap=20, random_state=1, **options
    )
    report = group_report(
        y_true, y_pred, method="bootstrap", n_bootstrap=20, random_state=1, **options
    )
    assert_array_equal(display.low[0], report["selection_rate_low"].iloc[:-1])
    assert_array_equal(display.overall_high[0], report["selection_rate_high"].iloc[-1])
    assert display.ax_.get_xlabel() == "Rate, with 80% confidence interval"
    display = GroupRatesDisplay.from_predictions(y_true, y_pred, method=None, **options)
    assert display.low is None
    assert not display.artists_[0].has_xerr
    assert display.ax_.get_xlabel() == "Rate"


def test_rates_are_told_apart_without_colour_and_keep_their_look(sample):
    y_true, y_pred, group = sample
    both = draw(y_true, y_pred, group, rates=ALL_RATES)
    markers = [artist.lines[0].get_marker() for artist in both.artists_]
    assert len(set(markers)) == len(ALL_RATES)
    alone = draw(y_true, y_pred, group, rates=["accuracy"])
    number = ALL_RATES.index("accuracy")
    assert alone.artists_[0].lines[0].get_marker() == markers[number]
    assert alone.artists_[0].lines[0].get_color() == look(number).color


def test_two_models_on_the_same_axes(sample, legend_of):
    y_true, y_pred, group = sample
    options = {"sensitive_features": group, "rates": ["selection_rate", "accuracy"]}
    first = GroupRatesDisplay.from_predictions(y_true, y_pred, name="one", **options)
    second = GroupRatesDisplay.from_predictions(
        y_true, 1 - y_pred, name="two", ax=first.ax_, **options
    )
    assert second.ax_ is first.ax_
    assert legend_of(second.ax_) == [
        "one: selection rate",
        "one: accuracy",
        "two: selection rate",
        "two: accuracy",
    ]
    lines = [first.artists_[0].lines[0], second.artists_[0].lines[0]]
    assert lines[0].get_color() == lines[1].get_color()
    assert [line.get_fillstyle() for line in lines] == ["full", "none"]
    assert_allclose(lines[1].get_ydata() - lines[0].get_ydata(), 0.08)
    labels = [text.get_text() for text in first.ax_.get_yticklabels()]
    assert labels[0] == f"a\nn = {(group == 'a').sum()}"
    # Sizes that differ between models are not written.
    draw(y_true[50:], y_pred[50:], group[50:], ax=first.ax_, rates=options["rates"])
    labels = [text.get_text() for text in first.ax_.get_yticklabels()]
    assert labels == ["a", "b", "c", "overall"]


def test_two_attributes(sample):
    y_true, y_pred, group = sample
    sex = np.resize(["f", "m"], 300)
    both = pd.DataFrame({"sex": sex, "origin": group})
    crossed = draw(y_true, y_pred, both)
    assert crossed.group_names[0] == "sex=f, origin=a"
    assert crossed.values.shape == (3, 6)
    apart = draw(y_true, y_pred, both, intersectional=False)
    assert apart.group_names == ["sex=f", "sex=m", "origin=a", "origin=b", "origin=c"]
    # Overlapping groups count each row twice; the whole sample counts it once.
    assert apart.n_overall == 300
    assert_allclose(apart.overall[0], y_pred.mean())


def test_undefined_rates_are_said_to_be():
    y_true, y_pred = [1, 1, 0, 1, 0, 0], [1, 0, 1, 1, 0, 0]
    display = draw(y_true, y_pred, list("aabbcc"))
    notes = [(note.get_text(), round(note.get_position()[1])) for note in display.undefined_]
    # No positive row in c, no negative row in a.
    assert notes == [("undefined", 2), ("undefined", 0)]


@pytest.mark.parametrize("group", ["a", "overall"])
def test_true_labels_are_optional_for_selection_rates(sample, group):
    _, y_pred, _ = sample
    display = draw(None, y_pred, [group] * 300)
    assert (display.rates, display.group_names) == (["selection_rate"], [group])
    assert_allclose(display.overall, y_pred.mean())
    assert_allclose(display.values[0], y_pred.mean())


def test_estimator_with_string_labels_and_columns(sample):
    y_true, y_pred, group = sample
    X = pd.DataFrame({"group": group, "score": y_pred})
    words = np.where(y_true == 1, "yes", "no")

    class FirstColumn(LogisticRegression):
        def predict(self, X):
            return self.classes_[X["score"].to_numpy()]

    model = FirstColumn().fit(X[["score"]], words)
    display = GroupRatesDisplay.from_estimator(model, X, words, sensitive="group")
    for i, name in enumerate(["a", "b", "c"]):
        assert_allclose(display.values[0, i], y_pred[group == name].mean())
    refusal = GroupRatesDisplay.from_estimator(model, X, words, sensitive="group", pos_label="no")
    assert_allclose(refusal.values[0], 1 - display.values[0])


@pytest.mark.parametrize("label", [0, 1, 2])
def test_each_of_several_classes_may_be_the_positive_one(label):
    X, y, sex = np.arange(60.0)[:, None], np.arange(60) % 3, np.repeat(["f", "m"], 30)
    model = LogisticRegression().fit(X, (y + (X[:, 0] > 30)) % 3)
    found = model.predict(X)
    display = GroupRatesDisplay.from_estimator(
        model, X, y, sensitive_features=sex, pos_label=label, rates="selection_rate"
    )
    assert_allclose(display.values[0], [np.mean(found[sex == s] == label) for s in ("f", "m")])


def test_plot_again_with_options(sample):
    y_true, y_pred, group = sample
    display = draw(y_true, y_pred, group)
    _, ax = plt.subplots()
    assert display.plot(ax=ax, name="late", ms=11, capsize=0) is display
    assert (display.ax_, display.figure_) == (ax, ax.figure)
    assert display.artists_[0].lines[0].get_markersize() == 11
    assert display.artists_[0].get_label() == "late: selection rate"


def test_plain_numbers_with_rates_of_ones_own():
    display = GroupRatesDisplay(
        values=[[0.1, 0.2]],
        overall=[0.15],
        rates=["churn"],
        group_names=["a", "b"],
        low=[[0, 0.1]],
        high=[[0.2, 0.4]],
    ).plot()
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["a", "b", "overall"]
    assert display.artists_[0].lines[0].get_color() == look(len(ALL_RATES)).color
    segments = display.artists_[0].lines[2][0].get_segments()
    assert_allclose(segments[1][:, 0], [0.1, 0.4])
    counted = GroupRatesDisplay(
        values=[[0.1, 0.2]], overall=[0.15], rates=["x"], group_names=["a", "b"], n_samples=[3, 4]
    )
    assert counted.n_overall == 7


def test_differences_from_a_reference_group(sample):
    y_true, y_pred, group = sample
    display = draw(y_true, y_pred, group, reference="b", rates=ALL_RATES)
    assert display.group_names == ["a", "c"]
    for i, rate in enumerate(ALL_RATES):
        a, b, c = (naive_rate(rate, y_true[group == g], y_pred[group == g]) for g in "abc")
        assert_allclose(display.artists_[i].lines[0].get_xdata(), [a - b, c - b, 0])
    report = group_report(y_true, y_pred, sensitive_features=group, reference="b")
    low = report["selection_rate_difference_low"]
    assert_allclose(display.low[0], [low["a"], low["c"]])
    drawn = GroupRatesDisplay.from_report(report, rates=ALL_RATES)
    assert (drawn.reference, drawn.confidence) == ("b", 0.95)
    assert_allclose(drawn.high, display.high)
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels == [f"{one}\nn = {(group == one).sum()}" for one in "acb"]
    assert display.ax_.get_xlabel().startswith("Difference from b (below 0: lower)")
    assert display.ax_.get_xlim()[0] < 0
    sexes = np.where(np.arange(300) % 2, "f", "m")
    both = {"letter": group, "sex": sexes}
    crossed = draw(y_true, y_pred, both, reference={"letter": "b", "sex": "f"})
    assert crossed.reference == "letter=b, sex=f"
