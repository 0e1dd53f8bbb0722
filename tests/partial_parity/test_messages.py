"""What models within intervals say of wrong calls, and what to do about them."""

from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, ShuffleSplit

from skfair.classification import PairLoss, PartialParityCalibrator, PartialParityClassifier
from skfair.constraints import AccuracyParity, DemographicParity, EqualizedOdds
from skfair.constraints.partial import IntervalConstraint
from tests.classification.test_messages import (
    BY_SEX,
    FOLDS,
    FROZEN,
    SEX,
    TABLE,
    TURNED,
    X,
    Y,
    erm,
    fit,
    of_people,
)
from tests.estimators.certified import test_messages as certified
from tests.messages import messages

CALIBRATES = partial(of_people, PartialParityCalibrator)

test_rows_that_belong_together = messages(
    (ValueError, r"or a splitter such as cv=GroupKFold\(5\)", lambda: CALIBRATES(cv=BY_SEX)),
    (ValueError, "because certificate is None, and the fit", lambda: CALIBRATES(estimator=FROZEN)),
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


def intervals(constraint="statistical_parity", **options):
    return certified.fit(
        PartialParityClassifier, constraint, by="auto", interval=(0, 0.5), **options
    )


def calibrated(constraint="statistical_parity", **options):
    return certified.fit(
        PartialParityCalibrator, constraint, by="auto", estimator=certified.SCORED, **options
    )


IN_GROUPS = IntervalConstraint("equal_opportunity", rank_within="group")
LAZY = PartialParityCalibrator(certified.SCORED, certificate=0.9)

test_what_has_no_certificate_is_named = messages(
    (ValueError, "grow by 0.8", lambda: intervals("group_auc", shift=0.2)),
    (ValueError, "grow by 0.6", lambda: calibrated(interval=(0, 0.5), shift=0.3)),
    (ValueError, "one side only", lambda: calibrated("group_auc", share=1e-4)),
    (ValueError, "certificate", lambda: calibrated(certificate=0)),
    (ValueError, "has no test", lambda: intervals(IN_GROUPS)),
    (ValueError, "rows in memory", lambda: certified.lazily(LAZY)),
    (ConvergenceWarning, certified.FEW, lambda: certified.few(intervals)),
    (ValueError, certified.UNREAD, lambda: certified.few(intervals, certificate=None)),
)

test_what_other_parts_say_of_them = messages(
    (ValueError, "PartialParityClassifier takes", lambda: erm("statistical_parity")),
)
