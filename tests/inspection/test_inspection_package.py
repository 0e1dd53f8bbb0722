from inspect import signature

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair import inspection
from skfair.inspection import (
    CCDFCurveDisplay,
    CertificateDisplay,
    ClusterCompositionDisplay,
    ConvergenceDisplay,
    FairnessFrontDisplay,
    GroupCalibrationDisplay,
    GroupRatesDisplay,
    GroupScoreDisplay,
    MonitorDisplay,
)
from skfair.inspection import _style as style
from skfair.inspection._display import fitted_attribute
from tests.families import by_families
from tests.seeds import generator

SEX = ["f", "m", "f", "m"]

DISPLAYS = [getattr(inspection, name) for name in inspection.__all__]
MAKERS = [(display, name) for display in DISPLAYS for name in dir(display) if "from_" in name]


@pytest.mark.parametrize(("display", "name"), MAKERS)
def test_missing_matplotlib_says_how_to_install_it(display, name, no_matplotlib):
    """It is looked for before anything that is given."""
    make = getattr(display, name)
    needed = [own for own in signature(make).parameters.values() if own.default is own.empty]
    given = {own.name: None for own in needed if own.kind is not own.VAR_KEYWORD}
    said = rf"{display.__name__}\.{name} needs matplotlib.*skfair-suite\[plot\]"
    with pytest.raises(ImportError, match=said):
        make(**given)


def test_plot_says_that_matplotlib_is_missing(no_matplotlib):
    display = FairnessFrontDisplay(x=[1], y=[1], x_label="a", y_label="b")
    with pytest.raises(ImportError, match=r"FairnessFrontDisplay\.plot needs matplotlib"):
        display.plot()


def test_a_failed_plot_leaves_the_display_as_it_was():
    others = of_groups(["c", "d"])["rates"].ax_
    for kind, display in of_groups(["a", "b"]).items():
        before = display.ax_
        with pytest.raises(TypeError, match="ax must be matplotlib Axes or None, got str"):
            display.plot(ax="axes")
        if kind in ("rates", "rows", "clusters"):
            with pytest.raises(ValueError, match="ax already shows"):
                display.plot(ax=others, **({"layout": "rows"} if kind == "rows" else {}))
        assert display.ax_ is before


def test_looks_differ_in_more_than_colour():
    looks = [style.look(i) for i in range(64)]
    assert len(set(map(str, looks))) == 64
    for carrier in ("color", "marker", "linestyle", "hatch"):
        assert len({str(getattr(one, carrier)) for one in looks[:8]}) == 8
    assert looks[8].color == looks[0].color
    assert looks[8].marker != looks[0].marker
    assert len({(one.color, one.hatch) for one in looks}) == 64


class Scorer(BaseEstimator):
    """Scores rows by their first column; may know which column holds the groups."""

    def __init__(self, sensitive=None):
        self.sensitive = sensitive

    def decision_function(self, X):
        return np.asarray(X)[:, 0].astype(float)


def test_groups_as_passed_or_from_columns():
    X = pd.DataFrame({"score": range(4), "sex": SEX, "age": list("ooyy")})

    def names(told=None, **groups):
        return GroupScoreDisplay.from_estimator(Scorer(told), X, **groups).group_names

    assert names(sensitive_features=X["age"]) == ["o", "y"]
    assert names(("sex",)) == ["f", "m"]
    # What is passed goes before what the estimator was told.
    for groups in ({"sensitive": ["age"]}, {"sensitive": 2}, {"sensitive_features": X["age"]}):
        assert names(("sex",), **groups) == ["o", "y"]


def test_fitted_attributes_of_wrapped_estimators():
    X = np.arange(20.0).reshape(10, 2)
    pipeline = make_pipeline(StandardScaler(), KMeans(2, n_init=1, random_state=0)).fit(X)
    search = GridSearchCV(pipeline, {"kmeans__n_clusters": [2]}, cv=2).fit(X)
    for estimator in (pipeline[-1], pipeline, search):
        assert fitted_attribute(estimator, "labels_", "the clusters").shape == (10,)


def of_groups(names):
    """Make a display of each kind that shows the names of groups."""
    group = np.array(names, dtype=object)[np.arange(40 * len(names)) % len(names)]
    numbers = generator(0).normal(size=group.size)
    y, given = (numbers > 0).astype(int), {"sensitive_features": group}
    return {
        "rates": GroupRatesDisplay.from_predictions(y, y, **given),
        "rows": GroupScoreDisplay.from_predictions(y, numbers, layout="rows", **given),
        "scores": GroupScoreDisplay.from_predictions(y, numbers, **given),
        "ccdf": CCDFCurveDisplay.from_predictions(y, numbers, reference=names[-1], **given),
        "calibration": GroupCalibrationDisplay.from_predictions(y, numbers > 0, **given),
        "clusters": ClusterCompositionDisplay.from_labels(y, **given),
    }


def test_names_of_groups_are_shown_letter_by_letter(legend_of):
    """What stood between dollars was a formula, or an error; a first underscore hid a name."""
    names = ["$0 - $20k", "$20k_{ - $40k", "_unknown", "two\nlines", "b"]
    shown = [r"\$0 - \$20k", r"\$20k_{ - \$40k", "_unknown", "two lines"]
    for kind, display in of_groups(names).items():
        if kind in ("rates", "rows"):
            texts = [text.get_text().split("\n")[0] for text in display.ax_.get_yticklabels()]
        else:
            texts = legend_of(display.ax_)
        assert set(shown) <= {text.strip() for text in texts}


