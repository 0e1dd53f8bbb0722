"""A cohort: who the rows are and what was decided about them, said once.

A :class:`Cohort` keeps the columns as they were given, and the tables that were read from them
(``cohort_rows.py``). Functions that compare groups take it in place of their columns
(``cohort_calls.py``), or make one of them by :func:`cohort_of`.

``intersectional``, ``reference`` and ``agg`` are questions, not facts. They stay arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.utils.validation import _num_samples

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, IntArray, MatrixLike
from skfair.groups.attributes import check_aligned, read_columns, take_rows
from skfair.groups.cohort_rows import outcome_table
from skfair.groups.compared_groups import Reference
from skfair.groups.declared_rates import RATES, is_f_score
from skfair.groups.engine_reading import read_table
from skfair.groups.engine_tables import (
    EngineTable,
    Kinds,
    check_names,
    check_unchanged,
    frame_of,
    levels_of,
    only_where,
)
from skfair.groups.estimates import Estimate
from skfair.groups.foreign_tables import native_table
from skfair.groups.levels import number_tuples
from skfair.groups.outcomes import Counted
from skfair.groups.row_units import RowUnits, unit_codes
from skfair.groups.table import GroupTable
from skfair.utils.dask_collections import is_lazy
from skfair.utils.docs import described, documenter
from skfair.utils.factorize import factorize
from skfair.utils.keywords import groups_by_name
from skfair.utils.response import get_response, positive_class, response_method_of
from skfair.utils.text import did_you_mean, listed, listed_in

if TYPE_CHECKING:
    import pandas as pd

# The columns that a cohort may have, in the order of its arguments.
COLUMNS = (
    *("y_true", "y_pred", "y_score", "sensitive_features", "before", "control_features"),
    *("sample_weight", "units"),
)


# A cohort without labels and scores raises this, also if it is made of a table.
NOTHING = "Cohort has no labels and no scores. Pass y_true, y_pred, y_score or several of them."


class Cohort:
    """Rows, said once: what is true, what was decided, and who each row is.

    Metrics, reports, tests, audits, displays and monitors take a cohort in place of ``y_true`` and
    all other columns: ``demographic_parity_difference(people)``, ``audit(people)``,
    ``disparity_test(people, "equalized_odds_difference", max_disparity=0.05)``. Tables that were
    counted once are kept, so a second question costs next to nothing.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), default=None
        True labels or numbers. They may be None if nothing is asked that needs them.
    y_pred : array-like of shape (n_samples,), default=None
        Predicted labels, decisions or numbers.
    y_score : array-like of shape (n_samples,), default=None
        Scores, such as probabilities of the positive class.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        The group of each row. Each column is one sensitive attribute.
    before : array-like of shape (n_samples,), default=None
        Predictions of an earlier model for the same rows. Audits compare both.
    control_features : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
        An attribute that may legitimately explain a difference, such as the department. Groups are
        then compared only within each of its levels.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.
    units : array-like of shape (n_samples,), default=None
        Labels of rows that belong together, for example the person behind each visit.
    pos_label : label, default=None
        The class that counts as positive.

    See Also
    --------
    skfair.metrics.group_report : Table with the rates of each group.
    skfair.report.audit : Report with p-values that are corrected for all groups and metrics.

    Notes
    -----
    A function that would have to ignore strata or weights of the cohort raises an error. Units
    change how certain a value is, not the value, so functions that measure values only ignore them.

    Examples
    --------
    >>> import skfair
    >>> from skfair.metrics import demographic_parity_difference, disparity_test
    >>> sex, invited = ["f", "m"] * 500, [1, 1, 1, 0] * 250
    >>> people = skfair.Cohort(y_pred=invited, sensitive_features={"sex": sex})
    >>> people
    Cohort(1,000 rows; sex: f 500, m 500; has y_pred)
    >>> demographic_parity_difference(people)
    0.5
    >>> gap = people.difference("selection_rate")
    >>> low, high = gap.interval()
    >>> round(low, 2), round(high, 2)
    (0.45, 0.54)
    """

    @groups_by_name
    def __init__(
        self,
        y_true: ColumnLike | None = None,
        y_pred: ColumnLike | None = None,
        *,
        y_score: ColumnLike | None = None,
        sensitive_features: ColumnsLike,
        before: ColumnLike | None = None,
        control_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
        units: ColumnLike | None = None,
        pos_label: ClassLabel = None,
    ) -> None:
        self._set(locals())
        given = given_columns(self)
        if not given.keys() & {"y_true", "y_pred", "y_score", "before"}:
            raise ValueError(NOTHING)
        if sensitive_features is None:
            raise ValueError(
                "Cohort needs sensitive_features=, one value per row: the groups that are compared."
            )
        if not is_lazy(*given.values()):
            check_aligned(**given)
            sizes = {name: _n_rows(own) for name, own in given.items()}
            if len(set(sizes.values())) > 1:
                counted = listed_in([f"{name} {n:,}" for name, n in sizes.items()])
                raise ValueError(
                    f"The columns of a Cohort have different numbers of rows: {counted}."
                )

    def _set(self, given: Mapping[str, Any]) -> None:
        columns = {name: given.get(name) for name in (*COLUMNS, "pos_label", "_kinds")}
        vars(self).update(columns, _tables={})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"A cohort does not change, because its tables are kept. Make another one with {name}=."
        )

    if TYPE_CHECKING:  # set by ``_set``
        _tables: dict[Any, GroupTable]
        _kinds: Kinds | None  # given if the columns are those of kinds of rows in an engine
        y_true: ColumnLike | None
        y_pred: ColumnLike | None
        sensitive_features: ColumnsLike
        y_score: ColumnLike | None
        before: ColumnLike | None
        control_features: ColumnsLike | None
        sample_weight: ColumnLike | None
        units: ColumnLike | None
        pos_label: ClassLabel

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: MatrixLike,
        y: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike,
        before: ColumnLike | None = None,
        control_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
        units: ColumnLike | None = None,
        pos_label: ClassLabel = None,
    ) -> Self:
        """Make a cohort of the predictions of a fitted model.

        Parameters
        ----------
        estimator : object
            A fitted model. If its ``predict`` takes ``sensitive_features`` or
            ``control_features``, they are passed to it.
        X : array-like of shape (n_samples, n_features)
            The rows for which the model predicts.
        y : array-like of shape (n_samples,), default=None
            True labels or numbers.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row. Each column is one sensitive attribute.
        before : array-like of shape (n_samples,), default=None
            Predictions of an earlier model for the same rows.
        control_features : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
            An attribute that may legitimately explain a difference, such as the department.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        units : array-like of shape (n_samples,), default=None
            Labels of rows that belong together, for example the person behind each visit.
        pos_label : label, default=None
            The class that counts as positive. If None, the positive class of the model is used,
            which is usually the second of its two classes.

        Returns
        -------
        people : Cohort
            The cohort. ``y_score`` are the scores of the positive class, if the model has two
            classes.
        """
        groups: dict[str, Any] = {
            "sensitive_features": sensitive_features,
            "control_features": control_features,
        }
        positive, y_score = positive_class(estimator, pos_label), None
        if positive is not None:
            method = _score_method(estimator)
            if method is not None:
                y_score = get_response(estimator, X, method, pos_label=positive, **groups)
        return cls(
            y,
            get_response(estimator, X, "predict", **groups),
            y_score=y_score,
            before=before,
            sample_weight=sample_weight,
            units=units,
            pos_label=positive,
            **groups,
        )

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        y_true: str | None = None,
        y_pred: str | None = None,
        y_score: str | None = None,
        sensitive_features: str | Sequence[str],
        before: str | None = None,
        control_features: str | Sequence[str] | None = None,
        sample_weight: str | None = None,
        units: str | None = None,
        pos_label: ClassLabel = None,
        where: Any = None,
    ) -> Self:
        """Make a cohort of columns of a table, which is counted where it is.

        A lazy table is grouped by its engine, such as DuckDB, Spark or a warehouse behind Ibis, and
        only the counts of the combinations that occur travel. Metrics, reports, tests, estimates
        and audits have the same values as of the rows in memory. If the table is in memory, or is
        one of Dask, the cohort has its columns.

        Parameters
        ----------
        table : frame
            A table of a library that narwhals knows: a DuckDB relation, a LazyFrame or DataFrame of
            polars, a table of Spark, SQLFrame, Ibis, Dask, pyarrow or pandas.
        y_true : str, default=None
            Name of the column of true labels or numbers.
        y_pred : str, default=None
            Name of the column of predicted labels or numbers.
        y_score : str, default=None
            Name of the column of scores. An engine returns the counts of up to 65,536 different
            scores, and otherwise of about as many bins of them.
        sensitive_features : str or list of str
            Names of the columns that hold the groups.
        before : str, default=None
            Name of the column of the predictions of an earlier model.
        control_features : str or list of str, default=None
            Names of columns that may legitimately explain a difference.
        sample_weight : str, default=None
            Name of the column of weights.
        units : str, default=None
            Name of the column that says which rows belong together, such as a person. An engine
            counts units without ``y_score``.
        pos_label : label, default=None
            The class that counts as positive.
        where : dict or narwhals expression, default=None
            The rows that are read: for a column its level or a list of levels, such as
            ``{"year": 2026}``, or an expression such as ``narwhals.col("year") >= 2025``.

        Returns
        -------
        people : Cohort
            The cohort. What needs single rows, such as a function of one's own, raises an error for
            tables that were counted in an engine.

        Examples
        --------
        >>> import pandas as pd
        >>> import skfair
        >>> table = pd.DataFrame({"sex": ["f", "m"] * 500, "invited": [1, 1, 1, 0] * 250})
        >>> people = skfair.Cohort.from_table(table, y_pred="invited", sensitive_features="sex")
        >>> people
        Cohort(1,000 rows; sex: f 500, m 500; has y_pred)
        >>> people.difference("selection_rate").value
        0.5
        """
        names = {name: own for name, own in locals().items() if name in COLUMNS}
        for name, own in names.items():
            several = isinstance(own, list | tuple)
            if own is not None and not all(
                isinstance(one, str) for one in (own if several else [own])
            ):
                raise TypeError(
                    f"{name}= is the name of a column of the table, got {type(own).__name__}. "
                    "Columns themselves are passed without a table."
                )
        if not any(names[name] for name in ("y_true", "y_pred", "y_score", "before")):
            raise ValueError(NOTHING)
        columns = {
            name: [own] if isinstance(own, str) else list(own)
            for name, own in names.items()
            if own is not None
        }
        if is_lazy(table):
            if where is not None:
                raise TypeError(
                    "where= is for other tables. Filter a Dask frame: table[condition]."
                )
            check_names(columns, [*table.columns])
            return cls(**_picked(table, columns), pos_label=pos_label)
        frame = frame_of(table)
        if where is not None:
            frame = only_where(frame, where)
        if hasattr(frame, "to_native") and not hasattr(frame, "collect"):  # rows in memory
            check_names(columns, frame.columns)
            rows = native_table(frame)  # those of pyarrow become those of pandas
            return cls(**_picked(rows, columns), pos_label=pos_label)
        beside = {name: names[name] for name in ("y_score", "sample_weight", "units")}
        grouped = {name: own for name, own in columns.items() if name not in beside}
        return cls._counted(EngineTable.of(frame, grouped, beside), pos_label)

    @classmethod
    def _counted(
        cls, table: EngineTable, pos_label: ClassLabel, ends: Sequence[float] = ()
    ) -> Self:
        """Return the cohort of a table in an engine, see :func:`read_table`."""
        found, people = read_table(table, ends), cls.__new__(cls)
        given = {
            argument: found.columns[own]
            if argument.endswith("_features")
            else found.columns[own[0]]
            for argument, own in table.columns.items()
        }
        beside = {"y_score": found.scores, "sample_weight": found.weights, "units": found.units}
        people._set(given | beside | {"pos_label": pos_label, "_kinds": found.kinds})
        return people

    def _read_again(self, ends: Sequence[float] = ()) -> Cohort:
        """Let the engine count again; bins of scores then end at some scores."""
        assert self._kinds is not None
        again = self._counted(self._kinds.table, self.pos_label, ends)
        check_unchanged(len(self), len(again))
        return again

    def difference(
        self,
        rate: str,
        *more: str,
        intersectional: bool = True,
        reference: Reference = "pairwise",
        method: str = "melded",
    ) -> Estimate:
        """Estimate the largest difference of a rate between groups.

        Parameters
        ----------
        rate : str
            The rate, such as "selection_rate", "true_positive_rate" or "f1_score".
        *more : str
            Further rates. The largest difference of any of them is estimated, so
            ``difference("true_positive_rate", "false_positive_rate")`` is about equalized odds.
        intersectional : bool, default=True
            If True, groups are the intersections of all attributes. If False, groups are compared
            within each attribute.
        reference : {"pairwise", "overall"}, group or dict, default="pairwise"
            The comparisons that are made, as in metrics such as
            :func:`~skfair.metrics.demographic_parity_difference`.
        method : {"melded", "exact", "score"}, default="melded"
            The test of two rates, as in :func:`~skfair.metrics.disparity_test`.

        Returns
        -------
        gap : Estimate
            The estimate, with ``value``, ``interval()``, ``p_value(limit)``, ``upper_bound()`` and
            ``frame()``.
        """
        return self._estimate("difference", (rate, *more), reference, intersectional, method)

    @documenter(described(difference))
    def ratio(
        self,
        rate: str,
        *more: str,
        intersectional: bool = True,
        reference: Reference = "pairwise",
        method: str = "melded",
    ) -> Estimate:
        """Estimate the smallest ratio of a rate between groups.

        Parameters
        ----------
        *more : str
            Further rates. The smallest ratio of any of them is estimated.

        Returns
        -------
        gap : Estimate
            The estimate of the ratio. Limits are smallest ratios.
        """
        return self._estimate("ratio", (rate, *more), reference, intersectional, method)

    def _estimate(
        self,
        kind: Literal["difference", "ratio"],
        rates: tuple[str, ...],
        reference: Reference,
        intersectional: bool,
        method: str,
    ) -> Estimate:
        for name in rates:
            if name not in RATES and not is_f_score(name):
                raise ValueError(
                    f"There is no rate {name!r}.{did_you_mean(name, RATES)} Choose from "
                    f"{', '.join(RATES)}, or an F score such as f1_score. A criterion is asked for "
                    "by its rates: difference('true_positive_rate', 'false_positive_rate') is "
                    "about equalized odds."
                )
            if name == "error_ratio":
                raise ValueError(
                    "error_ratio has no interval, because it is no share of rows. Call "
                    "treatment_equality_difference, or name a rate."
                )
        counted: Counted = "classes"
        if set(rates) == {"selection_rate"}:
            counted = "predictions"
        elif set(rates) == {"accuracy"}:
            counted = "correct"
        table = outcome_table(self, counted, intersectional)
        return Estimate.of(table, kind, rates, reference, method)

    def rates(self, **options: Any) -> pd.DataFrame:
        """List the rates of each group.

        Parameters
        ----------
        **options
            Options of :func:`skfair.metrics.group_report`, such as ``metrics``, ``reference`` and
            ``confidence``.

        Returns
        -------
        report : Report
            The result of :func:`skfair.metrics.group_report`.
        """
        # Metrics are a layer above, which reads cohorts. So the name is looked up when it is used.
        group_report = import_module("skfair.metrics").group_report
        report: pd.DataFrame = group_report(self, **options)
        return report

    def where(self, **levels: Any) -> Cohort:
        """Return the rows with some levels of sensitive or control features.

        Parameters
        ----------
        **levels
            For an attribute its level, or a list of levels: ``where(sex="f", region=["n", "w"])``.

        Returns
        -------
        people : Cohort
            A cohort of these rows.
        """
        columns = {str(name): own for name, own in self._attributes() if name is not None}
        kept = np.ones(_n_rows(self.sensitive_features), bool)
        for name, wanted in levels.items():
            if name not in columns:
                known = f"The attributes are {listed(columns)}."
                if not columns:
                    known = "Its columns have no names: pass a DataFrame or a dict of columns."
                hint = did_you_mean(name, columns)
                raise ValueError(f"The cohort has no attribute {name!r}.{hint} {known}")
            values = np.asarray(columns[name], dtype=object)
            several = levels_of(wanted)
            found = [values == level for level in several]
            for level, own in zip(several, found, strict=True):
                if not np.any(own):
                    known_levels = list(dict.fromkeys(values.tolist()))
                    raise ValueError(
                        f"No row has {name}={level!r}.{did_you_mean(level, known_levels)} Its "
                        f"levels are {listed(known_levels)}."
                    )
            kept &= np.any(found, axis=0)
        if not kept.any():
            raise ValueError(f"No row has all of {levels!r}.")
        rows = np.flatnonzero(kept)
        taken = {
            name: own.taken(rows) if isinstance(own, RowUnits) else take_rows(own, rows)
            for name, own in given_columns(self).items()
        }
        kinds = self._kinds and self._kinds.taken(rows).only_where(levels)
        return with_columns(self, **taken, _kinds=kinds)

    def _attributes(self) -> list[tuple[Any, Any]]:
        if is_lazy(*given_columns(self).values()):
            raise TypeError("Rows of Dask collections are not picked. compute() them.")
        columns = list(read_columns(self.sensitive_features))
        if self.control_features is not None:
            columns += read_columns(self.control_features)
        return columns

    def __len__(self) -> int:
        """Return the number of rows."""
        if self._kinds is not None:
            return int(self._kinds.counts.sum())
        return _n_rows(next(iter(given_columns(self).values())))

    def __repr__(self) -> str:
        has = [*given_columns(self)]
        if self._kinds is not None and self._kinds.table.sample_weight is None:
            has.remove("sample_weight")
        beside = ", ".join(name for name in has if name != "sensitive_features")
        if is_lazy(*(getattr(self, name) for name in has)):
            return f"Cohort(Dask collections; has {beside})"
        if hasattr(self.sensitive_features, "spread"):
            return f"Cohort({len(self):,} rows; groups by probability; has {beside})"
        n_units = None
        if isinstance(self.units, RowUnits):
            n_units = self.units.n_people
        elif self.units is not None:
            n_units = len(unit_codes(self.units, len(self)).levels)
        people = "" if n_units is None else f" of {n_units:,} units"
        counts = None
        if self._kinds is not None:
            counts = self._kinds.counts
            people += f" in an engine, read as {counts.size:,}"
            if self._kinds.bins is not None:
                columns = [values for _, values in read_columns(self.sensitive_features)]
                codes = [factorize(values).codes + 1 for values in columns]  # 0 if it is missing
                crossed, _ = number_tuples(codes, np.array([own.max() + 1 for own in codes]))
                people += f" with shares of scores exact to {self._kinds.resolution(crossed):.1g}"
        groups = [
            f"{'groups' if name is None else name}: {_sizes(values, counts)}"
            for name, values in read_columns(self.sensitive_features)
        ]
        return f"Cohort({len(self):,} rows{people}; {'; '.join(groups)}; has {beside})"


def cohort_of(y_true: Any = None, y_pred: Any = None, **columns: Any) -> Cohort:
    """Return the cohort of the arguments of a function, which checks them when it reads them.

    If one of the arguments is a cohort, it is returned itself.
    """
    columns |= {"y_true": y_true, "y_pred": y_pred}
    for own in columns.values():
        if isinstance(own, Cohort):
            return own
    people = Cohort.__new__(Cohort)
    people._set(columns)
    return people


def kinds_of(people: Cohort) -> Kinds | None:
    """Return what the rows of a cohort stand for if they are kinds of a table in an engine."""
    return people._kinds


def given_columns(people: Cohort) -> dict[str, Any]:
    """Return the columns that a cohort has, by argument."""
    return {name: own for name in COLUMNS if (own := getattr(people, name)) is not None}


def columns_for(people: Cohort, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a cohort that a function has parameters for."""
    known = {name: getattr(people, name) for name in (*COLUMNS, "pos_label")}
    return {name: own for name, own in known.items() if name in parameters}


