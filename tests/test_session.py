"""What ``conftest.py`` sets for a session of tests."""

import gc
import sys

from tests.processes import run


def test_sessions_of_tests_collect_garbage_and_keep_bytecode():
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    assert not sys.dont_write_bytecode
    assert run("import sys; print(sys.dont_write_bytecode)") == "False"
