"""What the site shows of the examples with real data if it is built without the data."""

import os
import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
NUMBER = re.compile(r"\d+(?:\.\d+)?")
PAGE = """
Title
=====

.. GENERATED FROM PYTHON SOURCE LINES 1-2

.. code-block:: Python

    import skfair

    first = 1


.. GENERATED FROM PYTHON SOURCE LINES 3-4

More
----

.. code-block:: Python

    print(first)


.. rst-class:: sphx-glr-timing
"""


@pytest.fixture
def recorded(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "doc")
    import recorded

    yield recorded
    plt.close("all")
    plt.rcdefaults()
    sys.modules.pop("recorded")


def texts(outputs):
    words = [text for output in outputs for figure in output["words"] for text in figure]
    return [*(output["printed"] for output in outputs), *words]


def test_records_are_of_today_s_code(recorded):
    reading = {
        path.stem.removeprefix("plot_")
        for path in (ROOT / "examples").glob("plot_*.py")
        if "load_local(" in path.read_text(encoding="utf-8")
    }
    assert reading == set(recorded.EXAMPLES)
    for name in recorded.EXAMPLES:
        record = recorded.read(name)
        assert record["code"] == recorded.code_key(name), f"plot_{name}.py changed: make recorded"
        assert len(record["outputs"]) == len(recorded.cells(name))
        pictures = sorted(recorded.FOLDER.glob(f"{name}_*.png"))
        assert len(pictures) == sum(len(output["words"]) for output in record["outputs"]) > 0
        assert all(path.stat().st_size < 60_000 for path in pictures)


def test_outputs_stand_below_their_code(recorded, monkeypatch):
    outputs = [
        {"printed": "", "words": []},
        {"printed": "1\n\n2", "words": [["a title", "b"], ["c"]]},
    ]
    record = {"date": "2026-01-02", "versions": {"skfair": "1.0"}, "outputs": outputs}
    monkeypatch.setattr(recorded, "read", lambda name: record)
    page = recorded.filled(PAGE, "loans", "/folder/images")
    told = (
        "2026-01-02 with skfair 1.0",
        "first = 1",
        "print(first)",
        "_001.png\n   :alt: a title, b",
    )
    places = [
        page.index(text) for text in (*told, "loans_002.png", "    1\n    \n    2\n", "timing")
    ]
    assert places == sorted(places)
    assert page.count(".. note::") == page.count("sphx-glr-script-out") == 1


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("SKFAIR_DATA"), reason="needs the folder of data sets")
@pytest.mark.parametrize("name", ["adult", "communities", "compas"])
def test_records_have_the_numbers_of_today(name, recorded):
    """Sums are rounded differently elsewhere, so one of some thousand people may be moved."""
    now, then = texts(recorded.run(name)[0]), texts(recorded.read(name)["outputs"])
    assert [NUMBER.sub("#", text) for text in now] == [NUMBER.sub("#", text) for text in then]
    for text, old in zip(now, then, strict=True):
        for number, before in zip(NUMBER.findall(text), NUMBER.findall(old), strict=True):
            digits = len(before.partition(".")[2])
            unit = 10.0**-digits if digits else max(1, 0.01 * float(before))
            assert np.isclose(float(number), float(before), rtol=0, atol=2.01 * unit), (text, old)
