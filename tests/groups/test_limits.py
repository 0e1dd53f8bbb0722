"""Limits on disparities as users pass them: one for all attributes, or one for each."""

import numpy as np
import pytest

from skfair.groups.encoding import encode_groups
from skfair.groups.limits import limits_of_attributes, loosest

SEX, AGE = ["f", "m", "f", "m"], ["old", "old", "young", "young"]


def groups(intersectional=False):
    return encode_groups({"sex": SEX, "age": AGE}, intersectional=intersectional)


def test_limits_are_in_the_order_of_the_attributes():
    assert limits_of_attributes(0.1, groups()) == [0.1, 0.1]
    assert limits_of_attributes({"age": None, "sex": 0.2}, groups()) == [0.2, None]


@pytest.mark.parametrize(
    ("limit", "intersectional", "message"),
    [
        ({"sex": 0.1}, False, "for each of the attributes"),
        ({"sex": 0.1, "age": 0.1, "race": 0.1}, False, "for each of the attributes"),
        ({"sex": 0.1, "age": -1}, False, r"max_disparity\['age'\]"),
        ({"sex": 0.1, "age": 0.1}, True, r"Sensitive\(crossed=False\)"),
    ],
)
def test_what_is_wrong_with_limits(limit, intersectional, message):
    with pytest.raises(ValueError, match=message):
        limits_of_attributes(limit, groups(intersectional))


def test_the_loosest_limit():
    assert loosest(0.1) == 0.1
    assert loosest({"sex": 0.1, "age": 0.3}) == 0.3
    assert loosest({"sex": None}) == np.inf
