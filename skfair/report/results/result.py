"""The results of audits: tables in fields, which can be written, read again and checked.

Three classes build on each other: :class:`Page` has the methods of results that are shown as a page
(also of alternatives), :class:`PlainTables` has the fields and methods of all audits, and
:class:`AuditTables` has those of audits of predictions, which :class:`skfair.report.Audit`
documents. ``DataAudit`` derives from the second. A :class:`Source` is what the third knows of its
rows, for a record. The functions are small tools for tables, which all products use, and
:func:`head_of`, which fills the fields that all audits have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from importlib.resources import files
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd

from skfair._version import __version__
from skfair.groups.outcomes import one_decision
from skfair.groups.table import GroupTable
from skfair.records.decision_memo import Memo
from skfair.report.results.checks import Check, Condition, check_conditions, read_conditions
from skfair.report.tables.options import Options
from skfair.utils.files import replacing
from skfair.utils.other_names import no_attribute
from skfair.utils.text import plural

COUNTED = "counted"  # the fact in the head of the page that says how people are counted


class Page:
    """The base of results that are shown as one page, in a file or in a notebook."""

    # Templates of the page, of the cell of a notebook, and of Markdown if the class has that
    _templates: ClassVar[tuple[str, ...]]

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Render the result as a self-contained HTML page, without network access or other files.

        Parameters
        ----------
        path : str or path-like, default=None
            File to which the text is written. If None, the text is only returned.

        Returns
        -------
        text : str
            The HTML page.
        """
        return written(self._rendered(self._templates[0]), path)

    def _repr_html_(self) -> str:
        return self._rendered(self._templates[1])

    def _rendered(self, template: str) -> str:
        """Fill one of the templates; subclasses say with what."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class PlainTables(Page):
    """Tables that can be written as plain data and read again; subclasses have more fields."""

    # The file of the schema, and its version. The first number of the version is raised when a key
    # is renamed or removed, and the second number when a key is added.
    _schema: ClassVar[tuple[str, str]]

    title: str
    about: dict[str, str]
    columns: dict[str, str]
    decision: str
    made_on: str
    version: str
    n_rows: int
    n_left_out: int | None  # None if it would tell the number of rows of a hidden group
    attributes: list[str]
    confidence: float
    n_simulations: int
    min_group_size: float
    suppress_below: float
    hidden: pd.DataFrame
    rates: pd.DataFrame
    gaps: pd.DataFrame
    # None, and left out of plain data, without units
    n_units: int | None = field(default=None, kw_only=True)
    n_in_several: dict[str, int] | None = field(default=None, kw_only=True)

    if not TYPE_CHECKING:  # with __getattr__, type checkers would accept any attribute

        def __getattr__(self, name: str) -> Any:
            """Raise for an attribute that it lacks."""
            return no_attribute(self, name)

    @property
    def size(self) -> str:
        """The number of rows in words, and with units the number of persons."""
        rows = plural(self.n_rows, "row")
        return rows if self.n_units is None else f"{rows} of {plural(self.n_units, 'person')}"

    @property
    def noun(self) -> str:
        """The name of what is counted, "row" or "person"."""
        return "row" if self.n_units is None else "person"

    def fields(self) -> dict[str, Any]:
        """Return all fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def to_markdown(self, path: str | PathLike[str] | None = None) -> str:
        """Render the audit as Markdown, for a model card or a data sheet.

        Parameters
        ----------
        path : str or path-like, default=None
            File to which the text is written. If None, the text is only returned.

        Returns
        -------
        text : str
            The Markdown text.
        """
        return written(self._rendered(self._templates[2]), path)

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain lists, numbers and text.

        Undefined numbers are None.

        Returns
        -------
        plain : dict
            The data, in the form that :meth:`schema` describes.
        """
        return {"schema_version": self._schema[1]} | {
            name: _records(value) if isinstance(value, pd.DataFrame) else value
            for name, value in self.fields().items()
            if value is not None or name not in ("n_units", "n_in_several")
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Create an audit from the data that :meth:`to_dict` returned.

        Parameters
        ----------
        plain : dict
            The data, for example read from a JSON file.

        Returns
        -------
        found : Audit
            The audit.
        """
        version, own_version = str(plain.get("schema_version")), cls._schema[1]
        if version.split(".")[0] != own_version.split(".")[0]:
            raise ValueError(
                f"The audit was written in schema version {version}, but this release reads "
                f"{own_version}. Read it with the release that wrote it."
            )
        kinds = cls.schema()["properties"]
        names = [field.name for field in fields(cls)]
        values_by_field: dict[str, Any] = {name: plain[name] for name in names if name in plain}
        for name, values in values_by_field.items():
            if kinds[name].get("x-table"):
                values_by_field[name] = _table(values) if values else empty_table(kinds[name])
        return cls(**values_by_field)

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Return :meth:`to_dict` as JSON text.

        Parameters
        ----------
        path : str or path-like, default=None
            File to which the text is written. If None, the text is only returned.

        Returns
        -------
        text : str
            The text, which is valid JSON without NaN.
        """
        return written(json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False), path)

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON schema of :meth:`to_dict`.

        Returns
        -------
        schema : dict
            The schema, of draft 2020-12.
        """
        text = (files("skfair.report") / cls._schema[0]).read_text(encoding="utf-8")
        schema: dict[str, Any] = json.loads(text)
        return schema


