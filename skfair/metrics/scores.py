"""Group metrics of scores over their whole range: distributions, rankings and calibration.

Metrics of distributions and rankings sort the scores within each group once, O(n log n), as
``SortedScores``, and compare pairs of groups by merging (:mod:`skfair._kernels.sorted_pairs`),
O(n G) for all pairs of G groups. ``gap_of_pairs`` does this for each attribute and reduces the
pairs to one number. ``skfair/partial_parity/metrics.py`` does the same within percentile
intervals.

The *rank* of a threshold in a group is the share of the group that scores above it (Definition 4.1
of partial_fairness_idca). A row owns the ranks from the share of the group that scores above it to
this share with the row included. The length of this stretch is the *mass* of the row. Tied rows are
a *block*, and own their ranks together.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, FloatArray, IntArray
from skfair.groups.cohort import Cohort, cohort_of
from skfair.groups.cohort_calls import takes_cohort
from skfair.groups.cohort_rows import score_rows
from skfair.groups.compared_groups import Agg, Reference, ZeroDivision, aggregate
from skfair.groups.labels import warn_of_threshold
from skfair.groups.measured_rows import MeasuredRows
from skfair.metrics.docs import documented_gap, documented_gap_of_scores
from skfair.utils.threads import BLOCK, for_groups, over_blocks
from skfair.utils.validation import check_scores, one_dimensional

# Calibration errors are measured in this many bins of equal width. With ten bins, errors of
# opposite sign within a bin cancel more often. With forty, 1,000 rows give each bin a noise of
# about 0.08.
N_CALIBRATION_BINS = 20


class SortedScores:
    """Rows sorted by cell, and by descending score within each cell.

    A cell is a group, or the rows of one class in a group. Cell ``c`` occupies the positions
    ``starts[c]:starts[c + 1]``. By position, there are:

    - ``scores``, in descending order within each cell,
    - ``order``, the number of the row. It is None if there are no weights and ``keep_order`` is
      false, because then only the scores matter,
    - ``mass``, the share of the row in the weight of its cell,
    - ``rank``, the share of the cell up to this position, the row included. At the end of a block
      of ties it is the rank of a threshold just below their score.

    A ``level`` is a function of the rank, evaluated at each position, such as the part of an
    interval below the rank. Methods that compare two cells read it as a step function of the
    threshold. Their arguments ``first`` and ``second`` are the cells of each pair.
    """

    def __init__(
        self,
        scores: FloatArray,  # (n_samples,): the scores
        codes: IntArray,  # (n_samples,): the cell (group, or group and class) of each row
        n_cells: int,  # the number of cells; a cell may be empty
        weights: FloatArray | None = None,  # (n_samples,): sample weights
        *,
        keep_order: bool = False,
    ) -> None:
        # Kernels are imported on first use, because importing numba costs half a second.
        from skfair._kernels.sorted_pairs import counting_sort

        sizes = np.bincount(codes, minlength=n_cells)
        self.starts = np.concatenate(([0], np.cumsum(sizes)))
        self._by_cell, self._weights = np.empty(codes.size, np.int64), weights
        counting_sort(codes, self.starts, self._by_cell)
        self.rank = np.empty(codes.size)
        self._keeps_order = keep_order or weights is not None
        if weights is None:
            self.totals: FloatArray = sizes.astype(np.float64)
            self.mass = np.repeat(1 / np.maximum(self.totals, 1), sizes)
            self._each(self._count)
        else:
            self.totals = np.bincount(codes, weights=weights, minlength=n_cells).astype(float)
        self.sort(scores)

    def sort(self, scores: FloatArray) -> None:
        """Sort the rows by these scores, (n_samples,); ``__init__`` does it once."""
        self.scores = scores[self._by_cell]
        self.order = self._by_cell.copy() if self._keeps_order else None
        self._each(self._sort)
        if self._weights is not None:
            safe = np.where(self.totals > 0, self.totals, 1.0)
            self.mass = self._weights[self.order] / np.repeat(safe, np.diff(self.starts))
            self._each(self._add_up)

    def _each(self, function: Callable[[slice], None]) -> None:
        """Call a function for the positions of each cell that has rows; threads share them."""
        cells = [slice(i, j) for i, j in itertools.pairwise(self.starts.tolist()) if j > i]
        for_groups(function, cells, self._by_cell.size)

    def _sort(self, group: slice) -> None:
        """Sort the rows of a cell."""
        if self.order is None:  # values alone are several times faster to sort than an index
            self.scores[group] = -np.sort(-self.scores[group])
            return
        within = np.argsort(-self.scores[group], kind="stable")
        self.order[group] = self.order[group][within]
        self.scores[group] = self.scores[group][within]

    def _count(self, group: slice) -> None:
        """Rank the rows of a cell without weights: i / n is more exact than a sum of masses."""
        n = group.stop - group.start
        self.rank[group] = np.arange(1, n + 1) / n

    def _add_up(self, group: slice) -> None:
        """Rank the rows of a cell by their mass."""
        total = self.mass[group].cumsum()
        self.rank[group] = np.minimum(total / total[-1] if total[-1] else total, 1.0)

    def largest_gaps(self, level: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
        """Return the largest difference of the levels over thresholds, for each pair of cells."""
        from skfair._kernels.sorted_pairs import largest_gaps

        out = np.empty(first.size)

        def of_pairs(i: int, j: int) -> None:
            largest_gaps(self.scores, level, self.starts, first[i:j], second[i:j], out[i:j])

        # With few rows the kernel is called once for all pairs, which is faster than 64 calls.
        n_parts = 1 if self.scores.size < BLOCK else 64
        over_blocks(of_pairs, first.size, -(-first.size // n_parts) or 1)
        return out

    def areas_between(self, level: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
        """Return the area between the levels over thresholds, for each pair of cells."""
        from skfair._kernels.sorted_pairs import areas_between

        out = np.empty(first.size)
        areas_between(self.scores, level, self.starts, first, second, out)
        return out

    def win_rates(
        self, mass: FloatArray, first: IntArray, second: IntArray, tie_value: float
    ) -> FloatArray:
        """Return P(score of the first cell > score of the second) for each pair of cells.

        Rows are drawn by ``mass``, and a tie counts as ``tie_value``.
        """
        from skfair._kernels.sorted_pairs import win_rates

        out = np.empty(first.size)
        win_rates(self.scores, mass, self.starts, first, second, tie_value, out)
        return out

    def cell_of_position(self) -> IntArray:
        """Return the cell of each position."""
        return np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts))

    def ends_block(self, cells: IntArray) -> NDArray[np.bool_]:
        """Whether each position is the last of its block of ties."""
        is_last = np.ones(self.scores.size, bool)
        is_last[:-1] = (self.scores[1:] != self.scores[:-1]) | (cells[1:] != cells[:-1])
        return is_last

    def shared_mass(self, level: FloatArray, cells: IntArray) -> FloatArray:
        """Return the mass of each position inside a percentile interval.

        ``level`` is the mass inside the interval up to each position, and ``cells`` the cell of
        each position. The rise of the level over a block of ties is the mass of the block inside
        the interval, which is divided among its rows in proportion to their own mass.
        """
        is_last = self.ends_block(cells)
        block: IntArray = np.cumsum(is_last) - is_last  # the number of the block of each position
        # ``rise`` is how much the level rises over each block. Levels start from 0 in each cell, so
        # the rise over its first block is the level at the end of this block.
        rise = np.diff(level[is_last], prepend=0.0)
        block_cell = cells[is_last]
        new_cell = np.ones(block_cell.size, bool)
        new_cell[1:] = block_cell[1:] != block_cell[:-1]
        rise[new_cell] = level[is_last][new_cell]
        block_mass = np.bincount(block, weights=self.mass)
        with np.errstate(invalid="ignore"):
            density = np.where(block_mass > 0, rise / block_mass, 0.0)
        return np.asarray(self.mass * density[block])


# A tie counts as half a win ("half"), or as a win ("geq", which is >= in the papers' definitions).
Ties = Literal["half", "geq"]

_TIE_VALUES = {"half": 0.5, "geq": 1.0}


def gap_of_pairs(
    rows: MeasuredRows,
    values_of_pairs: Callable[[SortedScores, IntArray, IntArray, int], FloatArray],
    agg: Agg,
) -> float:
    """Sort the cells of each attribute, evaluate the pairs, and reduce all values to one number.

    ``values_of_pairs(sorted_scores, first, second, start)`` returns one value per pair. It is
    called once for each attribute, whose first cell has the number ``start`` among all cells. The
    cells in ``first`` and ``second`` are numbered within the attribute.
    """
    values = []
    for codes, start, stop, first, second in rows.groups.attributes():
        ordered = SortedScores(rows.values, codes, stop - start, rows.weights)
        values.append(values_of_pairs(ordered, first, second, start))
    return aggregate(np.concatenate(values), agg)


def rankable_rows(people: Cohort, intersectional: bool = True, **options: Any) -> MeasuredRows:
    """Read scores for metrics of ranks, and raise if they look like decisions.

    The arguments are those of ``Cohort.scores``.
    """
    rows = score_rows(people, intersectional, **options)
    y_score, name = rows.columns["y_score"], options.get("name", "y_score")
    low, high = rows.values.min(), rows.values.max()
    if options.get("threshold") == 0 and low > 0 and high <= 1:  # 0 is for decision functions
        warn_of_threshold(rows.values, 0.0)
    kind = getattr(getattr(one_dimensional(y_score, name), "dtype", None), "kind", "O")
    is_pair = rows.values.size > 2 and low < high
    if is_pair and kind in "biu" and np.all((rows.values == low) | (rows.values == high)):
        raise ValueError(
            f"{name} has the two values {low:g} and {high:g}, which look like decisions, but "
            "this metric compares scores. Pass the output of decision_function or predict_proba, "
            "or compare decisions by demographic_parity_difference."
        )
    return rows


@takes_cohort
@documented_gap_of_scores
def wasserstein_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    agg: Agg = "worst",
) -> float:
    r"""Compute the Wasserstein distance between the score distributions of groups (0 is parity).

    The distance is the area between the curves of selection rates over thresholds,

    .. math:: W_{k,k'} = \int |\bar F_k(\theta) - \bar F_{k'}(\theta)| \, d\theta

    It is measured in units of the score, and it equals the mean distance by which the scores of one
    group have to be moved to obtain the distribution of the other group.

    See Also
    --------
    statistical_parity_gap : Largest difference of selection rates over thresholds.
    skfair.constraints.scores.Wasserstein : The limit on it.

    Examples
    --------
    >>> from skfair.metrics import wasserstein_gap
    >>> wasserstein_gap(None, [0.1, 0.2, 0.3, 0.4], sensitive_features=["f", "f", "m", "m"])
    0.2
    """
    people = cohort_of(**locals())
    rows = score_rows(people, intersectional)
    return gap_of_pairs(rows, lambda s, i, j, _: s.areas_between(s.rank, i, j), agg)


@takes_cohort
@documented_gap_of_scores
def statistical_parity_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    agg: Agg = "worst",
) -> float:
    r"""Compute the largest difference of selection rates over all thresholds (0 is parity).

    The gap is 0 only if the scores have the same distribution in all groups, so that every
    threshold gives equal selection rates:

    .. math:: \max_\theta |\bar F_k(\theta) - \bar F_{k'}(\theta)|, \quad
              \bar F_k(\theta) = P(\text{score} > \theta \mid k)

    This is the Kolmogorov-Smirnov distance of the score distributions (distributional parity).

    See Also
    --------
    partial_statistical_parity_gap : The same gap within a percentile interval.

    Examples
    --------
    >>> from skfair.metrics import statistical_parity_gap
    >>> statistical_parity_gap(None, [0.1, 0.3, 0.2, 0.4], sensitive_features=["f", "f", "m", "m"])
    0.5
    """
    people = cohort_of(**locals())
    rows = score_rows(people, intersectional)
    return gap_of_pairs(rows, lambda s, i, j, _: s.largest_gaps(s.rank, i, j), agg)


@takes_cohort
@documented_gap_of_scores
def group_auc_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    ties: Ties = "half",
    agg: Agg = "worst",
) -> float:
    r"""Compute how far group AUCs are from one half (0 is parity).

    The group AUC is the probability that a random row of one group scores higher than a random row
    of another group:

    .. math:: |P(s \ge s' \mid k, k') - 1/2|

    This is equation (36) of partial_fairness_idca.

    See Also
    --------
    intra_group_pairwise_gap : Difference of the AUCs of groups.
    partial_group_auc_gap : The same gap within a percentile interval.

    Examples
    --------
    >>> from skfair.metrics import group_auc_gap
    >>> group_auc_gap(None, [0.1, 0.2, 0.3, 0.4], sensitive_features=["f", "f", "m", "m"])
    0.5
    """
    people = cohort_of(**locals())
    rows = score_rows(people, intersectional)
    return gap_of_pairs(rows, lambda s, i, j, _: auc_gaps(s, s.mass, i, j, ties), agg)


def auc_gaps(
    rows: SortedScores, mass: FloatArray, first: IntArray, second: IntArray, ties: Ties
) -> FloatArray:
    """Return |P(first outranks second) - 1/2| of each pair, with rows drawn by ``mass``.

    If ties count as wins, the order matters, and the larger value of both orders is returned.
    """
    tie_value = _tie_value(ties)
    gaps = np.abs(rows.win_rates(mass, first, second, tie_value) - 0.5)
    if ties == "half":
        return gaps
    return np.maximum(gaps, np.abs(rows.win_rates(mass, second, first, tie_value) - 0.5))


def expected_calibration_error(
    y_true: ColumnLike,
    y_score: ColumnLike,
    *,
    sample_weight: ColumnLike | None = None,
    pos_label: ClassLabel = None,
) -> float:
    r"""Compute the expected calibration error of predicted probabilities (0 is calibrated).

    The error is the mean distance between predicted probabilities and shares of positive rows,

    .. math:: \sum_b \frac{n_b}{n} |\bar y_b - \bar p_b|

    over 20 bins of equal width, where :math:`\bar y_b` is the share of positive rows in a bin and
    :math:`\bar p_b` is its mean probability. The metric does not take groups. Pass it to
    :func:`group_report` for the value of each group with a confidence interval, or to
    :func:`make_group_metric`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_score : array-like of shape (n_samples,)
        Probabilities of the positive class, as returned by ``predict_proba``.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows. A row of weight 2 is counted like two identical rows.
    pos_label : label, default=None
        The class that counts as positive. It may be None if the labels are 0 and 1, -1 and 1, or
        booleans. It is required for other labels, such as 1 and 2 or strings.

    Returns
    -------
    error : float
        The error, between 0 and 1. It is defined for any number of rows, but it increases by chance
        if bins have few rows: perfectly calibrated probabilities around 0.5 have an error of about
        :math:`0.4 / \sqrt{n_b}`.

    See Also
    --------
    calibration_difference : Compares the calibration errors of groups.
    skfair.inspection.GroupCalibrationDisplay : Calibration curve of each group.

    Examples
    --------
    >>> from skfair.metrics import expected_calibration_error, group_report
    >>> y_true, y_score, sex = [0, 1, 0, 0], [0.5, 0.5, 0.1, 0.3], ["f", "f", "m", "m"]
    >>> round(expected_calibration_error(y_true, y_score), 3)
    0.1
    >>> report = group_report(
    ...     y_true, [0, 1, 0, 0], y_score=y_score, sensitive_features=sex, method=None,
    ...     metrics={"ece": expected_calibration_error},
    ... )
    >>> report["ece"].round(3).to_dict()
    {'f': 0.0, 'm': 0.2, 'overall': 0.1}
    """
    everybody = np.zeros(check_scores(y_score).size, np.int64)
    rows = MeasuredRows.of_scores(y_score, y_true, everybody, None, sample_weight, each_row=True)
    return float(_calibration_errors(rows, pos_label)[0, 0])


@takes_cohort
@documented_gap
def calibration_difference(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    pos_label: ClassLabel = None,
    reference: Reference = "pairwise",
    agg: Agg = "worst",
) -> float:
    r"""Compute the difference of expected calibration errors between groups (0 is parity).

    The expected calibration error of a group is the mean distance between predicted probabilities
    and shares of positive rows over 20 bins of equal width (see
    :func:`expected_calibration_error`). It increases by chance if rows are few, so the error of a
    small group usually exceeds the error of a large group. Compare the value with
    :func:`noise_floor`.

    Two groups that are both badly calibrated, even in opposite directions, may have the same error.
    ``make_group_metric(expected_calibration_error, compare="largest")`` gives the error of the
    worst group, and :func:`mean_residual_difference` shows by how much the probabilities of one
    group are too high compared with another group.

    Parameters
    ----------
    y_score : array-like of shape (n_samples,)
        Probabilities of the positive class, as returned by ``predict_proba``.

    Returns
    -------
    difference : float
        The difference, which is at least 0 (smaller is fairer). It is signed if ``reference`` is a
        group. With a single group there is nothing to compare, and an error is raised.

    See Also
    --------
    skfair.inspection.GroupCalibrationDisplay : Calibration curve of each group.

    Examples
    --------
    >>> from skfair.metrics import calibration_difference
    >>> y_true, y_score, sex = [0, 1, 0, 0], [0.5, 0.5, 0.1, 0.3], ["f", "f", "m", "m"]
    >>> calibration_difference(y_true, y_score, sensitive_features=sex)
    0.2
    """
    people = cohort_of(**locals())
    rows = score_rows(people, intersectional, labels=("y_true",))
    errors = _calibration_errors(rows, people.pos_label)
    return aggregate(rows.groups.differences(*errors, reference=reference), agg)


def outcomes_of_probabilities(rows: MeasuredRows, pos_label: ClassLabel) -> IntArray:
    """Return which rows are positive (1 or 0); raise unless the scores lie between 0 and 1."""
    low, high = rows.values.min(), rows.values.max()
    if low < 0 or high > 1:
        raise ValueError(
            f"y_score has values from {low:g} to {high:g}, but calibration needs "
            "probabilities from 0 to 1. Pass the output of predict_proba."
        )
    return rows.positive(pos_label)


def _calibration_errors(rows: MeasuredRows, pos_label: ClassLabel) -> FloatArray:
    """Return the calibration error of each cell, and of its whole stratum: (2, n_cells).

    For each bin, w (y - p) is added up over its rows (weight w, outcome y, probability p). The
    error is the sum of the absolute values of these sums, divided by the total weight.
    """
    positive = outcomes_of_probabilities(rows, pos_label)
    bins = np.minimum((rows.values * N_CALIBRATION_BINS).astype(np.int64), N_CALIBRATION_BINS - 1)
    weights, cells = np.ones(bins.size) if rows.weights is None else rows.weights, rows.groups.cells
    apart = cells.cross_counts(bins, N_CALIBRATION_BINS, weights * (positive - rows.values))
    sums = np.column_stack([apart, cells.sums(weights)])
    parts = np.stack([sums, rows.groups.peer_sums(sums)])
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(parts[..., :-1]).sum(axis=-1) / parts[..., -1])


@takes_cohort
@documented_gap
def inter_group_pairwise_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    ties: Ties = "half",
    pos_label: ClassLabel = None,
    agg: Agg = "worst",
    zero_division: ZeroDivision = "raise",
) -> float:
    r"""Compute the difference of cross-group AUCs, which show ranking errors (0 is parity).

    A cross-group AUC is the probability that a positive row of one group scores higher than a
    negative row of the other group. The gap is the difference of the two cross-group AUCs of a
    pair:

    .. math:: |P(s^+_k \ge s^-_{k'}) - P(s^+_{k'} \ge s^-_k)|

    where :math:`s^+_k` is the score of a random positive row of group k, and :math:`s^-_k` is the
    score of a random negative row. This is equation (104) of partial_fairness_idca.

    See Also
    --------
    intra_group_pairwise_gap : Compares pairs of rows of one group.
    group_auc_gap : Compares rows of two groups, whatever their labels.

    Examples
    --------
    >>> from skfair.metrics import inter_group_pairwise_gap
    >>> y_true, y_score = [0, 1, 0, 1], [0.1, 0.3, 0.2, 0.4]
    >>> inter_group_pairwise_gap(y_true, y_score, sensitive_features=["f", "f", "m", "m"])
    0.0
    """
    people = cohort_of(**locals())
    rows = score_rows(people, intersectional, labels=("y_true",))
    positive = rows.positive(people.pos_label)
    return _pairwise_gap(rows, positive, ties, agg, zero_division, across=True)


@takes_cohort
@documented_gap
def intra_group_pairwise_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    ties: Ties = "half",
    pos_label: ClassLabel = None,
    agg: Agg = "worst",
    zero_division: ZeroDivision = "raise",
) -> float:
    r"""Compute the difference of the areas under the ROC curve within groups (0 is parity).

    The area of a group is the probability that a random positive row of the group scores higher
    than a random negative row of the same group:

    .. math:: |P(s^+_k \ge s^-_k) - P(s^+_{k'} \ge s^-_{k'})|

    This is equation (106) of partial_fairness_idca.

    See Also
    --------
    inter_group_pairwise_gap : Compares pairs of rows of two groups.
    group_auc_gap : Compares rows of two groups, whatever their labels.

    Examples
    --------
    >>> from skfair.metrics import intra_group_pairwise_gap
    >>> y_true, y_score = [0, 1, 1, 0], [0.1, 0.3, 0.2, 0.4]
    >>> intra_group_pairwise_gap(y_true, y_score, sensitive_features=["f", "f", "m", "m"])
    1.0
    """
    people = cohort_of(**locals())
    rows = score_rows(people, intersectional, labels=("y_true",))
    positive = rows.positive(people.pos_label)
    return _pairwise_gap(rows, positive, ties, agg, zero_division, across=False)


def _pairwise_gap(
    rows: MeasuredRows,
    positive: IntArray,
    ties: Ties,
    agg: Agg,
    zero_division: ZeroDivision,
    *,
    across: bool,
) -> float:
    """Compare the win rates of positives over negatives, across two groups or within each.

    Each cell c is split by class into part 2 c (negatives) and part 2 c + 1 (positives).
    """
    tie_value = _tie_value(ties)
    totals = rows.groups.cells.cross_counts(positive, 2, rows.weights)
    totals[totals == 0] = np.nan  # NaN means undefined, for check_class
    for label in (0, 1):
        groups = rows.groups
        groups.check_class(totals[:, label], groups.compared, bool(label), zero_division)
    gaps = []
    for codes, start, stop, i, j in rows.groups.attributes():
        parts = 2 * codes + positive
        by_class = SortedScores(rows.values, parts, 2 * (stop - start), rows.weights)

        def wins(of: IntArray, over: IntArray, by_class: SortedScores = by_class) -> FloatArray:
            """Return P(positive of one cell > negative of another)."""
            return by_class.win_rates(by_class.mass, 2 * of + 1, 2 * over, tie_value)

        if across:
            first, second = wins(i, j), wins(j, i)
        else:
            every = np.arange(stop - start)
            within = wins(every, every)
            first, second = within[i], within[j]
        is_empty = np.any(np.isnan(totals[start:stop]), axis=1)
        gaps.append(np.where(is_empty[i] | is_empty[j], np.nan, np.abs(first - second)))
    return aggregate(np.concatenate(gaps), agg, zero_division)


def _tie_value(ties: Ties) -> float:
    if not isinstance(ties, str) or ties not in _TIE_VALUES:
        raise ValueError(f"ties must be 'half' or 'geq', got {ties!r}.")
    return _TIE_VALUES[ties]
