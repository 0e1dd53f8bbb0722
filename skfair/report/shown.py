"""An audit as a page, as Markdown, and as text."""

from __future__ import annotations

from os import PathLike

from skfair.report.pages import render, written
from skfair.report.result import AuditTables
from skfair.report.sentences import findings_of
from skfair.report.verdicts import verdicts_of
from skfair.utils.text import plural, visible


class ShownAudit(AuditTables):
    """The tables of an audit, and how they are shown."""

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Render the audit as one self-contained page: no network, no other files.

        Parameters
        ----------
        path : str or path-like, default=None
            File to write; None only returns the text.

        Returns
        -------
        text : str
            The page.
        """
        return written(render(self, "page.html.j2"), path)

    def to_markdown(self, path: str | PathLike[str] | None = None) -> str:
        """Render the audit as Markdown, for a model card.

        Parameters
        ----------
        path : str or path-like, default=None
            File to write; None only returns the text.

        Returns
        -------
        text : str
            The section of a model card.
        """
        return written(render(self, "card.md.j2"), path)

    def details(self) -> list[str]:
        """Return in sentences what the first screen has no room for.

        Returns
        -------
        sentences : list of str
            The main differences of every attribute and crossing with intervals, differences from
            the reference group, groups that are not compared, and the search of subgroups.
        """
        return findings_of(self)

    def _repr_html_(self) -> str:
        return render(self, "cell.html.j2")

    def __repr__(self) -> str:
        lines = [f"{self.title}: {plural(self.n_rows, 'row')}", *verdicts_of(self)]
        return "\n".join(map(visible, lines))
