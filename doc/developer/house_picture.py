"""Draw the layers of the package and its wings, from the contracts that ``make lint`` checks."""

import configparser
import re
from pathlib import Path

import matplotlib.pyplot as plt

import skfair
from skfair.inspection._style import PALETTE

SETTINGS = Path(skfair.__file__).parents[1] / "setup.cfg"
LEFT, WIDE = 0.24, 0.76  # of what is drawn of the parts
MOST = 6  # parts in a row
# What each layer is for, from the top.
TEXTS = (
    "run from a shell",
    "audit, compile, export",
    "algorithms of papers",
    "what users fit and watch",
    "what estimators share",
    "limits enforced, rows read",
    "how it is solved or measured",
    "what a solver may ask",
    "what is limited",
    "what is solved, sample data",
    "groups of rows, records",
    "compiled loops",
    "what all parts use",
)


def contract(name, key):
    """Return the lines of a contract of import-linter."""
    settings = configparser.ConfigParser()
    settings.read(SETTINGS)
    return settings[f"importlinter:contract:{name}"][key].strip().splitlines()


def layers():
    """Return the parts on each layer, from the top; names without code are left out."""
    return [re.split(r"\s*[|:]\s*", line) for line in contract("layers", "layers")[:-1]]


def rows():
    """Return a text and the parts of each row, from the top: a wide layer has its wings apart."""
    for text, names in zip(TEXTS, layers(), strict=True):
        if len(names) <= MOST:
            yield text, names
        else:
            yield text, [name for name in names if name not in wings()]
            yield "the same, in wings", [name for name in names if name in wings()]


def wings():
    """Return the parts that may be missing, or hold families that may be."""
    return {"papers", *(name.split(".")[1] for name in contract("wings", "protected_modules"))}


def draw():
    """Draw layers from the ground up; none imports from a higher one."""
    figure, axes = plt.subplots(figsize=(9, 6), layout="constrained")
    every = [*rows()]
    for height, (text, names) in enumerate(reversed(every)):
        axes.text(0, height, text, va="center", fontsize=10)
        letters = [3 + len(name) for name in names]
        left, unit = LEFT, WIDE / sum(letters)
        for name, size in zip(names, letters, strict=True):
            color = PALETTE[1] if name in wings() else PALETTE[0] if height else "0.45"
            put(axes, left, height, size * unit - 0.01, name, color)
            left += size * unit
    axes.set(xlim=(0, 1), ylim=(-0.5, len(every) - 0.5))
    axes.axis("off")
    return figure


def put(axes, left, height, width, name, color):
    """Draw a part."""
    axes.add_patch(plt.Rectangle((left, height - 0.34), width, 0.68, color=color, lw=0))
    middle = left + width / 2
    axes.text(middle, height, name, ha="center", va="center", color="white", fontsize=8.5)


if __name__ == "__main__":  # as the page runs it
    draw()
