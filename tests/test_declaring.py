"""Compiled code on disk: what one process has stored, others find, whatever else is compiled."""

import importlib.util
import os

import numpy as np
import pytest

numba = pytest.importorskip("numba")
pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")

SOURCE = '''
from skfair._kernels.declaring import njit

@njit(cache=True)
def times(x, factor):
    """Return x times a factor, in the precision of x."""
    out = x.copy()
    for i in range(x.size):
        out[i] = x[i] * factor
    return out
'''


@pytest.fixture
def loaded(tmp_path):
    """Return a function that loads the kernel as a new process does."""
    path = tmp_path / "planted.py"
    path.write_text(SOURCE)

    def load():
        spec = importlib.util.spec_from_file_location("planted", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.times

    load.path = path
    return load


def found_and_made(kernel):
    return sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values())


def test_two_processes_may_compile_at_the_same_time(loaded, monkeypatch):
    """Each for its own types, one while the other is about to write."""
    double, single = np.arange(3.0), np.arange(3, dtype=np.float32)
    first, second, waiting = loaded(), loaded(), [1]
    files = first._cache._cache_file._files

    def late(write):
        def after_the_other(*args):
            if waiting:
                waiting.clear()
                assert second(single, np.float32(2)).dtype == np.float32
            write(*args)

        return after_the_other

    for name in ("_save_index", "_save_data"):  # whichever comes first
        monkeypatch.setattr(files, name, late(getattr(files, name)))
    assert first(double, 2.0).tolist() == [0.0, 2.0, 4.0]
    assert not waiting
    later = loaded()
    assert later(single, np.float32(3)).tolist() == [0.0, 3.0, 6.0]
    assert later(double, 3.0).dtype == np.float64
    assert found_and_made(later) == (2, 0)


def test_a_changed_source_is_compiled_anew(loaded):
    values = np.arange(3.0)
    for change, expected in (("x[i] * factor", 4.0), ("x[i] + factor", 5.0)):
        loaded.path.write_text(SOURCE.replace("x[i] * factor", change))
        os.utime(loaded.path, (0, 1e9 + expected))  # as another second would
        assert loaded()(values, 2.0 if expected == 4.0 else 3.0)[2] == expected
        again = loaded()
        again(values, 1.0)
        assert found_and_made(again) == (1, 0)
    stored = list(loaded.path.parent.rglob("*.nb*"))
    assert len(stored) == 1  # the second took the place of the first


def test_another_numba_has_files_of_its_own(loaded, monkeypatch):
    loaded()(np.arange(3.0), 2.0)
    monkeypatch.setattr(numba, "__version__", "999.0")
    other = loaded()
    other(np.arange(3.0), 2.0)
    assert found_and_made(other) == (0, 1)
