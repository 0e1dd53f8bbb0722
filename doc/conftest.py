"""The code blocks of the guide are tests: ``pytest --doctest-glob='*.rst' doc``."""

import pytest
from sklearn import config_context

collect_ignore = ["conf.py", "look.py", "_build", "auto_examples", "generated"]


@pytest.fixture(autouse=True)
def _leave_no_trace():
    """Undo ``sklearn.set_config`` and close the figures of a page after it ran."""
    with config_context():
        yield
    import matplotlib.pyplot as plt

    plt.close("all")
