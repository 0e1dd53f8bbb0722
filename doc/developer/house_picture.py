"""Draw the rooms of the package and the arrows between them, from the imports of the sources."""

import ast
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt

import skfair
from tests.house import HAND_NAMES_ON, MAY_IMPORT, imported_modules, room_of

ROOT = Path(skfair.__file__).parent
# Rooms that nearly every other one imports: their arrows would hide the rest.
GROUND = {"_version", "exceptions", "_typing", "utils", "_kernels", "groups", "blocks"}
HALF = 0.28  # of the height of a room
COLORS = {
    "what users fit": "#4c78a8",
    "how promises are kept": "#b07aa1",
    "how it is solved": "#f28e2b",
    "what is solved": "#59a14f",
    "beside": "#9c755f",
    "ground": "#bab0ac",
}


def kind_of(room):
    """Return what a room is for."""
    family = room.split(".")[0]
    if family in GROUND:
        return "ground"
    if family in ("cluster", "classification", "regression", "ranking"):
        return "what users fit"
    if family in ("estimators", "base", "enforcement"):
        return "how promises are kept"
    if family == "solvers":
        return "how it is solved"
    if family in ("problems", "losses", "models", "constraints"):
        return "what is solved"
    return "beside"


def side_of(room):
    """Return where a room stands: supervised learning, clustering, or beside both."""
    if kind_of(room) == "beside":
        return 2
    return 1 if room.endswith(("cluster", "clustering", "cut", "eigen")) else 0


def drawn_room(module):
    """Return the room of a module; rooms of the ground are not divided."""
    room = room_of(module) if module.startswith("skfair.") else None
    family = (room or "").split(".")[0]
    return family if family in GROUND else room


def read_house():
    """Return the lines of each room and the rooms that it imports."""
    lines, imports = defaultdict(int), defaultdict(set)
    for path in ROOT.rglob("*.py"):
        room = drawn_room(".".join(("skfair", *path.relative_to(ROOT).with_suffix("").parts)))
        if room is None or path.name in HAND_NAMES_ON:
            continue
        text = path.read_text()
        lines[room] += text.count("\n")
        for module in imported_modules(ast.parse(text)):
            target = drawn_room(module)
            if target not in (None, room):
                imports[room].add(target)
    return lines, imports


def floor_of(room, imports):
    """Return the length of the longest chain of imports below a room."""
    return 1 + max((floor_of(below, imports) for below in imports[room]), default=-1)


def without_shortcuts(imports):
    """Leave out arrows that a chain of other arrows says too."""

    def reached(room):
        return set().union(*({below} | reached(below) for below in imports[room]))

    return {
        room: {t for t in below if not any(t in reached(o) for o in below - {t})}
        for room, below in imports.items()
    }


def draw():
    """Draw floors from the ground up; an arrow points at what is imported."""
    lines, imports = read_house()
    assert set(lines) <= set(MAY_IMPORT)
    floors = defaultdict(list)
    for room in lines:
        floors[-1 if room in GROUND else floor_of(room, imports)].append(room)
    figure, axes = plt.subplots(figsize=(9.5, 8), layout="constrained")
    place = {}
    for height, floor in enumerate(sorted(floors)):
        sides = [sorted(r for r in floors[floor] if side_of(r) == side) for side in range(3)]
        if floor < 0:
            sides = [sorted(floors[floor])]
        starts, widths = ((0, 0.42, 0.7), (0.42, 0.28, 0.3)) if floor >= 0 else ((0,), (1,))
        for start, width, rooms in zip(starts, widths, sides, strict=True):
            for k, room in enumerate(rooms):
                place[room] = (start + width * (k + 0.5) / len(rooms), height)
    for room, where in place.items():
        axes.annotate(
            f"{room.replace('.', chr(10))}\n{lines[room]:,} lines",
            where,
            ha="center",
            va="center",
            fontsize=8,
            color="white" if kind_of(room) != "ground" else "black",
            bbox={"boxstyle": "round,pad=0.4", "fc": COLORS[kind_of(room)], "ec": "none"},
            zorder=3,
        )
    upper = {room: below - GROUND for room, below in imports.items() if room not in GROUND}
    for room, below in without_shortcuts(defaultdict(set, upper)).items():
        for target in below:
            (x, y), (below_x, below_y) = place[room], place[target]
            axes.annotate(
                "",
                (below_x, below_y + HALF),
                (x, y - HALF),
                arrowprops={"arrowstyle": "-|>", "color": "0.6", "shrinkA": 0, "shrinkB": 0},
                zorder=1,
            )
    axes.set(xlim=(0, 1), ylim=(-0.5, len(floors) - 0.5))
    axes.axis("off")
    handles = [plt.Rectangle((0, 0), 1, 1, color=color) for color in COLORS.values()]
    axes.legend(handles, COLORS, loc="upper left", fontsize=8, frameon=False)
    return figure


if __name__ == "__main__":  # as the page runs it
    draw()
