"""Errors of ranking across two groups go both ways: problem (105) of partial_fairness_idca.

The second double sum of (105) is read as in (104): negatives of k above positives of k'.
"""

from skfair.constraints.partial.base import PARTIAL_RULES
from skfair.constraints.partial.quadratic import Comparison, QuadraticRule


@PARTIAL_RULES.register("inter_group_pairwise")
class InterGroupPairwise(QuadraticRule):
    """Positives of one group beat negatives of the other as often as the other way round."""

    by_class = True

    def compare(self, k: int, other: int) -> list[Comparison]:
        """Compare positives with the other group's negatives, negatives with its positives."""
        return [(2 * k + 1, 2 * other), (2 * k, 2 * other + 1)]
