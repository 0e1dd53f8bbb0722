"""Which procedure produced each result, and what is lost without it.

Limits are kept by a few procedures that follow each other: rounds of smooth problems, errors in
place of the loss, line searches, moves of rows. Every case of the gate (:mod:`benchmarks.frontier`)
is fitted with all of them, and once more without each: how often that changes what is decided on
new rows, and what it costs at equal disparity of new rows. A procedure that changes hardly any
result, and loses nothing when it is left out, should go.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd

from benchmarks._drawing import mark, name_rows, small
from benchmarks._verdicts import standing
from benchmarks.frontier import FAMILIES, Row, compared
from benchmarks.harness import Lead, Table, data_folder

# Splits of the data that the gate itself does not use.
SEEDS = (101, 102)


class Procedure(NamedTuple):
    """A function of the package, and what stands in its place when it is left out."""

    name: str
    family: str  # of cases of the gate
    where: str  # module, or module and class
    function: str
    substitute: Callable[..., Any]


def _second(first: Any, second: Any, *_: Any, **__: Any) -> Any:
    """Return what was there before: the second argument."""
    return second


def _best(search: Any, start: Any, best: Any) -> Any:
    return best


def _first_offsets(search: Any, may_break_ties: bool) -> tuple[Any, float]:
    from skfair.enforcement.decisions.search import _search_and_repair

    return _search_and_repair(search), 0.0


def _on_all(path: Any, few: Any, theta0: Any, *, refine: bool) -> Any:
    from skfair.enforcement.erm.strict import _walk

    return _walk(path, theta0, refine=refine)


STRICT, SEARCH = "skfair.enforcement.erm.strict", "skfair.enforcement.decisions.search"
PARTIAL = "skfair.partial_parity.strict_rounds"
PLACEMENT = "skfair.cluster.assignment.placement:Placement"
PROCEDURES = (
    Procedure("a sample of many rows first", "erm", STRICT, "_from_sample", _on_all),
    Procedure("steps on true rates", "erm", STRICT, "suits_rate_steps", lambda *_: False),
    Procedure("smooth errors in place of the loss", "erm", STRICT, "refined", _second),
    Procedure("scale of scores", "erm", STRICT, "scaled", _second),
    Procedure(
        "exact windows of thresholds", "decide", SEARCH, "window_offsets", lambda *_, **__: None
    ),
    Procedure("parting of tied rows", "decide", SEARCH, "_search_offsets", _first_offsets),
    Procedure("search with fines", "decide", SEARCH, "repair", _best),
    Procedure("random moves of blind decisions", "decide", SEARCH, "repair_at_random", _second),
    Procedure(
        "last line searches",
        "decide",
        "skfair.enforcement.decisions.offsets:OffsetSearch",
        "exchange",
        _second,
    ),
    Procedure(
        "random moves within an interval",
        "partial",
        PARTIAL,
        "_random_moves",
        lambda moving, *_: moving,
    ),
    Procedure("exchange of rows", "cluster", PLACEMENT, "improve", lambda *_, **__: None),
    Procedure("repair of single rows", "cluster", PLACEMENT, "repair", lambda *_, **__: None),
)


def _owner(procedure: Procedure) -> Any:
    """Return the module or class whose function it is."""
    module, _, name = procedure.where.partition(":")
    owner = importlib.import_module(module)
    return getattr(owner, name) if name else owner


@contextmanager
def without(procedure: Procedure) -> Iterator[None]:
    """Leave a procedure out."""
    with patch.object(_owner(procedure), procedure.function, procedure.substitute):
        yield


def main(*, quick: bool) -> list[Row]:
    """Fit the cases of the gate with all procedures, and without each."""
    if data_folder() is None:
        return []
    rows: list[Row] = []
    seeds = SEEDS[:1] if quick else SEEDS
    for family in dict.fromkeys(p.family for p in PROCEDURES):
        rows += [{**row, "without": ""} for row in FAMILIES[family](seeds)]
    for procedure in PROCEDURES:
        with without(procedure):
            rows += [
                {**row, "without": procedure.name} for row in FAMILIES[procedure.family](seeds)
            ]
    return rows


def canary() -> list[Row]:
    """Return a fit without each procedure, of families whose fits do not depend on rounding."""
    rows: list[Row] = []
    for procedure in (one for one in PROCEDURES if one.family != "partial"):
        with without(procedure):
            one = next(FAMILIES[procedure.family](SEEDS[:1]))
            rows.append({**one, "without": procedure.name})
    return rows


def tables(results: Sequence[Row]) -> dict[str, Table]:
    """Return what each procedure does, for the record."""
    columns = ["procedure", "fits", "results that it changes, %", "gain in quality"]
    columns += ["standard error of the gain", "more violations without it"]
    columns.append("CPU time, with it / without it")
    lines = [
        ["-" if isinstance(cell, float) and np.isnan(cell) else cell for cell in _line(p, results)]
        for p in PROCEDURES
    ]
    return {"gains": Table("What each procedure does", columns, lines)}


def numbers(results: Sequence[Row]) -> dict[str, str]:
    """Return the procedures that gain and lose quality beyond two standard errors."""
    leads = {p.name: Lead(*_line(p, results)[3:5]) for p in PROCEDURES}

    def named(word: str) -> str:
        some = [
            f"*{name}* ({100 * one.mean:+.2f} points, standard error {100 * one.error:.2f})"
            for name, one in leads.items()
            if standing(one) == word
        ]
        return " and ".join(filter(None, [", ".join(some[:-1]), *some[-1:]])) or "none"

    return {"gaining": named("ahead"), "losing": named("behind")}


def pictures(results: Sequence[Row]) -> dict[str, Any]:
    """Draw what each procedure gains, with two standard errors."""
    rows = [line for p in PROCEDURES if (line := _line(p, results))[2] > 0]
    figure, (axes,) = small(height=0.6 + 0.27 * len(rows))
    gains, errors = ([100 * row[k] for row in rows] for k in (3, 4))
    axes.errorbar(gains, range(len(rows)), xerr=2 * np.array(errors), fmt="o", capsize=3)
    mark(axes, 0, "no effect")
    name_rows(axes, [row[0] for row in rows])
    label = "Gain in points where it changes a result, with two standard errors"
    axes.set_xlabel(label, loc="right")
    return {"picture": figure}


def _line(procedure: Procedure, results: Sequence[Row]) -> tuple[Any, ...]:
    full, bare = (
        [r for r in results if r["without"] == name and r["cell"].split()[0] == procedure.family]
        for name in ("", procedure.name)
    )
    a, b = (pd.DataFrame(rows)[["worth", "gap"]].to_numpy() for rows in (full, bare))
    changed = (a != b).any(axis=1)
    # Cells in which nothing changes would only make the gain of the others look small.
    cells = {row["cell"] for row, is_other in zip(full, changed, strict=True) if is_other}
    gains = [cell.gain for cell in compared(bare, full) if cell.cell in cells] or [0.0]
    # A single cell has no standard error, and so is no more than chance.
    error = float(np.std(gains, ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else np.nan
    return (
        f"{procedure.family}: {procedure.name}",
        len(full),
        100 * float(changed.mean()),
        float(np.mean(gains)),
        error,
        sum(row["broken"] for row in bare) - sum(row["broken"] for row in full),
        sum(row["cpu"] for row in full) / sum(row["cpu"] for row in bare),
    )
