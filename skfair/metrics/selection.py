"""Adverse impact from counts: impact ratios, and whether a lower rate is statistically significant.

Everything is a function of how many people a group has and how many of them were selected, so a
published table can be checked without its rows. Flags and shortfalls are computed in whole
numbers, without rounding. So 48 of 100 is exactly four fifths of 60 of 100, and not below it.

``impact_ratios`` and ``selection_tests`` check their counts (``_checked_counts``). The impact
report of ``skfair.report`` has checked counts, and calls ``compare_counts``, ``ratios_to`` and
``mantel_haenszel``. In all functions, ``k1`` of ``n1`` people of a group were selected, and ``k0``
of ``n0`` of its reference group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special, stats

from skfair._typing import BoolArray, ColumnLike, FloatArray, IntArray
from skfair.utils.keywords import named_arguments
from skfair.utils.rounding import SUM_ROUNDING

# Fisher's test leaves out tables that are more than this many standard deviations from the mean,
# because their probability is 0 in floating point.
_FAR = 40


class Counts(NamedTuple):
    """Counts of groups and of their reference groups; the arrays have one entry per comparison."""

    selected: IntArray
    n_rows: IntArray
    reference_selected: IntArray
    reference_n_rows: IntArray

    @property
    def is_below_four_fifths(self) -> BoolArray:
        """Whether the selection rate is below four fifths of that of the reference group."""
        return np.asarray(
            5 * self.selected * self.reference_n_rows < 4 * self.reference_selected * self.n_rows
        )

    @property
    def z(self) -> FloatArray:
        """The difference of the rates in standard deviations, judged by the pooled rate.

        It is 0 if everybody or nobody was selected.
        """
        k1, n1, k0, n0 = self
        pooled = (k1 + k0) / (n1 + n0)
        spread = np.sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n0))
        return np.asarray((k1 / n1 - k0 / n0) / np.where(spread > 0, spread, 1.0))


@named_arguments
def impact_ratios(
    selected: ColumnLike, n_rows: ColumnLike, *, reference: int | None = None
) -> FloatArray:
    """Divide the selection rate of each group by the rate of the most selected group.

    These are the impact ratios of New York City Local Law 144. The four-fifths rule for adverse
    impact requires them to be at least 0.8.

    Parameters
    ----------
    selected : array-like of shape (n_groups,)
        The number of people of each group who were selected.
    n_rows : array-like of shape (n_groups,)
        The number of people of each group.
    reference : int, default=None
        Position of the reference group. If None, the group with the highest rate is used.

    Returns
    -------
    ratios : ndarray of shape (n_groups,)
        The ratio of each group, which is 1 for the reference group. Ratios are NaN if nobody was
        selected in the reference group.

    See Also
    --------
    selection_tests : Test whether the differences are statistically significant.
    skfair.report.audit : Computes the same ratios from rows, with ``preset="ugesp"``.

    Examples
    --------
    >>> from skfair.metrics import impact_ratios
    >>> impact_ratios([60, 45, 48, 51], [100, 100, 100, 100]).round(2).tolist()
    [1.0, 0.75, 0.8, 0.85]
    """
    chosen, sizes = _checked_counts(selected, n_rows, ("selected", "n_rows"))
    place = int(np.argmax(chosen / sizes)) if reference is None else reference
    if isinstance(place, bool) or not isinstance(place, (int, np.integer)):
        raise TypeError(f"reference must be a position of a group or None, got {reference!r}.")
    if not 0 <= place < chosen.size:
        raise ValueError(f"reference must be from 0 to {chosen.size - 1}, got {reference!r}.")
    return ratios_to(chosen, sizes, chosen[place], sizes[place])


def selection_tests(
    selected: ColumnLike,
    n_rows: ColumnLike,
    reference_selected: ColumnLike,
    reference_n_rows: ColumnLike,
) -> pd.DataFrame:
    """Test whether selection rates of groups differ significantly from a reference group.

    Parameters
    ----------
    selected : array-like of shape (n_groups,)
        The number of people of each group who were selected.
    n_rows : array-like of shape (n_groups,)
        The number of people of each group.
    reference_selected : array-like of shape (n_groups,) or int
        The number of people of the reference group who were selected.
    reference_n_rows : array-like of shape (n_groups,) or int
        The number of people of the reference group.

    Returns
    -------
    tests : DataFrame
        Table with one row per group. ``impact_ratio`` is the ratio of selection rates, and
        ``is_below_four_fifths`` compares it with 0.8. ``is_fragile`` is True if the ratio would
        reach four fifths with one more person selected in the group and one fewer in the reference
        group. ``z`` is the difference in standard deviations, negative for a lower rate, and
        ``p_value`` is its two-sided p-value. ``fisher_p`` and ``fisher_mid_p`` are the p-values of
        Fisher's exact test, and ``odds_ratio`` is the odds ratio. ``shortfall``,
        ``shortfall_four_fifths`` and ``shortfall_two_deviations`` are the numbers of further people
        of the group who would have to be selected to reach equal rates, four fifths, and less than
        two standard deviations.

    See Also
    --------
    impact_ratios : Only the ratios, by default to the most selected group.
    disparity_test : Test whether a disparity is below a limit.

    Notes
    -----
    Fisher's test takes O(sqrt(min(n_rows, reference_n_rows))) per group.

    Examples
    --------
    >>> from skfair.metrics import selection_tests
    >>> found = selection_tests([4], [21], [33], [1858])
    >>> found["z"].round(2).tolist()
    [5.66]
    """
    first = _checked_counts(selected, n_rows, ("selected", "n_rows"))
    names = ("reference_selected", "reference_n_rows")
    second = _checked_counts(reference_selected, reference_n_rows, names)
    if second[0].size not in (1, first[0].size):
        raise ValueError(
            f"reference_selected has {second[0].size} groups, but selected has {first[0].size}. "
            "Pass one reference group, or one for each group."
        )
    return compare_counts(Counts(*np.broadcast_arrays(*first, *second)))


def compare_counts(counts: Counts) -> pd.DataFrame:
    """Return the table of ``selection_tests``, for counts that were checked."""
    (k1, n1, k0, n0), z = counts, counts.z
    with np.errstate(invalid="ignore", divide="ignore"):
        odds_ratio = k1 * (n0 - k0) / (k0 * (n1 - k1))
    p_values = np.array([_fisher(*map(int, table)) for table in zip(*counts, strict=True)])
    exact, mid = p_values.reshape(-1, 2).T
    return pd.DataFrame(
        {
            "impact_ratio": ratios_to(*counts),
            "is_below_four_fifths": counts.is_below_four_fifths,
            "is_fragile": _is_fragile(counts),
            "z": z,
            "p_value": 2 * stats.norm.sf(np.abs(z)),
            "fisher_p": exact,
            "fisher_mid_p": mid,
            "odds_ratio": odds_ratio,
            "shortfall": _more_for_share(counts, 1, 1),
            "shortfall_four_fifths": _more_for_share(counts, 4, 5),
            "shortfall_two_deviations": _more_for_two_deviations(counts),
        }
    )


def ratios_to(
    selected: IntArray, n_rows: IntArray, reference_selected: IntArray, reference_n_rows: IntArray
) -> FloatArray:
    """Return (k1 / n1) / (k0 / n0), computed as one quotient of whole numbers.

    It is NaN if nobody of the reference group is selected.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = (selected * reference_n_rows) / (n_rows * reference_selected)
    return np.asarray(np.where(reference_selected > 0, ratios, np.nan))


