"""Audits of a data set before training: the people in it, and columns that predict the group.

Four kinds of questions are asked, and each has a table in the result:

- ``shares``: are the shares of the groups equal to the shares in a reference population?
- ``gaps`` (and ``rates``): do labels and missing values differ by group?
- ``proxies``: which columns predict the group?
- ``drift``: what has changed since an earlier data set?

The kinds share the error probability of the audit, 1 - ``confidence``, equally. The tests of a kind
are corrected for their number, so few audits of fair data find anything.

:func:`audit_data` is public, and ``python -m skfair audit-data`` calls it. It reads the rows into a
:class:`_Sample` and calls one function for each table. The sentences of the page are at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, FloatArray, IntArray, Seed
from skfair.groups.attributes import Role, check_aligned, read_columns
from skfair.groups.cohort import cohort_of
from skfair.groups.cohort_rows import cell_table
from skfair.groups.labels import MOST_CLASSES
from skfair.groups.rates import CellMeans, wilson
from skfair.groups.row_units import RowUnits, read_units
from skfair.groups.telling_columns import index_columns, warn_of_people
from skfair.report.data_sets.proxies import (
    N_FOLDS,
    Together,
    count_rows,
    deal_folds,
    judge,
    shift_index,
)
from skfair.report.results.pages import render_template, rows_of
from skfair.report.results.result import PlainTables, head_of, where
from skfair.report.results.sentences import SIGNIFICANT, apart_sentences, group_words, read_about
from skfair.report.tables.gaps import Gap
from skfair.report.tables.options import MISSING, Options, read_options
from skfair.report.tables.small_groups import Sums, class_counts, without_small
from skfair.report.tables.subgroups import read_column
from skfair.report.tables.views import View, find_gaps, rates_table, views_of
from skfair.report.words import prose
from skfair.utils.docs import documented
from skfair.utils.factorize import factorize
from skfair.utils.keywords import groups_by_name
from skfair.utils.rounding import ROUNDING
from skfair.utils.row_hash import row_draws
from skfair.utils.text import check_text, did_you_mean, listed, listed_in, plural, visible
from skfair.utils.validation import one_dimensional

# Shares may miss a sum of 1 by this much, because they are printed with two or three digits.
_MOST_OFF = 0.02
# The table ``gaps`` has these columns of the same table in an audit of predictions.
_OF_GAPS = [
    "view",
    "metric",
    "value",
    "value_low",
    "value_high",
    "clear_first",
    "clear_second",
    "p_value",
]


@documented
@dataclass(frozen=True, eq=False, repr=False)
class DataAudit(PlainTables):
    """Result of the audit of a data set, as returned by :func:`audit_data`.

    All tables are plain DataFrames, whose column ``view`` names an attribute. If a table has a
    ``p_value``, it is corrected for all tests of the audit, and ``is_beyond_chance`` tells whether
    it is significant.

    Parameters
    ----------
    title : str
        Title of the report.
    about : dict
        Facts that the user stated.
    columns : dict
        Name of the labels in the data.
    decision : str
        Description of a positive label.
    made_on : str
        Date of the audit.
    version : str
        Version of the package that made the audit.
    n_rows : int
        Number of rows.
    n_left_out : int or None
        Number of rows that are left out because their groups are too small. It is None if the
        number would reveal how many rows one of these groups has.
    n_units : int or None
        Number of units (persons), if ``units`` were given.
    n_in_several : dict or None
        Number of units that have rows in several groups of an attribute, by attribute.
    attributes : list of str
        Names of the sensitive attributes.
    confidence : float
        Confidence level of all intervals.
    n_simulations : int
        Number of simulated samples from which the p-values of ``gaps`` are computed.
    min_group_size : float
        Size below which groups are not compared.
    suppress_below : float
        Size below which groups are not shown.
    hidden : DataFrame
        The groups that are not shown, with the columns ``view`` and ``group``.
    rates : DataFrame
        The value of each measure in each group, with the columns of :class:`Audit`. The measures
        are ``label[...]``, the share of a label, ``mean_label``, and ``missing[...]``, the share of
        missing values of a column.
    gaps : DataFrame
        The largest difference of each measure with its interval and the two groups.
    n_columns : int
        Number of columns that were examined.
    n_earlier : int
        Number of rows of the earlier data.
    shares : DataFrame
        The number ``n`` of rows (or persons, with units) and the ``share`` of each group, with its
        interval, its share in the ``reference`` population and its share in the ``earlier`` data.
        For groups that are not shown, ``n`` is NaN and ``p_value`` is an upper bound.
    proxies : DataFrame
        Columns that predict the group. ``auc`` is computed on held-out rows and averaged over the
        groups, each against all others. The ``kind`` is "single" for one column and "all" for all
        columns together. If all columns together predict the group, "few" is the smallest set found
        that explains 95% as much.
    drift : DataFrame
        Changes since the earlier data, with the population stability index ``psi`` of each column,
        and the ``auc`` with which the column distinguishes the two data sets.

    See Also
    --------
    Audit : Result of an audit of predictions.

    Examples
    --------
    >>> from skfair.datasets import make_loans
    >>> from skfair.report import audit_data
    >>> loans = make_loans(500, random_state=0)
    >>> found = audit_data(loans.data[["age"]], sensitive_features=loans.sensitive_features["sex"])
    >>> found.sentences()
    ['sex, columns: none predicts it significantly (1 column examined).']
    """

    n_columns: int
    n_earlier: int
    shares: pd.DataFrame
    proxies: pd.DataFrame
    drift: pd.DataFrame
    _templates = "data.html.j2", "cell.html.j2", "data.md.j2"
    _schema = "data_sets/data_schema.json", "1.1"

    def sentences(self) -> list[str]:
        """Describe the findings for each attribute, and the changes.

        Returns
        -------
        sentences : list of str
            The sentences. Findings contain the words "statistically significant".
        """
        return [*_sentences(self), *apart_sentences(self.shares, self)]

    def _rendered(self, template: str) -> str:
        said = {"verdicts": self.sentences(), "limits": prose()["data_limits"]}
        return render_template(template, audit=self, picture=None, title_of=_title, **said)

    def __repr__(self) -> str:
        lines = [f"{self.title}: {self.size}", *self.sentences()]
        return "\n".join(map(visible, lines))


@groups_by_name
def audit_data(
    X: ColumnsLike,
    y: ColumnLike | None = None,
    *,
    sensitive_features: ColumnsLike,
    reference_shares: Mapping[str, Any] | None = None,
    units: ColumnLike | None = None,
    earlier: Mapping[str, Any] | None = None,
    pos_label: ClassLabel = None,
    unknown: Any = None,
    confidence: float = 0.95,
    n_simulations: int = 500,
    min_group_size: float | None = None,
    suppress_below: float | None = None,
    title: str = "Audit of the data",
    about: Mapping[str, str] | None = None,
    random_state: Seed = 0,
) -> DataAudit:
    """Audit a data set by group before a model is trained on it.

    The audit compares the shares of the groups with a reference population, labels and missing
    values between groups, and the data with an earlier data set. It also finds columns that predict
    the group.

    Parameters
    ----------
    X : DataFrame, dict or array-like of shape (n_samples, n_columns)
        The columns, which may hold numbers, text and missing values. Columns with the name of a
        sensitive attribute are left out.
    y : array-like of shape (n_samples,), default=None
        Labels or numbers. Some of them may be missing.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        The group of each row. Each column is one sensitive attribute.
    reference_shares : dict, default=None
        Shares of the groups in the reference population, such as ``{"sex": {"female": 0.51, "male":
        0.49}}``. Numbers of people are accepted too. Groups that do not occur in the data count as
        missing.
    units : array-like of shape (n_samples,), default=None
        Labels of rows that belong together, for example the person behind each visit (see
        :func:`audit`). Shares of groups, proxies and changes are computed from one row of each
        person, which is drawn at random.
    earlier : dict, default=None
        An earlier data set with which the data are compared, as a dict with the keys ``X``,
        ``sensitive_features`` and optionally ``y`` and ``units``.
    pos_label : label, default=None
        The label whose rates are reported. If None, it is the last of two labels. With more labels,
        all of them are reported.
    unknown : level or list of levels, default=None
        Levels that mean that the attribute is unknown, as in :func:`audit`.
    confidence : float, default=0.95
        Confidence level of the intervals. If the data are fair, it is also the probability that an
        audit reports nothing as significant.
    n_simulations : int, default=500
        Number of simulated samples from which the p-values of labels and missing values are
        computed.
    min_group_size : int, default=None
        Smallest number of rows of a group that is compared. If None, it is 30.
    suppress_below : int, default=None
        Smallest number of rows of a group that is shown. If None, it is 10.
    title : str, default="Audit of the data"
        Title of the report.
    about : dict, default=None
        Facts for the head of the report, as in :func:`audit`.
    random_state : int, RandomState instance or None, default=0
        Seed of folds, permutations and simulations.

    Returns
    -------
    found : DataAudit
        The audit, with its tables and the methods ``to_html``, ``to_markdown`` and ``to_json``.

    See Also
    --------
    audit : Audits the predictions of a model.

    Notes
    -----
    Columns are reduced to at most 10 bins or 255 levels and counted by fold, level and group, which
    costs O(n) for each column. P-values of columns come from permutations of the groups. They are
    corrected by the method of Benjamini and Hochberg (1995), which limits the share of reported
    columns that are unrelated to the group. All columns together are assessed by boosted trees on
    at most 20,000 rows.

    Examples
    --------
    >>> from skfair.datasets import make_loans
    >>> from skfair.report import audit_data
    >>> loans = make_loans(4000, random_state=0)
    >>> sex = loans.sensitive_features["sex"]
    >>> found = audit_data(loans.data, loans.target, sensitive_features=sex)
    >>> sorted(found.proxies.query("is_beyond_chance")["column"])[1:]
    ['housing', 'income']
    """
    check_text([title], "The title")
    options = read_options(
        random_state=random_state,
        unknown=unknown,
        confidence=confidence,
        n_simulations=n_simulations,
        min_group_size=min_group_size,
        suppress_below=suppress_below,
    )
    sample, before = _Sample(X, sensitive_features, y, units, options, pos_label), None
    if units is None:
        warn_of_people([*read_columns(X, Role("X", "Column", "value")), *index_columns(X)])
    if earlier is not None:
        before = _read_earlier(earlier, sample, options)
    measures = sample.table.measures
    asked = [Gap(name, "difference", (name,)) for name in measures]
    gaps, *_ = find_gaps(sample.table, sample.views, asked, options, [])
    n_kinds = 2 + (reference_shares is not None) + (before is not None)
    shares = _shares(sample, reference_shares, before, options)
    proxies = _proxies(sample, n_kinds, options)
    drift = pd.DataFrame() if before is None else _drift(sample, before, n_kinds, options)
    return DataAudit(
        **head_of(sample.table, options, title, sample.n_lost, sample.hidden),
        about=read_about(about),
        columns={} if sample.label is None else {"y_true": sample.label},
        decision=sample.definition,
        n_columns=len(sample.columns),
        n_earlier=0 if before is None else before.n_rows,
        shares=_corrected(shares, n_kinds, options),
        rates=rates_table(sample.table, sample.views, confidence) if measures else pd.DataFrame(),
        gaps=_corrected(gaps[_OF_GAPS], n_kinds, options, is_joint=True) if len(gaps) else gaps,
        proxies=proxies,
        drift=drift if before is None else _corrected(drift, n_kinds, options),
    )


def _corrected(
    table: pd.DataFrame, n_kinds: int, options: Options, *, is_joint: bool = False
) -> pd.DataFrame:
    """Correct the p-values of one kind of tests, and mark the significant ones.

    P-values of gaps are corrected for the number of gaps already (``is_joint``). P-values of other
    kinds are corrected by the method of Benjamini and Hochberg. All p-values are then multiplied by
    the number of kinds.
    """
    p_values = table["p_value"].to_numpy(np.float64, copy=True)
    is_tested = np.isfinite(p_values)
    if not is_joint and is_tested.any():
        p_values[is_tested] = stats.false_discovery_control(p_values[is_tested])
    p_values = np.minimum(n_kinds * p_values, 1.0)
    is_beyond = p_values <= 1 - options.confidence + ROUNDING
    return table.assign(p_value=p_values, is_beyond_chance=is_beyond)


class _Sample:
    """The rows of a data set that may be shown: columns, groups, and sums over cells.

    The rows of groups that are too small to be shown are left out. ``table`` has the cells, which
    are combinations of sensitive attributes, with a measure for the labels ("label[...]" or
    "mean_label") and one for each column with missing values ("missing[...]"). Tests that need
    independent rows use ``is_drawn``, one row of each unit. ``n_lost`` is the number of rows that
    are left out, ``label`` the name of the labels (None without ``y``), and ``definition`` the
    sentence that says what a positive label is.
    """

    def __init__(
        self,
        X: ColumnsLike,
        sensitive_features: ColumnsLike,
        y: ColumnLike | None,
        units: ColumnLike | None,
        options: Options,
        pos_label: ClassLabel,
    ) -> None:
        columns = read_columns(X, Role("X", "Column", "value"))
        n_rows = len(columns[0][1])
        check_aligned(X=X, y=y, units=units, sensitive_features=sensitive_features)
        people = cohort_of(sensitive_features=sensitive_features)
        missing = MISSING if MISSING in options.unknown else None
        table, cells = cell_table(people, n_rows, missing, options.unknown)
        levels, together = table.levels, None if units is None else read_units(units, n_rows)
        parts = None if together is None else together.parts(cells, len(table.codes))
        self.table, left_out = without_small(replace(table, units=parts), options.suppress_below)
        self.hidden = pd.DataFrame(left_out, columns=["view", "group"])
        named_cells = (zip(levels, map(str, cell), strict=True) for cell in table.cells())
        is_kept = np.array([not {*left_out} & {*named} for named in named_cells])
        rows = is_kept[cells]
        self._cells = (np.cumsum(is_kept) - 1)[cells[rows]]
        if together is not None:
            together = RowUnits(together.codes[rows], together.n_units)
            units_of_cells = together.parts(self._cells, int(is_kept.sum()))
            self.table = replace(self.table, units=units_of_cells)
        self.n_rows = len(self._cells)
        self.n_lost = n_rows - self.n_rows
        named = {name or f"column_{j}": values for j, (name, values) in enumerate(columns)}
        self.columns = {
            name: pd.Series(values)[rows] for name, values in named.items() if name not in levels
        }
        self.label, self.definition, every = None, "", dict(self.columns)
        if y is not None:
            self.label = str(getattr(y, "name", None) or "y")
            labels = one_dimensional(y, "y", n_rows)
            every[self.label] = pd.Series(np.asarray(labels))[rows]
            self.table.measures.update(self._label_rates(every[self.label], pos_label))
        self.is_drawn = np.ones(len(self._cells), bool)  # whether each row stands for its unit
        if together is not None:
            drawn_from = {"cell": self._cells, **{k: v.to_numpy() for k, v in every.items()}}
            self.is_drawn = together.one_row(row_draws(pd.DataFrame(drawn_from), None, 0))
        for name, values in every.items():
            if values.hasnans:
                self.table.measures[f"missing[{name}]"] = self._sums(values.isna().to_numpy())
        self.labels = every.get(self.label or "")
        counts = class_counts(self.table)
        self.views = [
            view.masked(Sums(self.table, view, counts, 0, options.suppress_below).hidden(view))
            for view in views_of(self.table, options)[: len(levels)]
        ]

    def codes(self, view: View) -> IntArray:
        """Return the group of each row."""
        return np.asarray(view.codes[self._cells])

    def people(self, view: View) -> FloatArray:
        """Return the number of people in each group, where one row of each person counts."""
        counts = np.bincount(self.codes(view)[self.is_drawn], minlength=len(view.names))
        return counts.astype(np.float64)

    def _sums(self, values: Any, counted: Any = None) -> CellMeans:
        """Add up values by cell, over the rows that are ``counted`` (None for all rows)."""
        cells, n_cells, units = self._cells, self.table.counts.size, self.table.units
        return CellMeans.of_rows(values, counted, cells, n_cells, units=units)

    def _label_rates(
        self, labels: pd.Series, pos_label: ClassLabel
    ) -> Iterator[tuple[str, CellMeans]]:
        """Yield the share of each class, or the mean of numbers, among rows that have a label.

        Labels are numbers if they have fractions, or more values than classes may have.
        """
        codes, levels = factorize(labels.to_numpy())
        numbers = pd.to_numeric(pd.Series(levels), errors="coerce").to_numpy(np.float64)
        is_many, is_number = len(levels) > MOST_CLASSES, bool(np.isfinite(numbers).all())
        if is_number and (is_many or (numbers % 1).any()):
            # Rows without a label have the code -1 and read the 0 at the end, which is not counted.
            yield "mean_label", self._sums(np.append(numbers, 0.0)[codes], codes >= 0)
            return
        if is_many:
            raise ValueError(
                f"y has {len(levels)} different labels (at most {MOST_CLASSES} are read as "
                "classes). Merge rare classes."
            )
        if pos_label is not None and pos_label not in levels:
            raise ValueError(
                f"pos_label={pos_label!r} is no label of y: {listed(levels)}."
                f"{did_you_mean(pos_label, levels)}"
            )
        chosen = levels if len(levels) > 2 else levels[-1:]
        chosen = chosen if pos_label is None else [pos_label]
        if len(chosen) == 1:
            self.definition = f"Labelled positively means: column {self.label} = {listed(chosen)}."
        for level in chosen:
            yield f"label[{level}]", self._sums(codes == levels.index(level), codes >= 0)


def _read_earlier(earlier: Mapping[str, Any], sample: _Sample, options: Options) -> _Sample:
    """Read the earlier data set; raise unless it has the columns of the present one."""
    if not isinstance(earlier, Mapping) or not {"X", "sensitive_features"} <= set(earlier):
        raise ValueError("earlier must be a dict with X and sensitive_features, and y if wanted.")
    y, units = earlier.get("y"), earlier.get("units")
    before = _Sample(earlier["X"], earlier["sensitive_features"], y, units, options, None)
    known = {*before.columns, *before.table.attributes}
    lacking = [name for name in (*sample.columns, *sample.table.attributes) if name not in known]
    if lacking:
        raise ValueError(
            f"The earlier data lack {listed(lacking)}. Pass the same columns and attributes."
        )
    return before


def _shares(
    sample: _Sample,
    reference_shares: Mapping[str, Any] | None,
    before: _Sample | None,
    options: Options,
) -> pd.DataFrame:
    """Return the table ``shares``: the share of each group, compared with the population.

    A group of the population that the data lack or hide gets the largest number of rows that a
    hidden group can have. If its share is smaller than in the population, its p-value is an upper
    bound.
    """
    reference = _read_shares(reference_shares, sample)
    earlier = {
        view.name: dict(zip(view.names, n / n.sum(), strict=True))
        for view, n in ([] if before is None else [(v, before.people(v)) for v in before.views])
    }
    most, tables = int(np.ceil(options.suppress_below)) - 1, []
    for view in sample.views:
        expected, is_known = reference.get(view.name, {}), view.apart != "unknown"
        people = sample.people(view)
        total = int(people[is_known].sum())
        shares = np.where(is_known, people, np.nan) / total
        ends = wilson(shares, np.full(shares.size, total), options.confidence)
        lost = [(name, *[np.nan] * 4, "hidden") for name in expected if name not in view.names]
        known = zip(view.names, people, shares, *ends, view.apart, strict=True)
        columns = ["group", "n", "share", "share_low", "share_high", "apart"]
        table = pd.DataFrame([*known, *lost], columns=columns)
        table["reference"] = table["group"].map(expected).astype(float)
        table["earlier"] = table["group"].map(earlier.get(view.name, {})).astype(float)
        n = table["n"].fillna(most).astype(int)
        n_all = total + n * table["n"].isna()
        asked = zip(n, n_all, table["reference"], strict=True)
        table["p_value"] = [
            stats.binomtest(k, of, share).pvalue if share >= 0 else np.nan for k, of, share in asked
        ]
        tables.append(table.assign(view=view.name))
    return pd.concat(tables, ignore_index=True)


def _read_shares(shares: Any, sample: _Sample) -> dict[str, dict[str, float]]:
    """Return the share of each group in the reference population, by attribute."""
    views = {view.name: view for view in sample.views}
    if shares is None:
        return {}
    if not isinstance(shares, Mapping):
        raise TypeError(
            "reference_shares must be a dict such as {'sex': {'female': 0.51, 'male': 0.49}}, got "
            f"{shares!r}."
        )
    if len(views) == 1 and not any(isinstance(own, Mapping) for own in shares.values()):
        shares = {next(iter(views)): shares}
    read = {}
    for name, own in shares.items():
        if name not in views:
            raise ValueError(
                f"reference_shares names {name!r}, but the attributes are {listed(views)}."
                f"{did_you_mean(name, views)}"
            )
        numbers = pd.to_numeric(pd.Series(own), errors="coerce").to_numpy(np.float64)
        if not ((numbers >= 0).all() and 0 < numbers.sum() < np.inf):
            raise ValueError(
                f"reference_shares[{name!r}] must have a share or a number of people for each "
                f"group, got {own!r}."
            )
        total = float(numbers.sum())
        are_shares = (numbers <= 1).all() and (numbers % 1).any()  # 1 and 1 are numbers of people
        if are_shares and abs(total - 1) > _MOST_OFF:
            raise ValueError(
                f"reference_shares[{name!r}] adds up to {total:.4g}. Pass shares that add up to 1, "
                "or numbers of people."
            )
        read[name] = dict(zip(map(str, own), (numbers / total).tolist(), strict=True))
        is_known = views[name].apart != "unknown"
        lacking = {*np.array(views[name].names)[is_known].tolist()} - {*read[name]}
        if lacking:
            raise ValueError(
                f"reference_shares[{name!r}] lacks {listed(sorted(lacking))}. Give each group a "
                "share, or name it in unknown= if it stands for rows without a group."
            )
    return read


def _levels(values: pd.Series) -> IntArray:
    """Return the level of each row: numbers and dates in 10 bins, and at most 255 other levels."""
    if pd.api.types.is_datetime64_any_dtype(values):
        values = values.astype("int64").where(values.notna())
    return read_column(values, 10, 255).codes


def _proxies(sample: _Sample, n_kinds: int, options: Options) -> pd.DataFrame:
    """Return the table ``proxies``: how well columns predict the group, for each attribute.

    The column ``kind`` is "single" for one column, "all" for all columns together, and "few" for
    the smallest set of columns that predicts nearly as well as all, if all do so significantly.
    """
    columns = {name: _levels(values) for name, values in sample.columns.items()}
    most = _n_permutations((len(columns) + 1) * len(sample.views), n_kinds, options)
    records, models = [], {}
    for view in sample.views:
        is_compared = (view.apart == "") & (sample.people(view) >= N_FOLDS)
        if is_compared.sum() < 2 or not columns:
            continue
        codes = sample.codes(view)
        rows = is_compared[codes] & sample.is_drawn
        groups = (np.cumsum(is_compared) - 1)[codes[rows]]
        folds, own = deal_folds(groups, options.rng), {k: v[rows] for k, v in columns.items()}
        for name, levels in own.items():
            tested = judge(count_rows(levels, groups, folds), most, options.rng)
            records.append((view.name, "single", name, *tested))
        model = models[view.name] = Together(own, groups, options.rng)
        records.append((view.name, "all", "all columns together", *model.judge([*own])))
    names = ["view", "kind", "column", "auc", "p_value"]
    table = _corrected(pd.DataFrame(records, columns=names), n_kinds, options)
    few = []
    for row in rows_of(where(table, kind="all", is_beyond_chance=True)):
        singles = where(table, view=row.view, kind="single").sort_values("auc", ascending=False)
        kept = models[row.view].smallest(singles["column"].tolist())
        auc = models[row.view].judge(kept)[0]
        few.append((row.view, "few", ", ".join(kept), auc, np.nan, False))
    smallest = pd.DataFrame(few, columns=table.columns)
    return pd.concat([table, smallest], ignore_index=True) if few else table


def _n_permutations(n_tests: int, n_kinds: int, options: Options) -> int:
    """Return how many permutations a column gets at most.

    With this many, the smallest possible p-value is half of (1 - confidence) / (n_tests * n_kinds),
    the p-value that makes a single finding significant after all corrections.
    """
    return int(np.ceil(2 * n_tests * n_kinds / (1 - options.confidence)))


def _drift(sample: _Sample, before: _Sample, n_kinds: int, options: Options) -> pd.DataFrame:
    """Return the table ``drift``: each column, attribute and label against the earlier data.

    The question is how well a column predicts which of the two data sets a row is from.
    """
    pairs: dict[str, tuple[Any, Any]]
    pairs = {name: (before.columns[name], own) for name, own in sample.columns.items()}
    views = {view.name: view for view in before.views}
    for now in sample.views:
        sides = (before, views[now.name]), (sample, now)
        earlier, own = (pd.Series(np.array(v.names, object)[of.codes(v)]) for of, v in sides)
        pairs[now.name] = earlier, own
    if sample.label is not None and before.labels is not None:
        pairs[sample.label] = before.labels, sample.labels
    is_drawn = np.concatenate([before.is_drawn, sample.is_drawn])
    is_now = np.repeat([0, 1], [before.n_rows, sample.n_rows])[is_drawn]
    folds, most = deal_folds(is_now, options.rng), _n_permutations(len(pairs), n_kinds, options)
    records = []
    for name, both in pairs.items():
        column = pd.concat(both, ignore_index=True)[is_drawn]
        counts = count_rows(_levels(column), is_now, folds)
        records.append((name, shift_index(counts), *judge(counts, most, options.rng)))
    return pd.DataFrame(records, columns=["column", "psi", "auc", "p_value"])


def _title(tables: DataAudit, measure: str) -> str:
    """Return the title of a measure, such as "repaid = 1" for "label[1]"."""
    kind, _, name = measure.removesuffix("]").partition("[")
    label = tables.columns.get("y_true", "")
    titles = {"missing": f"{name} missing", "label": f"{label} = {name}"}
    return titles.get(kind, f"mean of {label}")


def _sentences(tables: DataAudit) -> Iterator[str]:
    """Yield the sentences about each attribute, and one about changes."""
    for view in tables.attributes:
        yield from _of_shares(where(tables.shares, view=view), view)
        for row in rows_of(where(tables.gaps, view=view, is_beyond_chance=True)):
            own = where(tables.rates, view=view, measure=row.metric)
            rates = dict(zip(own["group"], own["value"], strict=True))
            form = "{:.3g}" if row.metric == "mean_label" else "{:.1%}"
            sides = (
                f"{form.format(rates[name])} ({group_words(view, name)})"
                for name in (row.clear_first, row.clear_second)
            )
            said = " against ".join(sides)
            yield f"{view}, {_title(tables, row.metric)}: {said}, {SIGNIFICANT}."
        yield f"{view}, columns: {_of_columns(where(tables.proxies, view=view), tables)}."
    if tables.n_earlier:
        changed = where(tables.drift, is_beyond_chance=True).sort_values("psi", ascending=False)
        texts = [f"{row.column} ({row.psi:.2g})" for row in rows_of(changed)]
        text = f"{listed_in(texts)}, {SIGNIFICANT}" if texts else "no significant change"
        yield f"Changed since the earlier data (stability index): {text}."


def _of_shares(shares: pd.DataFrame, view: str) -> Iterator[str]:
    """Say which groups have other shares than in the population; nothing without a population."""
    if not shares["reference"].notna().any():
        return
    texts = [
        ("too few rows to be shown" if np.isnan(row.share) else f"{row.share:.1%}")
        + f" ({group_words(view, row.group)}) against {row.reference:.1%} in the population"
        for row in rows_of(where(shares, is_beyond_chance=True))
    ]
    text = "no significant difference from the population"
    if texts:
        text = f"{listed_in(texts)}, {SIGNIFICANT}"
    yield f"{view}, shares: {text}."


def _of_columns(proxies: pd.DataFrame, tables: DataAudit) -> str:
    """Say which columns predict a group, one by one and together."""
    if not len(proxies):
        return "not examined, because fewer than two groups have enough rows"
    best = where(proxies.sort_values("auc", ascending=False), is_beyond_chance=True)
    texts = [f"{row.column} (AUC {row.auc:.2f})" for row in rows_of(best)]
    if not texts:
        return f"none predicts it significantly ({plural(tables.n_columns, 'column')} examined)"
    few = [f"; {row.column} alone {row.auc:.2f}" for row in rows_of(where(proxies, kind="few"))]
    return f"predicted by {listed_in(texts)}, {SIGNIFICANT}{''.join(few)}"
