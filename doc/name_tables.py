"""Tables of names of other libraries, read from ``skfair/utils/other_names.toml``."""

from skfair.utils.other_names import tables

# The libraries that have a table on the page. Others have a few arguments only.
LIBRARIES = ("fairlearn", "AIF360", "aequitas", "holisticai", "OxonFair", "error-parity")
LIBRARIES += ("scikit-lego", "SageMaker Clarify")


def text(library):
    """Return what each name of a library is called here, as a list-table."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 30 32 38", ""]
    rows = [(library, "skfair", "difference")]
    for row in tables()[library]:
        theirs = row.get("theirs") or ", ".join(f"``{name}``" for name in row["names"])
        rows.append((theirs, row["here"] or "nothing", row.get("difference", "")))
    for row in rows:
        for column, cell in enumerate(row):
            lines.append(f"   {'*' if column == 0 else ' '} - {cell}".rstrip())
    return "\n".join(lines) + "\n"
