"""Compiled kernels are kept between processes, and do without a place to write."""

import os
import shutil
import textwrap
from pathlib import Path

import pytest

from tests.processes import run

# Two groups, of three people and of one. Little else is imported, and not scikit-learn: it takes
# longer than all the rest.
USE_A_KERNEL = """
    import sys
    import numpy as np
    from skfair._kernels.sorted_pairs import largest_gaps
    scores, level = np.array([4.0, 2.0, 1.0, 3.0]), np.array([1 / 3, 2 / 3, 1.0, 1.0])
    value = np.empty(1)
    largest_gaps(scores, level, np.array([0, 3, 4]), np.array([0]), np.array([1]), value)
    assert "sklearn" not in sys.modules
    stats = largest_gaps.stats
    print(value[0], sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


# What a process sees whose files are all read-only, but perhaps for temporary ones.
READ_ONLY = """
    import tempfile, warnings

    def refuse(place):
        real = getattr(tempfile, place)
        def write(*args, dir=None, **kwargs):
            if {nothing} or "skfair-kernels-" not in f"{{dir}} {{kwargs}}":
                raise OSError(30, "Read-only file system")
            return real(*args, dir=dir, **kwargs)
        setattr(tempfile, place, write)

    refuse("TemporaryFile")
    refuse("mkdtemp")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        {work}
    (one,) = told
    print("NUMBA_CACHE_DIR" in str(one.message), one.filename)
"""


def read_only(work, *, nothing=False):
    work = textwrap.dedent(work).strip().replace("\n", "\n" + 8 * " ")
    return READ_ONLY.format(work=work, nothing=nothing)


@pytest.mark.parametrize("nothing", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_kernels_compile_where_nothing_can_be_written(tmp_path, nothing):
    """Uncached, or in a temporary folder that is gone afterwards, with one warning."""
    said = run(
        read_only(USE_A_KERNEL, nothing=nothing),
        NUMBA_CACHE_DIR=str(tmp_path / "cache"),
        TMPDIR=str(tmp_path),
    )
    value, hits, misses, names_it, line = said.split()
    assert float(value) == pytest.approx(2 / 3, abs=1e-5)
    assert int(hits) + int(misses) == 1  # what lies beside the package may be used
    assert hits == "0" or not nothing
    assert (names_it, line) == ("True", "<string>")
    assert not list(tmp_path.glob("skfair-kernels-*"))


@pytest.fixture(scope="module")
def first_use(tmp_path_factory):
    """A folder into which one process has compiled the kernel, and what it said."""
    folder = tmp_path_factory.mktemp("kernels")
    return folder, run(USE_A_KERNEL, NUMBA_CACHE_DIR=str(folder)).split()


def test_kernels_load_from_the_cache_in_a_fresh_process(tmp_path, first_use):
    """Also where the cache can be read and not written."""
    folder, first = first_use
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    second = run(USE_A_KERNEL, NUMBA_CACHE_DIR=str(tmp_path)).split()
    third = run(read_only(USE_A_KERNEL), NUMBA_CACHE_DIR=str(tmp_path)).split()
    assert first[1:] == ["0", "1"]
    assert second[1:] == third[1:3] == ["1", "0"]
    assert first[0] == second[0] == third[0]


@pytest.mark.slow
@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no shared memory")
def test_stored_kernels_load_where_only_shared_memory_can_be_written(tmp_path, first_use):
    """As in a container that is started read-only, without any folder for temporary files."""
    work = """
        given = tempfile.mkdtemp
        def only_shared(*args, dir=None, **kwargs):
            if dir != "/dev/shm":
                raise OSError(30, "Read-only file system")
            return given(*args, dir=dir, **kwargs)
        tempfile.mkdtemp = only_shared
    """
    shutil.copytree(first_use[0], tmp_path, dirs_exist_ok=True)
    code = read_only(textwrap.dedent(work) + textwrap.dedent(USE_A_KERNEL))
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)).split()[1:3] == ["1", "0"]
    assert not list(Path("/dev/shm").glob("skfair-kernels-*"))


def test_every_kernel_can_be_declared_where_nothing_can_be_written(tmp_path):
    work = """
        from skfair.warm import entry_kernels
        print(len(entry_kernels()))
    """
    said = run(read_only(work), NUMBA_CACHE_DIR=str(tmp_path / "cache")).split()
    assert int(said[0]) > 50
