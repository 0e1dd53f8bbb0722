"""Audits of pairs: one unit with rows in several groups, such as a CV under two names."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from skfair.metrics import group_report
from skfair.report import audit
from tests.groups.test_shared_units import pairs
from tests.seeds import generator


def test_signed_differences_are_those_of_the_report():
    decisions, groups, units = pairs(generator(), 4000, 0.5, 0.4, 0.38)
    how = {"units": units, "reference": "b"}
    found = audit(None, decisions, sensitive_features={"name": groups}, **how)
    signed = found.signed.set_index("measure").loc["selection_rate"]
    report = group_report(None, decisions, sensitive_features=groups, **how).loc["a"]
    for end in ("low", "high"):
        column = f"selection_rate_difference_{end}"
        assert signed[f"difference_{end}"] == pytest.approx(report[column])
    apart = audit(None, decisions, sensitive_features={"name": groups})
    widths = [one.gaps.eval("value_high - value_low").iloc[0] for one in (found, apart)]
    assert widths[0] < 0.6 * widths[1]


@pytest.mark.parametrize("is_weighted", [False, True])
def test_simulated_means_vary_as_they_do_in_pairs(is_weighted):
    """The differences of simulated rates have the variance of paired differences."""
    from skfair.groups.measured_rows import MeasuredRows
    from skfair.report.tables.gaps import drawn_means

    rng, n = generator(is_weighted), 500
    own = rng.random(n) < 0.4
    decisions = np.concatenate([own ^ (rng.random(n) < share) for share in (0.02, 0.1, 0.5)])
    groups, units = np.repeat(["a", "b", "c"], n), np.tile(np.arange(n), 3)
    weights = np.tile(rng.choice([0.5, 1.0, 2.0], n), 3) if is_weighted else None
    decisions = decisions.astype(int)
    rows = MeasuredRows.of_labels(decisions, decisions, groups, None, weights, units=units)
    means = rows.table().means("selection_rate")
    drawn = drawn_means(
        means, np.random.RandomState(0), 20_000, means.means, means.means * (1 - means.means)
    )
    each = np.ones(3 * n) if weights is None else weights
    for i, j in ((0, 1), (0, 2), (1, 2)):
        influence = np.zeros(n)
        for k, sign in ((i, 1), (j, -1)):
            of_group = slice(k * n, (k + 1) * n)
            w, y = each[of_group], decisions[of_group]
            influence += sign * w * (y - np.average(y, weights=w)) / w.sum()
        expected = influence @ influence
        # Half a unit less of covariance adds about 1 / n^2, and 20,000 draws know 3% at most.
        found = (drawn[:, i] - drawn[:, j]).var()
        assert expected * 0.95 < found < (expected + 2 / n**2) * 1.07


def test_an_audit_of_pairs_knows_no_order_of_rows():
    decisions, groups, units = pairs(generator(), 300, 0.5, 0.45, 0.42)
    order = generator("order").permutation(units.size)
    names = np.array([f"CV {1000 - unit}" for unit in units])
    one, two = (
        audit(None, decisions[rows], sensitive_features={"name": groups[rows]}, units=own[rows])
        for rows, own in ((slice(None), units), (order, names))
    )
    pd.testing.assert_frame_equal(one.gaps, two.gaps)


def test_a_closed_group_has_no_pairs():
    """A group that is too small for rates by class has no weight, but its units have rows."""
    rng, n = generator(), 300
    own, sex = rng.integers(0, 2, n), np.repeat(["a", "b", "c"], n)
    decisions = np.concatenate([own ^ (rng.random(n) < 0.1) for _ in range(3)])
    y = np.concatenate([own, own, np.where(np.arange(n) < 4, 1, 0)])
    found = audit(y, decisions, sensitive_features={"name": sex}, units=np.tile(np.arange(n), 3))
    assert np.isfinite(found.gaps["p_value"]).all()


def drawn_cvs(rng, difference, n=250):
    """Decisions on CVs under two names, of which one in twenty is reversed."""
    base, mark = rng.beta(2, 2, n), rng.random(n)
    first, second = (mark < np.clip(base + sign * difference / 2, 0, 1) for sign in (1, -1))
    second = np.where(rng.random(n) < 0.05, ~second, second)
    return np.concatenate([first, second]).astype(int)


@pytest.mark.slow
def test_audits_of_pairs_find_what_there_is():
    """Six points are found in about 84% of audits. If rows were independent, it would be 7%."""
    groups, units = np.repeat(["a", "b"], 250), np.tile(np.arange(250), 2)
    rng, found, n_audits = generator(), {}, 200
    for difference in (0.0, 0.06):
        audits = [
            audit(
                None, drawn_cvs(rng, difference), sensitive_features={"name": groups}, units=units
            )
            for _ in range(n_audits)
        ]
        found[difference] = sum(one.gaps["is_beyond_chance"].iloc[0] for one in audits)
    assert found[0.0] <= binom.ppf(1 - 1e-6, n_audits, 0.05)
    assert found[0.06] >= binom.ppf(1e-6, n_audits, 0.8)