def with_columns(people: Cohort, **columns: Any) -> Cohort:
    """Return a cohort with some other columns."""
    known = {name: getattr(people, name) for name in (*COLUMNS, "pos_label", "_kinds")}
    return cohort_of(**known | columns)


def _picked(table: Any, columns: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return columns of a table by argument."""
    return {
        argument: {name: table[name] for name in own}
        if argument.endswith("_features")
        else table[own[0]]
        for argument, own in columns.items()
    }


def _n_rows(column: Any) -> int:
    """Return the number of rows of a column or a table; a dict has columns as its values."""
    if isinstance(column, Mapping):
        column = next(iter(column.values()), [])
    return int(_num_samples(column))


def _score_method(estimator: Any) -> str | None:
    try:
        return response_method_of(estimator, ("predict_proba", "decision_function"))
    except AttributeError:
        return None


# An attribute with more levels is shown by its largest ones.
_LISTED = 5


def _sizes(values: Any, n_rows: IntArray | None = None) -> str:
    """Count the rows of each level of a column, the largest first if they are many."""
    codes, levels = factorize(np.asarray(values, dtype=object))
    each = np.ones(codes.size, np.int64) if n_rows is None else n_rows
    counts = np.bincount(codes[codes >= 0], each[codes >= 0], len(levels)).astype(np.int64)
    order = np.argsort(-counts, kind="stable") if len(levels) > _LISTED else range(len(levels))
    texts = [f"{levels[i]} {counts[i]:,}" for i in list(order)[:_LISTED]]
    more = len(levels) - len(texts)
    texts += [f"{more} more groups"] if more else []
    n_missing = int(each[codes < 0].sum())
    return ", ".join(texts) + (f", {n_missing:,} rows missing" if n_missing else "")
