"""The same true positive rate inside the interval of the positives: problem (50)."""

from skfair.constraints.partial.base import PARTIAL_RULES
from skfair.constraints.partial.rates import RateRule


@PARTIAL_RULES.register("equal_opportunity")
class EqualOpportunity(RateRule):
    """Ranks are taken within the positives of each group, as in (50)."""

    by_class = True
    classes = (1,)
