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
SMALL = np.repeat(["f", "m"], [40, 360])
PAIR = (0.1, 0.6)


def fit(model, X=X, y=Y, sample_weight=None, **given):
    return model.fit(X, y, sample_weight, **{"sensitive_features": SEX} | given)


def with_column(factor):
    return X * np.where(np.arange(3) == 2, factor, 1.0)


def erm(*args, given=(), **options):
    return fit(ConstrainedERMClassifier(*args, **options), **dict(given))


def decisions(*args, given=(), **options):
    return fit(FairDecisionClassifier(*args, **options), **dict(given))


def intervals(**options):
    return fit(PartialParityClassifier(**{"interval": PAIR, "max_disparity": 0.1} | options))


def calibrated(*args, given=(), **options):
    return fit(PartialParityCalibrator(*args, **options), **dict(given))


def stream(class_weight):
    """A first part of one class, and a class weight that leaves nothing of it."""
    model, one = ConstrainedERMClassifier(class_weight=class_weight, random_state=0), Y == 0
    model.partial_fit(X[one], Y[one], classes=[0, 1], sensitive_features=SEX[one])


class NoScores(DecisionTreeClassifier):
    predict_proba = property()


test_constrained_models = messages(
    (ValueError, "one class", lambda: erm(given={"y": np.zeros(N)})),
    (ValueError, "no constraint 'dp'", lambda: erm("dp")),
    (ValueError, "constraint", lambda: erm(3)),
    (ValueError, "empty list", lambda: erm([])),
    (ValueError, "a name, a", lambda: erm(DemographicParity)),
    (ValueError, "reference", lambda: erm(DemographicParity(reference="all"))),
    (ValueError, "not for class", lambda: erm("bounded_group_loss", loss="absolute_error")),
    (
        ValueError,
        "not for classification. PartialParityClassifier takes",
        lambda: erm("statistical_parity"),
    ),
    (ValueError, "no loss 'log'", lambda: erm("mean_score_parity", loss="log")),
    (ValueError, "no solver 'newton'", lambda: erm(solver="newton")),
    (TypeError, r"ALNewton\(\)", lambda: erm(solver=ALNewton)),
    (TypeError, "hessian", lambda: erm(solver="al_newton", model=(3,))),
    (
        ValueError,
        r"ALNewton\(rho=0\): rho must be a number above 0",
        lambda: erm(solver=ALNewton(rho=0)),
    ),
    (ValueError, "rho must be a number", lambda: erm(solver=ALNewton(rho="large"))),
    (ValueError, "rho must be a number", lambda: erm(solver=ALNewton(rho=float("nan")))),
    (
        ValueError,
        r"ALLBFGS\(memory=2.5\): memory must be an integer above 0",
        lambda: erm(solver=ALLBFGS(memory=2.5)),
    ),
    (ValueError, "max_disparity", lambda: erm(max_disparity=-0.1)),
    (ValueError, "limits nothing", lambda: erm(max_disparity=50)),
    (ValueError, "alpha", lambda: erm(alpha=-1.0)),
    (ValueError, "layers in model= must be positive", lambda: erm(model=(0,))),
    (ValueError, "'model' parameter", lambda: erm(model=3)),
    (ValueError, "sensitive_features=", lambda: erm(given={"sample_weight": ["m"] * N})),
    (ValueError, "class_weight", lambda: erm(class_weight="even")),
    (ValueError, "must give weights >= 0", lambda: erm(class_weight={0: 0, 1: 0})),
    (ValueError, "must give weights >= 0", lambda: erm(class_weight={0: -1, 1: 1})),
    *(
        (ValueError, "class_weight=", call)
        for weight in ("balanced", {0: 0.0, 1: 1.0})
        for call in (
            partial(stream, weight),
            partial(erm, class_weight=weight, given={"sample_weight": 1.0 - Y}),
        )
    ),
    *(
        (ValueError, "squares overflow, the first of them is column 2", call)
        for call in (
            partial(erm, given={"X": with_column(1e200)}, **options)
            for options in ({}, {"solver": "alm"}, {"model": (4,)})
        )
    ),
    (ValueError, "'yes' is not a class of y, which has 0, 1", lambda: erm(pos_label="yes")),
)

