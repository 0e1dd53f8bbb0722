"""Declaration of kernels: the decorator :func:`njit`, and where compiled code is kept.

Every file of kernels, here and in the wings, imports :func:`njit` from here instead of from numba.
Kernels are compiled when they are first called. What differs from numba:

- Compiled code is kept in files that processes running at the same time cannot confuse, and that
  are only loaded if no other user could have written them (:class:`_FilesByKey`).
- numba writes compiled code beside the package, into the user's cache, or into
  ``NUMBA_CACHE_DIR``. If it can write to none of them, as in a container whose files are read-only,
  it refuses to declare a cached kernel. Here, kernels are then kept in a temporary folder for as
  long as the process lives (:func:`_temporary_folder`). Kernels that were compiled before, when the
  image was built, are used from where they are.
- A damaged file, a full disk and a long compilation are reported, not raised.
- A division by zero gives an infinity or NaN, as in NumPy. With a check of each divisor, a loop
  could not compute several numbers at a time.

A kernel releases Python's lock while it runs, so that passes over the rows may be shared among
threads (``utils/threads.py``). It has no threads of its own.

The time to compile is a budget (``tests/test_compile_budget.py``). By measurement, most of it goes
to four things: functions that kernels call, which are compiled on their own, again with each
caller, and again for arguments that are literals such as -1; arrays of several dimensions that a
kernel allocates; sums, products and searches of NumPy; and paths that default parameters never
take, which belong into kernels of their own.
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
    """Suspend Python's garbage collection, because importing and compiling leave little garbage.

    Otherwise the collector would search all objects in memory several times, which takes as long as
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

    # This imports the modules that numba would import when a kernel is first called.
    cpu_target.target_context.refresh()
    cpu_target.typing_context.refresh()

_KERNELS = Path(__file__).parent  # this folder; kernels of wings are in folders of the same name
_HASH = sha256().digest_size  # bytes of a hash at the beginning of a file
_WARNED: set[str] = set()  # the subjects that this process has warned about
_CONFIG: Any = numba.config  # typed as Any because numba makes its fields when it is imported
_COMPILED = count()  # counts the kernels that this process had to compile


def njit(*, cache: bool) -> Callable[[Callable[..., Any]], Any]:
    """Return numba's decorator of the same name, with the storage that this file describes.

    ``cache`` is always True. It is an argument because ``@njit(cache=True)`` is how kernels are
    declared everywhere (``.ci/source_rules.py`` checks it).
    """
    # The wrapper for calls from C is not compiled, because nobody calls it. The one for Python is:
    # without it, a test that runs a kernel as plain Python dies if that calls another kernel.
    options: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy"}

    def declare(function: Callable[..., Any]) -> Any:
        try:
            return _kept_by_key(numba.njit(cache=cache, **options)(function))
        except RuntimeError:  # numba has no place to keep the compiled code
            folder = _temporary_folder()
        if folder is None:
            return numba.njit(**options)(function)
        folder_before, _CONFIG.CACHE_DIR = _CONFIG.CACHE_DIR, folder
        # numba chooses the folder when it declares a kernel, so this does not change where kernels
        # of other packages are kept.
        try:
            return _kept_by_key(numba.njit(cache=cache, **options)(function))
        finally:
            _CONFIG.CACHE_DIR = folder_before

    return declare


def _kept_by_key(kernel: Any) -> Any:
    """Replace parts of numba's dispatcher of a kernel: its files, its messages, its compilation."""
    cache = getattr(kernel, "_cache", None)
    files = getattr(cache, "_cache_file", None)
    if files is not None:  # there are none with NUMBA_DISABLE_JIT
        kernel._cache._cache_file = _FilesByKey(files)
        kernel._cache.load_overload = _announcing(kernel._cache.load_overload)
        kernel._cache.save_overload = _where_possible(kernel._cache.save_overload)
        kernel.compile = _nothing_is_garbage()(kernel.compile)
    return kernel


