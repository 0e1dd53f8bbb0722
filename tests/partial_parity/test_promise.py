"""The disparity that is limited equals the disparity that metrics measure, for every constraint."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skfair import Sensitive
from skfair.classification import PartialParityClassifier
from skfair.constraints.partial import read_constraint
from skfair.groups.encoding import encode_groups
from skfair.partial_parity.noise import alike_rows
from skfair.partial_parity.promise import Promise, upper_bound
from tests.partial_parity.ranked_moments import ranked_constraints
from tests.partial_parity.test_classifier_input import GROUP, X, Y
from tests.seeds import generator

INTERVAL = (0.1, 0.6)
WITHIN = {name: read_constraint(name) for name in ranked_constraints()}
REPAIRABLE = [name for name, within in WITHIN.items() if within.metric]


def people(seed=0, n=300):
    rng = generator(seed)
    codes = rng.integers(0, 2, n)
    scores = rng.normal(size=n) + codes - 1
    return scores, codes, np.where(scores + rng.normal(size=n) > -0.5, 1.0, -1.0)


# Only shares have another unit: elsewhere "ccdf" is an error.
SHARES = [name for name, within in WITHIN.items() if within.ranked.is_share]


@pytest.mark.parametrize("name", list(WITHIN))
def test_of_overlapping_attributes_the_worst_is_measured(name):
    scores, codes, targets = people()
    near = generator(1).permutation(codes)
    for alone, columns in (
        ((codes, near), {"far": codes, "near": near}),
        ((near, codes), {"near": near, "far": codes}),
        ((codes,), {"one": np.zeros_like(codes), "far": codes}),
    ):
        groups = encode_groups(columns, intersectional=False)
        promise = Promise(WITHIN[name], INTERVAL, False, 0.1, groups, targets, None)
        each = [replace(promise, groups=encode_groups(one)).measure(scores) for one in alone]
        assert promise.measure(scores) == pytest.approx(max(each), abs=1e-12)


@pytest.mark.parametrize("name", REPAIRABLE)
def test_weights_of_1_do_not_change_an_upper_bound_and_uneven_ones_raise_it(name):
    scores, codes, targets = people(n=2000)
    scores = scores - 0.7 * codes  # nearly alike: bounds stay below 1
    targets[(np.arange(2000) % 4 > 0) & (codes == 0)] = -1.0  # few positives in one group
    promise = Promise(WITHIN[name], (0.0, 1.0), True, 0.1, encode_groups(codes), targets, None)
    if name not in SHARES:
        promise = replace(promise, is_ccdf=False)

    def margin(weights):
        weighted = replace(promise, weights=weights)
        return upper_bound(weighted, scores, 0.95) - weighted.measure(scores)

    assert margin(np.ones(2000)) == pytest.approx(margin(None), abs=1e-12)
    uneven = np.where(np.arange(2000) % 10 == 0, 5.0, 1.0)
    n_cells = 2 * max(1, len(promise.constraint.classes))
    epsilon = []
    for k in (0, 1):
        of_group = (codes == k)[:, None] & np.column_stack(
            [targets == 2 * c - 1 for c in promise.constraint.classes] or [np.ones(2000, bool)]
        )
        n = (uneven @ of_group) ** 2 / (uneven**2 @ of_group)
        epsilon.append(np.sqrt(np.log(2 * n_cells / 0.05) / (2 * n.min())))
    assert margin(uneven) == pytest.approx(sum(epsilon), abs=1e-12)


def test_alike_rows_of_two_attributes_are_as_many():
    """The noise floor looks at a share of the rows of each group and class, rounded up."""
    frame = pd.DataFrame({"two": GROUP, "seven": np.arange(len(Y)) % 7})
    model = PartialParityClassifier(
        max_disparity=1.0, enforce="surrogate", sensitive=Sensitive(intersectional=False)
    )
    model.fit(X, Y, sensitive_features=frame)
    for most in (np.inf, 60):
        groups, targets, share = alike_rows(model._group_levels, model._counts, most)
        two, seven = groups.codes
        assert 60 <= two.size == seven.size == targets.size <= len(Y)
        for codes, levels, column in ((two, 0, "two"), (seven, 2, "seven")):
            left = pd.crosstab(codes - levels, targets).to_numpy()
            given = pd.crosstab(frame[column], Y).to_numpy()
            assert (left <= given).all()
        assert 0 < share <= 1
