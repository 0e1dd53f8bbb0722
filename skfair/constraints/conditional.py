"""A constraint within the levels of an allowed attribute, such as the department.

:class:`ConditionalOn` wraps another constraint. Its methods and properties return what those of the
wrapped constraint return, and :meth:`ConditionalOn.prepare` binds that constraint within each
stratum.
"""

from __future__ import annotations

from typing import Any

from skfair.constraints.base import CONSTRAINTS, Constraint, TrainingRows, bind, make_constraints
from skfair.constraints.bound import BoundConstraint
from skfair.constraints.cells import Subset
from skfair.constraints.comparisons import Comparison
from skfair.constraints.moments import Moment
from skfair.losses import Loss


class ConditionalOn(Constraint):
    """Constraint that must hold within each stratum, such as within each department.

    The strata are the levels of the ``control_features`` that are passed to ``fit``. The disparity
    is the largest one over the strata. It is measured by the metric of the constraint with the same
    ``control_features``. In each stratum, only groups that have rows there are compared, so a
    stratum with a single group is not constrained.

    Parameters
    ----------
    constraint : str or Constraint
        The constraint on rates, losses or scores, given by its name or as an object.
    max_disparity : float, default=None
        Limit of the disparity within strata, for a constraint without a limit of its own. If None,
        the limit of the constraint is used, or the limit of the estimator if the constraint has
        none.

    See Also
    --------
    DemographicParity : Constraint on the selection rates over all rows.

    Examples
    --------
    >>> from skfair.constraints import ConditionalOn
    >>> ConditionalOn("demographic_parity", max_disparity=0.05)
    ConditionalOn(constraint='demographic_parity', max_disparity=0.05)
    """

    # :meth:`prepare` checks the task of the wrapped constraint.
    tasks = frozenset({"classification", "regression"})
    within_strata = True

    def __init__(self, constraint: str | Constraint, max_disparity: float | None = None) -> None:
        self.constraint = constraint
        self.max_disparity = max_disparity

    def _inner(self) -> Constraint:
        """Return the wrapped constraint, without a check that the user has passed a constraint."""
        return (
            CONSTRAINTS[self.constraint]() if isinstance(self.constraint, str) else self.constraint
        )

    def _refused(self) -> ValueError:
        """Return the error to raise if a user passed a list, or anything else but a constraint."""
        return ValueError(
            f"ConditionalOn takes one constraint, got {self.constraint!r}. Use several."
        )

    @property
    def subset(self) -> str | Subset:  # type: ignore[override]
        """Rows that enter the rates, which are the same as for the constraint."""
        return self._inner().subset

    @property
    def counts_right(self) -> bool:  # type: ignore[override]
        """Whether the constraint counts correct predictions."""
        return self._inner().counts_right

    @property
    def depends_on_pos_label(self) -> bool:
        """Whether the constraint depends on which class is the positive one."""
        return self._inner().depends_on_pos_label

    @property
    def own_limit(self) -> Any:
        """Limit within strata, or the limit of the constraint, or None if neither has a limit."""
        # If the wrapped object is no constraint, ``compared`` raises the error that says so.
        of_inner = getattr(self._inner(), "own_limit", None)
        if self.max_disparity is None:
            return of_inner
        if of_inner is not None:
            raise ValueError(f"{self!r} has two limits. Pass max_disparity in one of the two.")
        return self.max_disparity

    @property
    def metric(self) -> str | None:
        """Name of the function of skfair.metrics that measures the constraint, or None."""
        return self._inner().metric

    def metric_options(  # noqa: D102 (inherited)
        self, loss: str | Loss, pos_label: object = None
    ) -> dict[str, Any]:
        return self._inner().metric_options(loss, pos_label)

    def compared(self) -> Comparison:  # noqa: D102 (inherited)
        inner = self._inner()
        if not isinstance(inner, Constraint):
            raise self._refused()
        return inner.compared()

    def moment(self, rows: TrainingRows) -> Moment:  # noqa: D102 (inherited)
        return self._inner().moment(rows)

    def prepare(  # noqa: D102 (inherited)
        self, rows: TrainingRows, max_disparity: float
    ) -> BoundConstraint:
        task = "regression" if rows.class_names is None else "classification"
        inner, *others = make_constraints(self.constraint, task)
        if others:
            raise self._refused()
        candidates = [self.max_disparity, inner.own_limit, max_disparity]
        limit = next(stated for stated in candidates if stated is not None)
        return bind(inner, rows, limit, within_strata=True)