def _fisher(k1: int, n1: int, k0: int, n0: int) -> tuple[float, float]:
    """Return the two-sided p-value of Fisher's exact test of one table, and its mid-p-value.

    Let x be the number of selected people who are in the group. Given the margins of the table, x
    has a hypergeometric distribution. The p-value is the probability of all x that are at most as
    probable as ``k1``. The mid-p-value counts the probability of the observed table half.
    """
    n_selected = k1 + k0
    total, mean = n1 + n0, n1 * n_selected / (n1 + n0)
    margin = _FAR * np.sqrt(mean * (1 - mean / n1) * n0 / total) + _FAR
    first = max(0, n_selected - n0, int(mean - margin))
    last = min(n1, n_selected, int(mean + margin))
    if not first <= k1 <= last:
        return 0.0, 0.0
    # ``growth`` is the probability of x + 1 divided by the probability of x. So probabilities are
    # known up to a common factor.
    counts = np.arange(first, last + 1, dtype=np.float64)
    x = counts[:-1]
    growth = (n1 - x) * (n_selected - x) / ((x + 1) * (n0 - n_selected + x + 1))
    logs = np.concatenate(([0.0], np.cumsum(np.log(growth))))
    chances = np.exp(logs - logs.max())
    seen = chances[k1 - first]
    exact = chances[chances <= seen * (1 + SUM_ROUNDING)].sum() / chances.sum()
    return float(min(exact, 1.0)), float(exact - 0.5 * seen / chances.sum())


