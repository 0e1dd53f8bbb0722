"""Rows without a group: models within intervals learn from them, and no limit counts them."""

import numpy as np
import pytest

from skfair.classification import PartialParityCalibrator, PartialParityClassifier
from skfair.metrics import partial_statistical_parity_gap
from tests.groups import test_rows_without_group as given

MODELS = {
    "interval": PartialParityClassifier(given.INTERVAL, max_disparity=0.2),
    "calibrator": PartialParityCalibrator(given.PREFIT, given.INTERVAL, max_disparity=0.1),
}
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@each_model
def test_the_limit_holds_for_rows_with_a_group(model):
    of_interval = {"interval": given.INTERVAL}
    given.check_promise(model, given.Y, partial_statistical_parity_gap, of_interval)


@each_model
def test_without_missing_values_nothing_changes(model):
    given.check_nothing_changes(model, given.Y)


@pytest.mark.parametrize("constraint", ["statistical_parity", "equal_opportunity"])
def test_maps_are_chosen_by_rows_with_a_group(constraint):
    model = PartialParityCalibrator(given.PREFIT, given.INTERVAL, constraint, 0.1)
    given.check_rows_with_a_group(model)


def test_certificates_take_them():
    limit = "demographic_parity", 0.7
    given.check_certificate(PartialParityCalibrator(given.PREFIT, (0.1, 0.9), *limit), given.Y)


def test_a_bound_of_new_rows_is_of_those_with_a_group():
    model = PartialParityClassifier(given.INTERVAL, max_disparity=0.2, sensitive=given.OF_SEX)
    bound = model.fit(given.FRAME, given.Y).disparity_upper_bound(given.FRAME)
    assert bound == pytest.approx(model.disparity_upper_bound(given.FRAME[given.KNOWN]))


def test_a_group_aware_model_needs_the_group_of_each_row():
    model = PartialParityClassifier(group_aware=True, sensitive=given.OF_SEX)
    with pytest.raises(ValueError, match="needs the group of each row .* PartialParityCalibrator"):
        model.fit(given.FRAME, given.Y)


def test_maps_of_scores_are_averaged_for_rows_without_a_group():
    model = PartialParityCalibrator(
        given.PREFIT, given.INTERVAL, max_disparity=0.1, sensitive=given.LOSS
    )
    model.fit(given.X, given.Y, sensitive_features=given.GROUPS)
    none, f, m = (
        model.decision_function(given.X, sensitive_features=np.full(given.N, group, dtype=object))
        for group in (None, "f", "m")
    )
    share = np.mean(given.SEX[given.KNOWN] == "f")
    np.testing.assert_allclose(none, share * f + (1 - share) * m)
    assert np.abs(f - m).max() > 0.1
    found = model.decision_function(given.X, sensitive_features=given.GROUPS)
    np.testing.assert_allclose(found, np.where(given.KNOWN, np.where(given.SEX == "f", f, m), none))
