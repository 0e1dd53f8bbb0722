"""What a cohort is read as: rows with one value each, tables of outcomes, and cells.

Functions get rows by :func:`outcome_rows`, :func:`score_rows`, or :func:`value_rows` for values of
their own. Metrics and tests of labels need no rows, but an :func:`outcome_table`, which is read
once for each way of counting. All of them read :mod:`skfair.groups.measured_rows`. Audits read
labels of several tasks, and count them in a :func:`cell_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from skfair._typing import IntArray
from skfair.groups.attributes import CONTROL, SENSITIVE, read_columns
from skfair.groups.encoding import encode_groups
from skfair.groups.levels import number_tuples
from skfair.groups.measured_rows import SINGLE_ROWS, MeasuredRows
from skfair.groups.outcomes import Counted
from skfair.groups.table import GroupTable
from skfair.utils.validation import check_scores

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
    if "numbers" not in options:
        refuse_kinds(people)
    options["kinds"] = people._kinds
    return MeasuredRows.read(values_of, own, *_who(people, intersectional), **options)


def refuse_kinds(people: Cohort) -> None:
    """Raise if the rows of a cohort were counted in an engine, for what needs single rows."""
    if people._kinds is not None:
        raise TypeError(SINGLE_ROWS)


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
    people = cut_at(people, options.get("threshold"))
    who, options["kinds"] = _who(people, intersectional), people._kinds
    return MeasuredRows.of_scores(people.y_score, people.y_true, *who, **options)


def cut_at(people: Cohort, threshold: Any) -> Cohort:
    """Return a cohort in which no bin of scores has some above and some below a threshold.

    The engine counts the table anew if one has. What is no number is left to others to refuse.
    """
    is_number = isinstance(threshold, Real) and not isinstance(threshold, bool)
    if people._kinds is None or not is_number or not people._kinds.cuts(float(threshold)):
        return people
    return people._read_again([float(threshold)])


def median_of(people: Cohort) -> float:
    """Return the median of the scores, which are finite numbers."""
    scores = check_scores(people.y_score)
    if people._kinds is None:
        return float(np.median(scores))
    order = np.argsort(scores)
    below = np.cumsum(people._kinds.counts[order])
    middle = [(below[-1] - 1) // 2, below[-1] // 2]  # the same row, or the two in the middle
    return float(scores[order][np.searchsorted(below, middle, side="right")].mean())


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


def cell_table(
    people: Cohort,
    n_rows: int,
    missing: str | None = None,  # the level of rows without a group; if None, they are an error
    unknown: Collection[str] = (),  # levels that stand for "not known"
) -> tuple[GroupTable, IntArray]:
    """Number the combinations of levels that occur, of sensitive and control features.

    Returns a table of these cells with the number of their rows, and the cell of each row.
    """
    kinds = people._kinds
    if kinds is not None and missing is None:
        kinds.check_groups(people.sensitive_features)
    roles = [(SENSITIVE, people.sensitive_features, missing)]
    if people.control_features is not None:
        roles.append((CONTROL, people.control_features, None))
    attributes: list[tuple[str, ...]] = []
    levels: list[list[Any]] = []
    codes, columns = [], []
    for role, features, own in roles:
        how: dict[str, Any] = {"role": role, "missing": own, "unknown": unknown}
        groups = encode_groups(features, n_samples=n_rows, intersectional=False, **how)
        attributes.append(groups.levels.attributes)
        levels += map(list, groups.levels.levels)
        codes += list(groups.codes - groups.offsets[:-1, None])
        columns += [values for _, values in read_columns(features, role)]
    for i, values in enumerate(columns):  # declared categories are levels, even without a row
        declared = getattr(getattr(values, "dtype", None), "categories", ())
        occurring, levels[i] = levels[i], list(dict.fromkeys([*declared, *levels[i]]))
        codes[i] = np.array([levels[i].index(level) for level in occurring])[codes[i]]
    every = [*chain.from_iterable(attributes)]
    if len(set(every)) < len(every):
        raise ValueError(
            f"The attributes {', '.join(every)} must have different names. Rename one."
        )
    cells, combinations = number_tuples(codes, np.array([len(own) for own in levels]))
    counts = np.bincount(cells, None if kinds is None else kinds.counts, len(combinations))
    sums, named = {"rows": counts.astype(np.float64)}, dict(zip(every, levels, strict=True))
    return GroupTable(named, combinations, sums, within=every[len(attributes[0]) :]), cells
