"""Pictures of the tutorial: the code of its page is run, and the displays that it makes are saved.

The page reads a real table. Without it (``SKFAIR_DATA``) a picture only says how it is made.
"""

import os
from contextlib import redirect_stdout
from doctest import DocTestParser
from io import StringIO
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import style

HERE = Path(__file__).parent
PAGE = HERE / "how_to" / "case_study.rst"
PICTURES = ("limits", "before_after", "course")  # the variables of the page that hold displays
ABSENT = "This picture is drawn when the site is built with the table of the tutorial."


def figures():
    """Run the code of the page and return the figures of its displays, by name."""
    if not os.environ.get("SKFAIR_DATA"):
        return {name: _saying(ABSENT) for name in PICTURES}
    names = {}
    with redirect_stdout(StringIO()):
        for example in DocTestParser().get_examples(PAGE.read_text(encoding="utf-8")):
            exec(example.source, names)
    return {name: np.ravel(names[name].ax_)[0].figure for name in PICTURES}


def _saying(text):
    figure = plt.figure(figsize=(6, 1))
    figure.text(0.5, 0.5, text, ha="center")
    return figure


def draw(folder):
    """Write the pictures, unless those in the folder are newer than the page."""
    paths = {name: folder / f"case_study_{name}.png" for name in PICTURES}
    written = [path.stat().st_mtime for path in paths.values() if path.exists()]
    if len(written) == len(paths) and min(written) > PAGE.stat().st_mtime:
        return
    style.reset(None, None)
    for name, figure in figures().items():
        figure.savefig(paths[name], dpi=110, bbox_inches="tight")
        plt.close(figure)
