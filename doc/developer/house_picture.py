"""Draw the layers of the package, from the contract that ``make lint`` compares imports with."""

import configparser
import re
from pathlib import Path

import matplotlib.pyplot as plt

import skfair
from skfair.inspection._style import PALETTE

SETTINGS = Path(skfair.__file__).parents[1] / "setup.cfg"
LEFT, WIDE = 0.24, 0.76  # of what is drawn of the parts
# What each layer is for, from the top.
TEXTS = (
    "run from a shell",
    "choose, compile, export",
    "algorithms of papers",
    "what users fit and watch",
    "what estimators share, audits",
    "limits enforced, rows read",
    "how it is solved or measured",
    "what a solver may ask",
    "what is limited",
    "what is solved, sample data",
    "groups of rows",
    "compiled loops",
    "what all parts use",
)


def layers():
    """Return the parts on each layer, from the top; names without code are left out."""
    settings = configparser.ConfigParser()
    settings.read(SETTINGS)
    lines = settings["importlinter:contract:layers"]["layers"].strip().splitlines()
    return [re.split(r"\s*[|:]\s*", line) for line in lines[:-1]]


def draw():
    """Draw layers from the ground up; none imports from a higher one."""
    figure, axes = plt.subplots(figsize=(9, 6), layout="constrained")
    parts = layers()
    for height, (text, names) in enumerate(reversed([*zip(TEXTS, parts, strict=True)])):
        axes.text(0, height, text, va="center", fontsize=10)
        letters = [3 + len(name) for name in names]
        left, unit = LEFT, WIDE / sum(letters)
        for name, size in zip(names, letters, strict=True):
            put(axes, left, height, size * unit - 0.01, name, PALETTE[0] if height else "0.45")
            left += size * unit
    axes.set(xlim=(0, 1), ylim=(-0.5, len(parts) - 0.5))
    axes.axis("off")
    return figure


def put(axes, left, height, width, name, color):
    """Draw a part."""
    axes.add_patch(plt.Rectangle((left, height - 0.34), width, 0.68, color=color, lw=0))
    middle = left + width / 2
    axes.text(middle, height, name, ha="center", va="center", color="white", fontsize=8.5)


if __name__ == "__main__":  # as the page runs it
    draw()
