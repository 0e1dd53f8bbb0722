"""``frame()``: every number that a display draws is in its table."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.container import BarContainer
from pandas.testing import assert_frame_equal

from skfair import inspection
from skfair.inspection import (
    CCDFCurveDisplay,
    CertificateDisplay,
    ClusterCompositionDisplay,
    ConvergenceDisplay,
    FairnessFrontDisplay,
    FairnessPathDisplay,
    GroupCalibrationDisplay,
    GroupRatesDisplay,
    GroupScoreDisplay,
    MonitorDisplay,
)
from skfair.inspection import _display as display_of
from skfair.metrics import group_report
from tests.families import by_families
from tests.seeds import generator

N = 240
RNG = generator(0)
SEX, AGE = RNG.choice(["f", "m"], N), RNG.choice(["new", "old"], N)
SCORES = RNG.normal(size=N) + (SEX == "m")
Y, P = (SCORES + RNG.normal(size=N) > 0).astype(int), (SCORES > 0.3).astype(int)
CHANCES = 1 / (1 + np.exp(-SCORES))
GROUPS = {"sensitive_features": SEX}
APART = {"sensitive_features": pd.DataFrame({"sex": SEX, "age": AGE}), "intersectional": False}
HISTORY = {
    "iteration": [1, 2, 3, 4],
    "seconds": [0.1, 0.25, 0.45, 0.7],
    "objective": [3.0, np.nan, 1.5, 1.25],
    "max_violation": [0.5, 0.125, 0.0625, 0.0],
}
OVER_TIME = {"disparities": [np.nan, 0.03, 0.11], "standard_errors": [0.01, 0.02, 0.015]}
PATH = {"disparities": [0.0, 0.01, 0.04], "bounds": [0.02, 0.05, 0.07], "n_certified": 2}
PATH |= {"accuracies": [0.76, 0.8, 0.84], "max_disparity": 0.06}
REPORTS = [group_report(Y, decisions, **GROUPS) for decisions in (P, Y, 1 - P)]
MADE = {
    "rates": lambda: GroupRatesDisplay.from_predictions(Y, P, **GROUPS),
    "rates of attributes": lambda: GroupRatesDisplay.from_predictions(Y, P, **APART),
    "differences": lambda: GroupRatesDisplay.from_predictions(Y, P, reference="f", **GROUPS),
    "without intervals": lambda: GroupRatesDisplay.from_predictions(Y, P, method=None, **GROUPS),
    "densities": lambda: GroupScoreDisplay.from_predictions(Y, SCORES, **GROUPS),
    "histograms": lambda: GroupScoreDisplay.from_predictions(Y, SCORES, kind="hist", **GROUPS),
    "calibration": lambda: GroupCalibrationDisplay.from_predictions(Y, CHANCES, **GROUPS),
    "ccdf": lambda: CCDFCurveDisplay.from_predictions(Y, SCORES, **GROUPS),
    "clusters": lambda: ClusterCompositionDisplay.from_labels(P, **GROUPS),
    "clusters by attribute": lambda: ClusterCompositionDisplay.from_labels(P, **APART),
    "front": lambda: FairnessFrontDisplay.from_classifiers(
        [0.85, 0.84, 0.8, 0.81], [0.2, 0.05, 0.01, 0.1], show_knee=True, selected=0
    ),
    "path": lambda: FairnessPathDisplay(reports=REPORTS, max_disparities=[0.5, 0.25]).plot(
        rate="true_positive_rate"
    ),
    "convergence": lambda: ConvergenceDisplay(history=HISTORY).plot(x="seconds"),
    "one column": lambda: ConvergenceDisplay(history=HISTORY).plot(columns="objective"),
    "certificate": lambda: CertificateDisplay(**PATH).plot(),
    "monitor": lambda: MonitorDisplay(**OVER_TIME, max_disparity=0.05, alarm_at=2).plot(),
    "ratios": lambda: MonitorDisplay(
        **OVER_TIME, max_disparity=None, min_ratio=0.8, reference="m"
    ).plot(),
    **by_families("DRAWN"),
}
# Attributes whose artists show no data, or places that only the picture has
WITHOUT_DATA = {"diagonal_", "overall_lines_", "shades_", "bands_", "undefined_"}


def drawn(artist):
    """Yield the numbers of an artist, apart from the places of rows, groups and clusters."""
    if isinstance(artist, BarContainer):
        yield from (bar.get_height() for bar in artist)
    elif isinstance(artist, PathCollection):
        yield from artist.get_offsets().ravel()
    elif isinstance(artist, LineCollection):
        yield from np.ravel(artist.get_segments())
    elif hasattr(artist, "get_data") and hasattr(artist.get_data(), "values"):  # steps
        yield from (*artist.get_data().values, *artist.get_data().edges)
    elif hasattr(artist, "get_xydata"):
        yield from artist.get_xydata().ravel()


def artists(made):
    """Yield each artist of the data that a display keeps, and whether it has a row per group."""
    for name, kept in vars(made).items():
        if not name.endswith("_") or name in {"ax_", "figure_", *WITHOUT_DATA}:
            continue
        several = [*kept.values()] if isinstance(kept, dict) else kept
        for one in several if isinstance(several, list) else [several]:
            if hasattr(one, "has_xerr"):
                yield from ((part, True) for part in (one.lines[0], *one.lines[1], *one.lines[2]))
            elif one is not None:
                yield one, name == "before_"


def test_every_display_is_tested_here():
    kinds = {type(make()).__name__ for make in MADE.values()}
    plt.close("all")
    assert kinds == set(inspection.__all__)
    for name in inspection.__all__:
        own = getattr(inspection, name)
        assert own.frame is display_of.Display.frame


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_each_number_of_the_picture_is_in_the_frame(make):
    made = make()
    table = made.frame()
    assert isinstance(table, pd.DataFrame)
    assert len(table)
    assert table.columns.is_unique
    known = table.select_dtypes("number").to_numpy(np.float64).ravel()
    n_drawn = 0
    for artist, has_rows in artists(made):
        numbers = np.array([*drawn(artist)], dtype=np.float64)
        if has_rows:  # heights say which group a row is
            numbers = numbers.reshape(-1, 2)[:, 0]
        numbers = numbers[np.isfinite(numbers)]
        n_drawn += numbers.size
        far = np.abs(numbers[:, None] - known[None, np.isfinite(known)]).min(axis=1, initial=np.inf)
        assert (far < 1e-12).all(), (artist, numbers[far >= 1e-12])
    assert n_drawn
    assert not any(column.startswith("_") or " " in column for column in table)


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_a_frame_is_a_copy_that_needs_no_second_picture(make):
    made = make()
    first = made.frame()
    first.iloc[:, 0] = first.iloc[::-1, 0].to_numpy()
    n_figures = len(plt.get_fignums())
    assert_frame_equal(made.frame(), make().frame())
    assert len(plt.get_fignums()) == n_figures + 1


def test_limits_bands_and_alarms_of_a_monitor_are_in_its_frame():
    table = MADE["monitor"]().frame()
    assert table["is_alarm"].tolist() == [False, False, True]
    assert table["upper"].tolist()[1:] == pytest.approx([0.07, 0.14])
    assert table["lower"].tolist()[1:] == [0, pytest.approx(0.08)]
    assert table["limit"].eq(0.05).all()
    assert table["limit_on_other_side"].isna().all()
    made = MADE["ratios"]()
    flat = [line.get_ydata()[0] for line in made.ax_.lines if line is not made.line_]
    assert flat == made.frame()[["limit", "limit_on_other_side"]].iloc[0].tolist() == [0.8, 1.25]


def test_a_frame_has_what_the_last_picture_shows():
    made = ConvergenceDisplay(history=HISTORY)
    assert [*made.frame()["column"].unique()] == ["objective", "max_violation"]
    made.plot(x="seconds", columns="max_violation")
    assert made.frame().columns.tolist() == ["column", "seconds", "value"]
    assert made.frame()["value"].tolist() == HISTORY["max_violation"]
    scores = GroupScoreDisplay(scores=[[1.0, 2.0, 4.0], [3.0, 3.0]], group_names=["a", "b"])
    assert scores.frame()["group"].value_counts().to_dict() == {"a": 400, "b": 1}
    scores.plot(kind="hist", bins=3)
    assert scores.frame()["density"].tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0, 0, 1])
