"""Monitors that did not read the same batches are merged batch by batch, not place by place."""

import numpy as np
import pytest

from skfair.monitoring import DisparityMonitor
from tests.monitoring.streams import feed
from tests.seeds import generator

_CHANGE = 45


def watched_by_two(is_read, **options):
    """Return monitors of two workers, and one of the rows of both; ``is_read(worker, batch)``."""
    rng = generator(0)
    left, right, both = (DisparityMonitor(levels=["f", "m"], **options) for _ in range(3))
    for number in range(60):
        parts = []
        for worker, monitor in enumerate((left, right)):
            sex = rng.choice(["f", "m"], 300)
            is_higher = (sex == "m") & (number >= _CHANGE)
            y_pred = (rng.random(300) < 0.3 + 0.2 * is_higher).astype(int)
            if is_read(worker, number):
                monitor.update(None, y_pred, sensitive_features=sex, batch=number)
                parts.append((y_pred, sex))
        if parts:
            feed(both, None, *map(np.concatenate, zip(*parts, strict=True)), batch=number)
    return left, right, both


@pytest.mark.parametrize(
    "is_read",
    [
        lambda worker, number: True,
        lambda worker, number: worker == 0 or number >= 40,  # the second one came later
        lambda worker, number: worker == 0 or number not in (3, 4, 30),  # and had days off
        lambda worker, number: worker == 0 or number < 48,  # and ended sooner
        lambda worker, number: (number < 50) if worker == 0 else number >= 20,
    ],
)
@pytest.mark.parametrize("options", [{}, {"horizon": 25}, {"reference_batches": 10}])
def test_batches_of_the_same_number_belong_together(is_read, options):
    left, right, both = watched_by_two(is_read, **options)
    for merged in (left.merge(right), right.merge(left)):
        assert merged.evidence_ == pytest.approx(both.evidence_, rel=0.1)
        assert abs(merged.alarm_.since - _CHANGE) <= 2
        assert merged.alarm_.batch == 59
        assert (merged.n_rows_, merged.n_batches_) == (both.n_rows_, both.n_batches_)
        assert len(merged._seen.windows.starts) <= merged.horizon + 1
        with pytest.raises(ValueError, match="read already"):
            merged.update(None, [0, 1], sensitive_features=["f", "m"], batch=59)
        merged.update(None, [0, 1], sensitive_features=["f", "m"], batch=60)
        again = DisparityMonitor.from_json(merged.to_json())
        assert again.evidence_ == merged.evidence_


def test_numbers_of_two_kinds_are_no_common_time():
    left, right = (DisparityMonitor(levels=["f", "m"]) for _ in range(2))
    left.update(None, [0, 1], sensitive_features=["f", "m"], batch=3)
    right.update(None, [0, 1], sensitive_features=["f", "m"], batch="2026-01-01")
    with pytest.raises(ValueError, match="cannot be compared"):
        left.merge(right)


def test_monitors_of_other_settings_are_not_merged():
    groups = {"levels": ["f", "m"]}
    for odd in ({"max_disparity": 0.1}, {"reference_batches": 10}, {"reference": "m"}):
        with pytest.raises(ValueError, match="same settings"):
            DisparityMonitor(**groups).merge(DisparityMonitor(**groups, **odd))
