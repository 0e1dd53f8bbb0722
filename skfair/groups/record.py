"""Records of evidence: canonical JSON of what was asked, on what, with what, and every number.

Audits and monitors pass the parts that they compute to :func:`write_record`, which adds versions,
the date, the files before it (the *chain*) and a checksum. ``python -m skfair verify`` calls
:func:`run_verify`: the wing that wrote a record computes its parts again (``verifiers`` in
``wing.py``), and :func:`differences` compares the two.

The checksum finds edits by people who do not know it. Somebody who computes a new one is found if
the edit is of anything that can be computed again. All else, such as the date, is protected by a
signature only, as ``doc/how_to/records.rst`` explains.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from datetime import date
from hashlib import file_digest, sha256
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from skfair.utils.files import replacing
from skfair.utils.text import listed, plural, visible
from skfair.utils.versions import versions
from skfair.utils.wings import functions_of_wings

VERSION = 1
# Numbers of a record agree with those that are computed again up to this relative error.
TOLERANCE = 1e-9
# They agree as well if they differ by this share of the largest value in the record, which is at
# least 1. An end of an interval may be near 0, and is the difference of two numbers that are not:
# quantiles of versions of scipy differ by 5e-12 of their size.
_NOTHING = 1e-11
# The keys that verify does not compute again. All others are computed by the wing.
_FORMS = {"kind": str, "made_on": str, "made_with": dict, "after": list, "checksum": str}
_FRAME = (*_FORMS, "version")
# Texts that another release may word otherwise, so they need not have been edited if they differ
_WORDS = ("sentences", "law", ("found", "rule"), ("found", "decision"), ("checks", "sentence"))
_MOST_SHOWN = 20  # findings that are printed
# Exit codes of findings, of which the first one that occurs is that of the command
NOTE, _DIFFERS, _OPEN = 0, 1, 3
_OUTCOMES = {_DIFFERS: "differs", _OPEN: "open", NOTE: "the same"}
# One file, or several
Paths: TypeAlias = str | PathLike[str] | Iterable[str | PathLike[str]]


class Finding(NamedTuple):
    """What is said of a record, or of a part of it."""

    text: str
    # _OPEN is a difference that another release may be the reason of, because it words or adds
    # something. It is none if the record was made by this release.
    code: int = _DIFFERS
    size: float = 0.0  # size of a difference of numbers


# Computes the parts of a record again, and returns them with what was found on the way. It may
# remove what cannot be compared from the record.
Verifier: TypeAlias = Callable[
    [dict[str, Any], argparse.Namespace], tuple[dict[str, Any], list[Finding]]
]


def write_record(
    path: str | PathLike[str], kind: str, parts: Mapping[str, Any], after: Paths
) -> None:
    """Write a record of the parts that a wing computed, after the files that came before it."""
    if Path(path).suffix != ".json":
        raise ValueError(f"A record is a file ending in .json, got {fspath(path)!r}.")
    record = {"kind": kind, "version": VERSION, "made_on": date.today(), "made_with": versions()}
    record |= {"after": [_link(Path(file)) for file in several(after)], **parts}
    with replacing(path) as beside:
        beside.write_bytes(canonical(record | {"checksum": _checksum(record)}))


def several(one_or_more: Any) -> list[Any]:
    """Return a list of files, conditions or memos, of which there may be one."""
    is_one = isinstance(one_or_more, str | PathLike | Mapping)
    return [one_or_more] if is_one else [*one_or_more]


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it, with None for NaN."""
    if isinstance(value, Mapping):
        return {str(name): plain(own) for name, own in value.items()}
    if isinstance(value, list | tuple | set | frozenset) or hasattr(value, "tolist"):
        return plain(value.tolist()) if hasattr(value, "tolist") else [*map(plain, value)]
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, str | int | float | None):
        raise TypeError(f"A record has texts and numbers, got {value!r} ({type(value).__name__}).")
    return None if isinstance(value, float) and not math.isfinite(value) else value


def canonical(record: Mapping[str, Any]) -> bytes:
    """Return the only form in which a record may be written: sorted keys, indented by one."""
    text = json.dumps(plain(record), sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def _checksum(record: Mapping[str, Any]) -> str:
    covered = {name: own for name, own in record.items() if name != "checksum"}
    return sha256(canonical(covered)).hexdigest()


def digest_of(path: str | PathLike[str]) -> str:
    """Return the SHA-256 of the bytes of a file, as ``sha256sum`` prints it."""
    with Path(path).open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _link(path: Path) -> dict[str, str]:
    """Return what a record says of a file before it."""
    kind = _read(path).get("kind", "file") if path.suffix == ".json" else "file"
    return {"name": path.name, "kind": str(kind), "sha256": digest_of(path)}


def _read(path: Path) -> dict[str, Any]:
    """Read a JSON file; raise unless it holds an object."""
    try:
        read = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name} is not JSON ({error}).") from error
    if not isinstance(read, dict):
        raise ValueError(f"{path.name} is no JSON object, so it is no record and no memo.")
    return read


