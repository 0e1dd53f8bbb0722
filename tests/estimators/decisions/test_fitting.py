"""Steps of a fit of fair decisions: what is reported."""

import warnings

import numpy as np
import pytest

from skfair.constraints import DemographicParity
from skfair.enforcement.decisions.choose import Chosen
from skfair.enforcement.decisions.judge import Judge
from skfair.estimators.decisions.steps import LabelledRows, class_rules, report
from skfair.groups.encoding import encode_groups


def test_a_limit_that_is_reached_to_the_last_bit_is_kept():
    groups = np.repeat(["a", "b"], 10)
    predicted = np.concatenate([np.arange(10) < 6, np.arange(10) < 7]).astype(np.int64)
    y = np.tile([0, 1], 10)
    rows = LabelledRows(encode_groups(groups), y, np.array([0, 1]), None, None)
    for limit, status in ((0.1, "converged"), (0.0999, "infeasible")):
        rules = class_rules([DemographicParity()], rows, limit)
        judge = Judge(rules, y, rows.weights, np.eye(2))
        verdict = judge(predicted)
        chosen = Chosen(np.zeros(0), predicted, verdict, "prices")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = report(judge, chosen, 1, "")
        assert found["train_disparity_"] == pytest.approx(0.1)
        assert (found["status_"], len(said)) == (status, status == "infeasible")
