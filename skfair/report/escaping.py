"""Names of users as text of Markdown, which cannot be read as anything else.

Group names, columns, labels and titles come from data that anybody may have written. What is filled
into a Markdown template passes through :func:`as_markdown`, without exception.
"""

from __future__ import annotations

import re
from typing import Any

from skfair.utils.text import visible

# Characters that begin or end an element of CommonMark or of GitHub's tables and links.
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~&!@$]")
# What is made a link as it stands: https://..., mailto:..., www. ...
_LINK = re.compile(r"(?<=\w)(:)(?=\S)|(?<=www)(\.)", re.IGNORECASE)
# What begins a list at the beginning of a line.
_ITEM = re.compile(r"^(\d*)([-+.)])(?=\s)")


def as_markdown(value: Any) -> Any:
    r"""Return text so that Markdown shows each of its characters, in one line.

    Examples
    --------
    >>> from skfair.report.escaping import as_markdown
    >>> print(as_markdown("<b>women|men</b>"))
    \<b\>women\|men\</b\>
    """
    if not isinstance(value, str):
        return value
    text = _SPECIAL.sub(r"\\\g<0>", visible(" ".join(value.split())))
    return _ITEM.sub(r"\1\\\2", _LINK.sub(r"\\\g<0>", text))
