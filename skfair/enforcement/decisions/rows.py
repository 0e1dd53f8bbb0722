r"""The constraints as linear inequalities in expected decisions, for the dual of ``dual.py``.

:class:`~skfair.enforcement.decisions.offsets.OffsetSearch` calls :func:`linear_rows`. The unknowns
are the weights M_fc of the rows that have the feature f = (group, stratum, true class) and get the
decision c. Counted values of a constraint are sums over rows of data, each with the effect of its
own decision. Here the effect is averaged over the rows with the same feature, which gives

.. math:: l \le C \, \mathrm{vec}(M) - Z r \le u

with one line for each inequality. The centres r are free numbers, from which some rates are
measured (:class:`skfair.constraints.comparisons.Pairwise`). The offsets of all features and classes
are C' times the multipliers of the lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from skfair._typing import FloatArray, IntArray
from skfair.constraints.bound import BoundConstraint
from skfair.enforcement.strict_evaluation import TRUE_CLASS, StrictEvaluation
from skfair.utils.rounding import ROUNDING

# The expected weight of a feature replaces the counted one, but changes it by this factor at most.
_MOST_OFF = 3.0


class Features(NamedTuple):
    """How features are numbered: by group, then stratum, then true class.

    Attributes
    ----------
    n_groups, n_strata, n_classes : int
        Numbers of groups, strata and true classes.
    everyone : ndarray
        The groups of one attribute. Each row is in one of them, so together they are all rows.
    order : ndarray, default=None
        All groups, in the order in which they are searched, which does not depend on their names.
        If None, they are searched in the order of their numbers.
    """

    n_groups: int
    n_strata: int
    n_classes: int
    everyone: IntArray
    order: IntArray | None = None

    @property
    def groups(self) -> IntArray:
        """All groups, in the order in which they are searched."""
        return np.arange(self.n_groups) if self.order is None else self.order

    def of(self, groups: IntArray) -> IntArray:
        """Return the features of some groups."""
        return (groups[:, None] * self.n_kinds + np.arange(self.n_kinds)).ravel()

    @property
    def n_kinds(self) -> int:
        """Number of features of a group; a *kind* is a stratum and a true class."""
        return self.n_strata * self.n_classes

    @property
    def size(self) -> int:
        return self.n_groups * self.n_kinds


class LinearRows(NamedTuple):
    """The lines ``lower <= matrix @ vec(M) - centers @ r <= upper`` of all constraints.

    Attributes
    ----------
    matrix : sparse array of shape (n_rows, n_features * n_classes)
        C: effect on each line of giving a decision to rows with a feature, per unit of weight.
    lower, upper : ndarray of shape (n_rows,)
        Bounds.
    fixed : ndarray of shape (n_rows,)
        Value of each line if nobody is selected. It has been subtracted from the bounds.
    centers : sparse array of shape (n_rows, n_centers)
        Z: 1 if a line is measured from a centre, which is chosen freely between 0 and 1.
    """

    matrix: sparse.csr_array
    lower: FloatArray
    upper: FloatArray
    fixed: FloatArray
    centers: sparse.csr_array


def linear_rows(
    strict: StrictEvaluation,
    features: Features,
    kinds: IntArray,
    means: Sequence[FloatArray],
    expected: FloatArray | None,
) -> LinearRows:
    """Return the rows of all constraints.

    Parameters
    ----------
    strict : StrictEvaluation
        The constraints and rows.
    features : Features
        How features are numbered.
    kinds : ndarray of shape (n_samples,)
        Stratum and true class of each row, as one number.
    means : sequence of ndarray
        Cell means of each constraint. Rates that are quotients are replaced by their linear
        approximation at these means.
    expected : ndarray of shape (n_features,) or None
        Sum of the shares of all rows in each feature. It differs from the counted weight of the
        feature, because shares are probabilities. Effects are divided by it, so that the same
        decision for everybody has the counted effect. If None, they are divided by the counted
        weight.

    Returns
    -------
    rows : LinearRows
        The lines of all constraints, one below the other.
    """
    parts = [_rows_of(strict, k, features, kinds, near, expected) for k, near in enumerate(means)]
    if not parts:
        nothing = sparse.csr_array((0, features.size * features.n_classes))
        return LinearRows(nothing, np.empty(0), np.empty(0), np.empty(0), sparse.csr_array((0, 0)))
    matrices, lower, upper, fixed, centers = zip(*parts, strict=True)
    return LinearRows(
        sparse.csr_array(sparse.vstack(matrices)),
        np.concatenate(lower),
        np.concatenate(upper),
        np.concatenate(fixed),
        sparse.csr_array(sparse.block_diag(centers, format="csr")),
    )


def _rows_of(
    strict: StrictEvaluation,
    k: int,
    features: Features,
    kinds: IntArray,
    near: FloatArray,
    expected: FloatArray | None,
) -> LinearRows:
    """Return the lines of constraint k; ``near`` are its cell means for linear approximations."""
    constraint = strict.rates.constraints[k]
    bound = constraint.bound
    rates, overall = bound.rates, bound.overall
    if bound.quotients is not None:
        rates, overall = _linear_near(bound, near)
    # The linear rates differ from exact quotients by a constant, so that they agree at ``near``.
    linear = bound.of_rates @ (rates @ near) + bound.of_overall @ (overall @ near)
    start = strict.rates.starts[k]
    fixed = bound.of_rates @ (rates @ start) + bound.of_overall @ (overall @ start)
    fixed = fixed + bound.row_values(near) - linear
    own = _effects(strict, k, rates, bound.rate_groups, features, kinds, expected)
    no_group = np.full(bound.rate_groups.size, -1)
    of_all = _effects(strict, k, overall, no_group, features, kinds, expected)
    effects = sparse.coo_array(bound.of_rates @ own + bound.of_overall @ of_all)
    row, feature = effects.coords
    true_class, counted = feature % features.n_classes, constraint.counted
    columns = feature * features.n_classes + (true_class if counted == TRUE_CLASS else counted)
    shape = (effects.shape[0], features.size * features.n_classes)
    which = np.flatnonzero(bound.centers >= 0)
    return LinearRows(
        sparse.csr_array((effects.data, (row, columns)), shape=shape),
        bound.lower - fixed,
        bound.upper - fixed,
        fixed,
        sparse.csr_array(
            (np.ones(which.size), (which, bound.centers[which])),
            shape=(shape[0], bound.n_centers),
        ),
    )


def _effects(
    strict: StrictEvaluation,
    k: int,
    rates: sparse.csr_array,
    groups: IntArray,
    features: Features,
    kinds: IntArray,
    expected: FloatArray | None,
) -> sparse.csr_array:
    """Return the effect of selecting rows with a feature on each rate, per unit of weight.

    ``rates`` R (n_rates, n_cells) makes rates of cell means. A cell holds the rows over which the
    constraint averages, such as the positives of a group. If S_cy is the sum of the steps of the
    rows of kind y in cell c, and W_ry their weight in all cells of rate r, the effect is

        sum_c R_rc S_cy / W_ry

    for the features (g, y) of group g = ``groups[r]``, or of all groups if that is -1. The result
    has the shape (n_rates, n_features).
    """
    n_kinds, n_cells = features.n_kinds, rates.shape[1]
    joint = strict.rates.cells[k] * n_kinds + kinds
    steps = np.bincount(joint, strict.rates.steps[k], n_cells * n_kinds).reshape(n_cells, n_kinds)
    counted = strict.weights * (strict.rates.steps[k] != 0)
    weights = np.bincount(joint, counted, n_cells * n_kinds).reshape(n_cells, n_kinds)
    members = sparse.csr_array((np.ones(rates.nnz), rates.indices, rates.indptr), rates.shape)
    total = members @ weights  # (n_rates, n_kinds): W
    # Approximations of quotients hold near given decisions only, so quotients keep the counted
    # weight.
    if expected is not None and strict.rates.bounds[k].quotients is None:
        by_group = expected.reshape(features.n_groups, n_kinds)
        of_everyone = by_group[features.everyone].sum(axis=0)
        likely = np.where((groups >= 0)[:, None], by_group[groups], of_everyone)
        total = np.clip(likely, total / _MOST_OFF, total * _MOST_OFF)
    effect = (rates @ steps) / np.where(total > 0, total, 1.0)
    # The result gets an entry for each (rate, group, kind). Rates of one group come first. Then
    # come rates of all rows, whose entries are repeated for each group.
    rate, kind = np.nonzero(effect)
    one_group = groups[rate] >= 0
    of_group = (rate[one_group], groups[rate[one_group]], kind[one_group])
    n_all = features.everyone.size
    of_all = (
        np.repeat(rate[~one_group], n_all),
        np.tile(features.everyone, int(np.count_nonzero(~one_group))),
        np.repeat(kind[~one_group], n_all),
    )
    row, group, kind = (np.concatenate(pair) for pair in zip(of_group, of_all, strict=True))
    return sparse.csr_array(
        (effect[row, kind], (row, group * n_kinds + kind)), shape=(rates.shape[0], features.size)
    )


def _linear_near(
    bound: BoundConstraint, near: FloatArray
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return linear approximations of rates and overall rates that are quotients.

    They are matrices (n_rates, n_cells) for cell means near the given ones. A quotient is a part
    divided by a total, such as the correct among the selected rows.
    """
    assert bound.quotients is not None
    linear = []
    for quotients in bound.quotients:
        total, part = quotients.totals @ near, quotients.sums @ near
        # Near a total of 0 the slope is infinite, so the total is assumed to be at least 5% of the
        # largest total.
        assumed = np.maximum(total, 0.05 * np.asarray(quotients.totals.sum(axis=1)).ravel())
        quotient = np.where(total > ROUNDING, part / np.maximum(total, ROUNDING), 0.5)
        linear.append(quotients.linear(assumed, quotient))
    return linear[0], linear[1]
