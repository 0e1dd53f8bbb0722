"""Every group is ranked equally well within itself: problem (107) of partial_fairness_idca.

The second double sum of (107) is read as in (106): negatives of k' above positives of k'.
"""

from skfair.constraints.partial.base import PARTIAL_RULES
from skfair.constraints.partial.quadratic import Comparison, QuadraticRule


@PARTIAL_RULES.register("intra_group_pairwise")
class IntraGroupPairwise(QuadraticRule):
    """Positives of a group beat its negatives as often as in the other group."""

    by_class = True

    def compare(self, k: int, other: int) -> list[Comparison]:
        """Compare positives and negatives of one group, negatives and positives of the other."""
        return [(2 * k + 1, 2 * k), (2 * other, 2 * other + 1)]
