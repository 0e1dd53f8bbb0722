"""How all displays look: a palette for every kind of eye, axes, legends.

Series ``i`` has a colour of its own and, for those who cannot tell colours apart or who print in
grey, a marker, a line style and a hatch of its own. Nothing here changes matplotlib's global
settings or shows a figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

# Okabe and Ito's palette; yellow, hard to see on white, comes last.
PALETTE = (
    "#0072B2",  # blue
    "#D55E00",  # vermilion
    "#009E73",  # green
    "#CC79A7",  # purple
    "#E69F00",  # orange
    "#56B4E9",  # sky
    "#000000",  # black
    "#F0E442",  # yellow
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINESTYLES: tuple[Any, ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (5, 1)),
    (0, (3, 1, 1, 1)),
    (0, (1, 1)),
    (0, (8, 3, 1, 3, 1, 3)),
)
HATCHES = ("", "///", "\\\\\\", "...", "xxx", "---", "+++", "ooo")
GREY = "#595959"

# Marks the artists of data series, so that a second plot on the same axes can count them.
_SERIES = "skfair-series"


class Look(NamedTuple):
    """Colour, marker, line style and hatch of a series."""

    color: str
    marker: str
    linestyle: Any
    hatch: str


def look(number: int) -> Look:
    """Return the look of series ``number``; the first 64 differ from each other."""
    # After a full round of colours the other carriers are shifted against them.
    other = (number + number // len(PALETTE)) % len(MARKERS)
    color = PALETTE[number % len(PALETTE)]
    return Look(color, MARKERS[other], LINESTYLES[other], HATCHES[other])


def check_matplotlib(caller: str) -> None:
    """Raise an ``ImportError`` that says how to install matplotlib if it is missing."""
    try:
        import matplotlib.pyplot  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{caller} needs matplotlib, which is not installed. Install it with "
            'pip install matplotlib, or pip install "skfair-suite[plot]".'
        ) from error


def axes_for(display: object, ax: Axes | None, figsize: tuple[float, float] | None = None) -> Axes:
    """Return the axes to draw on: the given ones, or those of a new figure."""
    check_matplotlib(f"{type(display).__name__}.plot")
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes

    if ax is None:
        # The constrained layout makes room for legends that stand beside the axes.
        return plt.subplots(figsize=figsize, layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise TypeError(
            f"ax must be matplotlib Axes or None, got {type(ax).__name__}. Pass one of the axes "
            "that matplotlib.pyplot.subplots returns."
        )
    return ax


def with_options(kind: type[Artist], defaults: dict[str, Any], given: dict[str, Any]) -> Any:
    """Let the user's options replace the defaults, also under their short names (``lw``)."""
    from matplotlib.cbook import normalize_kwargs

    return {**normalize_kwargs(defaults, kind), **normalize_kwargs(given, kind)}


def as_series(artist: Artist) -> None:
    """Mark an artist as the one that stands for a data series."""
    artist.set_gid(_SERIES)


def n_series(ax: Axes) -> int:
    """Count the data series that displays have drawn on the axes so far."""
    return sum(artist.get_gid() == _SERIES for artist in ax.get_children())


def is_first(ax: Axes, what: str) -> bool:
    """Whether ``what`` (a reference line, a band) has not been drawn on the axes yet."""
    return all(artist.get_gid() != f"skfair-{what}" for artist in ax.get_children())


def as_reference(artist: Artist, what: str) -> None:
    """Remember that ``what`` has been drawn."""
    artist.set_gid(f"skfair-{what}")


def with_name(name: str | None, text: str) -> str:
    """Put the name of a model in front of the label of a series."""
    return text if name is None else f"{name}: {text}"


def legend_beside(
    ax: Axes, handles: Iterable[Any] | None = None, *, reverse: bool = False, **options: Any
) -> Legend:
    """Place the legend to the right of the axes, where it covers no data."""
    if handles is not None:
        options["handles"] = list(handles)
    return ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), reverse=reverse, **options)


def label_rows(ax: Axes, names: Sequence[str], sizes: Sequence[str] | None = None) -> None:
    """Write one name per row at y = 0, 1, ... from the top; refuse rows of other names.

    Sizes (``n = 120``) are written below the names. They are left out when an earlier plot on the
    same axes counted other rows.
    """
    labels = (
        list(names) if sizes is None else [f"{n}\n{s}" for n, s in zip(names, sizes, strict=True)]
    )
    if n_series(ax):
        shown = [text.get_text() for text in ax.get_yticklabels()]
        if [text.split("\n")[0] for text in shown] != list(names):
            raise ValueError(
                f"ax already shows the rows {shown}, but this display has {list(names)}. Plot it "
                "on axes of its own."
            )
        if shown != labels:
            labels = list(names)
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.5, -0.5)


def percent(share: float) -> str:
    """Write a share as a percentage, ``5 %``."""
    return f"{100 * share:.4g} %"
