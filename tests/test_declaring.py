"""Compiled code on disk: what one process has stored, others find, whatever else is compiled."""

import importlib.util
import os
import pickle
import warnings
from hashlib import sha256

import numpy as np
import pytest

from skfair._kernels import declaring

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


@pytest.fixture(autouse=True)
def warned_anew(monkeypatch):
    """Every test is a process of its own for what is warned about once."""
    monkeypatch.setattr(declaring, "_WARNED", set())


def found_and_made(kernel):
    return sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values())


def test_two_processes_may_compile_at_the_same_time(loaded, monkeypatch):
    """Each for its own types, one while the other is about to write."""
    double, single = np.arange(3.0), np.arange(3, dtype=np.float32)
    first, second, waiting = loaded(), loaded(), [1]
    files = first._cache._cache_file._files

    def late(write):
        def after_the_other(*args, **kwargs):
            if waiting:
                waiting.clear()
                assert second(single, np.float32(2)).dtype == np.float32
            return write(*args, **kwargs)

        return after_the_other

    # Whichever comes first.
    for owner, name in ((files, "_save_index"), (files, "_save_data"), (declaring, "replacing")):
        monkeypatch.setattr(owner, name, late(getattr(owner, name)))
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


def stored_by(loaded):
    """Compile, and return the one file that holds the code."""
    loaded()(np.arange(3.0), 2.0)
    (file,) = loaded.path.parent.rglob("*.nbc")
    return file


def damaged(content):
    half = len(content) // 2
    turned = content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :]
    return {"empty": b"", "cut": content[:half], "no pickle": b"junk" * 99, "one bit": turned}


@pytest.mark.parametrize("kind", ["empty", "cut", "no pickle", "one bit"])
def test_a_damaged_file_is_compiled_anew_with_one_warning(loaded, kind):
    file = stored_by(loaded)
    file.write_bytes(damaged(file.read_bytes())[kind])
    with pytest.warns(RuntimeWarning, match="is damaged") as told:
        assert loaded()(np.arange(3.0), 2.0)[2] == 4.0
    assert len(told) == 1
    later = loaded()
    later(np.arange(3.0), 2.0)
    assert found_and_made(later) == (1, 0)


def test_a_full_disk_stops_no_kernel(loaded):
    """Also where a folder has taken the place of the file."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    kernel = loaded()
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.warns(RuntimeWarning, match="could not be stored"):
            found = kernel(np.arange(3.0), 2.0)
        kernel(np.arange(3, dtype=np.float32), 2.0)  # without another warning
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert found.tolist() == [0.0, 2.0, 4.0]
    assert not [path for path in loaded.path.parent.rglob("*") if ".nbc" in path.name]
    file = stored_by(loaded)
    file.unlink()
    file.mkdir()
    declaring._WARNED.clear()
    with pytest.warns(RuntimeWarning, match="could not be stored"):
        assert loaded()(np.arange(3.0), 2.0)[2] == 4.0


class Planted:
    def __reduce__(self):
        return os.mkdir, ("planted",)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid(), reason="files are given away")
@pytest.mark.parametrize(
    ("place", "mode", "owner", "is_used"),
    [
        ("file", 0o644, 0, True),
        ("file", 0o664, 0, True),  # root's own group
        ("file", 0o666, 0, False),
        ("file", 0o644, 1234, False),
        ("folder", 0o777, 0, False),
        ("folder", 0o1777, 0, True),
        ("folder", 0o1777, 1234, False),
        ("parent", 0o777, 0, False),
        ("parent", 0o755, 1234, False),
        ("parent", 0o1777, 0, True),
    ],
)
def test_code_that_others_could_have_written_is_not_loaded(
    loaded, monkeypatch, tmp_path, place, mode, owner, is_used
):
    file = stored_by(loaded)
    content = file.read_bytes()[32:64] + pickle.dumps(Planted())
    if not is_used:  # with everything right but its author
        file.write_bytes(sha256(content).digest() + content)
    monkeypatch.chdir(tmp_path)
    changed = {"file": file, "folder": file.parent, "parent": tmp_path}[place]
    os.chown(changed, owner, 0)
    changed.chmod(mode)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        kernel = loaded()
        for values in (np.arange(3.0), np.arange(3, dtype=np.float32)):
            assert kernel(values, 2.0)[2] == 4.0
    assert not (tmp_path / "planted").exists()
    assert sum(kernel.stats.cache_hits.values()) == is_used
    assert ["another user could have written" in str(one.message) for one in told] == (
        [] if is_used else [True]
    )


def test_whoever_may_change_the_package_may_write_compiled_code(monkeypatch, loaded):
    """As in a folder that is shared by a group, or bound into a container: nothing is gained."""
    if not hasattr(os, "getuid") or os.getuid():
        pytest.skip("files are given away")
    file = stored_by(loaded)
    package = loaded.path.parent
    for path in (package, file.parent, file):
        os.chown(path, 1234, 1234)
        path.chmod(0o775)
    monkeypatch.setattr("skfair.utils.files._PACKAGE", package)
    later = loaded()
    later(np.arange(3.0), 2.0)
    assert found_and_made(later) == (1, 0)
