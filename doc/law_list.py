"""The list of laws on the site, read from ``skfair/report/law.toml``."""

import re

from skfair.report.words import laws


def text():
    """Return a definition list with an entry for each law, in reStructuredText."""
    entries = []
    for law in laws().values():
        asks = re.sub(r"skfair\.[\w.]*\w", r":obj:`~\g<0>`", law["asks"])
        asks = re.sub(r'\w+="?\w+"?', r"``\g<0>``", asks)
        is_dated = law["applies_from"] != "not known"
        since = f"Applies from {law['applies_from']}." if is_dated else ""
        parts = [since, law["state"], law.get("pending"), asks]
        state = " ".join(filter(None, parts))
        source = f"Source: {law['source']} Checked on {law['checked']}."
        entries.append(f"{law['name']} ({law['jurisdiction']})\n   {state}\n\n   {source}\n")
    return "\n".join(entries)
