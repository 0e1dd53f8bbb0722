"""What every rule of the registry keeps, as functions that list breaches: bad rules can be shown."""

import numpy as np
import pytest

import skfair.metrics

# Metrics that are called like the others but are still being written.
COMING = {
    "false_negative_parity_difference",
    "false_negative_parity_ratio",
    "largest_selection_rate",
    "largest_false_positive_rate",
    "largest_false_negative_rate",
}


def metric_of(rule):
    """Return the function that measures a rule."""
    if rule.metric in COMING and not hasattr(skfair.metrics, rule.metric):
        pytest.skip(f"skfair.metrics has no {rule.metric} yet")
    return getattr(skfair.metrics, rule.metric)
