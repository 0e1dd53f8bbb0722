"""The page on which a committee chooses a limit, with the effects of each model of a path.

:meth:`Choice.of` measures all models (:mod:`skfair.report.choosing.steps`). A step is one position
of the slider on the page, and what a *memo*, the file that the committee downloads, says of the
model. The page, the memo and the table in a shell only show what the steps of a :class:`Choice`
hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from hashlib import sha256
from os import PathLike
from shlex import quote
from typing import Any, NamedTuple

import pandas as pd

from skfair._version import __version__
from skfair.groups.cohort import given_columns, with_columns
from skfair.records.decision_memo import KIND, VERSION, checksum
from skfair.report.choosing.steps import TODAY, Candidate, Judged
from skfair.report.results.pages import render_template, rows_of
from skfair.report.results.pictures import Axis
from skfair.report.results.result import written
from skfair.report.tables.options import read_options
from skfair.report.tables.reading import check_columns
from skfair.report.words import metric_words, prose
from skfair.utils.text import check_text


class Choice(NamedTuple):
    """The models that a committee chooses from, with all that is said of them."""

    steps: list[dict[str, Any]]  # one step for each model
    n_limits: int  # number of steps of the first path; each path begins with the same decisions
    head: dict[str, Any]  # the entries that the memos of all steps share
    judged: Judged
    hidden: pd.DataFrame  # groups that are not shown
    fingerprint: str  # a hash of all models together

    @classmethod
    def of(
        cls,
        paths: list[list[Candidate]],
        judged: Judged,
        command: dict[str, Any] | None,  # the options of ``choose``, or None for a path in Python
    ) -> Choice:
        """Measure the models of one path, or of two paths with the same limits.

        The second path holds the overall selection rate.
        """
        candidates = [candidate for path in paths for candidate in path]
        before = candidates[0].decisions
        check_columns(given_columns(with_columns(judged.people, y_pred=before)))
        head = {
            "kind": KIND,
            "version": VERSION,
            "skfair": __version__,
            "constraint": ", ".join(name.rpartition("_")[0] for name in judged.metrics),
            "metric": ", ".join(judged.metrics),
            "command": command,
        }
        steps, fingerprints = [], judged.fingerprints(candidates)
        for candidate, fingerprint in zip(candidates, fingerprints, strict=True):
            step, shown = judged.step(candidate, before)
            step["fingerprint"] = fingerprint
            steps.append(step | {"checksum": checksum(head | step)})
        of_all = sha256("".join(fingerprints).encode()).hexdigest()
        return cls(steps, len(paths[0]), head, judged, shown.hidden, of_all)

    def distinct(self) -> Iterator[dict[str, Any]]:
        """Yield the steps of all paths. The first decisions begin each path, but come once."""
        for place, step in enumerate(self.steps):
            if not place or step["limits"] is not None:
                yield step

    @staticmethod
    def name_of(step: dict[str, Any]) -> str:
        """Return what a step is called in the table."""
        return str(step["label"]) + ", overall rate held" * bool(step["holds_overall_rate"])

    def table(self) -> pd.DataFrame:
        """Return a row of numbers for each step, which ``choose`` prints.

        ``kept`` is "yes", "no", "open" if groups could not be compared, or "-" without a limit.
        """
        rows = []
        for step in self.distinct():
            numbers = step["numbers"]
            row = {"limit": self.name_of(step), "selected": numbers["rate"][0]}
            gaps = [
                (view, metric, gap)
                for view, own in numbers["attributes"].items()
                for metric, gap in own["disparities"].items()
            ]
            for view, metric, gap in gaps:
                of_metric = f" ({metric})" * (len(self.judged.metrics) > 1)
                row[f"difference by {view}{of_metric}"] = gap["value"]
            are_kept = [gap["is_kept"] for _, _, gap in gaps if gap["limit"] is not None]
            row["kept"] = "-"
            if are_kept:
                row["kept"] = "no" if False in are_kept else "open" if None in are_kept else "yes"
            rows.append(row | {"accuracy": numbers["accuracy"][0]})
        return pd.DataFrame(rows)

    def not_compared(self) -> list[str]:
        """Return the groups that are left out of a difference, with the view and the reason."""
        named = {
            f"{view}: {gap['not_compared']}": None
            for step in self.steps
            for view, own in step["numbers"]["attributes"].items()
            for gap in own["disparities"].values()
            if gap["not_compared"]
        }
        return list(named)

    @property
    def reference(self) -> str:
        """What the decisions of the first step are called."""
        first = self.steps[0]
        return "today" if first["status"] == TODAY else f"with the limit {first['label']}"

    def to_html(self, file: str | PathLike[str] | None = None, *, title: str, decided: str) -> str:
        """Render the page, and write it to a file if one is named."""
        words = {"title": title, "decided": decided, "reference": self.reference}
        check_text(words.values(), "The words of the page")
        for name in ("title", "decided"):
            if not words[name].strip():
                raise ValueError(
                    f"{name}={words[name]!r} is empty. Pass words for people to read, such as "
                    "decided='granted a loan', or leave it out."
                )
        judged, views = self.judged, self.steps[0]["numbers"]["attributes"]
        text = render_template(
            "choice.html.j2",
            **words,
            memo=self.head,
            steps=self.steps,
            n_limits=self.n_limits,
            fingerprint=self.fingerprint,
            fitted_on=quote(self.head["command"]["file"]) if self.head["command"] else None,
            Axis=Axis,
            everybody=self.steps[0]["numbers"],
            hidden=[
                f"{row.group} ({row.view})" for row in rows_of(self.hidden) if row.view in views
            ],
            metric_sentences=[metric_words(name).says for name in judged.metrics],
            options=read_options(random_state=0, **judged.options),
            noun="people" if judged.people.units is None else "decisions",
            is_weighted=judged.people.sample_weight is not None,
            made_on=date.today().isoformat(),
            limits=prose()["limits"],
        )
        return written(text, file)
