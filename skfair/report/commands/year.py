"""The commands ``year`` and ``sample-size`` of ``python -m skfair``: a limit that holds for a year.

:func:`run_year` is the procedure of ``doc/how_to/a_year.rst``. Each call tests the limit by the
people of one period (a *look*), with the error probability divided among the fits that are planned.
A look that does not show the limit is an alarm. The looks are in a file with a checksum, which is
replaced as a whole. :func:`run_sample_size` says how many people such a test takes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from skfair.metrics import disparity_test, sample_size
from skfair.records.decision_memo import read_memo
from skfair.records.record import canonical, digest_of
from skfair.report.commands.audit import read_names
from skfair.report.commands.monitor import (
    by_attribute,
    label_in,
    names_limit,
    read_batch,
    reference_of,
)
from skfair.utils.files import check_outputs, replacing
from skfair.utils.text import plural, visible
from skfair.utils.validation import check_number, check_probability

KIND, VERSION = "skfair year", 1
# The settings of a year that options name, and their defaults. A later look may repeat them.
_DEFAULTS: dict[str, Any] = {"confidence": 0.95, "refits": 3, "reference": None, "pos_label": None}
# How settings are called in messages, if they are not the options of the same names
_OPTIONS = {"metrics": "--constraint", "limit": "the limit", "memo": "the SHA-256 of the memo"}
_CONSTRAINT, _LIMIT = "demographic_parity", 0.05


def run_year(options: argparse.Namespace) -> int:
    """Run ``year``: test the limit by the people of a file, and note the look.

    The exit code is 0 if the limit is shown, and 1 after an alarm.
    """
    state = Path(options.state)
    read = [("the file of the decisions", options.file)]
    check_outputs([("--state", str(state), [".json"])], read, force=True)
    if options.prediction is None:
        raise ValueError("--prediction is missing. Name the column of the decisions.")
    if not Path(options.file).is_file():
        raise ValueError(f"There is no file {options.file!r}. Check the path.")
    asked = _asked(options)
    is_new = not state.exists()
    if not is_new:
        year = _read(state)
        changed = [name for name in asked if asked[name] != year["asked"].get(name)]
        if changed:
            name, was, own = changed[0], year["asked"].get(changed[0]), asked[changed[0]]
            raise ValueError(
                f"The year in {state} was begun with {_OPTIONS.get(name, f'--{name}')} {was!r}, "
                f"and now it is {own!r}. The statement is about one setting: leave the option as "
                "it was, or begin a year in another file."
            )
    else:
        year = {"kind": KIND, "version": VERSION, "asked": _begun(asked), "looks": []}
    file = digest_of(options.file)
    _check_open(year, options.batch, file, state)
    look = _look(options, year["asked"]) | {"sha256": file}
    year["looks"].append(look)
    year["checksum"] = _checksum(year)
    with replacing(state) as beside:
        beside.write_bytes(canonical(year))
    new = [f"A new year, because there was no {state}."] if is_new else []
    lines = [*new, *_said(year), f"The looks are in {state}."]
    sys.stdout.writelines(f"{visible(line)}\n" for line in lines)
    return 0 if look["is_within"] else 1


def run_sample_size(options: argparse.Namespace) -> int:
    """Run ``sample-size``: print the number of people of each group that a test takes."""
    check_number(options.looks, "looks", 1)
    check_number(options.refits, "refits", 0)
    for name in ("confidence", "power"):
        check_probability(getattr(options, name), name)
    names = ("max_disparity", "min_ratio", "rows_per_unit", "correlation", "pair_correlation")
    sizes = sample_size(
        **{name: getattr(options, name) for name in names},
        rates=options.rates,
        shares=options.shares,
        confidence=_of_each_fit(options.confidence, options.refits),
        power=options.power ** (1 / options.looks),
    ).tolist()
    named = next((own for own in (options.shares, options.rates) if isinstance(own, dict)), None)
    groups = [f"group {k + 1}" for k in range(len(sizes))] if named is None else [*named]
    lines = [f"{name}: {size:,}" for name, size in zip(groups, sizes, strict=True)]
    when = " at each look" if options.looks > 1 else ""
    lines.append(f"These are {sum(sizes):,} people{when}.")
    sys.stdout.writelines(f"{visible(line)}\n" for line in lines)
    return 0


def _of_each_fit(confidence: float, refits: float) -> float:
    """Return the confidence of each look, so that an excess is missed with 1 - confidence."""
    return 1 - (1 - confidence) / (1 + refits)


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that options name. The attributes are always named."""
    names_limit(options)
    asked = {name: getattr(options, name) for name in ("confidence", "refits", "pos_label")}
    asked |= {"sensitive": read_names(options.sensitive), "reference": reference_of(options)}
    asked["metrics"] = None if options.constraint is None else [options.constraint]
    if options.memo is not None:
        if options.constraint is not None:
            raise ValueError("--memo names the constraint. Leave out --constraint.")
        metrics, limit = read_memo(options.memo)
        asked |= {"metrics": metrics.split(", "), "limit": {"max_disparity": limit}}
        asked["memo"] = digest_of(options.memo)
    for name in ("max_disparity", "min_ratio"):
        if (limit := getattr(options, name)) is not None:
            limit = by_attribute(limit, options)
            by_name = limit if isinstance(limit, Mapping) else {asked["sensitive"][0]: limit}
            asked["limit"] = {name: dict(by_name)}
    return {name: value for name, value in asked.items() if value is not None}


