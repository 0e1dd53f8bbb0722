"""The same rate of positive decisions inside the interval: problem (21)."""

from skfair.constraints.partial.base import PARTIAL_RULES
from skfair.constraints.partial.rates import RateRule


@PARTIAL_RULES.register("demographic_parity")
class DemographicParity(RateRule):
    """Inside the interval decisions are positive at the same rate, Definition 4.3."""
