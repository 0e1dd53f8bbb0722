"""The bias profile of an audit: one table with a row for each group and measure.

The profile is read from the tables of the audit. So its numbers equal the numbers of the audit, and
numbers that the audit hides are not in it either. ``Audit.bias_profile`` calls :func:`profile_of`
and :func:`write_profile`, and documents the columns and the verdicts.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd

from skfair._typing import BoolArray
from skfair.report.result import AuditTables, parts, where, written
from skfair.report.sentences import measure_of
from skfair.report.tasks import BEFORE
from skfair.report.views import is_joint
from skfair.utils.rounding import ROUNDING

SUFFIXES = [".csv", ".json"]
_KEYS = ["view", "group", "measure"]
_ENDS = ["difference_low", "difference_high", "p_value"]
_NUMBERS = ["n_rows", "n_persons", "value", "value_low", "value_high"]
_DIFFERENCE = ["reference", "reference_value", "difference", *_ENDS]


def profile_of(tables: AuditTables) -> pd.DataFrame:
    """Return a row for each group and measure of the present model, and for each hidden group."""
    now = tables.rates[~tables.rates["measure"].str.startswith(BEFORE)]
    shown = now[now["view"] != ""]
    hidden = tables.hidden.merge(shown[["view", "measure"]].drop_duplicates(), on="view")
    table = pd.concat([shown, hidden], ignore_index=True)
    n_persons = table["n" if tables.n_units is None else "n_units"]
    table = table.assign(n_rows=table["n"], n_persons=n_persons)
    named = {view: own["reference"].iloc[0] for view, own in parts(tables.signed, "view")}
    table["reference"] = [named.get(view, "all") for view in table["view"]]
    # Views without a reference group compare with all rows, the group "all" of the view "".
    table["is_named"] = is_named = table["view"].isin(named)
    keys = [table["view"].where(is_named, ""), table["reference"], table["measure"]]
    of_reference = now.set_index(_KEYS)["value"].reindex(pd.MultiIndex.from_arrays(keys))
    table["reference_value"] = of_reference.to_numpy()
    is_reference = is_named & (table["group"] == table["reference"])
    is_compared = table["apart"].eq("") & ~is_reference
    table["difference"] = (table["value"] - table["reference_value"]).where(is_compared)
    table = table.merge(tables.signed.reindex(columns=[*_KEYS, *_ENDS]), "left", _KEYS)
    table["is_suppressed"] = _are_suppressed(table)
    is_beyond, is_within = _judged(tables, table)
    verdicts = {
        "not shown": table["is_suppressed"],
        "not compared": table["apart"] != "",
        "reference": is_reference,
        "undefined": table["value"].isna(),
        "significant": is_beyond,
        "not significant": is_within,
    }
    table["verdict"] = np.select([*verdicts.values()], [*verdicts], "not tested")
    table = table[[*_KEYS, *_NUMBERS, *_DIFFERENCE, "verdict", "is_suppressed"]]
    return table.astype({"n_rows": "Int64", "n_persons": "Int64"})


def write_profile(tables: AuditTables, table: pd.DataFrame, path: str | PathLike[str]) -> None:
    """Write a profile as CSV, or as JSON with the facts of the audit."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"The bias profile is a file ending in .csv or .json, got {str(path)!r}.")
    text = table.to_csv(index=False, lineterminator="\n")
    if suffix == ".json":
        facts = tables.fields().items()
        plain = {name: fact for name, fact in facts if not isinstance(fact, pd.DataFrame)}
        records = table.astype(object).where(table.notna(), None).to_dict("records")
        text = json.dumps(plain | {"bias_profile": records}, ensure_ascii=False, allow_nan=False)
    written(text, path)


def _are_suppressed(table: pd.DataFrame) -> BoolArray:
    """Return which values are hidden, because they would say something about few people.

    All values of a hidden group are hidden, and such a group has no number of rows. For other
    groups, the measures that join decisions and outcomes may be hidden. The accuracy is one of them
    and is defined for every group that has other numbers. So if it is missing, it was hidden, and
    all other missing measures of this kind were hidden with it.
    """
    has_numbers = table.groupby(["view", "group"])["value"].transform("count") > 0
    is_without = (table["measure"] == "accuracy") & table["value"].isna() & has_numbers
    is_closed = is_without.groupby([table["view"], table["group"]]).transform("any")
    is_joined = table["measure"].map(is_joint) & table["value"].isna()
    return np.asarray(table["n_rows"].isna() | (is_closed & is_joined))


def _judged(tables: AuditTables, table: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Return which rows have the verdict "significant", and which have "not significant".

    With a reference group, the verdict is about the difference from this group. Without one, it is
    about the gap: if the gap is significant, the two groups of its clear pair (see ``gaps.py``) get
    the verdict "significant", and if it is not, all groups get "not significant". Rows without
    either verdict were not tested.
    """
    gaps = where(tables.gaps, model="now", is_conditional=False, is_ratio=False)
    gaps = gaps.assign(measure=[measure_of(name, tables.task) for name in gaps.get("metric", ())])
    pair = ["clear_first", "clear_second"]
    own = gaps.reindex(columns=["view", "measure", "is_beyond_chance", *pair])
    own = table[["view", "measure"]].merge(own, "left", ["view", "measure"])
    is_clear, is_tested = own["is_beyond_chance"].eq(True), own["clear_first"].fillna("").ne("")
    is_in_pair = own[pair].eq(table["group"], axis=0).any(axis=1)
    is_small = table["p_value"] <= 1 - tables.confidence + ROUNDING
    is_beyond = is_small.where(table["is_named"], is_clear & is_in_pair)
    return is_beyond, table["p_value"].notna().where(table["is_named"], is_tested & ~is_clear)
