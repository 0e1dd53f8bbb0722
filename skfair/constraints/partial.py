"""Names of the constraints within percentile intervals of the scores.

The code is in the wing ``skfair/partial_parity``, from which a name is imported when it is first
used. If the wing is deleted, there are no such names. They are for
:class:`skfair.classification.PartialParityClassifier`, which takes these constraints by name, as
objects, or as an :class:`IntervalConstraint`, which adds options.
"""

from typing import TYPE_CHECKING

from skfair.utils.deferred import deferred
from skfair.utils.wings import names_of_wings

if TYPE_CHECKING:
    from skfair.partial_parity.group_auc import GroupAUC as GroupAUC
    from skfair.partial_parity.interval_constraint import IntervalConstraint as IntervalConstraint
    from skfair.partial_parity.interval_constraint import read_constraint as read_constraint
    from skfair.partial_parity.ranked_moment import RankedMoment as RankedMoment
    from skfair.partial_parity.ranked_moment import Values as Values
    from skfair.partial_parity.statistical_parity import StatisticalParity as StatisticalParity
    from skfair.partial_parity.surrogates import Surrogate as Surrogate
else:
    __getattr__, __dir__ = deferred(__name__)

__all__ = [*names_of_wings(__name__)]
