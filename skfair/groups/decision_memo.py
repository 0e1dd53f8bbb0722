"""The decision memo: the limit that a committee chose, as audits and monitors read it.

The page of a path of limits writes the memo as JSON. Its ``limits`` hold one number for each
attribute, or one number by the name "" if all groups have a common limit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from skfair.utils.validation import check_number

KIND, VERSION = "skfair decision", 1
_REMEDY = "Pass the JSON that the page of FairnessPath.to_html writes, as a path or as a dict."
# The JSON file of a decision memo, or what it holds.
Memo: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]


def read_memo(memo: Memo) -> tuple[str, dict[str, float | None]]:
    """Return the metrics and the limits in a decision memo; raise unless a limit was chosen.

    Names of several metrics are separated by ", ". A limit is in the unit of ``max_disparity``: of
    a ratio, it is the largest distance from 1.
    """
    name, read = "The dict", memo
    if not isinstance(memo, Mapping):
        name = repr(os.fspath(memo))
        try:
            read = json.loads(Path(memo).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{name} was not read as a decision memo ({error}). {_REMEDY}"
            ) from error
    parts: Any = read if isinstance(read, Mapping) else {}
    kind, version, metric = parts.get("kind"), parts.get("version"), parts.get("metric")
    limits = parts.get("limits")
    is_readable = isinstance(metric, str) and isinstance(limits, Mapping | None)
    if (kind, version) != (KIND, VERSION) or not is_readable:
        raise ValueError(
            f"{name} is no decision memo of version {VERSION}, whose kind is {KIND!r}: it has the "
            f"kind {kind!r}, version {version!r}, metric {metric!r} and limits {limits!r}. "
            f"{_REMEDY}"
        )
    chosen = {a: limit for a, limit in (limits or {}).items() if limit is not None}
    if not chosen:
        raise ValueError(
            f"{name} is the decision to set no limit, so there is nothing to check. Choose a limit "
            "on the page, or give the limit without a memo."
        )
    for attribute, limit in chosen.items():
        check_number(limit, f"{name}: limits[{attribute!r}]", 0)
    return metric, dict.fromkeys(limits) | {a: float(limit) for a, limit in chosen.items()}
