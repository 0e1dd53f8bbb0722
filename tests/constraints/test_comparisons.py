"""Comparisons: rows that keep a limit, disparities, and what is known of rates in intervals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skfair.constraints import (
    AccuracyParity,
    Constraint,
    DemographicParity,
    EqualizedOdds,
    PredictiveParity,
)
from skfair.constraints.comparisons import (
    Bounded,
    Excess,
    MeanExcess,
    Overall,
    OverallRatio,
    Pairwise,
    Ratio,
    make_comparison,
)
from skfair.constraints.moments import Rate
from tests.naive import erm as naive
from tests.seeds import generator
from tests.small_problems import people

COMPARISONS = [
    Pairwise(),
    Overall(),
    Ratio(),
    OverallRatio(),
    Bounded(),
    Excess(),
    MeanExcess(),
]
each = pytest.mark.parametrize("comparison", COMPARISONS, ids=repr)


def drawn(seed):
    """Rates in sets of 1 to 4, the overall rate of each set, among them zeros."""
    rng = generator(seed)
    sizes = rng.integers(1, 5, 3)
    sets = np.repeat(np.arange(3), sizes)
    rates = rng.choice([0.0, *rng.uniform(size=6)], sets.size)
    overall = np.array([rates[sets == b].mean() for b in sets])
    return rates, overall, sets


def by_hand(comparison, rates, overall, sets):
    if isinstance(comparison, Excess):
        excess = [rate - overall[r] for r, rate in enumerate(rates)]
        return np.mean(excess) if isinstance(comparison, MeanExcess) else max(excess)
    worst = 0.0
    for r, rate in enumerate(rates):
        others = rates[sets == sets[r]]
        against = [overall[r]] if comparison.against_overall else others
        if isinstance(comparison, Bounded):
            worst = max(worst, rate)
        elif isinstance(comparison, Ratio):
            worst = max(worst, *(1 - naive.ratio(rate, other) for other in against))
        else:
            worst = max(worst, *(abs(rate - other) for other in against))
    return worst


@each
@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**31))
def test_disparity_and_what_rows_allow(comparison, seed):
    rates, overall, sets = drawn(seed)
    value = float(comparison.least((rates, rates), (overall, overall), sets))
    assert value == pytest.approx(by_hand(comparison, rates, overall, sets), abs=1e-12)
    names = [f"rate {r}" for r in range(rates.size)]
    for limit in (value + 1e-9, value - 1e-6, 0.5 * value):
        rows = comparison.rows(sets, names, max(limit, 0.0))
        values = rows.of_rates @ rates + rows.of_overall @ overall
        for center in range(rows.centers.max(initial=-1) + 1):
            mine = rows.centers == center
            values[mine] -= 0.5 * (values[mine].min() + values[mine].max())
        is_kept = bool(np.all((values <= rows.upper + 1e-12) & (values >= rows.lower - 1e-12)))
        assert is_kept == (value <= max(limit, 0.0) + 1e-12)
        assert len(rows.row_names) == rows.upper.size


@each
@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**31))
def test_no_rates_within_bounds_have_less_than_the_least_disparity(comparison, seed):
    rng = generator(seed)
    rates, overall, sets = drawn(seed)
    low, high = rates - rng.uniform(0, 0.2, rates.size), rates + rng.uniform(0, 0.2, rates.size)
    low = np.maximum(low, 0)
    # One overall rate per set, which is all that is read.
    under = np.maximum(overall - 0.1 * rng.uniform(size=3)[sets], 0)
    above = overall + 0.1 * rng.uniform(size=3)[sets]
    least = float(comparison.least((low, high), (under, above), sets))
    for _ in range(20):
        some = rng.uniform(low, high)
        of_all = (under + rng.uniform(size=3)[sets] * (above - under)).copy()
        assert by_hand(comparison, some, of_all, sets) >= least - 1e-12


def test_zeros_that_were_added_up_with_rounding_are_equal():
    rates = np.array([-1e-17, 2e-16])
    for comparison in (Ratio(), OverallRatio()):
        assert comparison.least((rates, rates), (rates, rates), np.zeros(2, np.int64)) == 0


@pytest.mark.parametrize("name", [None, 3, "bound", "pairwise", "ratios"])
def test_a_comparison_that_does_not_exist_is_refused(name):
    rows = people().training_rows()
    message = "comparison must be one of 'difference', 'ratio', 'bounded', got "
    with pytest.raises(ValueError, match=message):
        EqualizedOdds(comparison=name).prepare(rows, 0.1)

    class Own(Constraint):
        comparison = name

        def moment(self, rows):
            return Rate()

    with pytest.raises(ValueError, match=message):
        Own().prepare(rows, 0.1)


def test_partitions_and_references_that_do_not_exist_are_refused():
    class Positives(AccuracyParity):
        subset = "positives"

    rows = people().training_rows()
    with pytest.raises(ValueError, match=r"subset must be one of 'all', 'positive'.*'positives'"):
        Positives().prepare(rows, 0.1)
    for comparison in ("difference", "ratio"):
        with pytest.raises(ValueError, match="reference must be 'pairwise' or 'overall', got 'x'"):
            DemographicParity(reference="x", comparison=comparison).prepare(rows, 0.1)


def test_an_object_says_how_rates_are_compared():
    assert make_comparison(Bounded(), "pairwise") == Bounded()
    assert make_comparison("ratio", "overall") == OverallRatio()
    assert make_comparison("difference", "overall") == Overall()

    class Capped(Constraint):
        comparison = Bounded()

        def moment(self, rows):
            return Rate()

    class CappedByProperty(Capped):
        @property
        def comparison(self):
            return "bounded"

    assert CappedByProperty().compared() == Bounded()
    who = people(n_levels=(3,))
    bound = Capped().prepare(who.training_rows(), 0.4)
    assert bound.disparity(np.ones(who.signs.size)) == pytest.approx(1)
    assert DemographicParity(comparison="ratio").metric == "demographic_parity_ratio"
    assert DemographicParity(comparison="bounded").metric is None


def test_the_precision_of_a_group_that_nobody_is_selected_of_is_zero():
    who = people(seed=3, n_levels=(2,))
    bound = PredictiveParity().prepare(who.training_rows(), 0.1)
    is_a = who.columns[0] == "a"
    scores = np.where(is_a, 1.0, -1.0)
    assert bound.disparity(scores) == pytest.approx((who.signs[is_a] > 0).mean())
    assert bound.disparity(np.full(scores.size, -1.0)) == 0