def _begun(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a new year, with defaults for those that were not named."""
    limit = {"max_disparity": dict.fromkeys(asked["sensitive"], _LIMIT)}
    settings = _DEFAULTS | {"metrics": [_CONSTRAINT], "limit": limit} | asked
    check_probability(settings["confidence"], "confidence")
    check_number(settings["refits"], "refits", 0)
    for name, limits in settings["limit"].items():
        for own in limits.values():
            if own is not None:  # no number of people shows a limit of 0
                check_number(own, name, 1e-6)
    return settings


def _check_open(year: dict[str, Any], batch: str, file: str, state: Path) -> None:
    """Raise if the last alarm has been, or if there was a look of this name or at this file."""
    looks = year["looks"]
    if _n_alarms(looks) > year["asked"]["refits"]:
        raise ValueError(
            f"The year in {state} ended with the alarm of {looks[-1]['batch']!r}, which was the "
            "last one: no further decisions are covered. Fit a model with a certificate, and begin "
            "a year in another file."
        )
    for look in looks:
        if look["batch"] == batch:
            raise ValueError(f"There was a look {batch!r} already. Name another one: --batch.")
        if look["sha256"] == file:
            raise ValueError(
                f"The look {look['batch']!r} was at the same file, and each person may count once. "
                "Pass the decisions of another period."
            )


def _look(options: argparse.Namespace, settings: dict[str, Any]) -> dict[str, Any]:
    """Test the limit of each attribute, and return what was found."""
    rows = read_batch(options)
    (comparison, limits), *_ = settings["limit"].items()
    people, tests = rows["sensitive_features"], []
    reference = settings["reference"] or "pairwise"
    columns = rows.get("y_true"), rows.get("y_pred"), rows.get("units")
    for attribute in [*settings["sensitive"], ""]:  # "" is the limit of a memo on intersections
        limit = limits.get(attribute)
        if limit is None:
            continue
        own = reference.get(attribute, "pairwise") if isinstance(reference, dict) else reference
        for metric in settings["metrics"]:
            found = disparity_test(
                metric,
                *columns[:2],
                sensitive_features=people if attribute == "" else people[[attribute]],
                units=columns[2],
                pos_label=label_in(rows, settings["pos_label"]),
                reference=own,
                confidence=_of_each_fit(settings["confidence"], settings["refits"]),
                **{comparison: limit},
            )
            test = {"attribute": attribute, "metric": metric, "limit": limit}
            test |= {"disparity": found.statistic, "p_value": found.p_value}
            tests.append(test | {"is_within": bool(found.is_within), "undefined": found.undefined})
    is_within = all(test["is_within"] for test in tests)
    return {"batch": options.batch, "n_rows": len(people), "tests": tests, "is_within": is_within}


def _n_alarms(looks: list[dict[str, Any]]) -> int:
    return sum(not look["is_within"] for look in looks)


def _said(year: dict[str, Any]) -> Iterator[str]:
    """Say what the last look found, and what may be said and done now."""
    settings, look = year["asked"], year["looks"][-1]
    is_ratio = "min_ratio" in settings["limit"]
    for test in look["tests"]:
        who = f"{test['attribute']}: " if test["attribute"] else ""
        what = f"{who}{test['metric'].replace('_', ' ')}"
        verdict = "shown" if test["is_within"] else "not shown"
        value, side = test["disparity"], "at most"
        if is_ratio:
            value, side, what = 1 - value, "at least", f"{what} ratio"
        if test["undefined"]:
            yield f"{what}: undefined, so no limit is shown: {test['undefined']}."
        else:
            side = f"{verdict} to be {side} {test['limit']:g}"
            yield f"{what} {value:.3g}, {side} (p = {test['p_value']:.2g})."
    n_alarms, refits = _n_alarms(year["looks"]), settings["refits"]
    if look["is_within"]:
        yield f"{look['batch']}: no alarm. {plural(n_alarms, 'alarm')} so far."
    elif n_alarms > refits:
        yield (
            f"{look['batch']}: alarm {n_alarms}, the last one. The statement covers no further "
            "decisions by this or another model."
        )
    else:
        yield (
            f"{look['batch']}: alarm {n_alarms} of at most {refits + 1}. Fit the model again, to "
            "people of today, before the next decisions."
        )
    yield (
        "Statement: the probability that the limit was exceeded in some look, and that this look "
        f"raised no alarm, is at most {1 - settings['confidence']:.4g} "
        f"({plural(len(year['looks']), 'look')})."
    )


def _checksum(year: dict[str, Any]) -> str:
    covered = {name: own for name, own in year.items() if name != "checksum"}
    return sha256(canonical(covered)).hexdigest()


def _read(state: Path) -> dict[str, Any]:
    """Read the looks of a year; raise unless this command wrote them and nothing was changed."""
    try:
        year: Any = json.loads(state.read_bytes())
        is_whole = year["checksum"] == _checksum(year) and canonical(year) == state.read_bytes()
        form = year["kind"], year["version"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(
            f"--state {str(state)!r} is not the file of a year ({error!r:.80}). Pass the file that "
            "this command wrote, or a new name."
        ) from error
    if form != (KIND, VERSION) or not is_whole:
        raise ValueError(
            f"--state {str(state)!r} was changed after it was written, or by another release: its "
            f"checksum, kind or version differ, {form!r}. Restore the file."
        )
    return dict(year)
