"""People instead of rows: a preset counts each person once.

Rules of law compare shares of people. If people have several rows, such as applications for
several jobs, :func:`one_row_each` keeps one row of each person, chosen by ``units_rule``:

- "any": a person is selected if any of their rows is. The last selected row is kept, or the last
  row of a person who is not selected.
- "last": the last row is kept, in the order of the rows.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from skfair._typing import IntArray
from skfair.groups.attributes import read_columns, take_rows
from skfair.groups.cohort import Cohort, given_columns, with_columns
from skfair.groups.row_units import unit_codes
from skfair.report.tables.tasks import Binary, Task
from skfair.utils.factorize import factorize
from skfair.utils.text import listed, plural
from skfair.utils.validation import check_scores

UnitsRule = Literal["any", "last"]
_SAID = {"any": "any of their rows is", "last": "their last row is"}


def check_units_rule(rule: str, preset: str | None, units: Any) -> None:
    """Raise unless the rule exists, and has an effect if it is not the default."""
    if rule not in _SAID:
        raise ValueError(f"units_rule must be 'any' or 'last', got {rule!r}.")
    if rule != "any" and (preset is None or units is None):
        raise ValueError(
            f"units_rule={rule!r} says which row of a person the table of a preset counts. Pass "
            "preset= and units=, or leave units_rule= out."
        )


def one_row_each(
    people: Cohort,
    task: Task,
    threshold: float | None,  # scores above it are positive decisions, if there are no others
    rule: UnitsRule,
) -> tuple[Cohort, str]:
    """Return one row of each person, without units, and how people are counted."""
    if not isinstance(task, Binary):
        raise ValueError(
            "A preset with units= counts who is selected, which needs decisions of two classes. "
            "Leave units= out, and pass one row of each person."
        )
    if people.y_pred is not None:
        is_selected = task.codes(people.y_pred, "y_pred") == 1
    elif threshold is not None:
        is_selected = check_scores(people.y_score, "y_score") > threshold
    else:
        raise ValueError(
            "A preset with units= counts who is selected. Pass decisions as y_pred, or y_score "
            "with threshold."
        )
    person, names = unit_codes(people.units, len(is_selected))
    first = is_selected if rule == "any" else np.zeros(len(person), bool)
    order = np.lexsort((np.arange(len(person)), first, person))
    # The last row of each person in this order, sorted by the number of the person
    last = order[np.flatnonzero(np.diff(person[order], append=-1))]
    _check_constant(people.sensitive_features, person, last, names)
    kept = np.sort(last)
    columns = {
        name: None if name == "units" else take_rows(values, kept)
        for name, values in given_columns(people).items()
    }
    said = f"{len(names):,} people of {len(person):,} rows; a person is selected if {_SAID[rule]}"
    return with_columns(people, **columns), said


def _check_constant(
    sensitive_features: Any, person: IntArray, row: IntArray, people: list[Any]
) -> None:
    """Raise if a person has several values of an attribute, and would be in several groups.

    ``row`` has one row of each person.
    """
    for name, values in read_columns(sensitive_features):
        codes = factorize(values).codes
        several = np.unique(person[codes != codes[row][person]])
        if several.size:
            raise ValueError(
                f"{plural(several.size, 'person')} of units= ({listed(people[i] for i in several)})"
                f" with several values of {name or 'sensitive_features'!r}, but a preset counts "
                "each person in one group. Give each person one value."
            )
