"""What a fairness rule is: cells of rows, what is averaged over a cell, and which averages differ.

Every rule of the package has the form

    lower <= B m <= upper,   m_c = mean over the rows of cell c of phi(score)

Cells are the atoms of the group algebra (crossed with the class where the rule needs it), so no row
is in two cells and the gradient of any combination of rules is one pull-back. B turns cell means
into rates of groups and compares them. ``phi`` is the *moment*: a sigmoid of the score for rates
(its *temperature* T makes it as steep as needed), the loss, or the score itself.

A rule is a subclass of :class:`Constraint` that says what is averaged (:meth:`Constraint.moment`)
and over which rows (``given``); :meth:`Constraint.prepare` does the rest and returns a
:class:`BoundConstraint`, all that problems and solvers see.

Pairwise rules on J > 2 groups of one attribute bound the largest minus the smallest rate. They cost
J rows, not J (J - 1) / 2: a *centre*, a parameter of its own, lies within half the bound of all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from skfair._typing import FloatArray
from skfair.constraints.bound import BoundConstraint, Comparison
from skfair.constraints.moments import Moment
from skfair.groups.encoding import GroupEncoding
from skfair.utils.registry import Registry

Given = Literal["all", "positive", "negative", "class"]

CONSTRAINTS: Registry[type[Constraint]] = Registry("constraint", "skfair.constraints")


class TrainingRows(NamedTuple):
    """What a rule may know of the training data.

    Attributes
    ----------
    groups : GroupEncoding
        The groups of the rows.
    targets : ndarray of shape (n_samples,)
        -1 and 1 for classification, real numbers for regression.
    sample_weight : ndarray of shape (n_samples,) or None
        Weights of the rows.
    loss : Loss
        The loss that is minimised (an object with ``parts`` and ``exact``).
    class_names : tuple or None
        Names of the negative and the positive class; None for regression.
    """

    groups: GroupEncoding
    targets: FloatArray
    sample_weight: FloatArray | None
    loss: Any
    class_names: tuple[Any, Any] | None


class Constraint(ABC, BaseEstimator):
    """A fairness rule, before it has seen data.

    Parameters
    ----------
    max_disparity : float, default=None
        The bound of this rule; None for that of the estimator.
    reference : {"pairwise", "overall"}, default="pairwise"
        What a group is compared with: the other groups of its attribute, or all rows.

    Attributes
    ----------
    given : {"all", "positive", "negative", "class"}
        Rows that count: all of them, those of one true class, or each class by itself.
    tasks : frozenset of {"classification", "regression"}
        Where the rule makes sense.

    Examples
    --------
    A rule of one's own, "as many of each group's negatives are rejected":

    >>> from skfair.constraints import Constraint
    >>> from skfair.constraints.moments import Rate
    >>> class RejectionParity(Constraint):
    ...     given = "negative"
    ...
    ...     def moment(self, rows):
    ...         return Rate(signs=rows.targets)  # counts negative predictions of negatives
    >>> RejectionParity(reference="overall")
    RejectionParity(reference='overall')
    """

    given: Given = "all"
    tasks: frozenset[str] = frozenset({"classification"})

    def __init__(
        self,
        max_disparity: float | None = None,
        reference: Literal["pairwise", "overall"] = "pairwise",
    ) -> None:
        self.max_disparity = max_disparity
        self.reference = reference

    @abstractmethod
    def moment(self, rows: TrainingRows) -> Moment:
        """Return what is averaged over the rows of a cell.

        Parameters
        ----------
        rows : TrainingRows
            Groups, targets, weights and loss.

        Returns
        -------
        moment : Moment
            A function of the scores.
        """

    @property
    def comparison(self) -> Comparison:
        """How the rates of groups become one number."""
        return self.reference

    def prepare(self, rows: TrainingRows, max_disparity: float) -> BoundConstraint:
        """Bind the rule to training rows.

        Parameters
        ----------
        rows : TrainingRows
            Groups, targets and weights.
        max_disparity : float
            The bound, unless the rule has its own.

        Returns
        -------
        bound : BoundConstraint
            Cells, moments and bounds.
        """
        bound = max_disparity if self.max_disparity is None else self.max_disparity
        if self.reference not in ("pairwise", "overall"):
            raise ValueError(f"reference must be 'pairwise' or 'overall', got {self.reference!r}.")
        if not isinstance(bound, Real) or not bound >= 0:
            raise ValueError(f"max_disparity must be >= 0, got {bound!r}.")
        bound_rule = _bind(self, rows, float(bound))
        if bound_rule.moment.is_rate and 1 < bound < np.inf:
            raise ValueError(
                f"max_disparity={bound:g} limits nothing: rates differ by at most 1. Pass a share, "
                "0.05 for 5 %."
            )
        return bound_rule


def _bind(rule: Constraint, rows: TrainingRows, max_disparity: float) -> BoundConstraint:
    """Split the rows into cells and say how their means become rates."""
    groups, weights = rows.groups, rows.sample_weight
    by_class = rule.given != "all"
    classes = (rows.targets > 0).astype(np.int64) if by_class else None
    split = groups.cells(classes, 2 if by_class else 1, weights)
    counted = [0] if not by_class else {"positive": [1], "negative": [0]}.get(rule.given, [0, 1])
    _check_cells(rule, rows, counted if by_class else None)
    is_counted = np.isin(split.classes, counted) & (split.weights > 0)
    number = np.cumsum(is_counted) - 1  # new number of each cell that counts
    cells = np.where(is_counted, number, 0)[split.codes]
    inverse = np.where(is_counted, 1 / np.where(is_counted, split.weights, 1.0), 0.0)
    row_weights = inverse[split.codes]
    if weights is not None:
        row_weights *= weights

    cell_weights = split.weights[is_counted]
    cell_classes = split.classes[is_counted]
    membership = sparse.csr_array(split.membership[:, is_counted]) * cell_weights[None, :]
    rates, overall, names, blocks = [], [], [], []
    for position, label in enumerate(counted):
        in_class = (cell_classes == label).astype(float)
        members = sparse.csr_array(membership * in_class[None, :])
        totals = np.asarray(members.sum(axis=1)).ravel()
        rates.append(sparse.diags_array(1 / np.where(totals > 0, totals, 1.0)) @ members)
        mean = sparse.csr_array((cell_weights * in_class / (cell_weights @ in_class))[None, :])
        overall.append(sparse.vstack([mean] * groups.n_groups))
        suffix = f", y={rows.class_names[label]}" if by_class and rows.class_names else ""
        names += [name + suffix for name in groups.names]
        blocks.append(groups.attribute_of_group + position * groups.n_attributes)
    return BoundConstraint(
        name=type(rule).__name__,
        moment=rule.moment(rows),
        cells=cells,
        row_weights=row_weights,
        rates=sparse.csr_array(sparse.vstack(rates)),
        overall=sparse.csr_array(sparse.vstack(overall)),
        rate_names=tuple(names),
        blocks=np.concatenate(blocks),
        comparison=rule.comparison,
        max_disparity=max_disparity,
    )


def _check_cells(rule: Constraint, rows: TrainingRows, counted: list[int] | None) -> None:
    """Raise if a group, or one of the group-class cells that count, is empty."""
    if counted is None or rows.class_names is None:
        rows.groups.check_nonempty(sample_weight=rows.sample_weight)
        return
    classes = (rows.targets > 0).astype(np.int64)
    rows.groups.check_nonempty(classes, rows.class_names, rows.sample_weight, counted)


def make_constraints(constraint: Any, task: str) -> list[Constraint]:
    """Return the rules that a user means by a name, a rule, or a list of them.

    Examples
    --------
    >>> from skfair.constraints.base import make_constraints
    >>> make_constraints(["demographic_parity", "equal_opportunity"], "classification")
    [DemographicParity(), EqualOpportunity()]
    """
    given = constraint if isinstance(constraint, list | tuple) else [constraint]
    if not given:
        raise ValueError(
            "constraint is an empty list, so nothing would be limited. Name a rule, or use a model "
            "of scikit-learn."
        )
    rules = [CONSTRAINTS[one]() if isinstance(one, str) else one for one in given]
    for rule in rules:
        if not isinstance(rule, Constraint):
            raise ValueError(
                f"constraint must be a name, a skfair.constraints.Constraint or a list of them, "
                f"got {rule!r}. A rule with a bound of its own is written "
                "DemographicParity(max_disparity=0.05)."
            )
        if task not in rule.tasks:
            fitting = [name for name in CONSTRAINTS if task in CONSTRAINTS[name].tasks]
            raise ValueError(
                f"constraint={rule!r} is not for {task}. Choose from {', '.join(fitting)}."
            )
    return rules
