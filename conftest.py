"""Settings for all tests: one thread, no display, the folder with real data."""

import gc
import os
import random
import subprocess
import sys
import time
from zlib import crc32

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

# The seed of all that tests draw: a number, "any" for one drawn here, or a range such as 0-9. The
# processes of a run inherit what was drawn.
asked = os.environ.get("SKFAIR_TESTS_SEED", "0")
if asked == "any":
    os.environ["SKFAIR_TESTS_SEED"] = str(random.SystemRandom().randrange(100_000))

# On a busy machine an input takes seconds to draw, which says nothing of the input.
settings.register_profile(
    "busy",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=asked.isdigit(),  # else other inputs are drawn in each run
)
settings.load_profile("busy")


def pytest_addoption(parser):
    """Add the choice of a part of the tests, drawn anew for each seed."""
    parser.addoption("--share", type=float, default=1.0, help="share of the tests that are run")


def pytest_collection_modifyitems(config, items):
    """Keep the share that is asked for: each test is drawn by its name and the seed."""
    share, seed = config.getoption("share"), os.environ.get("SKFAIR_TESTS_SEED", "0")

    def is_drawn(item):
        return crc32(f"{seed} {item.nodeid}".encode()) < share * 2**32

    config.hook.pytest_deselected(items=[item for item in items if not is_drawn(item)])
    items[:] = filter(is_drawn, items)


def pytest_report_header():
    """Print the seed, so that a failure can be repeated."""
    return f"SKFAIR_TESTS_SEED={os.environ.get('SKFAIR_TESTS_SEED', '0')}"


def pytest_cmdline_main(config):
    """Run once for each seed of a range, each in a process of its own."""
    first, is_range, last = os.environ.get("SKFAIR_TESTS_SEED", "0").partition("-")
    if not is_range:
        return None
    codes = []
    for seed in range(int(first), int(last) + 1):
        environment = {**os.environ, "SKFAIR_TESTS_SEED": str(seed)}
        command = [sys.executable, "-m", "pytest", *config.invocation_params.args]
        codes.append(subprocess.run(command, env=environment).returncode)
    return max(codes)


@pytest.fixture
def global_random_seed():
    """The seed of this run, for what draws no numbers by ``tests.seeds``."""
    return int(os.environ.get("SKFAIR_TESTS_SEED", "0"))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Let garbage collections leave out what stays for the whole session: modules and tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# Seconds of a processor for one test, beyond which it is smaller or marked slow.
MOST_SECONDS = 3


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
    """Say how many seconds of a processor the tests took, and which took longest."""
    reports = [r for r in terminalreporter.getreports("passed") if r.when == "call"]
    seconds = sorted((dict(r.user_properties).get("cpu", 0.0), r.nodeid) for r in reports)[::-1]
    total, long = sum(own for own, _ in seconds), [own for own, _ in seconds if own > MOST_SECONDS]
    terminalreporter.write_line(
        f"{total:.0f} s of a processor; {len(long)} tests take more than {MOST_SECONDS} s, "
        f"{sum(long):.0f} s in all. The longest:"
    )
    for own, nodeid in seconds[:10]:
        terminalreporter.write_line(f"{own:6.1f} s  {nodeid}")


@pytest.fixture(autouse=True)
def _close_figures():
    """Close what a test or an example drew: open figures add up to a warning."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