def run_verify(options: argparse.Namespace) -> int:
    """Run ``verify``: compute a record again, say what differs, and return the exit code."""
    path = Path(options.record)
    record = _read(path)
    verifiers: dict[str, Verifier] = {}
    for of_wing in functions_of_wings("verifiers"):
        verifiers |= of_wing()
    kind, version = record.get("kind"), record.get("version")
    is_whole = all(isinstance(record.get(name), form) for name, form in _FORMS.items())
    if not is_whole or kind not in verifiers or version != VERSION:
        raise ValueError(
            f"{path.name} is no record that this release reads: it has the kind {kind!r} and the "
            f"version {version!r}, not {listed(verifiers)} of version {VERSION}."
        )
    recorded = {name: own for name, own in deepcopy(record).items() if name not in _FRAME}
    try:
        parts, found = verifiers[kind](recorded, options)
        found = [*_form(path, record), *_chain(path, record, options.after), *found]
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path.name} is no complete record ({error!r}).") from error
    computed, made_with, here = plain(parts), record["made_with"], versions()
    found += differences(recorded, computed)
    if made_with.get("skfair") == here["skfair"]:
        found = [one._replace(code=one.code and _DIFFERS) for one in found]
    others = {name: was for name, was in made_with.items() if here.get(name) != was}
    if others:
        texts = (f"{name} {was} ({here.get(name, 'none')} here)" for name, was in others.items())
        found.append(Finding(f"Made with {', '.join(texts)}.", NOTE))
    notes = [one.text for one in found if one.code == NOTE]
    found = [one for one in found if one.code != NOTE]
    code = next((code for code in _OUTCOMES if code in {one.code for one in found}), NOTE)
    said = f"{_count(computed):,} numbers were computed again and agree to {TOLERANCE:g}."
    if found:
        said = f"{plural(len(found), 'difference')} found."
    lines = [f"{path.name}: {_OUTCOMES[code]}. {said}", *(one.text for one in found[:_MOST_SHOWN])]
    if more := found[_MOST_SHOWN:]:
        lines.append(f"and {len(more):,} more, by up to {max(one.size for one in more):.3g}")
    if code == _OPEN:
        lines.append(f"Perhaps releases differ. Verify it with skfair {made_with.get('skfair')}.")
    lines += [*notes, f"SHA-256 of {path.name}: {digest_of(path)}"]
    sys.stdout.writelines(f"{visible(line)}\n" for line in lines)
    return code


def differences(recorded: dict[str, Any], computed: dict[str, Any]) -> list[Finding]:
    """Compare the parts of a record with those that were computed again, both as plain data."""
    return [*_differences(recorded, computed, (), _NOTHING * max(1.0, _largest(computed)))]


def _largest(part: Any, name: str = "") -> float:
    """Return the largest number whose name begins with "value", as those of rates do."""
    if isinstance(part, dict):
        return max((_largest(own, key) for key, own in part.items()), default=0.0)
    if isinstance(part, list):
        return max((_largest(own, name) for own in part), default=0.0)
    return abs(part) if name.startswith("value") and _is_number(part) else 0.0


def _differences(
    recorded: Any, computed: Any, place: tuple[str, ...], nothing: float
) -> Iterator[Finding]:
    """Compare what is at a place of a record. Numbers agree if they differ by ``nothing``."""
    where = ", ".join(place)
    are_words = place and (place[0] in _WORDS or (place[0], place[-1]) in _WORDS)
    code = _OPEN if are_words else _DIFFERS
    if isinstance(recorded, dict) and isinstance(computed, dict):
        for key in dict.fromkeys([*computed, *recorded]):
            if key in recorded and key in computed:
                yield from _differences(recorded[key], computed[key], (*place, key), nothing)
            else:
                verb = "lacks" if key in computed else "adds"
                yield Finding(": ".join(filter(None, [where, f"the record {verb} {key!r}"])), _OPEN)
    elif isinstance(recorded, list) and isinstance(computed, list):
        if len(recorded) != len(computed):
            text = f"{where}: {len(recorded)} entries recorded, {len(computed)} computed"
            yield Finding(text, code)
            return
        for number, (was, own) in enumerate(zip(recorded, computed, strict=True)):
            texts = [x for x in own.values() if isinstance(x, str)] if isinstance(own, dict) else []
            name = " ".join(filter(None, texts[:4])) or f"entry {number}"
            yield from _differences(was, own, (*place, name), nothing)
    elif _is_number(recorded) and _is_number(computed):
        if not math.isclose(recorded, computed, rel_tol=TOLERANCE, abs_tol=nothing):
            size = abs(recorded - computed)
            text = f"{where}: {recorded!r} recorded, {computed!r} computed, {size:.3g} apart"
            yield Finding(text, code, size)
    elif type(recorded) is not type(computed) or recorded != computed:
        text = f"{where}: {recorded!r:.200} recorded, {computed!r:.200} computed"
        yield Finding(text, code)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(value: Any) -> int:
    """Count the numbers in lists and dicts."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(_count, inside)) + _is_number(value)


def _form(path: Path, record: dict[str, Any]) -> Iterator[Finding]:
    """Say whether the bytes of a record are what ``write_record`` writes."""
    if canonical(record) != path.read_bytes():
        yield Finding(f"{path.name} was edited: it is not in its canonical form")
    if record.get("checksum") != _checksum(record):
        yield Finding(f"{path.name} was edited: it does not agree with its checksum")


def _chain(path: Path, record: dict[str, Any], given: list[str]) -> Iterator[Finding]:
    """Compare the files before a record, and those before them, with what records say of them.

    They are looked for among the ``given`` files, and beside the record.
    """
    places = {Path(file).name: Path(file) for file in given}
    for link in record["after"]:
        name = Path(link["name"]).name  # a name with folders would lead elsewhere
        place = places.get(name, path.parent / name)
        if not place.is_file():
            text = f"{path.name} comes after {name}, which was not found. Name it: --after {name}"
            yield Finding(text, NOTE)
        elif digest_of(place) != link["sha256"]:
            yield Finding(f"{name} is not the file that came before {path.name}, or was edited")
        else:
            yield Finding(f"{path.name} comes after {name}, which is unchanged.", NOTE)
            before = _read(place) if place.suffix == ".json" else {}
            if "after" in before:
                yield from _form(place, before)
                yield from _chain(place, before, given)
