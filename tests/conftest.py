"""Fixtures of tests in several folders."""

import pytest


@pytest.fixture(scope="module")
def cluster():
    """A client of two workers of one thread each, closed again: idle workers disturb others."""
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    with (
        # Workers are forks of a process that has imported numpy, pandas and Dask.
        dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="1.5GiB", dashboard_address=":0"
        ) as found,
        distributed.Client(found, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def every_figure_is_drawn():
    """Render what a test has plotted: matplotlib warns, and so fails, if there is no room."""
    import matplotlib.pyplot as plt

    settings = dict(plt.rcParams)
    yield
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()
    plt.close("all")
    assert dict(plt.rcParams) == settings, "a display changed matplotlib's settings"


@pytest.fixture
def legend_of():
    return lambda ax: [text.get_text() for text in ax.get_legend().get_texts()]
