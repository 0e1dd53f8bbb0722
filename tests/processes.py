"""Code in a process of its own, which has imported nothing yet."""

import os
import subprocess
import sys
import textwrap


def run(code, cwd=None, **environment):
    """Run code in a fresh interpreter and return what it prints."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=120,
        cwd=cwd,  # the folder of "python -c" comes first on the path
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()