ONE_TEST = [(np.arange(100), np.arange(N)), (np.arange(100), np.arange(N))]
RATIO = DemographicParity(comparison="ratio")


def certified(*args, **options):
    return decisions(*args, **{"confidence": 0.95} | options)


test_decisions = messages(
    (ValueError, "cost matrix as objective must be 2 x 2", lambda: decisions(objective=[[0, 1]])),
    (ValueError, "finite", lambda: decisions(objective=[[0, np.nan], [1, 0]])),
    (
        ValueError,
        "Did you mean 'balanced_accuracy'",
        lambda: decisions(objective="balanced_acuracy"),
    ),
    (ValueError, "recall=0.8", lambda: decisions(objective="precision_at_recall")),
    (ValueError, "must return a number", lambda: decisions(objective=lambda *cells: "much")),
    (ValueError, "at_least=0.8", lambda: decisions(max_disparity=None)),
    (
        ValueError,
        "pass max_disparity=None",
        lambda: decisions(objective=Objective("f1", at_least=0.5)),
    ),
    (
        ValueError,
        "certifies limits",
        lambda: certified(objective=Objective("accuracy", at_least=0.5), max_disparity=None),
    ),
    (ValueError, "certifies limits.*not objective='f1'", lambda: certified(objective="f1")),
    (ValueError, "from 0 to 1", lambda: Objective("precision_at_recall", recall=1.5)),
    (ValueError, "only", lambda: Objective("f1", recall=0.5)),
    (ValueError, "at_least must be a number", lambda: Objective(at_least="much")),
    (TypeError, "neither predict_proba nor decision", lambda: decisions(NoScores())),
    (TypeError, "neither predict_proba nor decision", lambda: decisions(LinearRegression())),
    (ValueError, "not on rates", lambda: decisions(constraint="loss_parity")),
    (ValueError, "is not a class of y", lambda: decisions(pos_label=2)),
    (ValueError, "'pos_label' parameter", lambda: decisions(pos_label=["yes"])),
    *(
        (ValueError, "leaves rows without a score", partial(decisions, cv=folds))
        for folds in (PredefinedSplit(np.arange(N) % 3 - 1), [])
    ),
    (ValueError, "confidence", lambda: decisions(confidence=1.0)),
    (ValueError, "confidence", lambda: decisions(confidence=0.0)),
    (ValueError, "min_rate", lambda: certified(min_rate=0.1)),
    (ValueError, "a number, a pair", lambda: certified(selection_rate={1: 0.3})),
    (ValueError, "0 <= low <= high <= 1", lambda: certified(selection_rate=(0.3, 0.2))),
    (ValueError, "3 folds or more", lambda: certified(cv=2)),
    (ValueError, "one test", lambda: certified(cv=ONE_TEST)),
    (
        ValueError,
        "max_disparity=0.05 cannot be shown",
        lambda: decisions(confidence=Certificate(shift=0.05)),
    ),
    (
        ValueError,
        "not on ratios",
        lambda: decisions(constraint=RATIO, confidence=Certificate(shift=0.01)),
    ),
    (
        ValueError,
        "has no test of PredictiveParity",
        lambda: certified(constraint="predictive_parity"),
    ),
    (
        ValueError,
        "has no test",
        lambda: certified(constraint="bounded_selection_rate", max_disparity=0.5),
    ),
)

