r"""Bounds on a disparity if outcomes are known for some rows only.

A lender knows the outcome of the loans that were granted, and nobody knows whether the others would
have been repaid (*selective labels*). Each row without an outcome may be positive or negative. The
rate of a group is a quotient of two sums, both of which are linear in the numbers of such rows that
are positive: one number for each decision. Such a quotient is smallest and largest where each
number is 0 or as large as possible, so four tables of counts give the bounds of a rate. The
outcomes of different groups have nothing to do with each other, so the largest rate of one group
and the smallest rate of another can occur together (Manski 1989 has such bounds for means).

``outcome_bounds`` reads the rows, and computes all numbers once for the sample and once for each
resample (``_rate_bounds``), as :mod:`skfair.metrics.proxy_bounds` does for unknown groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import check_random_state

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, FloatArray, IntArray, Seed
from skfair.groups.cohort import cohort_of
from skfair.groups.cohort_calls import spreads_cohort
from skfair.groups.cohort_rows import value_rows
from skfair.groups.declared_rates import rates_of
from skfair.groups.labels import positive_codes
from skfair.groups.measured_rows import Columns
from skfair.metrics.disparity_tests import MeasuredConstraint
from skfair.metrics.proxy_bounds import difference_of, resamples, widened
from skfair.utils.factorize import Factorized, factorize
from skfair.utils.validation import check_labels, one_dimensional

if TYPE_CHECKING:
    import pandas as pd


@spreads_cohort
def outcome_bounds(
    metric: str | MeasuredConstraint | Callable[..., float],
    y_true: ColumnLike,
    y_pred: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnLike | None = None,
    units: ColumnLike | None = None,
    pos_label: ClassLabel = None,
    pos_label_true: ClassLabel = None,
    confidence: float = 0.95,
    n_bootstrap: int = 200,
    random_state: Seed = 0,
) -> pd.DataFrame:
    r"""Bound the true disparity if outcomes are missing, for example those of rejected people.

    If a loan was refused, nobody knows whether it would have been repaid (selective labels). Rates
    such as the true positive rate then cannot be computed, because all rows with a known outcome
    have the same decision. The bounds hold whatever the missing outcomes are.

    Parameters
    ----------
    metric : str, constraint or metric
        The disparity to bound. It must be a difference of rates of labels, such as
        ``"equal_opportunity"``, ``"equalized_odds"`` or ``"predictive_parity"``.
    y_true : array-like of shape (n_samples,)
        True labels, with None or NaN for all rows whose outcome is not known.
    y_pred : array-like of shape (n_samples,)
        Predicted labels or decisions of all rows, including the rows without an outcome.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        The group of each row. With several attributes, groups are their intersections.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.
    units : array-like of shape (n_samples,), default=None
        Labels of rows that belong together, for example the person behind each visit. Units are
        then resampled with all of their rows. Without ``units``, every row is treated as a
        different person.
    pos_label : label, default=None
        The class that counts as positive. It may be None if the labels are 0 and 1, -1 and 1, or
        booleans. It is required for other labels, such as 1 and 2 or strings.
    pos_label_true : label, default=None
        The class of ``y_true`` that counts as positive, if its labels differ from the labels of
        ``y_pred``. For example, loans that are "granted" may later be "repaid".
    confidence : float, default=0.95
        Confidence level at which the true difference of the population lies between ``lower_low``
        and ``upper_high``.
    n_bootstrap : int, default=200
        Number of resamples of the rows, which must be at least 20.
    random_state : int, RandomState instance or None, default=0
        Seed of the resampling.

    Returns
    -------
    bounds : DataFrame
        Table with one row for each rate and pair of groups. ``lower`` and ``upper`` bound the rate
        of the ``first`` group minus the rate of the ``second`` in this sample, and ``lower_low``
        and ``upper_high`` bound the true difference in the population. ``width`` is ``upper_high``
        minus ``lower_low``. ``first_lower`` and ``first_upper`` bound the rate of the first group
        in this sample, and ``second_lower`` and ``second_upper`` that of the second.

    See Also
    --------
    disparity_bounds : Bounds if outcomes are known, and groups only by probability.

    Notes
    -----
    Nothing is assumed about the missing outcomes, so the bounds are wide if many are missing. They
    become narrow only if some outcomes of both decisions are known, for example because a random
    part of the rejected people is accepted. If no outcome is missing, ``lower`` and ``upper`` are
    the difference itself. Confidence limits use the basic (reverse percentile) bootstrap. Each
    resample costs O(n).

    References
    ----------
    Lakkaraju, Kleinberg, Leskovec, Ludwig and Mullainathan (2017), The selective labels problem:
    evaluating algorithmic predictions in the presence of unobservables, KDD; Manski (1989),
    Anatomy of the selection problem, Journal of Human Resources 24.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.metrics import outcome_bounds
    >>> repaid = [1, 1, 0, None] * 100
    >>> granted, sex = [1, 1, 1, 0] * 100, ["f"] * 200 + ["m"] * 200
    >>> bounds = outcome_bounds("equal_opportunity", repaid, granted, sensitive_features=sex)
    >>> bounds[["first", "first_lower", "first_upper", "lower", "upper"]].round(2).values.tolist()
    [['f', 0.67, 1.0, -0.33, 0.33]]
    """
    import pandas as pd

    given = y_true, y_pred, sensitive_features, sample_weight
    spec = difference_of("outcome_bounds", metric, confidence, n_bootstrap, *given)

    def values_of(own: Columns) -> IntArray:
        return _outcomes(own["y_true"], own["y_pred"], pos_label, pos_label_true)

    people = cohort_of(
        y_true, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight
    )
    rows = value_rows(people, values_of, ("y_true", "y_pred"), units=units, each_row=True)
    n, cells = rows.values.size, rows.groups.cells
    weights = np.ones(n) if rows.weights is None else rows.weights
    codes, names = 6 * cells.codes[0] + rows.values, np.array(cells.names)
    first, second = np.triu_indices(names.size, 1)
    if not first.size:
        raise ValueError(
            f"sensitive_features has the group {cells.names[0]!r} only, so there is nothing to "
            "compare. Pass the rows of all groups."
        )

    def bounds_of(own: FloatArray) -> FloatArray:
        """Return the lower and upper bounds of all rates, (2, n_rates, n_groups)."""
        counts = np.bincount(codes, own, 6 * names.size).reshape(-1, 3, 2).astype(np.float64)
        return np.stack([_rate_bounds(counts, rate) for rate in spec.rates], axis=1)

    def differences(bounds: FloatArray) -> FloatArray:
        """Return the lower and upper bounds of all differences, (2, n_rates * n_pairs)."""
        low, high = bounds
        sides = low[:, first] - high[:, second], high[:, first] - low[:, second]
        return np.stack([side.ravel() for side in sides])

    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    picks = resamples(rows.units, n, n_bootstrap, rng)
    draws = np.stack([differences(bounds_of(weights * picked)) for picked in picks], axis=1)
    own = bounds_of(weights)
    table = {
        "rate": np.repeat(spec.rates, first.size),
        "first": np.tile(names[first], len(spec.rates)),
        "second": np.tile(names[second], len(spec.rates)),
        **widened(differences(own), draws, 0.5 * (1 - confidence)),
    }
    for side, places in (("first", first), ("second", second)):
        for end, values in zip(("lower", "upper"), own, strict=True):
            table[f"{side}_{end}"] = values[:, places].ravel()
    return pd.DataFrame(table)


def _outcomes(
    y_true: ColumnLike, y_pred: ColumnLike, pos_label: ClassLabel, pos_label_true: ClassLabel
) -> IntArray:
    """Return twice the true class plus the predicted class; the true class 2 is not known."""
    predicted = check_labels(y_pred, "y_pred")
    true = factorize(one_dimensional(y_true, "y_true", predicted.codes.size))
    is_known = true.codes >= 0
    known, outcomes = Factorized(true.codes[is_known], true.levels), np.full(is_known.size, 2)
    if pos_label_true is not None:
        outcomes[is_known] = positive_codes(known, "y_true", pos_label_true)
        return 2 * outcomes + positive_codes(predicted, "y_pred", pos_label)
    if known.levels:
        outcomes[is_known] = positive_codes(known, "y_true", pos_label, predicted.levels)
    return 2 * outcomes + positive_codes(predicted, "y_pred", pos_label, known.levels)


def _rate_bounds(counts: FloatArray, rate: str) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest rate of each group over all possible outcomes.

    ``counts`` (n_groups, 3, 2) has the weights by true class (the third is not known) and
    predicted class. In each of the four tables, the unknown rows of each predicted class are all
    negative or all positive.
    """
    known, unknown = counts[:, :2], counts[:, 2]
    tables = []
    for are_positive in np.ndindex(2, 2):
        added = np.stack([unknown * (1 - np.array(are_positive)), unknown * are_positive], axis=1)
        tables.append(rates_of(known + added, rate))
    low, high = np.fmin.reduce(tables), np.fmax.reduce(tables)
    return np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)
