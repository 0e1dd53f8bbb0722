"""Pairs of rows of two groups are ranked either way: problem (102) of partial_fairness_idca."""

from skfair.constraints.partial.base import PARTIAL_RULES
from skfair.constraints.partial.quadratic import Comparison, QuadraticRule


@PARTIAL_RULES.register("group_auc_quadratic")
class GroupAUCQuadratic(QuadraticRule):
    """A row of one group is as likely above a row of the other as below it."""

    def compare(self, k: int, other: int) -> list[Comparison]:
        """Compare one group with the other."""
        return [(k, other)]
