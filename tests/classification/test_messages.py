"""What classifiers say of wrong calls, and what to do about them."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GroupKFold, PredefinedSplit, ShuffleSplit
from sklearn.tree import DecisionTreeClassifier

from skfair import Certificate, Objective
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
    PairLoss,
    PartialParityCalibrator,
    PartialParityClassifier,
)
from skfair.constraints import AccuracyParity, DemographicParity, EqualizedOdds
from skfair.constraints.partial import IntervalConstraint
from skfair.model_selection import StratifiedSensitiveKFold
from skfair.solvers import ALLBFGS, ALNewton
from tests.messages import messages
from tests.seeds import generator

N = 400
SEX = np.tile(["f", "m"], N // 2)
Y = np.arange(N) // 2 % 2  # each class is half of each group
X = generator().normal(size=(N, 3)) + 2 * np.outer(Y + (SEX == "m"), [1, 0, 0])
HUGE = X * [1, 1, 1e200]


def fit(model, X=X, y=Y, sample_weight=None, **given):
    return model.fit(X, y, sample_weight, **{"sensitive_features": SEX} | given)


def erm(constraint="demographic_parity", X=X, y=Y, weight=None, **options):
    return fit(ConstrainedERMClassifier(constraint, **options), X, y, weight)


def stream(class_weight):
    """Pass a first part of one class, of which a class weight leaves nothing."""
    model, one = ConstrainedERMClassifier(class_weight=class_weight, random_state=0), Y == 0
    model.partial_fit(X[one], Y[one], classes=[0, 1], sensitive_features=SEX[one])


POSITIVE_ONLY = {0: 0.0, 1: 1.0}

test_constrained_models = messages(
    (ValueError, "one class", lambda: erm(y=np.zeros(N))),
    (ValueError, "no constraint 'dp'", lambda: erm("dp")),
    (ValueError, "constraint", lambda: erm(3)),
    (ValueError, "empty list", lambda: erm([])),
    (ValueError, "a name, a", lambda: erm(DemographicParity)),
    (ValueError, "reference", lambda: erm(DemographicParity(reference="all"))),
    (ValueError, "not for class", lambda: erm("bounded_group_loss", loss="absolute_error")),
    (ValueError, "PartialParityClassifier takes", lambda: erm("statistical_parity")),
    (ValueError, "no loss 'log'", lambda: erm("mean_score_parity", loss="log")),
    (ValueError, "no solver 'newton'", lambda: erm(solver="newton")),
    (TypeError, r"ALNewton\(\)", lambda: erm(solver=ALNewton)),
    (TypeError, "hessian", lambda: erm(solver="al_newton", model=(3,))),
    (ValueError, r"ALNewton\(rho=0\): rho must be a number", lambda: erm(solver=ALNewton(rho=0))),
    (ValueError, "rho must be a number", lambda: erm(solver=ALNewton(rho="large"))),
    (ValueError, "rho must be a number", lambda: erm(solver=ALNewton(rho=float("nan")))),
    (ValueError, "memory must be an integer above 0", lambda: erm(solver=ALLBFGS(memory=2.5))),
    (ValueError, "max_disparity", lambda: erm(max_disparity=-0.1)),
    (ValueError, "limits nothing", lambda: erm(max_disparity=50)),
    (ValueError, "alpha", lambda: erm(alpha=-1.0)),
    (ValueError, "layers in model= must be positive", lambda: erm(model=(0,))),
    (ValueError, "'model' parameter", lambda: erm(model=3)),
    (ValueError, "sensitive_features=", lambda: erm(weight=["m"] * N)),
    (ValueError, "class_weight", lambda: erm(class_weight="even")),
    (ValueError, "must give weights >= 0", lambda: erm(class_weight={0: 0, 1: 0})),
    (ValueError, "must give weights >= 0", lambda: erm(class_weight={0: -1, 1: 1})),
    (ValueError, "class_weight=", lambda: stream("balanced")),
    (ValueError, "class_weight=", lambda: stream(POSITIVE_ONLY)),
    (ValueError, "class_weight=", lambda: erm(weight=1.0 - Y, class_weight="balanced")),
    (ValueError, "class_weight=", lambda: erm(weight=1.0 - Y, class_weight=POSITIVE_ONLY)),
    (ValueError, "squares overflow, the first of them is column 2", lambda: erm(X=HUGE)),
    (ValueError, "squares overflow", lambda: erm(X=HUGE, solver="alm")),
    (ValueError, "squares overflow", lambda: erm(X=HUGE, model=(4,))),
    (ValueError, "'yes' is not a class of y, which has 0, 1", lambda: erm(pos_label="yes")),
)


class NoScores(DecisionTreeClassifier):
    predict_proba = property()


def decide(**options):
    return fit(FairDecisionClassifier(**options))


def certify(**options):
    return decide(**{"certificate": 0.95} | options)


UNTESTED = PredefinedSplit(np.arange(N) % 3 - 1)
ONE_TEST = 2 * [(np.arange(100), np.arange(N))]
AT_LEAST = Objective("accuracy", at_least=0.5)
RATIO = DemographicParity(comparison="ratio")
SHIFT = Certificate(shift=0.01)

test_decisions = messages(
    (TypeError, "neither predict_proba nor decision", lambda: decide(estimator=NoScores())),
    (TypeError, "neither predict_proba nor", lambda: decide(estimator=LinearRegression())),
    (ValueError, "cost matrix as objective must be 2 x 2", lambda: decide(objective=[[0, 1]])),
    (ValueError, "finite", lambda: decide(objective=[[0, np.nan], [1, 0]])),
    (ValueError, "Did you mean 'balanced_a", lambda: decide(objective="balanced_acuracy")),
    (ValueError, "recall=0.8", lambda: decide(objective="precision_at_recall")),
    (ValueError, "must return a number", lambda: decide(objective=lambda *cells: "much")),
    (ValueError, "at_least=0.8", lambda: decide(max_disparity=None)),
    (ValueError, "pass max_disparity=None", lambda: decide(objective=AT_LEAST)),
    (ValueError, "certifies limi", lambda: certify(objective=AT_LEAST, max_disparity=None)),
    (ValueError, "certifies limits.*not objective='f1'", lambda: certify(objective="f1")),
    (ValueError, "from 0 to 1", lambda: Objective("precision_at_recall", recall=1.5)),
    (ValueError, "only", lambda: Objective("f1", recall=0.5)),
    (ValueError, "at_least must be a number", lambda: Objective("f1", at_least="much")),
    (ValueError, "not on rates", lambda: decide(constraint="loss_parity")),
    (ValueError, "is not a class of y", lambda: decide(pos_label=2)),
    (ValueError, "'pos_label' parameter", lambda: decide(pos_label=["yes"])),
    (ValueError, "leaves rows without a score", lambda: decide(cv=UNTESTED)),
    (ValueError, "leaves rows without a score", lambda: decide(cv=[])),
    (ValueError, "certificate", lambda: decide(certificate=1.0)),
    (ValueError, "certificate", lambda: decide(certificate=0.0)),
    (ValueError, "min_rate", lambda: certify(min_rate=0.1)),
    (ValueError, "a number, a pair", lambda: certify(selection_rate={1: 0.3})),
    (ValueError, "0 <= low <= high <= 1", lambda: certify(selection_rate=(0.3, 0.2))),
    (ValueError, "3 folds or more", lambda: certify(cv=2)),
    (ValueError, "one test", lambda: certify(cv=ONE_TEST)),
    (ValueError, "=0.01 cannot be shown", lambda: certify(certificate=SHIFT, max_disparity=0.01)),
    (ValueError, "not on ratios", lambda: certify(certificate=SHIFT, constraint=RATIO)),
    (ValueError, "no test of Predictive", lambda: certify(constraint="predictive_parity")),
    (ValueError, "has no test", lambda: certify(constraint="bounded_selection_rate")),
)

PERSON = pd.Series(np.arange(N) // 4)
FOLDS = list(GroupKFold(5).split(X, Y, groups=PERSON))
FROZEN = FrozenEstimator(LogisticRegression().fit(X, Y))


def of_people(kind, X=X, units=PERSON, **options):
    return fit(kind(**options), X, units=units)


DECIDES, CALIBRATES = (
    partial(of_people, kind) for kind in (FairDecisionClassifier, PartialParityCalibrator)
)
BY_SEX, TABLE, TURNED = StratifiedSensitiveKFold(5), pd.DataFrame(X), {"units": PERSON[::-1]}
AWARE = {"estimator": FROZEN, "cv": "prefit", "group_aware": True}

test_rows_that_belong_together = messages(
    (ValueError, r"or a splitter such as cv=GroupKFold\(5\)", lambda: DECIDES(cv=BY_SEX)),
    (ValueError, r"or a splitter such as cv=GroupKFold\(5\)", lambda: CALIBRATES(cv=BY_SEX)),
    (ValueError, "because certificate is None, and the fit", lambda: DECIDES(**AWARE)),
    (ValueError, "because certificate is None, and the fit", lambda: CALIBRATES(estimator=FROZEN)),
    (ValueError, "have the same index", lambda: DECIDES(TABLE, cv=GroupKFold(5), **TURNED)),
    (ValueError, "have the same index", lambda: CALIBRATES(TABLE, cv=GroupKFold(5), **TURNED)),
    (ValueError, "because certificate= divides", lambda: CALIBRATES(certificate=0.9, cv=FOLDS)),
)

PAIR = (0.1, 0.6)
UNEQUAL = {"f": (0, 0.3), "m": (0, 0.5)}


def scores(**options):
    return fit(PartialParityClassifier(**{"interval": PAIR, "max_disparity": 0.1} | options))


@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"interval": (-0.1, 0.5)}, r"0 <= low < high <= 1 .* got \(-0\.1, 0\.5\)"),
        ({"interval": (0.5, 1.2)}, r"0 <= low < high <= 1 .* got \(0\.5, 1\.2\)"),
        ({"interval": (0.5, 0.2)}, r"0 <= low < high <= 1"),
        ({"interval": 0.3}, r"must be a pair \(low, high\).*got 0\.3"),
        ({"interval": "top"}, r"must be a pair"),
        ({"interval": [(0, 0.3), (0.2, 0.5)]}, r"parts overlap, got \[\(0, 0\.3\)"),
        ({"interval": {"f": PAIR}}, r"no entry for group 'm'"),
        ({"interval": {"f": PAIR, "m": PAIR, "z": PAIR}}, r"no group 'z'. The groups are 'f', 'm'"),
        ({"interval": (0, 0.003)}, r"less than one row of a group.*'f' 0\.6, 'm' 0\.6"),
        ({"constraint": "parity"}, r"no constraint 'parity'.*'statistical_parity'"),
        ({"solver": "slsqp"}, r"no solver 'slsqp'.*'al_newton'"),
        ({"loss": "logistic"}, r"no loss 'logistic'.*'log_loss'"),
        ({"loss": "auc_cubic"}, "'auc_logistic'"),
        ({"loss": PairLoss(interval=(0.3, 0.1))}, "interval"),
        ({"loss": "partial_auc", "interval": UNEQUAL}, r"same for all.*PairLoss\(interval"),
        ({"constraint": "group_auc", "scale": "ccdf"}, r"no meaning.*scale='conditional'"),
        (
            {"constraint": "demographic_parity", "scale": "ccdf", "interval": UNEQUAL},
            r"equally long.*scale='conditional'",
        ),
    ],
)
def test_intervals(options, words, aware):
    with pytest.raises(ValueError, match=words):
        scores(**options, group_aware=aware)


@pytest.mark.parametrize("kind", [PartialParityClassifier, PartialParityCalibrator])
@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        (AccuracyParity(), "not for intervals. Choose from demographic_parity, equal_opp"),
        (DemographicParity(reference="overall"), "Leave out reference, comparison and min_ratio"),
        (EqualizedOdds(min_ratio=0.8), "Leave out reference, comparison and min_ratio"),
        (DemographicParity(-0.1), "max_disparity must be a number from 0 to inf, got -0.1"),
    ],
)
def test_objects_that_do_not_work_within_intervals(kind, constraint, words):
    with pytest.raises(ValueError, match=words):
        fit(kind(constraint=constraint))


def calibrate(**options):
    return fit(PartialParityCalibrator(**options))


def upper_bound(y, **options):
    """The bound that a calibrator of equal odds gives for the disparity of new rows."""
    model = calibrate(constraint="equalized_odds", max_disparity=0.5)
    return model.disparity_upper_bound(X, y, sensitive_features=SEX, **options)


SIGMOID = IntervalConstraint("group_auc", surrogate="sigmoid")

test_scores_within_intervals = messages(
    (ValueError, "group_aware=True, or use solver='al_lbfgs'", lambda: scores(solver="repair")),
    (ValueError, "'smoothstep' or 'ramp'", lambda: scores(constraint=SIGMOID)),
    (ValueError, r"'f' 0\.6, 'm' 0\.6", lambda: calibrate(interval=(0.1, 0.103))),
    (ValueError, "max_disparity", lambda: calibrate(max_disparity=-1)),
    (TypeError, "cv must be a number of folds.*Got", lambda: calibrate(cv=b"bytes")),
    (TypeError, "cv must be a number of folds.*Got", lambda: calibrate(cv=[1, 2])),
    (ValueError, "every row must be in one test part", lambda: calibrate(cv=ShuffleSplit(2))),
    (ValueError, "pass y", lambda: upper_bound(None)),
    (ValueError, "No row .* with y=", lambda: upper_bound(np.where(SEX == "f", 0, Y))),
    (ValueError, "between 0 and 1", lambda: upper_bound(Y, confidence=95)),
)
