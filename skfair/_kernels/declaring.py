"""How kernels are declared: compiled when first called, and kept on disk where that is possible.

numba writes compiled code beside the package, into the user's cache, or into ``NUMBA_CACHE_DIR``.
If it can write to none of them, as in a container whose files are read-only, it refuses to declare
a cached kernel. Kernels are then kept in a temporary folder for as long as the process lives. What
was compiled before, when the image was built, is used from where it is.

A kernel lets other threads of Python run while it does, so that passes over the rows may be shared
among threads (``utils/threads.py``). It has no threads of its own.
"""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache as once
from hashlib import sha1
from pathlib import Path
from typing import Any

from skfair.utils.warn import warn_user


@contextmanager
def _nothing_is_garbage() -> Iterator[None]:
    """Look for garbage afterwards: while modules are imported none is made.

    Otherwise everything that is in memory is searched through twice, which takes as long as
    importing numba.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


with _nothing_is_garbage():
    import numba
    from numba.core.registry import cpu_target

    # What numba would import when a kernel is first called.
    cpu_target.target_context.refresh()
    cpu_target.typing_context.refresh()

_KERNELS = Path(__file__).parent
_CONFIG: Any = numba.config  # its fields are set when numba is imported


def njit(*, cache: bool, inline: str = "never") -> Callable[[Callable[..., Any]], Any]:
    """Return numba's decorator of the same name, which does without a place for compiled code."""
    options: dict[str, Any] = {"nogil": True, "inline": inline}

    def declare(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=cache, **options)(function)
        except RuntimeError:  # numba has no place to keep the compiled code
            folder = _temporary_folder()
        if folder is None:
            return numba.njit(**options)(function)
        given, _CONFIG.CACHE_DIR = _CONFIG.CACHE_DIR, folder
        try:  # the place is chosen here, once; kernels of other packages are left alone
            return numba.njit(cache=cache, **options)(function)
        finally:
            _CONFIG.CACHE_DIR = given

    return declare


@once
def _temporary_folder() -> str | None:
    """Make a folder for compiled code, with links to what is compiled; None if that fails too."""
    warn_user(
        "numba can write compiled code neither beside skfair, nor into the user's cache, nor into "
        f"NUMBA_CACHE_DIR={_CONFIG.CACHE_DIR!r}, so kernels that are not there are compiled "
        "anew in every process. Set NUMBA_CACHE_DIR to a folder that can be written, or fill it "
        "when the image is built: python -m skfair warm FOLDER.",
        RuntimeWarning,
    )
    folder = _writable_folder()
    if folder is None:
        return None
    atexit.register(_remove, folder, os.getpid())
    # numba's name of the folder of a package within a cache.
    name = f"{_KERNELS.name}_{sha1(str(_KERNELS).encode()).hexdigest()}"
    own = Path(folder, name)
    own.mkdir()
    for filled in (Path(_CONFIG.CACHE_DIR or _KERNELS) / name, _KERNELS / "__pycache__"):
        for file in filled.glob("*.nb[ic]"):
            if not (own / file.name).exists():
                (own / file.name).symlink_to(file)
    return folder


def _writable_folder() -> str | None:
    """Make a folder to write to; in a read-only container only shared memory may offer one."""
    for place in (None, "/dev/shm"):
        try:
            return tempfile.mkdtemp(prefix="skfair-kernels-", dir=place)
        except OSError:
            continue
    return None


def _remove(folder: str, owner: int) -> None:
    """Remove the folder when the process that made it ends, not when a fork of it does."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