def mantel_haenszel(strata: Counts) -> tuple[float, float]:
    """Return the common odds ratio of strata, and the p-value of Cochran, Mantel and Haenszel.

    Each entry of ``strata`` is the counts of one stratum. Strata without people of one group, or in
    which everybody or nobody is selected, are left out. If no stratum is left, both results are
    NaN. The statistic has a continuity correction of one half.
    """
    k1, n1, k0, n0 = (numbers.astype(np.float64) for numbers in strata)
    total, chosen = n1 + n0, k1 + k0
    compares = (n1 > 0) & (n0 > 0) & (chosen > 0) & (chosen < total)
    k1, n1, k0, n0, total, chosen = (own[compares] for own in (k1, n1, k0, n0, total, chosen))
    if not total.size:
        return np.nan, np.nan
    variance = (n1 * n0 * chosen * (total - chosen) / (total**2 * (total - 1))).sum()
    excess = max(abs((k1 - n1 * chosen / total).sum()) - 0.5, 0.0)
    more, fewer = (k1 * (n0 - k0) / total).sum(), (k0 * (n1 - k1) / total).sum()
    odds_ratio = more / fewer if fewer > 0 else np.inf
    return float(odds_ratio), float(special.chdtrc(1, excess**2 / variance))


def _is_fragile(counts: Counts) -> BoolArray:
    """Whether the four-fifths flag is raised, but depends on two people.

    It is fragile if it would not be raised with one more person selected in the group, and one
    fewer in the reference group.
    """
    turned = counts._replace(
        selected=np.minimum(counts.selected + 1, counts.n_rows),
        reference_selected=np.maximum(counts.reference_selected - 1, 0),
    )
    return np.asarray(counts.is_below_four_fifths & ~turned.is_below_four_fifths)


def _more_for_share(counts: Counts, part: int, whole: int) -> IntArray:
    """Return how many more people of the group must be selected to reach a share of a rate.

    The rate is that of the reference group, and the share is ``part`` / ``whole``.
    """
    k1, n1, k0, n0 = counts
    return np.asarray(np.maximum(-((whole * k1 * n0 - part * k0 * n1) // (whole * n0)), 0))


def _more_for_two_deviations(counts: Counts) -> IntArray:
    """Return how many more people of the group must be selected, so that z is above -2.

    z rises with the number selected, so the number is found by bisection. ``high`` always is
    enough, and starts where the rates are equal. ``low`` never is enough, and starts at -1 because
    0 may be enough.
    """
    low, high = np.full(counts.selected.shape, -1), _more_for_share(counts, 1, 1)
    while (high - low > 1).any():
        middle = (low + high) // 2
        more = counts._replace(selected=counts.selected + np.maximum(middle, 0))
        is_enough = more.z > -2
        low = np.where(is_enough, low, middle)
        high = np.where(is_enough, np.maximum(middle, 0), high)
    return np.asarray(high)


def _checked_counts(
    selected: ColumnLike, n_rows: ColumnLike, names: tuple[str, str]
) -> tuple[IntArray, IntArray]:
    """Return both counts as whole numbers; raise if more were selected than there are.

    ``names`` are the names of the two arguments, for messages.
    """
    counts = []
    for values, name in zip((selected, n_rows), names, strict=True):
        try:
            numbers = np.atleast_1d(np.asarray(values)).astype(np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name} must hold numbers of people, got {values!r}.") from error
        is_whole = np.isfinite(numbers).all() and (numbers == np.round(numbers)).all()
        if numbers.ndim != 1 or not numbers.size or not is_whole or numbers.max() > 1e9:
            raise ValueError(
                f"{name} must hold one whole number of people per group, got {values!r}."
            )
        counts.append(numbers.astype(np.int64))
    chosen, sizes = counts
    if chosen.shape != sizes.shape:
        raise ValueError(
            f"{names[0]} has {chosen.size} groups, but {names[1]} has {sizes.size}. Pass one "
            "number of each per group."
        )
    if (chosen < 0).any() or (chosen > sizes).any() or (sizes < 1).any():
        raise ValueError(
            f"{names[0]} must be from 0 to {names[1]}, and no group may be empty; got "
            f"{chosen.tolist()} of {sizes.tolist()}."
        )
    return chosen, sizes
