"""The parameters of ConstrainedERMClassifier and ConstrainedERMRegressor, read once for a fit.

``ConstrainedERMBase._settings`` fills :class:`Settings` from the attributes of the same names. The
other files of this folder read it instead of the estimator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skfair._typing import Seed
from skfair.constraints.base import Constraint
from skfair.estimators.certificate import Certificate
from skfair.groups.limits import DEFAULT_LIMIT, Limit
from skfair.losses import Loss
from skfair.models.choice import ChosenModel
from skfair.solvers.base import Solver

# Types of the parameters: users may pass names, objects, or several constraints.
ConstraintChoice = str | Constraint | Sequence[str | Constraint]
LossChoice = str | Loss
SolverChoice = str | Solver


@dataclass(frozen=True, eq=False)
class Settings:
    """The parameters of one fit."""

    is_classifier: bool
    constraint: ConstraintChoice
    max_disparity: Limit | None  # the user's parameter, see ``limit``
    enforce: str  # "strict", "strict_loss" (classifiers) or "surrogate"
    certificate: float | Certificate | None
    model: ChosenModel  # the kind of score model
    loss: LossChoice
    alpha: float | None  # weight of the penalty; None for the default, see penalty_of
    fit_intercept: bool
    solver: SolverChoice
    max_iter: int | None
    tol: float
    random_state: Seed
    # Classifiers only
    min_rate: Any = None
    selection_rate: Any = None
    class_weight: Mapping[Any, float] | str | None = None

    @property
    def limit(self) -> Limit:
        """The limit of constraints without one of their own, in the user's units."""
        return DEFAULT_LIMIT if self.max_disparity is None else self.max_disparity

    @property
    def is_logistic_regression(self) -> bool:
        """Whether scikit-learn's LogisticRegression fits the same model without limits."""
        asked = self.loss, self.solver, self.enforce, self.class_weight
        return self.model.is_linear and asked == ("log_loss", "auto", "strict", None)
