"""Settings for all tests: one thread, no display, the folder with real data."""

import gc
import os
import sys
import time

# Before numpy is imported: tests run in parallel processes, each with one thread.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# Without it scikit-learn skips its check of array API input.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# All is compiled to bytecode once: tests start a hundred processes that import the package.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

# On a busy machine an input takes seconds to draw, which says nothing of the input.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Let garbage collections leave out what stays for the whole session: modules and tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# Of one processor for one test. Kernels that are compiled for the first time count too.
MOST_SECONDS = 10


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Note the seconds of the processor: on a busy machine those of the clock say little."""
    start = time.process_time()
    try:
        return (yield)
    finally:
        item.user_properties.append(("cpu", time.process_time() - start))
        gc.enable()  # Dask leaves it as it was when tests were found and Dask was imported: off


def pytest_terminal_summary(terminalreporter):
    """Name the tests that take so long that the whole suite does."""
    for report in terminalreporter.getreports("passed"):
        seconds = dict(report.user_properties).get("cpu", 0.0)
        if report.when == "call" and seconds > MOST_SECONDS:
            terminalreporter.write_line(f"SLOW {seconds:.0f} s of a processor: {report.nodeid}")


@pytest.fixture(autouse=True)
def _close_figures():
    """Close what a test or an example drew: open figures add up to a warning."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
