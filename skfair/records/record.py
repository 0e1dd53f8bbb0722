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
from skfair.utils.versions import COMPONENTS, versions
from skfair.utils.wings import functions_of_wings

# Version of the form of records. It rises with every release that words sentences otherwise, adds
# keys or drops some. Code 3 is for records of an earlier version only: the version of skfair, which
# a record states as well, could be made up to excuse other sentences.
VERSION = 1
# Numbers of a record agree with those that are computed again up to this relative error.
TOLERANCE = 1e-9
# They agree as well if they differ by this much. An end of an interval may be near 0, and is the
# difference of two numbers that are not: quantiles of versions of scipy differ by 5e-12 of their
# size. Shares are at most 1. For numbers in units, such as salaries, it is this share of the
# largest value of the same measure, so that no other number of the record makes it larger.
_NOTHING = 1e-11
# Numbers of these names are in the unit of the measure, if it has one.
_IN_UNITS = ("value", "difference", "noise", "mean", "rest", "score_", "rate", "reference_value")
_ENDS = ("low", "high", "limit")
# Two rows of a table have numbers in the same unit if they agree in these columns.
_MEASURE = ("measure", "metric", "condition")
# The keys that verify does not compute again. All others are computed by the wing.
_FORMS = {"kind": str, "made_on": str, "made_with": dict, "after": list, "checksum": str}
_FRAME = (*_FORMS, "version")
_LINK = {"name", "kind", "sha256"}  # the keys of a file before a record
# Texts that another version of skfair may word in another way. If only these differ, the record
# need not have been edited.
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
    # _OPEN is a text that an earlier version may have worded otherwise or lacked. Numbers are never
    # open. It is a difference like others if the record is of this version.
    code: int = _DIFFERS
    size: float = 0.0  # size of a difference of numbers


# Computes the parts of a record again, and returns them with what was found on the way. It may
# remove what cannot be compared from the record.
Verifier: TypeAlias = Callable[
    [dict[str, Any], argparse.Namespace], tuple[dict[str, Any], list[Finding]]
]


def write_record(
    path: str | PathLike[str],
    kind: str,
    parts: Mapping[str, Any],
    after: Paths,
    *,
    force: bool = False,
) -> None:
    """Write a record of the parts that a wing computed, after the files that came before it."""
    files = [Path(file) for file in several(after)]
    check_new(Path(path), force=force)
    for file in files:
        if file.exists() and Path(path).exists() and file.samefile(path):
            raise ValueError(
                f"The record {fspath(path)!r} cannot come after itself, because it would replace "
                "that file. Name another file for the record."
            )
    record = {"kind": kind, "version": VERSION, "made_on": date.today(), "made_with": versions()}
    record |= {"after": [_link(file) for file in files], **parts}
    with replacing(path) as beside:
        beside.write_bytes(canonical(record | {"checksum": _checksum(record)}))


def check_new(record: Path, *others: Path, force: bool) -> None:
    """Raise if the name of a record is wrong, or if a file to write exists and may not be lost."""
    if record.suffix != ".json":
        raise ValueError(f"A record is a file ending in .json, got {str(record)!r}.")
    for file in (record, *others):
        if file.is_file() and not force:
            raise ValueError(
                f"There is a file {str(file)!r} already, which the record {record.name} would "
                "replace. Name another record, or replace the file with force=True."
            )


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
    is_known = type(version) is int and 1 <= version <= VERSION
    if not is_whole or kind not in verifiers or not is_known:
        raise ValueError(
            f"{path.name} is no record that this release reads: it has the kind {kind!r} and the "
            f"version {version!r}, not {listed(verifiers)} of version {VERSION}."
        )
    recorded = {name: own for name, own in deepcopy(record).items() if name not in _FRAME}
    given = _given(options.after)
    try:
        parts, found = verifiers[kind](recorded, options)
        found = [*_form(path, record), *_chain(path, record, given), *found]
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else repr(error)
        raise ValueError(f"{path.name} is no complete record ({why}).") from error
    found += [
        Finding(f"--after {file.name} was named, but no record says that it comes after it.")
        for file, is_linked in given.items()
        if not is_linked
    ]
    computed, made_with, here = plain(parts), record["made_with"], versions()
    found += differences(recorded, computed)
    if version == VERSION:
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
    if code != NOTE and "skfair" in others:
        lines.append(f"Perhaps releases differ. Verify it with skfair {made_with['skfair']}.")
    lines += [*notes, f"SHA-256 of {path.name}: {digest_of(path)}"]
    sys.stdout.writelines(f"{visible(line)}\n" for line in lines)
    return code


def unused(options: argparse.Namespace, names: Mapping[str, str]) -> Iterator[Finding]:
    """Say which options the verifier has named for something that a record does not have.

    ``names`` has what the record lacks, by the name of the option.
    """
    for name, lacks in names.items():
        if getattr(options, name) is not None:
            option = name.replace("_", "-")
            yield Finding(f"--{option} was named, but {lacks}. So it was compared with nothing.")


def _given(files: list[str]) -> dict[Path, bool]:
    """Return the files of ``--after``, none of which was found in a record yet."""
    for file in files:
        if not Path(file).is_file():
            raise ValueError(f"There is no file {file!r} for --after. Check the path.")
    return dict.fromkeys(map(Path, files), False)


def differences(recorded: dict[str, Any], computed: dict[str, Any]) -> list[Finding]:
    """Compare the parts of a record with those that were computed again, both as plain data."""
    return [*_differences(recorded, computed, (), {})]


