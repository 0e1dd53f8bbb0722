"""The integer programmes of HiGHS, without the lines that it prints for its own developers."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Standard output belongs to the whole process, so one at a time turns it away.
_LOCK = threading.Lock()


@contextmanager
def without_highs_lines() -> Iterator[None]:
    """Keep lines of HiGHS from the screen, whatever its options say; pass on all others.

    They come from C, so only the file descriptor can be turned away: to a temporary file, and what
    others wrote meanwhile is written afterwards. Without standard output or a place for the file,
    nothing is done: to lose a line of somebody else's log would be worse.
    """
    with _LOCK:
        try:
            said = tempfile.TemporaryFile()  # noqa: SIM115 (closed below)
            screen = os.dup(1)
        except OSError:
            yield
            return
        with said:
            os.dup2(said.fileno(), 1)
            try:
                yield
            finally:
                os.dup2(screen, 1)
                os.close(screen)
                said.seek(0)
                os.write(1, b"".join(line for line in said if not line.startswith(b"Highs")))
