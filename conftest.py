"""Settings for all tests: one thread, no display, the folder with real data."""

import os
import sys

# Before numpy is imported: tests run in parallel processes, each with one thread.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# Without it scikit-learn skips its check of array API input.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

# On a busy machine an input takes seconds to draw, which says nothing of the input.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.fixture(autouse=True)
def _close_figures():
    """Close what a test or an example drew: open figures add up to a warning."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
