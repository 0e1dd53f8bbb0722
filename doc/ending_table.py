"""The table of how fits end, read from the sentences that docstrings and summaries say, too."""

from skfair.utils.endings import ENDINGS


def text():
    """Return the words of ``status_`` and their sentences, as a list-table."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 20 80", ""]
    lines += ["   * - ``status_``", "     - It says"]
    for word, sentence in ENDINGS.items():
        lines += [f'   * - ``"{word}"``', f"     - {sentence}"]
    return "\n".join(lines) + "\n"
