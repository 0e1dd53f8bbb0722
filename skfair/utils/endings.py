"""How a fit can end: the words of ``status_``, with one sentence for each.

An estimator lists the words that its fit can end with in ``_endings``. ``@documented`` writes their
sentences into its docstring, ``SensitiveFeaturesMixin._store`` stores no other word, and
``summary_``, warnings and the table of the user guide say the same sentences. The status of a
monitor ("pass", "fail" or "inconclusive") is another thing.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from functools import partial
from typing import Literal

# How a solver can end. "stopped" means that a callback asked for it.
Status = Literal["converged", "max_iter", "stopped", "infeasible"]
# How a fit can end.
Ending = Status | Literal["certified", "no_solution"]

ENDINGS: dict[Ending, str] = {
    "converged": "The fit found a solution that satisfies the limits as it enforces them.",
    "max_iter": "The solver stopped before it converged, because it reached its largest number of "
    "iterations or made no progress any more.",
    "stopped": "A callback stopped the fit before it converged.",
    "infeasible": "The training rows miss a limit, or the value asked of the objective.",
    "certified": "The limits are certified for the population, at the confidence of the "
    "certificate.",
    "no_solution": "Nothing could be certified, so the result with the smallest disparity is kept, "
    "without a guarantee.",
}


def as_clause(word: Ending) -> str:
    """Return the sentence of an ending in a form that may follow a colon.

    Examples
    --------
    >>> from skfair.utils.endings import as_clause
    >>> as_clause("infeasible")
    'the training rows miss a limit, or the value asked of the objective'
    """
    sentence = ENDINGS[word]
    return sentence[0].lower() + sentence[1:].rstrip(".")


def listing(words: Iterable[Ending]) -> str:
    """Return a list of endings and their sentences, for the entry of ``status_`` in a docstring.

    Examples
    --------
    >>> from skfair.utils.endings import listing
    >>> print(listing(["infeasible"]))
        - "infeasible": The training rows miss a limit, or the value asked of the objective.
    """
    wrap = partial(textwrap.fill, width=96, initial_indent="    - ", subsequent_indent="      ")
    return "\n".join(wrap(f'"{word}": {ENDINGS[word]}') for word in words)
