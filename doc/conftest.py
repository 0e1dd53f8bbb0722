"""The code blocks of the guide are tests: ``pytest --doctest-glob='*.rst' doc``."""

import os
from importlib.util import find_spec
from itertools import takewhile

import pytest
from sklearn import config_context

# Pages about other libraries are run where these are installed.
NEEDS = {
    "boosting": ("lightgbm", "xgboost"),
    "deploy": ("skl2onnx", "onnxruntime", "skops"),
    "explain": ("shap",),
    "mlflow": ("mlflow", "skops", "sqlalchemy", "alembic"),
    "onnx": ("skl2onnx", "onnxruntime"),
}
collect_ignore = [
    "case_study.py",
    "conf.py",
    "ending_table.py",
    "hero.py",
    "look.py",
    "name_tables.py",
    "look_audits.py",
    "sample_audits.py",
    "mathml.py",
    "recorded.py",
    "search_queries.py",
    "style.py",
    "wins.py",
    "_build",
    "auto_examples",
    "generated",
]
collect_ignore += [
    f"how_to/{page}.rst" for page, names in NEEDS.items() if not all(map(find_spec, names))
]
if not os.environ.get("SKFAIR_DATA"):  # these read real tables
    collect_ignore += ["how_to/alternatives.rst", "how_to/case_study.rst"]


@pytest.fixture(autouse=True)
def _leave_no_trace():
    """Undo ``sklearn.set_config`` and close the figures of a page after it ran."""
    with config_context():
        yield
    import matplotlib.pyplot as plt

    plt.close("all")


def pytest_collection_modifyitems(items):
    """Let other libraries warn on the pages about them.

    MLflow loads models in other processes, and a search for alternatives fits many models.
    """
    for item in items:
        if item.path.name in ("mlflow.rst", "alternatives.rst"):
            item.add_marker(pytest.mark.slow)
        needs = NEEDS.get(item.path.stem) if item.path.parent.name == "how_to" else None
        if item.path.name == "from_other_libraries.rst":
            needs = find_spec("aif360")
            if not needs:  # the last section is left out
                run = takewhile(lambda one: "from aif360" not in one.source, item.dtest.examples)
                item.dtest.examples = list(run)
        if needs:
            item.add_marker(pytest.mark.filterwarnings("ignore"))
