"""Words of verdicts that come from records: both sides are counted, and "level" has one meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

CLEAR = 2.0  # standard errors; chance alone exceeds 2 in a twentieth of the cells, 1 in a third


class Tally(NamedTuple):
    """In how many cells one method is ahead and behind: sentences always show both."""

    ahead: int
    behind: int
    n_cells: int
    unit: str = "cells"

    def __format__(self, spec: str) -> str:
        return f"ahead in {self.ahead} and behind in {self.behind} of {self.n_cells} {self.unit}"


def standing(lead: Any) -> str:
    """Return whether a lead, which has a mean and an error, is ahead, behind or level.

    A lead without a known error is level: nothing says that it is more than chance.
    """
    if not abs(lead.mean) > CLEAR * lead.error:
        return "level"
    return "ahead" if lead.mean > 0 else "behind"


def tally(leads: Sequence[Any], unit: str = "cells") -> Tally:
    """Count the leads and losses that are beyond two standard errors."""
    words = [standing(lead) for lead in leads]
    return Tally(words.count("ahead"), words.count("behind"), len(words), unit)


def tally_of_signs(leads: Sequence[float], closest: float = 0.0, unit: str = "cells") -> Tally:
    """Count leads and losses without an error, which are larger than ``closest``."""
    ahead, behind = (sum(sign * lead > closest for lead in leads) for sign in (1, -1))
    return Tally(ahead, behind, len(leads), unit)
