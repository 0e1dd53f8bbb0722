"""Draw the small pictures of the front page from the records of benchmarks."""

from benchmarks import against_dfnmf, against_fca, pairs, warehouse
from benchmarks.harness import read
from skfair.inspection._style import PALETTE

WIDTH, STEP = 240, 36  # pixels of a bar, and from one to the next
GREY = "#8a8f98"
PICTURE = """<svg class="win" viewBox="0 0 {width} {height}" role="img" aria-label="{alt}">
{rows}
</svg>
"""


def pictures():
    """Return the pictures as SVG in the colours of the page, by their names."""
    return {
        "pairs": bars(*of_pairs()),
        "warehouse": bars(*of_warehouse()),
        "clusters": bars(*of_clusters()),
    }


def of_pairs():
    """Return what the first picture shows, and a bar for each way to find an effect."""
    found = pairs.numbers(read("pairs")["results"])
    ways = {"units": "audit, units=", "large": "McNemar, large samples", "exact": "McNemar, exact"}
    rows = [
        (text, f"{found[way]:.0%}", [(found[way], PALETTE[way != "units"])])
        for way, text in ways.items()
    ]
    return f"Audits that find an effect of {found['points']:.0f} points", rows


def of_warehouse():
    """Return what the second picture shows, and a bar for each number of rows."""
    results = read("warehouse")["results"]
    attributes = next(iter(warehouse.AUDITS))
    seconds = {n: results["audits"][f"{attributes} {n}"]["seconds"] for n in results["sizes"]}
    longest = max(seconds.values())
    rows = [
        (f"{n / 1e6:,.0f} million rows", f"{own:.1f} s", [(own / longest, PALETTE[0])])
        for n, own in seconds.items()
    ]
    return "Seconds of an audit", rows[-3:]


def of_clusters():
    """Return what the third picture shows, and a bar for each comparison."""
    fca = against_fca.numbers(read("against_fca")["results"])
    dfnmf = against_dfnmf.numbers(read("against_dfnmf")["results"])
    tallies = {
        "FCA, ten starts": fca["ten"],
        "FCA, one start": fca["one"],
        "graphs of DFNMF": dfnmf["fair"],
    }
    rows = []
    for text, own in tallies.items():
        counts = own.ahead, own.n_cells - own.ahead - own.behind, own.behind
        colours = PALETTE[0], GREY, PALETTE[1]
        parts = [(n / own.n_cells, colour) for n, colour in zip(counts, colours, strict=True)]
        rows.append((text, f"{own.ahead} : {own.behind}", parts))
    return "Comparisons ahead and behind", rows


def bars(title, rows):
    """Return a picture of bars, each below its name and its value."""
    lines = []
    for k, (text, value, parts) in enumerate(rows):
        y, x = STEP * k, 0.0
        lines.append(f'<text x="0" y="{y + 14}">{text}</text>')
        lines.append(f'<text class="strong" x="{WIDTH}" y="{y + 14}">{value}</text>')
        for share, colour in parts:
            lines.append(
                f'<rect x="{x:.1f}" y="{y + 19}" width="{WIDTH * share:.1f}" height="10"'
                f' fill="{colour}"/>'
            )
            x += WIDTH * share
    alt = f"{title}: {', '.join(f'{text} {value}' for text, value, _ in rows)}."
    return PICTURE.format(width=WIDTH, height=STEP * len(rows), alt=alt, rows="\n".join(lines))
