"""The table of laws on the site, read from ``skfair/report/law.toml``."""

import re

from skfair.report.words import laws


def rows():
    """Return the head of the table, and a row of each law."""
    table = [("Law", "State", "Asks for", "Source")]
    for law in laws().values():
        asks = re.sub(r"skfair\.[\w.]*\w", r":func:`~\g<0>`", law.asks)
        asks = re.sub(r'\w+="?\w+"?', r"``\g<0>``", asks)
        state = f"Applies from {law.applies_from}. {law.state}"
        source = f"{law.source} Checked on {law.checked}."
        table.append((f"{law.name} ({law.jurisdiction})", state, asks, source))
    return table
