"""Adverse impact from counts: published examples, scipy, and counting by brute force."""

import numpy as np
import pytest
from scipy import stats

from skfair.metrics import impact_ratios, selection_tests
from skfair.metrics.selection import Counts, mantel_haenszel
from tests.seeds import generator


@pytest.fixture(scope="module")
def tables():
    """Pairs of groups; half of them are equally large, where tables tie."""
    rng = generator(0)
    n1, n0 = rng.integers(1, 200, (2, 400))
    n0 = np.where(np.arange(400) % 2, n1, n0)
    return rng.binomial(n1, rng.random(400)), n1, rng.binomial(n0, rng.random(400)), n0


def test_the_example_of_the_questions_and_answers():
    """Rates of 60, 45, 48 and 51 %: 48 is not below four fifths of 60, but 45 is."""
    ratios = impact_ratios([60, 45, 48, 51], [100] * 4)
    assert [f"{one:.0%}" for one in ratios] == ["100%", "75%", "80%", "85%"]
    for scale in (1, 20, 7_000_000):
        chosen, sizes = scale * np.array([45, 48, 51]), 3 * [100 * scale]
        found = selection_tests(chosen, sizes, 60 * scale, 100 * scale)
        assert found["is_below_four_fifths"].tolist() == [True, False, False]


def test_tables_of_local_law_144():
    """By hand: 667 of 1390 are 48 %, 555 of 1181 are 47 %, and so on."""
    assert np.round(impact_ratios([667, 555], [1390, 1181]), 3).tolist() == [1.0, 0.979]
    chosen, sizes = [204, 412, 170, 52, 302, 18, 96], [408, 797, 390, 119, 616, 41, 213]
    ratios = impact_ratios(chosen, sizes)
    assert np.round(ratios, 2).tolist() == [0.97, 1.0, 0.84, 0.85, 0.95, 0.85, 0.87]
    to_first = impact_ratios(chosen, sizes, reference=0)
    assert to_first == pytest.approx(ratios / ratios[0])


def test_fisher_and_z_are_those_of_scipy(tables):
    found = selection_tests(*tables)
    for i, (k1, n1, k0, n0) in enumerate(zip(*tables, strict=True)):
        table = [[k1, n1 - k1], [k0, n0 - k0]]
        assert found["fisher_p"][i] == pytest.approx(stats.fisher_exact(table)[1], abs=1e-12)
        seen = stats.hypergeom.pmf(k1, n1 + n0, k1 + k0, n1)
        assert found["fisher_mid_p"][i] == pytest.approx(found["fisher_p"][i] - seen / 2, abs=1e-10)
        if 0 < k1 + k0 < n1 + n0:  # z squared is the chi-square of the table
            chi2, p, *_ = stats.chi2_contingency(table, correction=False)
            assert found["z"][i] ** 2 == pytest.approx(chi2, rel=1e-12, abs=1e-12)
            assert found["p_value"][i] == pytest.approx(p, abs=1e-12)
            assert np.sign(found["z"][i]) == np.sign(k1 * n0 - k0 * n1)
        else:
            assert (found["z"][i], found["p_value"][i]) == (0, 1)


def test_a_published_difference_in_standard_deviations():
    assert selection_tests([4], [21], [33], [1858])["z"].round(2).tolist() == [5.66]


def test_shortfalls_are_the_first_numbers_that_suffice(tables):
    tables = [one[:300] for one in tables]
    found = selection_tests(*tables)
    for i, (k1, n1, k0, n0) in enumerate(zip(*tables, strict=True)):
        more = np.arange(0, n1 - k1 + 1)
        again = selection_tests(k1 + more, 0 * more + n1, [k0], [n0])
        enough = {
            "shortfall": (k1 + more) * n0 >= k0 * n1,
            "shortfall_four_fifths": ~again["is_below_four_fifths"],
            "shortfall_two_deviations": again["z"] > -2,
        }
        for name, is_enough in enough.items():
            assert found[name][i] == np.argmax(is_enough), name
        if found["is_below_four_fifths"][i] and k0 > 1:
            turned = selection_tests([k1 + 1], [n1], [k0 - 1], [n0])["is_below_four_fifths"][0]
            assert found["is_fragile"][i] == (not turned)


def test_strata_are_those_of_admissions_at_berkeley():
    """Bickel, Hammel and O'Connell (1975): men against women in six departments.

    Pooled, men are admitted far more often; within departments they are not.
    """
    men, of_men = [512, 353, 120, 138, 53, 22], [825, 560, 325, 417, 191, 373]
    women, of_women = [89, 17, 202, 131, 94, 24], [108, 25, 593, 375, 393, 341]
    counts = Counts(*map(np.array, (men, of_men, women, of_women)))
    found = mantel_haenszel(counts)
    assert found == pytest.approx((0.9047, 0.2323), abs=5e-5)
    assert selection_tests([sum(men)], [sum(of_men)], [sum(women)], [sum(of_women)])["z"][0] > 9
    # A stratum with a single group, or in which nobody is selected, says nothing.
    more = Counts(
        selected=np.append(men, [3, 0]),
        n_rows=np.append(of_men, [9, 5]),
        reference_selected=np.append(women, [0, 0]),
        reference_n_rows=np.append(of_women, [0, 7]),
    )
    assert mantel_haenszel(more) == found
    assert np.isnan(mantel_haenszel(Counts(*(np.zeros(1, int) for _ in range(4))))).all()


def test_nobody_selected_has_no_ratio():
    assert np.isnan(impact_ratios([0, 0], [5, 9])).all()
