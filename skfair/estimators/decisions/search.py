"""Searches of decisions that are best in an objective, or have the smallest disparity at one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.choose import choose
from skfair.enforcement.decisions.levels import (
    Weighed,
    best_level,
    best_of_levels,
    best_ratio,
    shares_of,
)
from skfair.enforcement.decisions.lines import decided
from skfair.enforcement.decisions.prices import PriceSearch
from skfair.enforcement.truth import Truth
from skfair.estimators.objective import Goal, worth_at
from skfair.utils.rounding import ROUNDING

# Limits are bisected until they are so close to each other.
_CLOSE = 5e-4


class Before(NamedTuple):
    """The best decisions without constraints, and the worth of decisions that makes them."""

    predicted: IntArray
    worth: FloatArray

    @classmethod
    def of(cls, goal: Goal, chances: FloatArray, codes: IntArray, weights: FloatArray) -> Before:
        """Return them for rows with probabilities and numbers of their classes."""
        worth = goal.worth
        if worth is None:
            positives = np.asarray(codes == 1, dtype=np.float64)
            level = best_level(goal.rank, chances[:, 1], positives, weights, goal.recall)
            worth = worth_at(level)
        return cls(decided(chances @ worth), worth)


@dataclass
class DecisionSearch:
    """Searches decisions of some rows under changing limits; models stay as they are.

    Attributes
    ----------
    goal : Goal
        What decisions are to be best in.
    before : Before
        The best decisions without constraints.
    chances : ndarray of shape (n_samples, n_classes)
        Probabilities of the classes.
    search : callable
        Makes the search of a truth and expected worth.
    is_aware : bool
        Whether decisions use the groups.
    groups : ndarray of shape (n_samples,) or None
        These, if there is one attribute.
    draws : callable or None
        Returns a number between 0 and 1 for each row, if thresholds may be mixed.
    """

    goal: Goal
    before: Before
    chances: FloatArray
    search: Callable[[Truth, FloatArray], PriceSearch]
    is_aware: bool
    groups: IntArray | None
    draws: Callable[[], FloatArray] | None

    def best(self, truth: Truth) -> Weighed:
        """Return the best decisions within the limits of a truth.

        With known groups decisions are compared by expected shares, too, which overfits less; but
        not where a value must be reached, which is counted.
        """
        goal = self.goal
        counted = np.eye(truth.n_classes)[truth.classes]
        is_expected = self.is_aware and goal.at_least is None
        believed = truth.believed(self.chances) if is_expected else counted

        def weigh(worth: FloatArray) -> Weighed:
            valuing = truth.valuing(worth)
            valuing = valuing.expecting(self.chances) if is_expected else valuing
            chosen = choose(self.search(valuing, self.chances @ worth), self.groups, self.draws)
            rank = goal.rank(shares_of(believed, truth.weights, chosen.predicted))
            return Weighed(chosen, worth, rank)

        if goal.worth is not None:
            return weigh(goal.worth)
        if not self.is_aware and truth(self.before.predicted).is_feasible:
            return weigh(self.before.worth)
        if goal.ratio is not None:
            rank = goal.rank(shares_of(believed, truth.weights, self.before.predicted))
            return best_ratio(weigh, goal.ratio.worth, rank if np.isfinite(rank) else 0.5)
        return best_of_levels(weigh, worth_at, self.before.worth[0, 0] / self.before.worth.sum())

    def smallest(self, truth_of: Callable[[float], Truth], n_fair: int) -> tuple[Truth, Weighed]:
        """Return the decisions with the smallest disparity at an objective of at least a value.

        Parameters
        ----------
        truth_of : callable
            Returns the truth about decisions under a limit.
        n_fair : int
            So many constraints, the first ones, have this limit or one of their own.

        Returns
        -------
        truth, found : Truth, Weighed
            The truth under the smallest limit and its decisions; if nothing reaches the value,
            the decisions that are best in the objective.
        """

        def disparity(truth: Truth, predicted: IntArray) -> float:
            return max(truth.disparities(predicted)[:n_fair], default=0.0)

        strictest = truth_of(0.0)
        low, high = 0.0, disparity(strictest, self.before.predicted)
        truth = truth_of(high)
        weighed = self.best(truth)
        if not self._reaches(truth, weighed):  # decisions within a limit may count for more
            high, within = 0.5 * high, truth_of(0.5 * high)
            tried = self.best(within)
            if not self._reaches(within, tried):
                return truth, weighed
            truth, weighed = within, tried
        limit = 0.0  # first of all: perhaps there is nothing to give up
        while high - low > _CLOSE:
            other = truth_of(limit)
            tried = self.best(other)
            if self._reaches(other, tried):
                truth, weighed = other, tried
                high = min(limit, disparity(other, tried.chosen.predicted))
            else:
                low = limit
            limit = 0.5 * (low + high)
        return truth, weighed

    def _reaches(self, truth: Truth, weighed: Weighed) -> bool:
        wanted = self.goal.at_least
        assert wanted is not None
        value = self.goal.of(truth.classes, truth.weights, weighed.chosen.predicted)
        return weighed.chosen.verdict.is_feasible and value >= wanted - ROUNDING
