"""Declaration of kernels: compiled when first called, and kept on disk where that is possible.

numba writes compiled code beside the package, into the user's cache, or into ``NUMBA_CACHE_DIR``.
If it can write to none of them, as in a container whose files are read-only, it refuses to declare
a cached kernel. Kernels are then kept in a temporary folder for as long as the process lives.
Kernels that were compiled before, when the image was built, are used from where they are.

A kernel lets other threads of Python run while it does, so that passes over the rows may be shared
among threads (``utils/threads.py``). It has no threads of its own.

Compiling is a budget (``tests/test_compile_budget.py``). By measurement, most of it goes to four
things. Functions that kernels call are compiled on their own, again with each caller, and again for
arguments that are literals such as -1. Memory of several dimensions that a kernel allocates is
dear, and so are sums, products and searches of NumPy. Paths that default parameters never take
belong into kernels of their own.
"""

from __future__ import annotations

import atexit
import gc
import logging
import os
import pickle
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache as once
from hashlib import sha1, sha256
from itertools import count
from pathlib import Path
from typing import Any

from skfair.utils.files import is_safe, replacing
from skfair.utils.warn import warn_user


@contextmanager
def _nothing_is_garbage() -> Iterator[None]:
    """Look for garbage afterwards, because importing and compiling keep nearly all they make.

    Otherwise everything that is in memory is searched through several times, which takes as long as
    importing numba, or a tenth of the time that kernels take to compile.
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

    # The modules that numba would import when a kernel is first called.
    cpu_target.target_context.refresh()
    cpu_target.typing_context.refresh()

_KERNELS = Path(__file__).parent
_HASH = sha256().digest_size
_WARNED: set[str] = set()  # what this process has warned about
_CONFIG: Any = numba.config  # its fields are set when numba is imported
_COMPILED = count()  # kernels that this process had to compile


def njit(*, cache: bool) -> Callable[[Callable[..., Any]], Any]:
    """Return numba's decorator of the same name, which does without a place for compiled code."""
    # An entry for C, which nobody calls, is some of what there is to compile. One for Python stays:
    # without it a test that runs a kernel as plain Python dies where that calls another one.
    options: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}

    def declare(function: Callable[..., Any]) -> Any:
        try:
            return _kept_by_key(numba.njit(cache=cache, **options)(function))
        except RuntimeError:  # numba has no place to keep the compiled code
            folder = _temporary_folder()
        if folder is None:
            return numba.njit(**options)(function)
        folder_before, _CONFIG.CACHE_DIR = _CONFIG.CACHE_DIR, folder
        try:  # the place is chosen here, once; kernels of other packages are left alone
            return _kept_by_key(numba.njit(cache=cache, **options)(function))
        finally:
            _CONFIG.CACHE_DIR = folder_before

    return declare


def _kept_by_key(kernel: Any) -> Any:
    """Let a kernel keep its code in files that are named by what they hold."""
    cache = getattr(kernel, "_cache", None)
    files = getattr(cache, "_cache_file", None)
    if files is not None:  # there are none with NUMBA_DISABLE_JIT
        kernel._cache._cache_file = _FilesByKey(files)
        kernel._cache.load_overload = _announcing(kernel._cache.load_overload)
        kernel._cache.save_overload = _where_possible(kernel._cache.save_overload)
        kernel.compile = _nothing_is_garbage()(kernel.compile)
    return kernel


def _announcing(load: Callable[..., Any]) -> Callable[..., Any]:
    """Load compiled code; say so, once, where kernels have to be compiled. A line on stderr."""

    def load_or_announce(*args: Any) -> Any:
        loaded = load(*args)
        if loaded is None and next(_COMPILED) == 2:  # two of them take less than a second
            logging.getLogger("skfair.kernels").warning(
                "skfair compiles its kernels, which takes some seconds; 'python -m skfair warm' "
                "does it ahead, once per machine."
            )
        return loaded

    return load_or_announce


def _where_possible(save: Callable[..., None]) -> Callable[..., None]:
    """Store compiled code unless the disk is full or refuses it: the code runs without."""

    def store(*args: Any) -> None:
        try:
            save(*args)
        except OSError as error:
            _warn_once(
                "full",
                f"Compiled code could not be stored: {error}. The next process compiles it anew. "
                "Free some space, or set NUMBA_CACHE_DIR to a folder on another disk.",
            )

    return store