@pytest.mark.parametrize(
    "names",
    [
        [f"occupation number {i}" for i in range(45)],
        [f"{i}: born outside of the country, part-time employee with dependants" for i in range(3)],
        [f"{i}{'_part_time_employee' * 100}{i}" for i in range(3)],
        [f"{i}{' word' * 600}" for i in range(3)],
    ],
    ids=["many", "long", "one very long word", "very long"],
)
def test_many_groups_and_long_names_leave_room_for_the_data(names):
    for display in of_groups(names).values():
        display.figure_.canvas.draw()  # matplotlib warns if nothing is left of the axes
        whole, axes = display.figure_.bbox, display.ax_.get_window_extent()
        assert axes.width > 0.3 * whole.width
        assert axes.height > 0.5 * whole.height
        if (legend := display.ax_.get_legend()) is not None:
            ends = legend.get_window_extent()
            assert ends.x1 <= whole.x1 + 1
            assert ends.y0 >= whole.y0 - 1
        plt.close(display.figure_)  # else it is drawn once more


def test_rows_of_long_names_are_continued():
    names = ["born outside of the country, part-time employee with dependants", "b"]
    group, y = np.repeat(names, 20), np.tile([0, 1], 20)
    first = GroupRatesDisplay.from_predictions(y, y, sensitive_features=group)
    second = GroupRatesDisplay.from_predictions(
        y[1:], 1 - y[1:], sensitive_features=group[1:], ax=first.ax_
    )
    shown = [text.get_text().replace("\n", " ") for text in second.ax_.get_yticklabels()]
    assert shown == [*names[::-1], "overall"] or shown == [*names, "overall"]


def test_lines_of_one_point_are_seen():
    one = CertificateDisplay(
        disparities=[0.1], bounds=[0.2], accuracies=[0.7], n_certified=0, max_disparity=0.05
    ).plot()
    batch = MonitorDisplay(disparities=[0.1], standard_errors=[0.1], max_disparity=0.05).plot()
    for line in (*one.lines_, batch.line_):
        assert line.get_marker() not in ("", "None")


RNG = generator(0)
SCORES = np.round(RNG.normal(size=80), 1)
GROUPS = {"sensitive_features": np.tile(SEX, 20)}
# Displays that can be drawn on the axes of another one, and the lines of each
CONTINUED = {
    "scores": (
        lambda **o: GroupScoreDisplay.from_predictions(None, SCORES, **GROUPS, **o),
        "curves_",
    ),
    "ccdf": (lambda **o: CCDFCurveDisplay.from_predictions(None, SCORES, **GROUPS, **o), "lines_"),
    "calibration": (
        lambda **o: GroupCalibrationDisplay.from_predictions(
            SCORES > 0, SCORES**2 / 20, **GROUPS, **o
        ),
        "lines_",
    ),
    "front": (
        lambda **o: FairnessFrontDisplay.from_classifiers([0.9, 0.8], [0.2, 0.1], **o),
        "line_",
    ),
    "convergence": (
        lambda name=None, **o: ConvergenceDisplay(history={"loss": [3.0, 1.0]}, name=name).plot(
            **o
        ),
        "lines_",
    ),
    **by_families("CONTINUED"),
}


@pytest.mark.parametrize(("make", "lines"), CONTINUED.values(), ids=CONTINUED)
def test_two_models_on_the_same_axes(make, lines, legend_of):
    first = make(name="one")
    first.ax_.set_title("mine")
    label = first.ax_.get_xlabel()
    second = make(name="two", ax=first.ax_)
    assert second.ax_ is first.ax_
    names = [text.split(":")[0] for text in legend_of(first.ax_)]
    assert names.count("one") == names.count("two") > 0
    both = [*np.ravel(getattr(first, lines)), *np.ravel(getattr(second, lines))]
    for carrier in ("get_color", "get_linestyle"):
        assert len({str(getattr(line, carrier)()) for line in both}) == len(both)
    assert (first.ax_.get_xlabel(), first.ax_.get_title()) == (label, "mine")


@pytest.mark.parametrize(("make", "lines"), CONTINUED.values(), ids=CONTINUED)
def test_a_display_is_drawn_again_with_options(make, lines, legend_of):
    display = make(name="first", lw=3)
    assert np.ravel(getattr(display, lines))[0].get_linewidth() == 3
    _, ax = plt.subplots()
    assert display.plot(ax=ax, name="late", lw=7) is display
    assert (display.ax_, display.figure_) == (ax, ax.figure)
    assert np.ravel(getattr(display, lines))[0].get_linewidth() == 7
    assert any(text.startswith("late") for text in legend_of(ax))


@pytest.mark.parametrize("display", ["rates", "scores", "ccdf"])
def test_a_group_aware_estimator_receives_the_groups(display, group_aware):
    X, sex = np.arange(6.0)[:, None], list("ffmmmm")
    model = group_aware().fit(X, [0, 1] * 3)
    given = {"sensitive_features": sex, "name": "aware"}
    if display == "rates":  # only women are selected
        shown = GroupRatesDisplay.from_estimator(model, X, [0, 1] * 3, **given).values[0]
        assert shown.tolist() == [1, 0]
    elif display == "scores":
        shown = GroupScoreDisplay.from_estimator(model, X, **given).scores
        assert [scores.tolist() for scores in shown] == [[10, 11], [2, 3, 4, 5]]
    else:  # every woman is above every man
        (line,) = CCDFCurveDisplay.from_estimator(model, X, **given).lines_
        assert line.get_xydata().tolist() == [[0, 0], [0, 1], [1, 1]]
