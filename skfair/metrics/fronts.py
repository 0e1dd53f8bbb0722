"""Compare trade-off fronts of clusterings: points with a cost (smaller is better) and a balance.

A point dominates another one when it costs no more, is no less balanced, and differs in one of the
two. The quality of a whole front is measured by the area that it dominates (hypervolume).
Everything here needs one sort and a running maximum: sorted by cost, a point is nondominated if its
balance is above the best one so far.

Any two criteria will do, one to be minimised and one to be maximised. For two costs pass the
negative of one of them: ``FairnessPath`` of the core finds the nondominated models by it.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, validate_parameter_constraints

from skfair._typing import FloatArray
from skfair.utils.validation import check_scores, one_dimensional


def nondominated(costs: Any, balances: Any) -> NDArray[np.bool_]:
    """Mark the points that no other point dominates.

    A point is dominated if another one costs no more, is no less balanced, and is strictly better
    in at least one of the two. If several points are equal, only the first is kept.

    Parameters
    ----------
    costs : array-like of shape (n_points,)
        Cost of each point (smaller is better).
    balances : array-like of shape (n_points,)
        Balance of each point (larger is better).

    Returns
    -------
    mask : ndarray of bool of shape (n_points,)
        Mask that is True for the points of the front.

    See Also
    --------
    hypervolume : The area that a front dominates.

    Notes
    -----
    O(m log m) for m points.

    Examples
    --------
    >>> from skfair.metrics import nondominated
    >>> nondominated([1.0, 2.0, 2.0, 3.0], [0.2, 0.5, 0.1, 0.5])
    array([ True,  True, False, False])
    """
    cost, balance = _read_front(costs, balances)
    # Points are sorted by cost, and points of equal cost by balance, the best one first. The sort
    # is stable, so the first of several equal points is marked.
    order = np.lexsort((-balance, cost))
    best = np.maximum.accumulate(balance[order])
    improves = np.ones(order.size, dtype=np.bool_)
    improves[1:] = best[1:] > best[:-1]
    mask = np.empty(order.size, dtype=np.bool_)
    mask[order] = improves
    return mask


def hypervolume(
    costs: Any,
    balances: Any,
    *,
    ref_cost: float,
    ref_balance: float = 0.0,
    ideal_cost: float | None = None,
    ideal_balance: float | None = None,
) -> float:
    r"""Compute the area that a front dominates, up to a reference point.

    The area grows if points have a lower cost or a higher balance, so it measures the quality of a
    whole front:

    .. math:: \left| \bigcup_i [f_i, f_{ref}] \times [b_{ref}, b_i] \right|,

    for points of cost :math:`f_i` and balance :math:`b_i`. If an ideal point is given, the area is
    divided by the area of the box between both points, so that the value is 1 for a front that
    contains the ideal point.

    Parameters
    ----------
    costs : array-like of shape (n_points,)
        Cost of each point (smaller is better).
    balances : array-like of shape (n_points,)
        Balance of each point (larger is better).
    ref_cost : float
        Cost beyond which points do not count. Examples are the cost of a single cluster, or twice
        the cost of k-means, which separates good fronts more clearly.
    ref_balance : float, default=0.0
        Balance below which points do not count.
    ideal_cost : float, default=None
        Smallest cost that can be reached, for example the cost of k-means.
    ideal_balance : float, default=None
        Largest balance that can be reached, for example the balance of the whole sample. Pass both
        ideals or none.

    Returns
    -------
    area : float
        The dominated area (larger is better). With an ideal point it lies between 0 and 1. It is 0
        for a front without points.

    See Also
    --------
    nondominated : The points that form the front.

    Notes
    -----
    O(m log m) for m points. Dominated points and duplicates do not change the value. Points that
    are worse than the reference in cost or in balance do not contribute. Points that are better
    than the ideal count as if they lay on the edge of the box, so the value never exceeds 1.

    Examples
    --------
    >>> from skfair.metrics import hypervolume
    >>> hypervolume([1.0, 2.0], [0.5, 1.0], ref_cost=3.0)
    1.5
    >>> hypervolume(
    ...     [1.0, 2.0], [0.5, 1.0], ref_cost=3.0, ideal_cost=1.0, ideal_balance=1.0
    ... )
    0.75
    """
    cost, balance = _read_front(costs, balances)
    references = {"ref_cost": ref_cost, "ref_balance": ref_balance}
    ideals = {"ideal_cost": ideal_cost, "ideal_balance": ideal_balance}
    finite = Interval(Real, None, None, closed="neither")
    validate_parameter_constraints(
        {name: [finite, None] if name in ideals else [finite] for name in references | ideals},
        references | ideals,
        caller_name="hypervolume",
    )
    inside = (cost < ref_cost) & (balance > ref_balance)
    cost, balance = cost[inside], balance[inside]
    if ideal_cost is None and ideal_balance is None:
        return _area(cost, balance, ref_cost, ref_balance)
    if ideal_cost is None or ideal_balance is None:
        raise ValueError(
            f"ideal_cost and ideal_balance go together, got ideal_cost={ideal_cost!r} and "
            f"ideal_balance={ideal_balance!r}. Pass both to normalise, or none."
        )
    if not (ideal_cost < ref_cost and ref_balance < ideal_balance):
        raise ValueError(
            "The ideal must be better than the reference in both criteria, got "
            f"ideal_cost={ideal_cost!r} for ref_cost={ref_cost!r} and "
            f"ideal_balance={ideal_balance!r} for ref_balance={ref_balance!r}. Pass an "
            "ideal_cost below ref_cost and an ideal_balance above ref_balance."
        )
    cost, balance = np.maximum(cost, ideal_cost), np.minimum(balance, ideal_balance)
    box = (ref_cost - ideal_cost) * (ideal_balance - ref_balance)
    return min(1.0, _area(cost, balance, ref_cost, ref_balance) / box)  # rounding may give more


def _read_front(costs: Any, balances: Any) -> tuple[FloatArray, FloatArray]:
    """Return costs and balances as float64 arrays of one length; NaN and infinity raise."""
    cost, balance = (
        check_scores(values, name)
        if len(one_dimensional(values, name, may_be_empty=True))
        else np.empty(0)
        for values, name in ((costs, "costs"), (balances, "balances"))
    )
    if cost.size != balance.size:
        raise ValueError(
            f"costs has {cost.size} points but balances has {balance.size}. Pass one cost and one "
            "balance per point."
        )
    return cost, balance


def _area(cost: FloatArray, balance: FloatArray, ref_cost: float, ref_balance: float) -> float:
    """Return the dominated area of points that are better than the reference point.

    It is the sum of slabs between neighbouring costs, each as high as the best balance so far.
    """
    order = np.argsort(cost)
    heights = np.maximum.accumulate(balance[order]) - ref_balance
    widths = np.diff(cost[order], append=ref_cost)
    return float(widths @ heights)