class _FilesByKey:
    """Files of compiled code, one for each kernel and types of its arguments.

    numba numbers such files and writes a list of them. Two processes that compile a kernel at the
    same time, for different types, may both take the next number. The list then leads from one type
    to the code for another, and every later process fails with "can't unbox array", or what one of
    them compiled is not found again. Without a list there is nothing to disagree about.

    A file is the hash of its rest, the hash of what the code was compiled from, and the code. The
    code is a pickle, which runs what its author likes when it is loaded. So files and folders that
    another user could have written are not used.
    """

    def __init__(self, files: Any) -> None:
        self._files = files  # numba's, which name a file
        self.is_used = False  # whether code was read from one, or written to it

    def save(self, key: Any, data: Any) -> None:
        """Write what was compiled, and from what."""
        path = self._path(key)
        if not _is_place_trusted(path.parent):
            return
        content = self._source(key) + self._files._dump(data)
        with replacing(path, anew=True) as beside:
            beside.write_bytes(sha256(content).digest() + content)
            beside.chmod(beside.stat().st_mode & 0o755)
        self.is_used = True

    def load(self, key: Any) -> Any:
        """Return what was compiled, or None if it is not there or its source has changed."""
        path = self._path(key)
        content = self._read(path)
        if content is None:
            return None
        if sha256(content[_HASH:]).digest() != content[:_HASH]:
            _discard(path)
            return None
        if content[_HASH : 2 * _HASH] != self._source(key):
            return None
        self.is_used = True
        return pickle.loads(content[2 * _HASH :])

    def flush(self) -> None:
        """Nothing has to be forgotten: a file is overwritten when its kernel is compiled anew."""

    def _read(self, path: Path) -> bytes | None:
        """Return what is in a file; None if there is none, or another user could have written."""
        try:
            with open(path, "rb") as file:  # what is checked is what is read
                if _is_trusted(path, os.fstat(file.fileno())) and _is_place_trusted(path.parent):
                    return file.read()
        except IsADirectoryError:
            return b"" if _is_place_trusted(path.parent) else None
        except OSError:
            pass
        return None

    def _source(self, key: Any) -> bytes:
        return sha256(repr((self._files._source_stamp, key)).encode()).digest()

    def _path(self, key: Any) -> Path:
        """Return the file: by types and processor, not by the code of the kernel."""
        types, processor, *_ = key
        digest = sha256(repr((numba.__version__, types, processor)).encode()).hexdigest()
        name = self._files._data_name(int(digest[:12], 16))
        return Path(self._files._data_path(name))


def _is_place_trusted(folder: Path) -> bool:
    """Return whether no other user could have put a file into a folder, or moved the folder."""
    return all(_is_trusted(place, place.stat()) for place in (folder, folder.parent))


def _is_trusted(path: Path, status: os.stat_result) -> bool:
    """Return whether no other user could have written a file or folder; warn if one could."""
    if is_safe(status):
        return True
    _warn_once(
        "unsafe",
        f"Compiled code in {str(path)!r} is neither used nor stored, because another user could "
        f"have written it ({stat.filemode(status.st_mode)}, owner {status.st_uid}), and loading "
        "it runs it. So kernels are compiled anew in every process. Take it away from others "
        "(chown, chmod go-w), or set NUMBA_CACHE_DIR to a folder that only you can write.",
    )
    return False


def _discard(path: Path) -> None:
    """Delete a damaged file, or a folder in its place; its kernel is compiled and stored anew."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    _warn_once(
        "damaged",
        f"Compiled code in {str(path)!r} is damaged. It is deleted and compiled anew. If this "
        "happens again, check the disk.",
    )


def _warn_once(about: str, message: str) -> None:
    """Warn, unless this process has warned about the same thing."""
    if about not in _WARNED:
        _WARNED.add(about)
        warn_user(message, RuntimeWarning)


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
    for kernels in _KERNELS.parent.rglob(_KERNELS.name):
        # numba's name of the folder of a package within a cache.
        name = f"{kernels.name}_{sha1(str(kernels).encode()).hexdigest()}"
        own = Path(folder, name)
        with suppress(OSError):  # of a full disk: what is not linked is compiled
            own.mkdir()
            for filled in (Path(_CONFIG.CACHE_DIR or kernels) / name, kernels / "__pycache__"):
                if filled.is_dir() and _is_place_trusted(filled):
                    _link(own, filled)
    return folder


def _link(own: Path, filled: Path) -> None:
    """Link to what is compiled, unless it is there."""
    for file in filled.glob("*.nbc"):
        if not (own / file.name).exists():
            (own / file.name).symlink_to(file)


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
