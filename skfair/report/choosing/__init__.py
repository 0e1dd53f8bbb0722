"""The page on which a committee chooses a limit, and the memo of its choice.

``FairnessPath.to_html`` in :mod:`skfair.model_selection.path` gets this package from ``choices()``
in ``wing.py``, because it may not import the report, and ``python -m skfair choose`` makes its page
by the same path. A path makes three calls:

1. :class:`Candidate` for each model, with its decisions and the limit of each attribute, which is a
   share: 5% is 0.05.
2. :class:`Judged` once, with the rows that measure the models. Their columns are a cohort.
3. ``Choice.of`` with both, and then ``to_html`` or ``table`` of the :class:`Choice`.
"""

from skfair.report.choosing.choice import Choice
from skfair.report.choosing.steps import Candidate, Judged

__all__ = ["Candidate", "Choice", "Judged"]
