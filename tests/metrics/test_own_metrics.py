"""Metrics of scikit-learn as columns of ``group_report``, against calls group by group."""

from functools import partial

import numpy as np
import pytest
from sklearn.metrics import (
    confusion_matrix,
    f1_score,
    mean_absolute_error,
    mean_squared_error,
    recall_score,
    roc_auc_score,
)

from skfair import metrics
from skfair.metrics import group_report, make_group_metric
from skfair.metrics.labels import LABEL_METRICS
from tests.seeds import generator

RNG = generator(0)
N = 400
Y, SCORE = RNG.integers(0, 2, N), RNG.random(N)
PRED = (SCORE > 0.4).astype(int)
SEX, REGION = RNG.choice(["f", "m"], N), RNG.choice(["n", "s"], N)
WEIGHTS = RNG.uniform(0.5, 2, N)
METRICS = {"auc": roc_auc_score, "f1": f1_score, "mae": mean_absolute_error}


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_each_group_and_the_whole_have_the_metric_of_their_rows(weights):
    report = group_report(
        Y, PRED, y_score=SCORE, sensitive_features=SEX, sample_weight=weights, metrics=METRICS,
        method=None,
    )  # fmt: skip
    for name, own in {"f": SEX == "f", "m": SEX == "m", "overall": np.full(N, True)}.items():
        extra = {} if weights is None else {"sample_weight": weights[own]}
        assert report.loc[name, "auc"] == roc_auc_score(Y[own], SCORE[own], **extra)
        assert report.loc[name, "f1"] == f1_score(Y[own], PRED[own], **extra)
        assert report.loc[name, "mae"] == mean_absolute_error(Y[own], PRED[own], **extra)


def test_strata():
    within = group_report(
        Y, PRED, sensitive_features=SEX, control_features=REGION, method=None,
        metrics={"f1": f1_score},
    )  # fmt: skip
    own = (SEX == "m") & (REGION == "n")
    assert within.loc[("n", "m"), "f1"] == f1_score(Y[own], PRED[own])
    assert within.loc[("n", "overall"), "f1"] == f1_score(Y[REGION == "n"], PRED[REGION == "n"])


def test_intervals_hold_the_value_and_shrink_with_the_confidence():
    def width(confidence):
        report = group_report(
            Y, PRED, sensitive_features=SEX, metrics={"mae": mean_absolute_error},
            n_bootstrap=200, confidence=confidence, random_state=0,
        )  # fmt: skip
        assert (report["mae_low"] < report["mae"]).all()
        assert (report["mae"] < report["mae_high"]).all()
        return (report["mae_high"] - report["mae_low"]).to_numpy()

    wide, narrow = width(0.95), width(0.5)
    assert (narrow < 0.6 * wide).all()
    # Of 200 resamples the width has an error of 7 %.
    error = np.std(Y != PRED) / np.sqrt(N)
    assert wide[-1] == pytest.approx(2 * 1.96 * error, rel=0.4)


def test_numbers_and_several_classes_have_metrics_without_a_positive_class():
    price, guess = 10 * SCORE + 0.5, 10 * SCORE + RNG.normal(size=N)
    both = {"sex": SEX, "region": REGION}
    report = group_report(
        price, guess, sensitive_features=both, intersectional=False, rates=False,
        metrics={"mae": mean_absolute_error}, n_bootstrap=50, random_state=0,
    )  # fmt: skip
    assert list(report.columns) == ["n", "mae", "mae_low", "mae_high"]
    for name, own in {"sex=m": SEX == "m", "region=n": REGION == "n"}.items():
        row = report.loc[name]
        assert row["n"] == own.sum()
        assert row["mae"] == mean_absolute_error(price[own], guess[own])
        assert row["mae_low"] < row["mae"] < row["mae_high"]
    classes, found = np.array(list("abc"))[RNG.integers(0, 3, (2, N))]
    macro = {"f1": lambda y, p: f1_score(y, p, average="macro")}
    report = group_report(
        classes, found, sensitive_features=SEX, rates=False, metrics=macro, n_bootstrap=20
    )
    own = SEX == "f"
    assert report.loc["f", "f1"] == f1_score(classes[own], found[own], average="macro")


