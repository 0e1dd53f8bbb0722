"""Draw the rooms of the package on floors, as the imports of the sources allow."""

import ast
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt

import skfair
from skfair.inspection._style import PALETTE
from tests.house import HAND_NAMES_ON, MAY_IMPORT, imported_modules, room_of

ROOT = Path(skfair.__file__).parent
# From the top: what a floor is for, and its rooms; none imports from a higher floor.
FLOORS = {
    "run from a shell, export": "__main__ choose warm export",
    "what users fit": "classification regression preprocessing ranking cluster",
    "what estimators share": "estimators base read",
    "algorithms of papers": "papers",
    "limits enforced exactly": "enforcement",
    "how it is solved": "solvers solvers.erm solvers.clustering solvers.eigen",
    "what a solver may ask": "problems problems.erm problems.partial problems.clustering "
    "problems.cut",
    "what is solved": "constraints losses models",
    "groups, rows, loops": "groups utils _kernels",
}
BESIDE = ("report", "inspection", "model_selection", "monitoring", "metrics", "datasets")
LEFT, RIGHT, WIDE = 0.24, 0.84, 0.15  # of the rooms on floors, and of those beside them
UNSEEN = {"_version", "exceptions", "_typing"}  # names that all rooms share


def floor_of(room):
    """Return the number of the floor of a room, from the ground; None beside them."""
    family = room.split(".")[0]
    for height, rooms in enumerate(reversed(FLOORS.values())):
        if room in rooms.split() or family in rooms.split():
            return height
    return None


def read_house():
    """Return the rooms that each room imports."""
    imports = defaultdict(set)
    for path in ROOT.rglob("*.py"):
        room = room_of(".".join(("skfair", *path.relative_to(ROOT).with_suffix("").parts)))
        if room is None or path.name in HAND_NAMES_ON:
            continue
        modules = imported_modules(ast.parse(path.read_text()))
        targets = {room_of(name) for name in modules if name.startswith("skfair.")}
        imports[room] |= targets & set(MAY_IMPORT)
    return imports


def check(imports):
    """Raise unless every room has its place, and no import points to a higher floor."""
    for room, below in imports.items():
        height = floor_of(room)
        if height is None:
            assert room in BESIDE or room in UNSEEN, f"{room} has no place in the picture"
            continue
        for target in below:
            reached = floor_of(target)
            is_ground = target.startswith("_kernels") or room.startswith("_kernels")
            assert reached is None or reached <= height or is_ground, f"{room} imports {target}"


def draw():
    """Draw floors from the ground up."""
    check(read_house())
    figure, axes = plt.subplots(figsize=(9, 5.2), layout="constrained")
    top = len(FLOORS) - 1
    for height, (text, rooms) in enumerate(reversed(FLOORS.items())):
        color = PALETTE[0] if height else "0.45"
        axes.text(0, height, text, va="center", fontsize=10)
        names = rooms.split()
        letters = [3 + max(map(len, room.split("."))) for room in names]
        left, unit = LEFT, (RIGHT - 0.04 - LEFT) / sum(letters)
        for room, size in zip(names, letters, strict=True):
            put(axes, left, height, size * unit - 0.01, room, color)
            left += size * unit
        if height:
            arrow = {"arrowstyle": "-|>", "color": "0.5"}
            place = (LEFT - 0.025, height - 0.75), (LEFT - 0.025, height - 0.25)
            axes.annotate("", *place, arrowprops=arrow)
    for k, room in enumerate(BESIDE):
        put(axes, RIGHT, top - k, WIDE, room, PALETTE[2])
    axes.text(RIGHT + WIDE / 2, 1, "measure, choose,\ndraw, audit", ha="center", va="center")
    axes.set(xlim=(0, 1), ylim=(-0.5, top + 0.5))
    axes.axis("off")
    return figure


def put(axes, left, height, width, room, color):
    """Draw a room."""
    box = plt.Rectangle((left, height - 0.34), width, 0.68, color=color, lw=0)
    axes.add_patch(box)
    name = room.replace(".", ".\n")
    axes.text(left + width / 2, height, name, ha="center", va="center", color="white", fontsize=10)


if __name__ == "__main__":  # as the page runs it
    draw()
