import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skfair.metrics
from skfair.metrics.labels import LABEL_METRICS
from tests import naive
from tests.seeds import generator

METRICS = {name: getattr(skfair.metrics, name) for name in LABEL_METRICS}
each_metric = pytest.mark.parametrize("name", METRICS)


def random_case(seed, n_groups=None):
    """Labels in which every rate is defined and positive: each cell has at least one row."""
    rng = generator(seed)
    n_groups = n_groups or int(rng.integers(2, 5))
    cells = np.repeat(np.arange(4 * n_groups), rng.integers(1, 6, 4 * n_groups))
    rng.shuffle(cells)
    groups = np.array(list("wxyz"))[cells // 4]
    return cells // 2 % 2, cells % 2, groups, rng


def naive_value(name, y, p, groups, weights):
    spec, table = LABEL_METRICS[name], naive.rates(y, p, groups, weights)
    values = []
    for a, b in naive.pairs(groups):
        sides = [(table[rate][a], table[rate][b]) for rate in spec.rates]
        if spec.kind == "ratio":
            values += [min(pair) / max(pair) for pair in sides]
        elif spec.kind == "difference":
            values += [abs(one - other) for one, other in sides]
        else:
            values.append(sum(abs(one - other) for one, other in sides))
    return min(values) if spec.kind == "ratio" else max(values)


@each_metric
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**31))
def test_equals_naive_twin(name, seed):
    y, p, groups, rng = random_case(seed)
    weights = rng.uniform(0.1, 3, y.size)
    for own, used in ((None, np.ones(y.size)), (weights, weights)):
        value = METRICS[name](y, p, sensitive_features=groups, sample_weight=own)
        assert value == pytest.approx(naive_value(name, y, p, groups, used), abs=1e-12)


def test_accuracy_counts_all_classes():
    y, p, groups = list("abcabc"), list("abbcbc"), list("ffffmm")
    value = METRICS["accuracy_parity_difference"](y, p, sensitive_features=groups)
    assert value == pytest.approx(1 - 2 / 4)
    never_true = METRICS["accuracy_parity_difference"](y, ["z"] * 6, sensitive_features=groups)
    assert never_true == 0
    for other in ([0, 1, 2, 0, 1, 2], list("ABCABC")):
        with pytest.raises(ValueError, match="none in common"):
            METRICS["accuracy_parity_difference"](y, other, sensitive_features=groups)


def test_a_constant_model_of_strings_can_be_scored():
    y, sex = ["n", "y", "y", "n"], ["f", "f", "m", "m"]
    for constant in ("n", "y"):
        with pytest.warns(UserWarning, match="The value says nothing about groups"):
            value = METRICS["equal_opportunity_difference"](
                y, [constant] * 4, sensitive_features=sex, pos_label="y"
            )
        assert value == 0
    nobody = {"sensitive_features": sex, "pos_label": "y"}
    assert METRICS["demographic_parity_difference"](None, ["n"] * 4, **nobody) == 0
    ratio = METRICS["demographic_parity_ratio"](None, ["n"] * 4, **nobody, zero_division=np.nan)
    assert np.isnan(ratio)
