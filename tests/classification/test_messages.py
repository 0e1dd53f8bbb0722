"""What classifiers say of wrong calls, and what to do about them."""

from functools import partial

import numpy as np
import pandas as pd
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GroupKFold, PredefinedSplit
from sklearn.tree import DecisionTreeClassifier

from skfair import Certificate, Objective
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.constraints import DemographicParity
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
    (ValueError, "y=1 have sample_weight 0", lambda: erm(weight=1.0 - Y, class_weight="balanced")),
    (
        ValueError,
        "y=1 have sample_weight 0",
        lambda: erm(weight=1.0 - Y, class_weight=POSITIVE_ONLY),
    ),
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
HALVES = np.arange(N // 2), np.arange(N // 2, N)
ONE_TEST = 2 * [HALVES, HALVES[::-1]]
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
    (ValueError, "leave max_disparity out", lambda: decide(objective=AT_LEAST, max_disparity=0.05)),
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


DECIDES = partial(of_people, FairDecisionClassifier)
BY_SEX, TABLE, TURNED = StratifiedSensitiveKFold(5), pd.DataFrame(X), {"units": PERSON[::-1]}
AWARE = {"estimator": FROZEN, "cv": "prefit", "group_aware": True}

test_rows_that_belong_together = messages(
    (ValueError, r"or a splitter such as cv=GroupKFold\(5\)", lambda: DECIDES(cv=BY_SEX)),
    (ValueError, "because certificate is None, and the fit", lambda: DECIDES(**AWARE)),
    (ValueError, "have the same index", lambda: DECIDES(TABLE, cv=GroupKFold(5), **TURNED)),
)
