"""A small cluster of worker processes, closed again so that it disturbs no other tests."""

import pytest


@pytest.fixture(scope="module")
def cluster():
    """A client of two workers of one thread each."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="1.5GiB", dashboard_address=":0"
        ) as found,
        distributed.Client(found, set_as_default=False) as client,
    ):
        yield client