class Source(NamedTuple):
    """The rows of an audit, and what was asked."""

    asked: Callable[[AuditTables], dict[str, Any]]  # returns all that is needed to make it again
    # Returns the digests of the rows by a key
    digests: Callable[[AuditTables, str], dict[str, str]]
    again: Callable[[], AuditTables]  # makes the audit again
    # Whether digests are of the very rows that were counted. If not, rows may have changed since.
    is_read_once: bool = False


@dataclass(frozen=True, eq=False)
class AuditTables(PlainTables):
    """All numbers of an audit; documented by :class:`skfair.report.Audit`."""

    _templates = "page.html.j2", "cell.html.j2", "card.md.j2"
    _schema = "results/schema.json", "3.2"

    task: str
    control_features: list[str]
    subgroups: pd.DataFrame
    n_subgroups: int
    n_beyond_chance: int
    calibration: pd.DataFrame
    reading: str = ""  # audits of earlier releases have none
    lead: list[str] = field(default_factory=list)
    preset: str = ""
    rule: str = ""
    impact: pd.DataFrame = field(default_factory=pd.DataFrame)
    signed: pd.DataFrame = field(default_factory=pd.DataFrame)
    within: pd.DataFrame = field(default_factory=pd.DataFrame)
    strata: pd.DataFrame = field(default_factory=pd.DataFrame)
    _source: ClassVar[Source | None] = None  # set by _made_of

    @property
    def headline(self) -> str:
        """The title, the number of rows, how people are counted, and how the labels were read."""
        counted = f" ({self.about[COUNTED]})" if COUNTED in self.about else ""
        return f"{self.title}: {self.size}{counted}{self.reading and f', {self.reading}'}"

    def value(self, metric: str, view: str | None = None) -> float:
        """Return a metric of the audited model, for the worst view or for a given view.

        Parameters
        ----------
        metric : str
            Name of the metric, as in the column ``metric`` of ``gaps``.
        view : str, default=None
            An attribute, or a crossing such as ``"sex x age"``. If None, the worst view is used.

        Returns
        -------
        value : float
            The value of the metric. The worst view has the largest difference or the smallest
            ratio.
        """
        rows = self._gaps_of(metric, view)
        return float(rows["value"].min() if rows["is_ratio"].all() else rows["value"].max())

    def check(self, condition: Memo, *, allow_undefined: bool = False) -> Check:
        """Check whether a disparity is within a limit, for use in a pipeline.

        The check fails if the whole confidence interval of the disparity is beyond the limit,
        passes if the whole interval is within the limit and all groups could be compared, and is
        inconclusive otherwise.

        Parameters
        ----------
        condition : str, path-like or dict
            The condition, which must not hold, such as ``"demographic_parity_difference > 0.1"``,
            or ``"sex: demographic_parity_ratio < 0.8"`` for a single attribute. With
            ``control_features``, ``"within department: demographic_parity_ratio < 0.8"`` is about
            the worst of their levels, and so is ``"sex, within department: ..."``. Or the decision
            memo of a committee, as the path of its ``.json`` file or as the dict in it: no limit of
            the memo may be exceeded. If it has a limit for each of several attributes, the check
            says which of them decided.
        allow_undefined : bool, default=False
            If True, groups that cannot be compared are left out, such as a group of five people, or
            the true positive rate of a group without people of the positive class. If False, the
            check does not pass if there is such a group, because nothing is known about it. It
            fails if the groups that can be compared exceed the limit. An intersection of attributes
            with too few people is left out, unless the condition names the intersection.

        Returns
        -------
        check : Check
            The result. ``outcome`` is "pass", "fail" or "inconclusive", and ``sentence`` explains
            it in words. ``n_rows_needed`` is the number of rows that would decide an inconclusive
            check. ``undefined`` names the groups that could not be compared, with the reason.
            ``annotation()`` returns a line for GitHub.

        Notes
        -----
        If the true disparity is exactly at the limit, the outcomes "fail" and "pass" each have a
        probability of about ``(1 - confidence) / 2``, and all other checks are inconclusive.
        """
        return self._check(read_conditions(condition), allow_undefined)

    def _check(self, conditions: Sequence[Condition], allow_undefined: bool) -> Check:
        """Check conditions that were read, as :meth:`check` does."""
        gaps = [
            (own, self._gaps_of(own.metric, own.view, self.attributes, own.within))
            for own in conditions
        ]
        tables = self.rates, self.hidden
        known = {pair for own in tables for pair in zip(own["view"], own["group"], strict=True)}
        views = {view for view, _ in known}
        asked = {
            (view, name): None
            for own in conditions
            for view, name in own.groups
            if view in views and own.view in (None, view)
        }
        absent = [pair for pair in asked if pair not in known]
        scope = ""
        if self.control_features:
            names = ", ".join(self.control_features)
            is_within = any(own.within for own in conditions)
            scope = f"within {names}" if is_within else f"over all rows, not within {names}"
        return check_conditions(
            gaps,
            self.attributes,
            self.n_rows,
            self.confidence,
            allow_undefined,
            absent,
            one_decision_of(self),
            scope,
        )

    def _made_of(self, source: Source) -> Self:
        """Let the audit know its rows, and return it."""
        vars(self)["_source"] = source
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled or copied, without the rows."""
        return {name: own for name, own in vars(self).items() if name != "_source"}

    def _gaps_of(
        self, metric: str, view: str | None, attributes: Sequence[str] = (), within: str = ""
    ) -> pd.DataFrame:
        """Return the rows of ``gaps`` of the present model for one metric.

        They compare groups over all rows, or within the levels of the control features that
        ``within`` names, of which the worst one counts. They are of all views, or of one. If
        ``attributes`` are given, those without two groups to compare get a row whose value is NaN
        and which names the groups with too few people, so that a check does not pass them over.
        """
        if not len(self.gaps) and not attributes:
            raise ValueError("The audit compares no groups, because fewer than two are left.")
        known = ", ".join(self.control_features)
        if within and within != known:
            what = f"within {known!r}" if known else "over all rows"
            raise ValueError(
                f"A condition is within {within!r}, but the audit compares groups {what}. Pass "
                "these columns, in this order, as control_features=."
            )
        now = where(self.gaps, model="now", is_conditional=bool(within))
        rows = where(now, metric=metric)
        if not len(rows) and len(now):  # "f1 difference" is the difference of the f1_score
            plain, _, kind = metric.rpartition("_")
            metric, asked = f"{plain}_score_{kind}", metric
            rows = where(now, metric=metric)
        if not len(rows) and len(now):
            metric = asked
            known = ", ".join(dict.fromkeys(now["metric"]))
            raise ValueError(
                f"The audit has no metric {metric!r}. Its labels were {self.reading}, so it has "
                f"{known}. Other metrics are named when the audit is made: metrics=[...], also "
                "make_group_metric(f1_score). One class of several is named by pos_label=."
            )
        without = [name for name in attributes if name not in set(rows["view"])]
        if without:
            facts = {"metric": metric, "is_ratio": metric.endswith("_ratio"), "left_out": ""}
            facts |= dict.fromkeys(("value", "value_low", "value_high"), np.nan)
            few = pd.concat([self.hidden, where(self.rates, apart="small")])
            named = {name: ", ".join(where(few, view=name)["group"].unique()) for name in without}
            added = [facts | {"view": name, "too_few": own} for name, own in named.items()]
            rows = pd.DataFrame([*rows.to_dict("records"), *added])
        if view is not None:
            rows = where(rows, view=view)
            if not len(rows):
                known = ", ".join(repr(name) for name in dict.fromkeys(now["view"]))
                raise ValueError(
                    f"The audit has no view {view!r}. It has {known}. An attribute that is missing "
                    "is passed with the others, as a column of sensitive_features."
                )
        return rows


def one_decision_of(tables: AuditTables) -> str:
    """Say what cannot be compared because every decision is the same; "" if there are others."""
    whole = where(tables.rates, view="").set_index("measure")["value"]
    shares = whole[whole.index.str.startswith(("selection_rate", "share_predicted["))]
    if not len(shares) or not shares.isin([0.0, 1.0]).all():
        return ""
    decision = "positive" if shares.iloc[0] else "negative"
    if tables.task == "classes":
        decision = repr(str(shares.idxmax()).partition("[")[2][:-1])
    has_outcomes = whole.index.str.startswith(("true_positive_rate", "recall[")).any()
    return one_decision(decision, has_outcomes=bool(has_outcomes))


def head_of(
    sample: GroupTable, options: Options, title: str, n_lost: int, hidden: pd.DataFrame
) -> dict[str, Any]:
    """Return the fields that all audits have, except for ``about``, ``columns`` and most tables.

    ``sample`` has the rows that are shown, ``n_lost`` is the number of rows that are left out, and
    ``hidden`` are the groups that are not shown.
    """
    # A hidden group has 1 to ``most`` rows. The number of rows left out is shown only if it leaves
    # each of these sizes possible for each of the n_hidden groups.
    n_hidden, most = int(hidden["view"].isin(sample.attributes).sum()), options.suppress_below - 1
    is_open = n_hidden - 1 + most <= n_lost <= 1 + most * (n_hidden - 1)
    names = ("confidence", "n_simulations", "min_group_size", "suppress_below")
    head = {
        "title": str(title),
        "made_on": date.today().isoformat(),
        "version": __version__,
        "attributes": sample.attributes,
        "n_rows": int(sample.counts.sum()),
        # With units, a hidden group may have any number of rows, so the number is not shown.
        "n_left_out": n_lost if (is_open and sample.units is None) or not n_lost else None,
        "hidden": hidden,
    }
    if sample.units is not None:
        groups = {name: sample.compared([name]).units for name in sample.attributes}
        n_split = {name: own.n_split() for name, own in groups.items() if own}
        n_units = round(sample.units.n_units(len(sample.codes)).sum())
        head |= {"n_units": n_units, "n_in_several": n_split}
    return {name: getattr(options, name) for name in names} | head


def empty_table(schema: Mapping[str, Any]) -> pd.DataFrame:
    """Return a table without rows, with the columns that its schema requires."""
    items, columns = schema["items"], dict[str, Any]()
    for name in items["required"]:
        kind = items["properties"][name].get("type")
        types = {"number": float, "integer": int, "boolean": bool}
        own = types.get(kind[0] if isinstance(kind, list) else kind, object)
        columns[name] = np.empty(0, own)
    return pd.DataFrame(columns)


def written(text: str, path: str | PathLike[str] | None) -> str:
    """Write a text to a file if one was named, and return it."""
    if path is not None:
        with replacing(path) as beside:
            beside.write_text(text, encoding="utf-8")
    return text


def where(table: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """Return the rows of a table with these values in the columns of these names.

    A table without rows is returned as it is, because it may lack the columns.
    """
    for name, value in values.items() if len(table) else ():
        table = table[table[name] == value]
    return table


def parts(table: pd.DataFrame, column: str) -> Iterable[tuple[Any, pd.DataFrame]]:
    """Return each value of a column with its rows, in the order of the table.

    There is nothing for a table without rows, because it may lack the column.
    """
    return table.groupby(column, sort=False) if len(table) else ()


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as dicts of plain values, with None for NaN."""
    columns = [
        [None if isinstance(value, float) and not np.isfinite(value) else value for value in own]
        for own in (table[name].tolist() for name in table.columns)
    ]
    return [dict(zip(table.columns, row, strict=True)) for row in zip(*columns, strict=True)]


def _table(records: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the table of such rows; a column of numbers and None gets NaN for None."""
    table = pd.DataFrame(records)
    for name in table.columns:
        if table[name].map(lambda value: value is None or isinstance(value, float)).all():
            table[name] = table[name].astype(float)
    return table