def _announcing(load: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that loads compiled code by ``load``, and logs one message per process.

    The message says that kernels are being compiled. It comes with the third kernel for which
    nothing could be loaded.
    """

    def load_or_announce(*args: Any) -> Any:
        loaded = load(*args)
        if loaded is None and next(_COMPILED) == 2:  # two kernels take less than a second
            logging.getLogger("skfair.kernels").warning(
                "skfair compiles its kernels, which takes some seconds; 'python -m skfair warm' "
                "does it ahead, once per machine."
            )
        return loaded

    return load_or_announce


def _where_possible(save: Callable[..., None]) -> Callable[..., None]:
    """Return a function that stores compiled code by ``save``, and warns if that fails.

    If the disk is full or read-only, the process goes on with the compiled code in memory.
    """

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
    """Files of compiled code: one for each kernel, types of arguments and kind of processor.

    This takes the place of numba's own class for files (``IndexDataCacheFile``), whose methods
    ``save``, ``load`` and ``flush`` numba calls with a *key*: the types of the arguments, the
    processor, and hashes of the code.

    numba numbers its files and writes a list of them. Two processes that compile a kernel at the
    same time, for different types, may both take the next number. The list then leads from one type
    to the code for another, and every later process fails with "can't unbox array", or what one of
    them compiled is not found again. Without a list there is nothing to disagree about.

    A file holds the hash of the rest of it, the hash of what the code was compiled from, and the
    code. The first hash finds damaged files, the second outdated ones. The code is a pickle, which
    can run anything when it is loaded. So files and folders that another user could have written
    are not used.
    """

    def __init__(self, files: Any) -> None:
        self._files = files  # numba's object, which still names files and makes pickles
        # Whether code was read from a file or written to one; ``skfair/warm.py`` reads this
        self.is_used = False

    def save(self, key: Any, data: Any) -> None:
        """Write compiled code and the hash of its source, in one step: nobody reads half a file."""
        path = self._path(key)
        if not _is_place_trusted(path.parent):
            return
        content = self._source(key) + self._files._dump(data)
        with replacing(path, anew=True) as beside:
            beside.write_bytes(sha256(content).digest() + content)
            beside.chmod(beside.stat().st_mode & 0o755)  # files that others can write are not used
        self.is_used = True

    def load(self, key: Any) -> Any:
        """Return compiled code; None if there is none, or it is damaged, old or not trusted."""
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
        """Do nothing: a file is overwritten when its kernel is compiled anew."""

    def _read(self, path: Path) -> bytes | None:
        """Return the content of a file; None if there is none, or it is not trusted.

        If there is a folder in place of the file, its content counts as empty, so that :meth:`load`
        treats it as damaged.
        """
        try:
            # The open file is checked, so that nobody can exchange it between check and reading.
            with open(path, "rb") as file:
                if _is_trusted(path, os.fstat(file.fileno())) and _is_place_trusted(path.parent):
                    return file.read()
        except IsADirectoryError:
            return b"" if _is_place_trusted(path.parent) else None
        except OSError:
            pass
        return None

    def _source(self, key: Any) -> bytes:
        """Return the hash of what code is compiled from: the file of the kernel and the key."""
        return sha256(repr((self._files._source_stamp, key)).encode()).digest()

    def _path(self, key: Any) -> Path:
        """Return the path of the file, which depends on types and processor.

        It does not depend on the code of the kernel, so a changed kernel overwrites its old file.
        """
        types, processor, *_ = key
        digest = sha256(repr((numba.__version__, types, processor)).encode()).hexdigest()
        # numba numbers its files, so a part of the hash becomes the number.
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
    """Warn, unless this process has warned about the same subject (``about``)."""
    if about not in _WARNED:
        _WARNED.add(about)
        warn_user(message, RuntimeWarning)


@once
def _temporary_folder() -> str | None:
    """Make a temporary folder for compiled code, and link into it what is compiled already.

    The folder is removed when the process ends. Returned is None if no folder can be made: kernels
    are then compiled without being kept.
    """
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
        # The name that numba gives to the folder of these kernels within a cache.
        name = f"{kernels.name}_{sha1(str(kernels).encode()).hexdigest()}"
        own = Path(folder, name)
        with suppress(OSError):  # if the disk is full, what is not linked is compiled
            own.mkdir()
            for filled in (Path(_CONFIG.CACHE_DIR or kernels) / name, kernels / "__pycache__"):
                if filled.is_dir() and _is_place_trusted(filled):
                    _link(own, filled)
    return folder


def _link(own: Path, filled: Path) -> None:
    """Make links in ``own`` to the files of compiled code in ``filled`` that it does not have."""
    for file in filled.glob("*.nbc"):
        if not (own / file.name).exists():
            (own / file.name).symlink_to(file)


def _writable_folder() -> str | None:
    """Make a temporary folder, if need be in shared memory, the only place in some containers."""
    for place in (None, "/dev/shm"):
        try:
            return tempfile.mkdtemp(prefix="skfair-kernels-", dir=place)
        except OSError:
            continue
    return None


def _remove(folder: str, owner: int) -> None:
    """Remove the folder, but only in the process ``owner`` that made it.

    Forks of that process run this at their end, too, while it still uses the folder.
    """
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
