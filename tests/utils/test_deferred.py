"""Sub-packages whose public names are imported when they are first asked for."""

from importlib import import_module

import pytest

PACKAGES = ("skfair.cluster", "skfair.cluster.affinities", "skfair.metrics", "skfair.solvers")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there(package):
    module = import_module(package)
    assert dir(module) == sorted(module.__all__) != []
    for name in module.__all__:
        assert callable(getattr(module, name))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = module.nothing
