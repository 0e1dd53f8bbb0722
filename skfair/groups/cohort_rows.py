"""What a cohort is read as: rows with one value each, and tables of outcomes.

Functions get rows by :func:`outcome_rows`, :func:`score_rows`, or :func:`value_rows` for values of
their own. Metrics and tests of labels need no rows, but an :func:`outcome_table`, which is read
once for each way of counting. All of them read :mod:`skfair.groups.measured_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skfair.groups.measured_rows import MeasuredRows
from skfair.groups.outcomes import Counted
from skfair.groups.table import GroupTable

if TYPE_CHECKING:
    from skfair.groups.cohort import Cohort


def value_rows(
    people: Cohort,
    # Computes the values from the columns, see ``MeasuredRows.read``, which takes the options
    values_of: Callable[[Mapping[str, Any]], Any],
    columns: Sequence[str],
    intersectional: bool = True,
    **options: Any,
) -> MeasuredRows:
    """Return rows with a value of one's own."""
    own = {name: getattr(people, name) for name in columns}
    refuse_kinds(people)
    return MeasuredRows.read(values_of, own, *_who(people, intersectional), **options)


def refuse_kinds(people: Cohort) -> None:
    """Raise if the rows of a cohort were counted in an engine, for what needs single rows."""
    if people._kinds is not None:
        raise TypeError(
            "Single rows are measured here, and the table was counted in its engine. Pass the "
            "rows, as in Cohort(...)."
        )


def outcome_rows(
    people: Cohort, counted: Counted = "classes", intersectional: bool = True, **options: Any
) -> MeasuredRows:
    """Return rows with their outcomes, see ``MeasuredRows.of_labels``."""
    options |= {"counted": counted, "pos_label": people.pos_label, "kinds": people._kinds}
    who = _who(people, intersectional)
    return MeasuredRows.of_labels(people.y_true, people.y_pred, *who, **options)


def score_rows(people: Cohort, intersectional: bool = True, **options: Any) -> MeasuredRows:
    """Return rows with their scores, see ``MeasuredRows.of_scores``."""
    if people.y_score is None:
        raise ValueError("y_score is None, and scores are compared. Pass one value per row.")
    who = _who(people, intersectional)
    return MeasuredRows.of_scores(people.y_score, people.y_true, *who, **options)


def _who(people: Cohort, intersectional: bool) -> tuple[Any, Any, Any, bool]:
    return (
        people.sensitive_features,
        people.control_features,
        people.sample_weight,
        intersectional,
    )


def outcome_table(
    people: Cohort,
    counted: Counted = "classes",
    intersectional: bool = True,
    *,
    values_only: bool = False,  # without the squares and units that intervals and tests need
) -> GroupTable:
    """Return the table of outcomes, which is read once for each way of counting."""
    key, tables = (counted, intersectional), people._tables
    known = tables.get((*key, False), tables.get((*key, values_only)))
    if known is None:
        units = None if values_only else people.units
        rows = outcome_rows(people, counted, intersectional, units=units)
        known = tables[(*key, values_only)] = rows.table(squares=not values_only)
    return known