def test_what_is_no_number_stands_in_its_cell():
    report = group_report(
        Y, PRED, sensitive_features=SEX, metrics={"cm": confusion_matrix}, reference="f"
    )
    for name, rows in {"f": SEX == "f", "m": SEX == "m", "overall": SEX != ""}.items():
        assert np.array_equal(report.loc[name, "cm"], confusion_matrix(Y[rows], PRED[rows]))
    assert not {"cm_low", "cm_difference"} & set(report)
    assert len(str(report).splitlines()) == 4


def test_an_undefined_metric_is_nan():
    y = np.where(SEX == "f", 1, Y)
    given = {"sensitive_features": SEX, "metrics": {"auc": roc_auc_score}, "n_bootstrap": 20}
    report = group_report(y, PRED, y_score=SCORE, **given)
    assert np.isnan(report.loc["f", ["auc", "auc_low", "auc_high"]].to_numpy(float)).all()
    assert report.loc["m", "auc"] > 0


def test_resamples_without_weight_are_left_out():
    weights = np.where(SEX == "f", np.arange(SEX.size) % 7 == 0, 0.0)
    report = group_report(
        Y, PRED, sensitive_features=SEX, sample_weight=weights, n_bootstrap=50, random_state=0,
        metrics={"mse": mean_squared_error},
    )  # fmt: skip
    own = [report.loc["f", f"mse{end}"] for end in ("_low", "", "_high")]
    assert own == sorted(own)
    assert own[1] == pytest.approx(report.loc["overall", "mse"])
    assert np.isnan(report.loc["m", ["mse", "mse_low", "mse_high"]].to_numpy(float)).all()


def test_intervals_of_many_rows_are_as_wide_as_formulas_say():
    """Beyond 20,000 rows resamples are smaller than the group; their errors are scaled to it."""
    rng = generator(0)
    n = 90_000
    sex, y = np.where(np.arange(n) < 70_000, "f", "m"), rng.normal(size=n)
    predicted, drawn = y + rng.normal(size=n), []

    def squared_error(y_true, y_pred):
        drawn.append(y_true.size)
        return np.mean((y_true - y_pred) ** 2)

    report = group_report(
        y, predicted, sensitive_features=sex, rates=False, n_bootstrap=400, random_state=0,
        metrics={"mse": squared_error},
    )  # fmt: skip
    of_cells, of_resamples = drawn[:3], drawn[3:]
    assert sorted(of_cells) == [20_000, 70_000, 90_000]
    assert max(of_resamples) < 21_500  # about 20,000, by 10 standard deviations
    squares = (y - predicted) ** 2
    for name, rows in {"f": sex == "f", "m": sex == "m", "overall": sex != ""}.items():
        low, value, high = (report.loc[name, f"mse{end}"] for end in ("_low", "", "_high"))
        assert value == pytest.approx(squares[rows].mean())
        width = 2 * 1.96 * squares[rows].std() / np.sqrt(rows.sum())
        assert high - low == pytest.approx(width, rel=0.27)  # the width has an error of 5 %
        assert abs((high + low) / 2 - value) < 0.2 * width


@pytest.mark.parametrize("name", LABEL_METRICS)
def test_what_compares_groups_has_no_value_for_one_of_them(name):
    """What needs the groups, or one positive class of three, says where to go."""
    metric, rows = getattr(metrics, name), {"sensitive_features": SEX}
    for wrong in (metric, partial(metric, agg="mean"), make_group_metric(recall_score)):
        with pytest.raises(TypeError, match="'own' compares groups.*Call it by itself"):
            group_report(Y, PRED, metrics={"own": wrong}, **rows)
        with pytest.raises(TypeError, match="compares groups.*Call it by itself"):
            make_group_metric(wrong)
    three = np.arange(len(Y)) % 3
    if name.startswith("accuracy"):
        assert 0 <= metric(three, three, **rows) <= 1
        return
    for call in (metric, group_report):
        with pytest.raises(ValueError, match=r"pos_label=.*worst_class=True.*rates=False"):
            call(three, three, **rows)
