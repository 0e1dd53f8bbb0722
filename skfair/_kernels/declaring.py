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
import pickle
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
            return _kept_by_key(numba.njit(cache=cache, **options)(function))
        except RuntimeError:  # numba has no place to keep the compiled code
            folder = _temporary_folder()
        if folder is None:
            return numba.njit(**options)(function)
        given, _CONFIG.CACHE_DIR = _CONFIG.CACHE_DIR, folder
        try:  # the place is chosen here, once; kernels of other packages are left alone
            return _kept_by_key(numba.njit(cache=cache, **options)(function))
        finally:
            _CONFIG.CACHE_DIR = given

    return declare


def _kept_by_key(kernel: Any) -> Any:
    """Let a kernel keep its code in files that are named by what they hold."""
    files = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if files is not None:  # there are none with NUMBA_DISABLE_JIT
        kernel._cache._cache_file = _FilesByKey(files)
    return kernel


class _FilesByKey:
    """Files of compiled code, one for each kernel and types of its arguments.

    numba numbers such files and writes a list of them. Two processes that compile a kernel at the
    same time, for different types, may both take the next number. The list then leads from one type
    to the code for another, and every later process fails with "can't unbox array", or what one of
    them compiled is not found again. Without a list there is nothing to disagree about.
    """

    def __init__(self, files: Any) -> None:
        self._files = files  # numba's, which write, read and name a file

    def save(self, key: Any, data: Any) -> None:
        """Write what was compiled, and from what."""
        self._files._save_data(self._name(key), (self._source(key), self._files._dump(data)))

    def load(self, key: Any) -> Any:
        """Return what was compiled, or None if it is not there or its source has changed."""
        try:
            source, content = self._files._load_data(self._name(key))
        except OSError:
            return None
        return pickle.loads(content) if source == self._source(key) else None

    def flush(self) -> None:
        """Nothing has to be forgotten: a file is overwritten when its kernel is compiled anew."""

    def _source(self, key: Any) -> tuple[Any, str]:
        return self._files._source_stamp, repr(key)

    def _name(self, key: Any) -> str:
        """Return the name of the file: by types and processor, not by the code of the kernel."""
        types, processor, *_ = key
        digest = sha1(repr((numba.__version__, types, processor)).encode()).hexdigest()
        return str(self._files._data_name(int(digest[:12], 16)))


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
