import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from skfair.inspection import FairnessPathDisplay
from skfair.metrics import group_report
from skfair.model_selection import FairnessPath
from tests.seeds import generator

RNG = generator(0)
GROUP = np.repeat(["a", "b", "c"], [60, 50, 40])
X, Y = RNG.random((150, 1)), RNG.integers(0, 2, 150)
SHARES = ({"a": 0.9, "b": 0.5, "c": 0.2}, {"a": 0.7, "b": 0.5, "c": 0.4})
LIMITS = np.array([0.7, 0.3])


class Selects:
    """Selects a share of each group, by the first column; needs to know the groups."""

    classes_ = np.array([0, 1])

    def __init__(self, shares):
        self.shares = shares

    def predict(self, X, sensitive_features):
        return (X[:, 0] < pd.Series(sensitive_features).map(self.shares)).astype(int)


def path_of(shares=SHARES, limits=LIMITS):
    reached = np.zeros(len(limits))
    models = [Selects(share) for share in shares]
    return FairnessPath(limits, models, reached, reached)


def draw(path=None, y=None, **options):
    options = {"sensitive_features": GROUP, **options}
    return FairnessPathDisplay.from_path(path or path_of(), X, y, **options)


def rates_of(labels, y=None):
    counted = np.ones(150, bool) if y is None else y == 1
    return [labels[counted & (name == GROUP)].mean() for name in "abc"]


def labels_of(share):
    return Selects(share).predict(X, GROUP)


def dots(display):
    before = [line.get_xdata() for line in display.before_]
    return before, [dot.lines[0].get_xdata() for dot in display.after_]


def test_dots_are_counted_rates():
    before = (X[:, 0] < 0.6).astype(int)
    for given in (before, Selects(dict.fromkeys("abc", 0.6))):
        display = draw(before=given)
        old, new = dots(display)
        assert len(display.ax_) == len(old) == 2
        for k, share in enumerate(SHARES):
            assert old[k] == pytest.approx(rates_of(before))
            assert new[k] == pytest.approx(rates_of(labels_of(share)))
            labels = [text.get_text() for text in display.ax_[k].texts]
            assert labels == [f"{rate:.0%}" for rate in rates_of(labels_of(share))]
    # Without decisions before, those of the largest limit take their place.
    old, new = dots(draw())
    assert [*old[0]] == [*old[1]] == [*new[0]] != [*new[1]]


def test_titles_say_limit_gap_and_accuracy(legend_of):
    display = draw(y=Y, before=np.ones(150, int))
    for k, share in enumerate(SHARES):
        labels = labels_of(share)
        gap, right = 100 * np.ptp(rates_of(labels)), (labels == Y).mean()
        title = display.ax_[k].get_title(loc="left")
        assert title == f"limit {LIMITS[k]}\ngap {gap:.1f} points, accuracy {right:.1%}"
    (legend,) = display.figure_.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == [
        f"before: gap 0.0 points, accuracy {Y.mean():.1%}",
        "with the limit, 95% interval",
    ]
    assert "accuracy" not in draw().ax_[0].get_title(loc="left")


def test_another_rate_and_a_name():
    display = draw(y=Y, rate="true_positive_rate", name="mine")
    assert dots(display)[1][1] == pytest.approx(rates_of(labels_of(SHARES[1]), Y))
    assert display.ax_[0].get_xlabel() == "true positive rate"
    assert display.figure_.legends[0].get_texts()[1].get_text().startswith("mine: with the limit")


def widths(display):
    return np.ptp(display.after_[0].lines[2][0].get_segments(), axis=1)[:, 0]


def test_intervals_count_people():
    """Rows of one person are no more than one of them: four visits double the interval."""
    people = np.arange(150) // 4
    constant = FairnessPath(LIMITS[:1], [Selects(SHARES[0])], *np.zeros((2, 1)))
    visits = np.repeat(X[::4], 4, axis=0)[:150]
    options = {"sensitive_features": GROUP}
    rows, persons = (
        FairnessPathDisplay.from_path(constant, visits, units=units, **options)
        for units in (None, people)
    )
    ratio = widths(persons) / widths(rows)
    assert np.all(ratio > 1.5)


def test_one_model_and_many():
    assert dots(draw(path_of(SHARES[:1], LIMITS[:1])))[1][0].size == 3
    many = draw(path_of(SHARES * 2, np.array([0.4, 0.3, 0.2, 0.1])))
    assert many.ax_.shape == (4,)
    assert len(many.figure_.axes) == 4
    places = {(round(ax.get_position().x0, 3), round(ax.get_position().y0, 3)) for ax in many.ax_}
    assert len(places) == 4


def test_axes_may_be_given():
    _, axes = plt.subplots(2, layout="constrained")
    assert draw(ax=axes, color="red").after_[0].lines[0].get_color() == "red"


def test_undefined_rates_are_called_so():
    y = np.where(GROUP == "c", 0, Y)
    display = draw(y=y, rate="true_positive_rate")
    assert [text.get_text() for text in display.ax_[0].texts][2] == "undefined"
    nobody = draw(path_of([dict.fromkeys("abc", -1)], LIMITS[:1]))
    assert nobody.ax_.get_xlim()[1] > 0
    assert "gap 0.0 points" in nobody.ax_.get_title(loc="left")


def test_many_groups_with_long_names_have_room():
    names = np.array([f"{i}: born outside of the country, part-time employee" for i in range(30)])
    group = names[np.arange(600) % 30]
    labels = RNG.integers(0, 2, 600)
    reports = [group_report(None, labels, sensitive_features=group)] * 4
    display = FairnessPathDisplay(reports=reports).plot()
    display.figure_.canvas.draw()
    assert display.ax_[0].get_title(loc="left").startswith("model 0")
    whole = display.figure_.bbox
    assert all(ax.get_window_extent().width > 0.15 * whole.width for ax in display.ax_)
    assert sum(ax.get_window_extent().height for ax in display.ax_[::2]) > 0.7 * whole.height
