"""The lists of laws on the site, read from ``skfair/report/law.toml``."""

import re

from skfair.report.results.evidence import NUMBERS
from skfair.report.words import laws


def linked(text):
    """Return a text with names of this library as links, and options as code."""
    text = re.sub(r"skfair\.[\w.]*\w", r":obj:`~\g<0>`", text)
    return re.sub(r'\w+="?\w+"?|python -m skfair [\w-]+', r"``\g<0>``", text)


def text():
    """Return a definition list with an entry for each law, in reStructuredText."""
    entries = []
    for law in laws().values():
        is_dated = law["applies_from"] != "not known"
        since = f"Applies from {law['applies_from']}." if is_dated else ""
        parts = [since, law["state"], law.get("pending"), linked(law["asks"])]
        state = " ".join(filter(None, parts))
        source = f"Source: {law['source']} Checked on {law['checked']}."
        entries.append(f"{law['name']} ({law['jurisdiction']})\n   {state}\n\n   {source}\n")
    return "\n".join(entries)


def evidence():
    """Return a table of what each law asks, what answers it, and what no number can answer."""
    rows = [("The rule asks", "An audit answers by", "No number can answer")]
    for law in laws().values():
        for row in law.get("evidence", []):
            words = "; ".join(NUMBERS[name].words for name in row["numbers"])
            texts = [f"{words[0].upper()}{words[1:]}." if words else "", row.get("elsewhere")]
            answers = linked(" ".join(filter(None, texts)) or "None.")
            rows.append((f"**{law['name']}.** {row['asks']}", answers, row["no_number"]))
    cells = ["   * - " + "\n     - ".join(row) for row in rows]
    head = ".. list-table::\n   :header-rows: 1\n   :widths: 36 36 28\n"
    return "\n".join([head, *cells, ""])
