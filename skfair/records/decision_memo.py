"""The decision memo: the limit that a committee chose, as audits and monitors read it.

The page of ``FairnessPath.to_html`` writes the memo as JSON. Its ``limits`` hold a number for each
attribute, or a number by the name "" if all groups have a common limit. null means no limit. Its
``checksum`` covers everything that the page computed, so an edit by hand is noticed. It is no
signature, because somebody who forges a memo can compute the checksum, too.

:func:`read_memo` is :func:`open_memo`, which checks the file, followed by :func:`chosen_limits`,
which returns its limits.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from skfair.utils.endings import ENDINGS
from skfair.utils.text import listed
from skfair.utils.validation import check_number
from skfair.utils.warn import warn_user

KIND, VERSION = "skfair decision", 1
_REMEDY = "Pass the JSON that the page of FairnessPath.to_html writes, as a path or as a dict."
# Advice about a model whose fit did not reach its limit, by the status of the fit.
_FAILED = {
    "infeasible": "Its decisions cannot be expected to satisfy the limit, so choose another model "
    "or a larger limit.",
    "no_solution": "Choose another model or a larger limit.",
}
# The path of the JSON file of a decision memo, or its content.
Memo: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]


# The keys that the checksum does not cover: those that the committee fills in, and the checksum.
_NOT_COVERED = ("date", "names", "reasons", "label", "checksum")


def checksum(memo: Mapping[str, Any]) -> str:
    """Return the SHA-256 of everything that the page computed for a memo.

    The page computes it in JavaScript, which writes 1.0 as 1. So whole floats become integers here.
    """

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(name): plain(own) for name, own in value.items()}
        if isinstance(value, list | tuple):
            return [plain(own) for own in value]
        is_whole = isinstance(value, float) and value.is_integer()
        return int(value) if is_whole else value

    covered = {name: own for name, own in memo.items() if name not in _NOT_COVERED}
    text = json.dumps(plain(covered), sort_keys=True, default=str)
    return sha256(text.encode()).hexdigest()


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the keys and values of a JSON object; raise if a key occurs twice.

    Python would use the last one of the values, whereas people see the first one.
    """
    keys = Counter(key for key, _ in pairs)
    twice = [key for key, n in keys.items() if n > 1]
    if twice:
        raise ValueError(f"it has the key {listed(twice)} more than once")
    return dict(pairs)


def read_memo(memo: Memo) -> tuple[str, dict[str, float | None]]:
    """Return the metrics and the limits in a decision memo; raise unless a limit was chosen.

    Warn if the fit of the chosen model failed. Names of several metrics are separated by ", ". A
    limit is in the unit of ``max_disparity``: of a ratio, it is the largest distance from 1.
    """
    name, parts = open_memo(memo)
    return parts["metric"], chosen_limits(name, parts)


def open_memo(memo: Memo) -> tuple[str, Mapping[str, Any]]:
    """Return the name of the memo in errors, and its content; raise if it was changed."""
    name, read = "The dict", memo
    if not isinstance(memo, Mapping):
        name = repr(os.fspath(memo))
        try:
            text = Path(memo).read_text(encoding="utf-8-sig")  # editors may add a byte order mark
            read = json.loads(text, object_pairs_hook=_distinct)
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
    if parts.get("checksum") != checksum(parts):
        differs = "does not agree with what it says" if "checksum" in parts else "is missing"
        raise ValueError(
            f"{name} was changed after the page wrote it, because its checksum {differs}. Download "
            "the memo from the page again. Another limit is another decision of the committee; a "
            "limit without a committee is passed as a number or a condition."
        )
    return name, parts


def compared_groups(parts: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the view and the name of each group that the page of a memo compares."""
    of_views = parts.get("numbers", {}).get("attributes", {})
    return tuple(
        (view, name)
        for view, own in of_views.items()
        for name, numbers in own["groups"].items()
        if not numbers["apart"]
    )


def chosen_limits(name: str, parts: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the limits of a memo; raise unless one was chosen, and warn if its fit failed."""
    status, limits = parts.get("status"), parts["limits"]
    if status in _FAILED:
        warn_user(
            f"{name} chooses a model whose fit has the status {status!r}. {ENDINGS[status]} "
            f"{_FAILED[status]}"
        )
    chosen = {a: limit for a, limit in (limits or {}).items() if limit is not None}
    if not chosen:
        raise ValueError(
            f"{name} is the decision to set no limit, so there is nothing to check. Choose a limit "
            "on the page, or give the limit without a memo."
        )
    for attribute, limit in chosen.items():
        check_number(limit, f"{name}: limits[{attribute!r}]", 0)
    return dict.fromkeys(limits) | {a: float(limit) for a, limit in chosen.items()}
