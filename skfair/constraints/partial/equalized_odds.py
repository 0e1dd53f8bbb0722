"""The same true and false positive rates inside the interval of each class: problem (56)."""

from skfair.constraints.partial.base import PARTIAL_RULES
from skfair.constraints.partial.rates import RateRule


@PARTIAL_RULES.register("equalized_odds")
class EqualizedOdds(RateRule):
    """Ranks are taken within each class of each group, as in (56)."""

    by_class = True
    classes = (0, 1)
