"""The parameter ``objective=`` of FairDecisionClassifier: the metric that decisions maximise.

Users write an :class:`Objective`. :func:`goal_of` turns it into a :class:`Goal` for the classes of
given rows, which the bind and solve steps of ``estimators/decisions`` read. Tables of *shares of
the rows (true, decided)*, as in this file, are confusion matrices with a sum of 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray, MatrixLike
from skfair.enforcement.decisions.levels import shares_of
from skfair.groups.declared_rates import entries
from skfair.utils.text import did_you_mean, listed, settings_repr
from skfair.utils.validation import check_number

Measure: TypeAlias = (
    Literal["accuracy", "balanced_accuracy", "f1", "mcc", "precision_at_recall"]
    | MatrixLike
    | Callable[[float, float, float, float], float]
)
# Numerator and denominator of ratios, as sums of entries of the confusion matrix.
_RATIOS = {"f1": ("tp tp", "fp fn tp tp"), "precision_at_recall": ("tp", "fp tp")}
_NAMES = ("accuracy", "balanced_accuracy", *_RATIOS, "mcc")


@dataclass(frozen=True, repr=False)
class Objective:
    """The metric that decisions maximise.

    Pass the name of a metric (``objective="f1"``), a cost matrix or a function to an estimator, or
    an ``Objective`` to set a minimum value or a recall.

    Parameters
    ----------
    measure : str, array-like of shape (n_classes, n_classes) or callable, default="accuracy"
        The metric to maximise.

        - A name is one of "accuracy", "balanced_accuracy" (the mean recall of the classes), "f1",
          "mcc" (the Matthews correlation coefficient) and "precision_at_recall".
        - An array holds the cost of each decision (column) for each true class (row), with the
          classes in sorted order. The mean cost is minimised.
        - A function is called as ``function(tn, fp, fn, tp)`` with the entries of the confusion
          matrix as fractions of all rows. Greater values are better, and NaN is the worst.

        "f1", "mcc", "precision_at_recall" and functions require two classes.
    at_least : float, default=None
        Minimum value of the metric on the training rows. The decisions reach it at the smallest
        possible disparity, so ``max_disparity`` is left out. For a cost matrix, the value is
        minus the mean cost. If None, the best value within the limits is found.
    recall : float, default=None
        Minimum recall for "precision_at_recall", which requires it.

    See Also
    --------
    skfair.Certificate : Options of limits that are certified for the population.

    Examples
    --------
    The smallest disparity is found at which the accuracy is at least 0.7.

    >>> import numpy as np
    >>> from skfair import Objective
    >>> from skfair.classification import FairDecisionClassifier
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 600)
    >>> X = rng.normal(size=(600, 3)) + (sex == "m")[:, None] * [1, 0, 0]
    >>> y = X[:, 0] + X[:, 1] + rng.normal(size=600) > 0.5
    >>> objective = Objective("accuracy", at_least=0.7)
    >>> model = FairDecisionClassifier(max_disparity=None, objective=objective)
    >>> model = model.fit(X, y, sensitive_features=sex)
    >>> print(f"accuracy {model.train_objective_:.2f}, disparity {model.train_disparity_:.2f}")
    accuracy 0.71, disparity 0.00
    """

    measure: Measure = "accuracy"
    at_least: float | None = None
    recall: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.measure, str) and self.measure not in _NAMES:
            raise ValueError(
                f"objective must be one of {listed(_NAMES)}, a cost matrix or a function of the "
                f"shares tn, fp, fn and tp, got {self.measure!r}."
                f"{did_you_mean(self.measure, _NAMES)}"
            )
        needs_recall = isinstance(self.measure, str) and self.measure == "precision_at_recall"
        if needs_recall and self.recall is None:
            raise ValueError(
                "precision_at_recall needs a recall: pass "
                "objective=Objective('precision_at_recall', recall=0.8)."
            )
        if self.recall is not None:
            check_number(self.recall, "recall", 0, 1)
            if not needs_recall:
                raise ValueError("recall is for Objective('precision_at_recall', recall=...) only.")
        if self.at_least is not None:
            check_number(self.at_least, "at_least")

    @property
    def is_symmetric(self) -> bool:
        """Whether it does not matter which of two classes is the positive one."""
        has_name = isinstance(self.measure, str)
        return self.measure not in _RATIOS if has_name else not callable(self.measure)

    def __repr__(self) -> str:
        return settings_repr(self)


class Ratio(NamedTuple):
    """A ratio of two sums of shares of the rows (true, decided), such as the F1 score."""

    numerator: IntArray  # (2, 2): how often each share is added
    denominator: IntArray

    def utility(self, level: float) -> FloatArray:
        """Return the scaled utility whose sum is positive if the ratio is above ``level``."""
        return scaled(self.numerator - level * self.denominator)

    def value(self, table: FloatArray) -> float:
        """Return the ratio of shares of rows (true, decided); 0 if its denominator is 0."""
        total = float((table * self.denominator).sum())
        return float((table * self.numerator).sum()) / total if total > 0 else 0.0


class Goal(NamedTuple):
    """An objective for given classes. If there are two, the positive one is the last.

    If the value is linear in the shares, ``utility`` is set. Otherwise there are two classes, and
    ``ratio`` is set if the value is a ratio of linear functions.
    """

    value: Callable[[FloatArray], float]  # takes shares of rows (true, decided); larger is better
    # (n_classes, n_classes): utility of decisions (true, decided), scaled to [0, 1]; None if the
    # value is not linear
    utility: FloatArray | None
    ratio: Ratio | None = None
    recall: float | None = None  # the smallest recall allowed, which becomes a constraint
    at_least: float | None = None  # the value that must be reached at the smallest disparity
    unit: float = 1.0  # change of the value if the utility changes by 1
    name: str = ""  # name of the metric, for messages

    def of(self, codes: IntArray, weights: FloatArray, predicted: IntArray) -> float:
        """Return the value of decisions about rows: ``codes`` are true classes, by number."""
        n = 2 if self.utility is None else self.utility.shape[0]
        return self.value(shares_of(np.eye(n)[codes], weights, predicted))

    def rank(self, shares: FloatArray) -> float:
        """Return the value of shares of rows, or minus infinity if it is NaN."""
        value = self.value(shares)
        return -np.inf if np.isnan(value) else value


def check_swap(objective: Objective, max_disparity: Any, is_open: bool) -> None:
    """Raise if a limit is given beside ``Objective(at_least=)``.

    ``is_open`` says whether some constraint has no limit of its own.
    """
    if objective.at_least is not None and (max_disparity is not None or not is_open):
        raise ValueError(
            f"objective={objective!r} finds the smallest disparity, so no limit may be set: "
            f"leave max_disparity out (got {max_disparity!r}), and pass a constraint without a "
            "limit of its own."
        )


def goal_of(objective: Objective, classes: NDArray[Any], shares: NDArray[Any]) -> Goal:
    """Return the goal for classes (of two, the positive one last) with given shares of rows."""
    measure, n = objective.measure, classes.size
    name = measure if isinstance(measure, str) else ""
    if name == "accuracy":
        goal = Goal(lambda table: float(np.trace(table)), np.eye(n))
    elif name == "balanced_accuracy":
        has_rows = shares > 0  # only classes with rows count in the mean recall
        recall = np.divide(1.0, shares, out=np.zeros(n), where=has_rows) / has_rows.sum()
        unit = float(recall.max())
        utility = np.diag(recall / unit)
        goal = Goal(lambda table: float(np.diag(table) @ recall), utility, unit=unit)
    elif not name and not callable(measure):
        costs = read_costs(measure, np.argsort(classes))
        unit = float(np.ptp(costs)) or 1.0
        goal = Goal(lambda table: -float((table * costs).sum()), scaled(-costs), unit=unit)
    elif n > 2:
        raise ValueError(
            f"objective={measure!r} is for two classes, and y has {n}: {listed(classes.tolist())}. "
            "Use 'accuracy', 'balanced_accuracy' or a cost matrix."
        )
    elif callable(measure):
        goal = Goal(_own(measure), None)
    elif name == "mcc":
        goal = Goal(_mcc, None)
    else:
        ratio = Ratio(*map(entries, _RATIOS[name]))
        goal = Goal(ratio.value, None, ratio)
    said = name or ("costs" if goal.utility is not None else "function")
    return goal._replace(recall=objective.recall, at_least=objective.at_least, name=said)


def read_costs(matrix: Any, order: IntArray) -> FloatArray:
    """Check a cost matrix of sorted classes; return it for classes in another order.

    ``order[i]`` is the place of class i of the other order among the sorted ones.
    """
    n = order.size
    try:
        costs = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        costs = np.empty(0)
    if costs.shape != (n, n) or not np.isfinite(costs).all():
        raise ValueError(
            f"A cost matrix as objective must be {n} x {n} finite numbers, the cost of deciding "
            f"for a class (column) given the true one (row); got {matrix!r}."
        )
    return np.asarray(costs[np.ix_(order, order)])


def scaled(utility: FloatArray) -> FloatArray:
    """Return utilities scaled from 0 (the worst true class and decision) to 1 (the best)."""
    return np.asarray((utility - utility.min()) / (float(np.ptp(utility)) or 1.0))


def utility_at(level: float) -> FloatArray:
    """Return the (2, 2) utility whose best decisions select rows of probability above ``level``."""
    return np.diag([level, 1.0 - level]) / max(level, 1.0 - level)


def _mcc(table: FloatArray) -> float:
    ends = float(np.prod(table.sum(axis=0)) * np.prod(table.sum(axis=1)))
    # If all answers are equal, ``ends`` is 0, and the coefficient is 0 as in scikit-learn.
    return float(np.linalg.det(table)) / np.sqrt(ends) if ends > 0 else 0.0


def _own(function: Callable[..., Any]) -> Callable[[FloatArray], float]:
    def value(table: FloatArray) -> float:
        value = function(*table.ravel().tolist())
        try:
            return float(value)
        except (TypeError, ValueError):
            raise ValueError(
                "The function that is the objective must return a number for the shares "
                f"tn, fp, fn, tp; got {value!r}."
            ) from None

    return value
