"""Outputs of the examples that read real data, for a site that is built without the data.

``make recorded`` runs these examples with the data in the folder ``SKFAIR_DATA``, and writes what
they print and draw into ``doc/recorded``. The site shows it with the date if ``SKFAIR_DATA`` is not
set. No data are written. ``tests/test_recorded.py`` fails if the code of an example has changed
since, and, if the data are there, if it gives other numbers.
"""

import ast
import hashlib
import json
import os
import re
import shutil
import sys
from contextlib import redirect_stdout
from datetime import UTC, datetime
from importlib.metadata import version
from io import StringIO
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

import matplotlib.pyplot as plt
from matplotlib.text import Text
from PIL import Image

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import style  # noqa: E402

import skfair  # noqa: E402

FOLDER = HERE / "recorded"
EXAMPLES = ("adult", "communities", "compas")
LIBRARIES = ("numpy", "scikit-learn", "matplotlib")
BLOCK = re.compile(r"^\.\. code-block:: Python\n(?:\n|    .*\n)+", re.MULTILINE)


def cells(name):
    """Return the code of each cell of an example, without the text above it."""
    text = (HERE.parent / "examples" / f"plot_{name}.py").read_text(encoding="utf-8")
    title = ast.parse(text).body[0]
    first, *others = re.split(r"^# %%\n", text, flags=re.MULTILINE)
    first = "\n".join(first.splitlines()[title.end_lineno :])
    return [first, *(re.sub(r"\A(#.*\n)+", "", cell) for cell in others)]


def code_key(name):
    """Return a hash of the code of an example, in which comments do not count."""
    lines = "".join(cells(name)).splitlines()
    code = [line for line in lines if line.strip() and not line.startswith("#")]
    return hashlib.sha256("\n".join(code).encode()).hexdigest()[:16]


def run(name):
    """Run an example; return what each cell prints, its figures, and the words in these."""
    style.reset(None, None)
    plt.close("all")
    names, outputs, figures = {"__name__": "__main__"}, [], []
    for cell in cells(name):
        with redirect_stdout(StringIO()) as out:
            exec(cell, names)
        new = [plt.figure(number) for number in plt.get_fignums()]
        new = [figure for figure in new if figure not in figures]
        words = [_words(figure) for figure in new]
        outputs.append({"printed": out.getvalue().rstrip(), "words": words})
        figures += new
    return outputs, figures


def _words(figure):
    figure.canvas.draw()
    texts = [" ".join(text.get_text().split()) for text in figure.findobj(Text)]
    return [text for text in dict.fromkeys(texts) if re.search("[a-z]", text)]  # no ticks


def write(name):
    """Run an example, and write its pictures and a record of what it printed."""
    outputs, figures = run(name)
    for number, figure in enumerate(figures, 1):
        path = FOLDER / f"{name}_{number}.png"
        figure.savefig(path)
        with Image.open(path) as picture:  # a picture of lines needs few colours
            picture.convert("RGB").quantize(64).save(path, optimize=True)
    record = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "versions": {"skfair": skfair.__version__, **{lib: version(lib) for lib in LIBRARIES}},
        "code": code_key(name),
        "outputs": outputs,
    }
    (FOLDER / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def read(name):
    """Return the record of an example."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def stage(name, images):
    """Copy the pictures to where the gallery looks for those of an example."""
    images.mkdir(parents=True, exist_ok=True)
    for path in FOLDER.glob(f"{name}_*.png"):
        number = int(path.stem.removeprefix(f"{name}_"))
        shutil.copy2(path, images / f"sphx_glr_plot_{name}_{number:03}.png")


def filled(page, name, images):
    """Return the page of an example that was not run, with the recorded outputs below its code."""
    record = read(name)
    outputs, numbers = iter(record["outputs"]), iter(range(1, 100))
    versions = ", ".join(f"{library} {number}" for library, number in record["versions"].items())
    note = (
        ".. note::\n\n   This site was built without the data, so the example was not run here. "
        f"Its outputs and pictures were made on {record['date']} with {versions}.\n\n"
    )

    def with_output(match):
        output, text = next(outputs), match[0]
        for words in output["words"]:
            path = f"{images}/sphx_glr_plot_{name}_{next(numbers):03}.png"
            text += f"\n.. image:: {path}\n   :alt: {', '.join(words)}\n"
            text += "   :class: sphx-glr-single-img\n\n"
        if output["printed"]:
            lines = "".join(f"    {line}\n" for line in output["printed"].splitlines())
            text += f"\n.. rst-class:: sphx-glr-script-out\n\n .. code-block:: none\n\n{lines}\n\n"
        return text

    page = BLOCK.sub(with_output, page)
    return page.replace(".. GENERATED FROM", f"{note}.. GENERATED FROM", 1)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in EXAMPLES:
        write(name)
        print(f"{name}: {', '.join(path.name for path in sorted(FOLDER.glob(f'{name}*')))}")