FOLDS = list(GroupKFold(5).split(X, Y, groups=np.arange(N) // 4))
PERSON = pd.Series(np.arange(N) // 4)
FROZEN = FrozenEstimator(LogisticRegression().fit(X, Y))


test_rows_that_belong_together = messages(
    *(
        row
        for outer, is_aware in (
            (FairDecisionClassifier, {"group_aware": True}),
            (PartialParityCalibrator, {}),
        )
        for row in (
            (
                ValueError,
                r"or a splitter such as cv=GroupKFold\(5\)",
                partial(fit, outer(cv=StratifiedSensitiveKFold(5)), groups=PERSON),
            ),
            (
                ValueError,
                "not read here, because confidence is None, and the fit",
                partial(fit, outer(FROZEN, cv="prefit", **is_aware), groups=PERSON),
            ),
            (
                ValueError,
                "groups and the data have the same index",
                partial(fit, outer(cv=GroupKFold(5)), pd.DataFrame(X), groups=PERSON[::-1]),
            ),
        )
    ),
    (
        ValueError,
        "not read here, because confidence= divides the rows",
        lambda: calibrated(confidence=0.9, cv=FOLDS),
    ),
)


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
        ({"interval": {"f": (0, 0.3)}}, r"no entry for group 'm'"),
        ({"interval": {"f": PAIR, "m": PAIR, "z": PAIR}}, r"no group 'z'. The groups are 'f', 'm'"),
        ({"interval": (0, 0.003)}, r"less than one row of a group.*'f' 0\.6, 'm' 0\.6"),
        ({"constraint": "parity"}, r"no constraint 'parity'.*'statistical_parity'"),
        ({"solver": "slsqp"}, r"no solver 'slsqp'.*'al_newton'"),
        ({"loss": "logistic"}, r"no loss 'logistic'.*'log_loss'"),
        ({"loss": "auc_cubic"}, "'auc_logistic'"),
        ({"loss": PairLoss(interval=(0.3, 0.1))}, "interval"),
        ({"constraint": "group_auc", "scale": "ccdf"}, r"no meaning.*scale='conditional'"),
        (
            {"interval": {"f": PAIR, "m": PAIR}, "loss": "partial_auc"},
            r"same for all groups.*PairLoss\(interval",
        ),
        (
            {
                "interval": {"f": (0, 0.3), "m": (0, 0.5)},
                "scale": "ccdf",
                "constraint": "demographic_parity",
            },
            r"equally long.*scale='conditional'",
        ),
    ],
)
def test_intervals(options, words, aware):
    with pytest.raises(ValueError, match=words):
        intervals(**options, group_aware=aware)


OBJECTS = [
    (AccuracyParity(), "not for intervals. Choose from demographic_parity, equal_opp"),
    (DemographicParity(reference="overall"), "Leave out reference, comparison and min_ratio"),
    (EqualizedOdds(min_ratio=0.8), "Leave out reference, comparison and min_ratio"),
    (DemographicParity(-0.1), "max_disparity must be a number from 0 to inf, got -0.1"),
]

test_objects_that_do_not_work_within_intervals = messages(
    *(
        (ValueError, words, partial(call, constraint=constraint))
        for constraint, words in OBJECTS
        for call in (intervals, calibrated)
    )
)

test_what_blind_models_cannot_do = messages(
    (
        ValueError,
        "group_aware=True, or use solver='al_lbfgs'",
        lambda: intervals(solver="repair"),
    ),
    (
        ValueError,
        "'smoothstep' or 'ramp'",
        lambda: intervals(constraint=IntervalConstraint("group_auc", surrogate="sigmoid")),
    ),
)


def few(interval):
    return calibrated(interval=interval, given={"sensitive_features": SMALL})


def upper_bound(y, **options):
    """The bound that a calibrator of equal odds gives for the disparity of new rows."""
    model = calibrated(constraint="equalized_odds", max_disparity=0.5)
    return model.disparity_upper_bound(X, y, sensitive_features=SEX, **options)


test_calibrators = messages(
    (ValueError, r"f'? 0\.8.*m'? 7\.2", lambda: few((0.1, 0.12))),
    (ValueError, "max_disparity", lambda: calibrated(max_disparity=-1)),
    (TypeError, "cv must be a number of folds.*Got", lambda: calibrated(cv=b"bytes")),
    (TypeError, "cv must be a number of folds.*Got", lambda: calibrated(cv=[1, 2])),
    (ValueError, "every row must be in one test part", lambda: calibrated(cv=ShuffleSplit(2))),
    (ValueError, "pass y", lambda: upper_bound(None)),
    (ValueError, "No row .* with y=", lambda: upper_bound(np.where(SEX == "f", 0, Y))),
    (ValueError, "between 0 and 1", lambda: upper_bound(Y, confidence=95)),
)
