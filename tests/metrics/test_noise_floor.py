"""Values of metrics by chance, for groups that differ in how many positives they have."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from skfair import metrics
from skfair.metrics import noise_floor
from tests.families import rows_of_families
from tests.seeds import generator

N_SAMPLES = 50
# Of 41 values 3 are above the 95 % quantile of the 40 others, in 1e7 runs but one.
MOST = binom.isf(1e-7, N_SAMPLES, 3 / 41) / N_SAMPLES


def share_above_the_floor(metric):
    n_above = 0
    group = np.repeat(["a", "b"], [400, 100])
    for seed in range(N_SAMPLES):
        y, s = decided(generator(seed), np.where(group == "a", 0.5, 0.1))
        floor = noise_floor(
            metric, y, s, n_permutations=40, random_state=seed, sensitive_features=group
        )
        n_above += metric(y, s, sensitive_features=group) > floor.upper
    return n_above / N_SAMPLES


def decided(rng, rate):
    y = (rng.random(rate.size) < rate).astype(int)
    return y, (rng.random(y.size) < 0.2 + 0.5 * y).astype(int)


def test_groups_alike_within_classes_rarely_exceed_the_floor():
    """Dealt out over all rows, a group of ten positives got forty: every second was above."""
    assert share_above_the_floor(metrics.equal_opportunity_difference) <= MOST


def test_metrics_of_all_rows_are_dealt_out_over_all_rows():
    """That one group has fewer positives is no chance: decisions that follow them are above."""
    assert share_above_the_floor(metrics.demographic_parity_difference) > 0.5


@pytest.mark.parametrize(
    ("metric", "given"),
    [
        (metrics.equal_opportunity_difference, {}),
        (partial(metrics.equal_opportunity_difference, pos_label=1), {}),
        (metrics.false_positive_parity_difference, {}),
        (metrics.equalized_odds_difference, {}),
        (metrics.largest_false_negative_rate, {}),
        (metrics.separation_gap, {}),
        (metrics.inter_group_pairwise_gap, {}),
        (metrics.intra_group_pairwise_gap, {}),
        *rows_of_families("WITHIN_CLASSES"),
        (metrics.loss_parity_difference, {"loss": "hinge", "subset": "class"}),
        (metrics.largest_group_loss, {"loss": "hinge", "subset": "positive"}),
        (metrics.predictive_parity_difference, {}),
        (metrics.sufficiency_gap, {}),
    ],
)
def test_classes_within_which_groups_are_compared_keep_their_rows(metric, given):
    """A group of one row of each class would lack one in every second deal over all rows."""
    rng = generator(0)
    # Each class has both values, and an odd number of rows: were it twice that of the ones, a
    # group of a single row would differ from the others as much with either value.
    kept = np.append(rng.permutation(np.repeat([0, 1], 19)), [0, 1, 0, 1])
    other = np.append(rng.integers(0, 2, 38), [0, 1, 1, 0])
    of_predictions = metric in (metrics.predictive_parity_difference, metrics.sufficiency_gap)
    y, s = (other, kept) if of_predictions else (kept, other)
    group = np.repeat(["a", "b"], [40, 2])
    s = s.astype(float) if "interval" in given else s
    floor = noise_floor(metric, y, s, sensitive_features=group, random_state=0, **given)
    assert np.isfinite(floor.values).all()
    assert np.unique(floor.values).size > 1
