"""Files that are written completely or not at all, and files that nobody else can have written.

:func:`replacing` writes reports, states of monitors and compiled code. Commands call
:func:`check_outputs` before, so that no file is lost. :func:`is_safe` is called before compiled
code is loaded from a folder, because people who can write there could run code here.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

_PACKAGE = Path(__file__).parents[1]


@contextmanager
def replacing(path: str | os.PathLike[str], *, anew: bool = False) -> Iterator[Path]:
    """Yield a file to write, which replaces ``path`` as soon as it is complete.

    If the writing fails or is interrupted, the old file stays.

    Parameters
    ----------
    path : str or path-like
        The file to replace. A device or a pipe is written directly.
    anew : bool, default=False
        If True, a link is replaced and the file gets new permissions. If False, the file that a
        link leads to is replaced, and its permissions are kept.
    """
    place = Path(path)
    if place.exists() and not place.is_file():
        yield place
        return
    place = place if anew else place.resolve()
    beside = place.with_name(f".{uuid4().hex}{place.suffix}")  # writers may choose by the suffix
    try:
        yield beside
        if place.exists() and not anew:
            shutil.copymode(place, beside)
        os.replace(beside, place)
    except OSError as error:
        if error.filename == str(beside):  # the error should name the user's file
            error.filename = str(path)
        raise
    finally:
        beside.unlink(missing_ok=True)


def check_outputs(
    outputs: Iterable[tuple[str, str | None, Sequence[str]]],
    inputs: Iterable[tuple[str, str]],
    *,
    force: bool,
) -> None:
    """Raise unless a command can write its files without the loss of another one.

    Files that are read are never replaced. Others are, with the option ``--force``.

    Parameters
    ----------
    outputs : iterable of (str, str or None, sequence of str)
        The option that names a file to write, its path (None if there is none), and how it may end.
    inputs : iterable of (str, str)
        What a file that is read is called in errors, and its path.
    force : bool
        Whether files that exist may be replaced.
    """
    read = {os.path.realpath(path): what for what, path in inputs}
    written: dict[str, str] = {}
    for option, path, suffixes in outputs:
        if path is None:
            continue
        if not path.lower().endswith(tuple(suffixes)):
            *first, last = suffixes
            ends = " or ".join(filter(None, [", ".join(first), last]))
            raise ValueError(f"{option} must end in {ends}, got {path!r}.")
        if not Path(path).parent.is_dir():
            raise ValueError(f"There is no folder {str(Path(path).parent)!r} for {option}.")
        place = os.path.realpath(path)
        if place in written:
            raise ValueError(f"{written[place]} and {option} are both {path!r}. Name two files.")
        written[place] = option
        same = (own for own in read if os.path.exists(own) and os.path.exists(place))
        if place in read or any(os.path.samefile(own, place) for own in same):
            what = read.get(place, "a file that is read")
            raise ValueError(f"{option} {path!r} is {what}. Name another one.")
        if os.path.isfile(place) and not force:
            raise ValueError(
                f"{option} would replace the file {path!r}. Name another one, or pass --force."
            )


def is_safe(status: os.stat_result) -> bool:
    """Return whether only root, the user, and writers of skfair can have written a file.

    People who may change the files of this package can run code here in any case.
    """
    if not hasattr(os, "getuid"):  # Windows has no such permissions
        return True
    return _other_writers(status) <= _other_writers(os.stat(_PACKAGE))


def _other_writers(status: os.stat_result) -> set[tuple[str, int]]:
    """Return who else than root and the user may write, as pairs (kind, number).

    In a folder with the sticky bit, such as /tmp, only the owner of a file may replace it.
    """
    mode = status.st_mode
    writers = set() if status.st_uid in (0, os.getuid()) else {("user", status.st_uid)}
    if stat.S_ISDIR(mode) and mode & stat.S_ISVTX:
        return writers
    if mode & stat.S_IWGRP and not _is_private(status.st_gid):
        writers.add(("group", status.st_gid))
    if mode & stat.S_IWOTH:
        writers.add(("everybody", 0))
    return writers


def _is_private(number: int) -> bool:
    """Return whether a group has the name of the user, as on many desktops, and no other member."""
    import grp  # not on Windows
    import pwd

    try:
        group, user = grp.getgrgid(number), pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return False
    return group.gr_name == user and set(group.gr_mem) <= {user}