def _unit_of(row: Any) -> tuple[Any, ...]:
    """Return what tells the rows of a table whose numbers are in the same unit."""
    return tuple(str(row.get(name)) for name in _MEASURE) if isinstance(row, dict) else ()


def _sizes(rows: list[Any]) -> dict[tuple[Any, ...], float]:
    """Return the largest number in units by :func:`_unit_of`."""
    sizes: dict[tuple[Any, ...], float] = {}
    for row in rows:
        own = row.items() if isinstance(row, dict) else ()
        numbers = [abs(value) for name, value in own if _is_in_units(name) and _is_number(value)]
        unit = _unit_of(row)
        sizes[unit] = max([*numbers, sizes.get(unit, 1.0)])
    return sizes


def _is_in_units(name: str) -> bool:
    return name.startswith(_IN_UNITS) or name in _ENDS


def _differences(
    recorded: Any,
    computed: Any,
    place: tuple[str, ...],
    sizes: dict[tuple[Any, ...], float],
    size: float = 1.0,
) -> Iterator[Finding]:
    """Compare what is at a place of a record. Numbers may differ by ``_NOTHING`` times ``size``.

    ``sizes`` are those of the table of which ``computed`` is a row.
    """
    where = ", ".join(place)
    are_words = place and (place[0] in _WORDS or (place[0], place[-1]) in _WORDS)
    code = _OPEN if are_words else _DIFFERS
    if isinstance(recorded, dict) and isinstance(computed, dict):
        in_units = sizes.get(_unit_of(computed), 1.0)
        for key in dict.fromkeys([*computed, *recorded]):
            if key in recorded and key in computed:
                own = in_units if _is_in_units(key) else 1.0
                yield from _differences(recorded[key], computed[key], (*place, key), {}, own)
                continue
            verb, part = ("lacks", computed) if key in computed else ("adds", recorded)
            text = ": ".join(filter(None, [where, f"the record {verb} {key!r}"]))
            yield Finding(text, _DIFFERS if _count(part[key]) else _OPEN)
    elif isinstance(recorded, list) and isinstance(computed, list):
        if len(recorded) != len(computed):
            text = f"{where}: {len(recorded)} entries recorded, {len(computed)} computed"
            yield Finding(text, code)
            return
        rows = _sizes(computed)
        for number, (was, own) in enumerate(zip(recorded, computed, strict=True)):
            texts = [x for x in own.values() if isinstance(x, str)] if isinstance(own, dict) else []
            name = " ".join(filter(None, texts[:4])) or f"entry {number}"
            yield from _differences(was, own, (*place, name), rows)
    elif _is_number(recorded) and _is_number(computed):
        if not _agree(recorded, computed, size):
            apart = abs(recorded - computed)
            text = f"{where}: {recorded!r} recorded, {computed!r} computed, {apart:.3g} apart"
            yield Finding(text, _DIFFERS, apart)
    elif type(recorded) is not type(computed) or recorded != computed:
        text = f"{where}: {recorded!r:.200} recorded, {computed!r:.200} computed"
        yield Finding(text, code)


def _agree(was: float, own: float, size: float) -> bool:
    """Whether two numbers agree. Counts are equal."""
    if isinstance(was, int) and isinstance(own, int):
        return was == own
    return math.isclose(was, own, rel_tol=TOLERANCE, abs_tol=_NOTHING * size)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(value: Any) -> int:
    """Count the numbers in lists and dicts."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(_count, inside)) + _is_number(value)


def _form(path: Path, record: dict[str, Any]) -> Iterator[Finding]:
    """Say whether a record has the bytes, and the parts that are not computed, of a written one."""
    if canonical(record) != path.read_bytes():
        yield Finding(f"{path.name} was edited: it is not in its canonical form")
    if record.get("checksum") != _checksum(record):
        yield Finding(f"{path.name} was edited: it does not agree with its checksum")
    for name, own in record["made_with"].items():
        if name not in COMPONENTS or not isinstance(own, str):
            yield Finding(f"made_with: {name!r} is no component, or {own!r:.50} no version")
    if not record["made_with"].keys() >= {*COMPONENTS[:2]}:
        yield Finding(f"made_with: the record lacks the version of {listed(COMPONENTS[:2])}")
    try:
        date.fromisoformat(record["made_on"])
    except ValueError:
        yield Finding(f"made_on: {record['made_on']!r:.50} is no date")


def _chain(path: Path, record: dict[str, Any], given: dict[Path, bool]) -> Iterator[Finding]:
    """Compare the files before a record, and those before them, with what records say of them.

    They are looked for among the ``given`` files, by digest and then by name, and beside the
    record. ``given`` becomes True for a file that a record names.
    """
    for link in record["after"]:
        name = Path(link["name"]).name  # a name with folders would lead elsewhere
        same = [file for file in given if digest_of(file) == link["sha256"]]
        named = [file for file in given if file.name == name]
        place = [*same, *named, path.parent / name][0]
        if place in given:
            given[place] = True
        if not place.is_file():
            text = f"{path.name} comes after {name}, which was not found. Name it: --after {name}"
            yield Finding(text, NOTE)
        elif digest_of(place) != link["sha256"]:
            yield Finding(f"{name} is not the file that came before {path.name}, or was edited")
        else:
            yield Finding(f"{path.name} comes after {name}, which is unchanged.", NOTE)
            yield from _differences(link, _link(place) | {"name": link["name"]}, ("after",), {})
            before = _read(place) if place.suffix == ".json" else {}
            if "after" in before:
                yield from _form(place, before)
                yield from _chain(place, before, given)
        if set(link) != _LINK:
            yield Finding(f"after: the entry of {name} has the keys {listed(link)}")
