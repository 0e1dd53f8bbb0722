"""The look of all displays: a palette for colour-blind readers, axes, legends.

Series ``i`` has its own colour, marker, line style and hatch, so that it can also be recognised
without colours. Nothing here changes matplotlib's global settings or shows a figure.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import ArrayLike

from skfair.utils.text import visible

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# Okabe and Ito's palette. Yellow comes last, because it is hard to see on white.
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
GREY = "#595959"

# Letters in a line of a name, and entries in a column of a legend.
_LINE, _COLUMN = 38, 18
# Width in inches: of a letter of a label or legend (in the default size of 10 points), and of the
# line sample in a legend with the space around it and the text.
LETTER, _SAMPLE = 0.085, 0.8

# If there are more groups than colours, the legend is beside the axes.
_MOST_INSIDE = len(PALETTE)

# Artists of data series are marked by this gid (``as_series``), so that a second plot on the same
# axes can count them (``n_series``). Other artists that are drawn only once have the gid
# "skfair-..." (``as_reference``, ``is_first``).
_SERIES = "skfair-series"


class Look(NamedTuple):
    """Colour, marker, line style and hatch of a series."""

    color: str
    marker: str
    linestyle: Any
    hatch: str


def look(number: int) -> Look:
    """Return the look of series ``number``; the first 64 differ from each other."""
    # After all colours are used once, markers, line styles and hatches are shifted by one.
    other = (number + number // len(PALETTE)) % len(MARKERS)
    dashes = [(5, 1), (3, 1, 1, 1), (1, 1), (8, 3, 1, 3, 1, 3)]
    linestyles = ["-", "--", "-.", ":", *((0, own) for own in dashes)]
    hatches = ("", "///", "\\\\\\", "...", "xxx", "---", "+++", "ooo")
    color = PALETTE[number % len(PALETTE)]
    return Look(color, MARKERS[other], linestyles[other], hatches[other])


def marker_of_few(style: Look, n_points: int) -> str:
    """Return the marker of a line of few points, because a line of one point is invisible."""
    return style.marker if n_points <= 3 else ""


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


def with_options(kind: type[Artist], defaults: dict[str, Any], overrides: dict[str, Any]) -> Any:
    """Return the defaults with the user's options, which may have short names (``lw``)."""
    from matplotlib.cbook import normalize_kwargs

    return {**normalize_kwargs(defaults, kind), **normalize_kwargs(overrides, kind)}


def draw_line(
    ax: Axes, x: ArrayLike, y: ArrayLike, style: Look, overrides: dict[str, Any], **options: Any
) -> Any:
    """Draw a line in the look of a series, and count it as one.

    ``overrides`` are the user's options, which replace the others.
    """
    from matplotlib.lines import Line2D

    options = {"color": style.color, "linestyle": style.linestyle, **options}
    (line,) = ax.plot(x, y, **with_options(Line2D, options, overrides))
    as_series(line)
    return line


def as_series(artist: Artist) -> None:
    """Mark an artist as a data series, so that ``n_series`` counts it."""
    artist.set_gid(_SERIES)


def n_series(ax: Axes) -> int:
    """Count the data series that displays have drawn on the axes so far."""
    return sum(artist.get_gid() == _SERIES for artist in ax.get_children())


def is_first(ax: Axes, what: str) -> bool:
    """Whether ``what`` (a reference line, a band) has not been drawn on the axes yet."""
    return all(artist.get_gid() != f"skfair-{what}" for artist in ax.get_children())


def as_reference(artist: Artist, what: str) -> None:
    """Mark an artist as ``what``, so that it is not drawn again, see ``is_first``."""
    artist.set_gid(f"skfair-{what}")


def plain(text: str) -> str:
    """Return a name in a form that matplotlib shows unchanged, in a few lines.

    The middle of a very long name is left out. Dollars are escaped, because matplotlib reads text
    between two dollars as a formula. A space is put before an underscore at the beginning, because
    matplotlib leaves such labels out of legends.
    """
    text = visible(text.replace("\n", " "))
    # 90 letters are three lines. With 180 a name could take six lines, and with 45 many usual names
    # would be cut.
    if len(text) > 90:
        text = f"{text[:60]}…{text[-30:]}"
    lines = textwrap.fill(text, _LINE).replace("$", r"\$")
    return f" {lines}" if lines.startswith("_") else lines


def longest_line(texts: Iterable[str]) -> int:
    """Return the number of letters of the longest line of texts."""
    return max((len(line) for text in texts for line in text.split("\n")), default=0)


def with_name(name: str | None, text: str) -> str:
    """Put the name of a model in front of the label of a series."""
    return plain(text if name is None else f"{name}: {text}")


def legend_columns(n_entries: int) -> int:
    """Return how many columns a legend has, so that it is no taller than a figure."""
    return -(-n_entries // _COLUMN)


def legend_beside(
    ax: Axes,
    handles: Iterable[Any] | None = None,
    *,
    reverse: bool = False,
    widen: bool = False,  # whether to widen the figure, so that the axes keep their size
    **options: Any,
) -> None:
    """Place the legend to the right of the axes, where it covers no data."""
    entries = ax.get_legend_handles_labels()[0] if handles is None else list(handles)
    options["handles"], options["ncols"] = entries, legend_columns(len(entries))
    if options["ncols"] > 1:
        options["fontsize"] = "small"
    if widen:
        width = _SAMPLE + LETTER * longest_line(str(entry.get_label()) for entry in entries)
        figure: Any = ax.figure
        figure.set_figwidth(figure.get_figwidth() + options["ncols"] * width)
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), reverse=reverse, **options)


def legend_for(ax: Axes, n_groups: int, *, widen: bool, loc: Any = "best") -> bool:
    """Place the legend within the axes, or beside them if there are many groups.

    Return whether it is beside them. ``widen`` is passed to ``legend_beside``.
    """
    is_beside = n_groups > _MOST_INSIDE
    if is_beside:
        legend_beside(ax, widen=widen)
    else:
        ax.legend(loc=loc)
    return is_beside


def label_rows(ax: Axes, names: Sequence[str], sizes: Sequence[str] | None = None) -> None:
    """Write one name per row at y = 0, 1, ... from the top; raise if axes have other rows already.

    Sizes (``n = 120``) are written below the names. They are left out if an earlier plot on the
    same axes has other sizes.
    """
    plain_names = [plain(name) for name in names]
    labels = plain_names
    if sizes is not None:
        labels = [f"{name}\n{size}" for name, size in zip(plain_names, sizes, strict=True)]
    if n_series(ax):
        shown = [text.get_text() for text in ax.get_yticklabels()]
        without = [text.rpartition("\nn = ")[0] or text for text in shown]
        if without != plain_names:
            raise ValueError(
                f"ax already shows the rows {shown}, but this display has {list(names)}. Plot it "
                "on axes of its own."
            )
        if shown != labels:
            labels = plain_names
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.5, -0.5)


def percent(share: float) -> str:
    """Write a share as a percentage, ``5%``."""
    return f"{100 * share:.4g}%"
