"""Any metric of scikit-learn or of one's own: by group, between groups, or of the worst class.

- ``make_group_metric`` returns a ``GroupMetric``, which compares the values of the groups.
- ``measure_own`` gives the values of the groups with intervals, for ``group_report(metrics=)``,
  after ``check_own`` and ``check_predictions``.
- ``WorstClass`` is for scorers with ``worst_class=True``: a metric of labels of two classes,
  evaluated for each of several classes against the rest (``against_rest``).

``value_of`` is the one place where such a metric is called for the rows of a group. Whether it is
given scores or labels, and a positive class, follows from its signature (``takes_scores``,
``takes_pos_label``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial, update_wrapper, wraps
from inspect import Parameter, signature
from itertools import islice, pairwise
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_consistent_length, check_random_state

from skfair._typing import (
    ClassLabel,
    ColumnLike,
    ColumnsLike,
    FloatArray,
    IntArray,
    MatrixLike,
    Seed,
)
from skfair.groups.attributes import check_aligned
from skfair.groups.cohort import Cohort, Columns
from skfair.groups.compared_groups import (
    Agg,
    Reference,
    ZeroDivision,
    aggregate,
    check_agg,
    is_group,
    ratios,
)
from skfair.groups.row_units import RowUnits
from skfair.metrics.docs import documented_gap
from skfair.utils.dask_collections import is_lazy
from skfair.utils.keywords import Function
from skfair.utils.validation import check_labels, check_positive
from skfair.utils.warn import hidden

GroupStatistic = Literal["difference", "ratio", "smallest", "largest"]


def _predictions_by_name(call: Function) -> Function:
    """Let ``GroupMetric.__call__`` take the predictions of a metric of scores as ``y_score=``."""

    @wraps(call)
    def named(own: GroupMetric, *args: Any, **given: Any) -> Any:
        if "y_score" in given and takes_scores(own.metric):
            given["y_pred"] = given.pop("y_score")
        return call(own, *args, **given)

    return cast(Function, named)


class GroupMetric:
    """A metric that compares groups, as returned by :func:`make_group_metric`.

    Parameters
    ----------
    metric : callable
        The metric, which is called as ``metric(y_true, y_pred)`` with the rows of each group.
    compare : {"difference", "ratio", "smallest", "largest"}
        How the values of the groups are combined into one number.

    Examples
    --------
    >>> from sklearn.metrics import roc_auc_score
    >>> from skfair.metrics import make_group_metric
    >>> make_group_metric(roc_auc_score, compare="smallest")
    make_group_metric(roc_auc_score, compare='smallest')
    """

    def __init__(self, metric: Callable[..., float], compare: GroupStatistic) -> None:
        self.metric = metric
        self.compare = compare
        # Scorers read from the name of the second parameter whether to predict labels or scores.
        own = signature(type(self).__call__)
        parameters = list(own.parameters.values())[1:]
        if takes_scores(metric):
            parameters[1] = Parameter("y_score", Parameter.POSITIONAL_OR_KEYWORD)
        self.__signature__ = own.replace(parameters=parameters)

    @property
    def __name__(self) -> str:
        """Name of the metric and of the comparison."""
        return f"{getattr(self.metric, '__name__', 'metric')}_{self.compare}"

    def __repr__(self) -> str:
        name = getattr(self.metric, "__name__", repr(self.metric))
        return f"make_group_metric({name}, compare={self.compare!r})"

    @_predictions_by_name
    @documented_gap
    def __call__(
        self,
        y_true: ColumnLike,
        y_pred: MatrixLike | ColumnLike,
        *,
        sensitive_features: ColumnsLike,
        control_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
        intersectional: bool = True,
        reference: Reference = "pairwise",
        agg: Agg = "worst",
        pos_label: ClassLabel = None,
        zero_division: ZeroDivision = "raise",
    ) -> float:
        """Compare the groups.

        Parameters
        ----------
        y_pred : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted labels, predicted numbers or scores, depending on the metric. If the metric
            takes scores, the name of this argument is ``y_score``.

        Returns
        -------
        value : float
            The largest difference or the smallest ratio of two groups, or the smallest or largest
            value of a group, depending on ``compare``.
        """
        if is_lazy(y_true, y_pred, sensitive_features, control_features, sample_weight):
            raise TypeError(f"{self!r} reads single rows. compute() the Dask collections.")
        check_agg(agg)
        who = sensitive_features, control_features, sample_weight, intersectional
        columns = {"y_true": y_true, "y_pred": y_pred}
        cohort = Cohort.read(_numbered, columns, *who, is_counted=False)
        rows, groups = OwnRows.of(cohort), cohort.groups
        metric = with_positive(self.metric, pos_label, cohort.columns["y_true"])
        of_cells = groups.rows_of_cells()
        values = _values(metric, rows, of_cells)
        is_extreme = self.compare in ("smallest", "largest")  # no group is compared with another
        cells = groups.present if is_extreme else groups.compared_by(reference)
        name = groups.undefined(values, cells, zero_division)
        if name is not None:
            raise ValueError(
                f"{self!r} is not defined for group {name!r}. Merge small groups or add data, or "
                "pass zero_division=numpy.nan to get NaN."
            )
        if is_extreme:
            reduce = np.min if self.compare == "smallest" else np.max
            return float(reduce(values[cells]))
        overall = values  # the value of the whole stratum of each cell, if that is the reference
        if not is_group(reference) and reference == "overall":
            parts = pairwise(groups.starts.tolist())
            every = [np.unique(np.concatenate(of_cells[start:stop])) for start, stop in parts]
            overall = np.repeat(_values(metric, rows, every), np.diff(groups.starts))
        if self.compare == "difference":
            return aggregate(groups.differences(values, overall, reference=reference), agg)
        first, second = groups.sides(values, overall, reference)
        quotients = np.where(first == second, 1.0, ratios(first, second))
        return aggregate(quotients, agg, empty=1.0, worst_is_smallest=True)


def _numbered(columns: Columns) -> IntArray:
    """Return row numbers as the values of a cohort, since labels of any kind are no values."""
    true, predicted = (np.asarray(columns[name]) for name in ("y_true", "y_pred"))
    check_consistent_length(true, predicted)
    return np.arange(true.shape[0])


def _values(metric: Callable[..., float], rows: OwnRows, cells: list[IntArray]) -> FloatArray:
    """Return the metric of the rows of each cell; raise if it is not a number."""
    numbers = [value_of(metric, rows, rows.y_pred, cell) for cell in cells]
    if not all(isinstance(number, float) for number in numbers):
        raise TypeError(
            "Groups are compared by one number for each group, but "
            f"{getattr(metric, '__name__', metric)} returns more. List it by group with "
            "group_report(metrics=), or return a number."
        )
    return np.array(numbers)


def make_group_metric(
    metric: Callable[..., float], *, compare: GroupStatistic = "difference"
) -> GroupMetric:
    """Make a metric that compares groups by any metric of scikit-learn, or by one of your own.

    Parameters
    ----------
    metric : callable
        The metric, which is called as ``metric(y_true, y_pred)`` with the rows of each group, and
        with ``sample_weight`` if weights are given. A metric whose second parameter is named
        ``y_score`` or ``y_proba``, such as ``roc_auc_score``, is computed from scores. Use
        ``functools.partial`` to set other arguments.
    compare : {"difference", "ratio", "smallest", "largest"}, default="difference"
        How the values of the groups are combined: the largest difference between two groups, the
        smallest ratio of two groups, or the smallest or largest value of a group.

    Returns
    -------
    group_metric : GroupMetric
        The metric. Call it as ``group_metric(y_true, y_pred, sensitive_features=...)``, or pass it
        to :func:`make_fairness_scorer`.

    See Also
    --------
    group_report : Table with the value of each group and its confidence interval.

    Examples
    --------
    >>> from sklearn.metrics import recall_score
    >>> from skfair.metrics import make_group_metric
    >>> y_true, y_pred = [1, 1, 1, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> recall_difference = make_group_metric(recall_score)
    >>> recall_difference(y_true, y_pred, sensitive_features=sex)
    0.5
    >>> make_group_metric(recall_score, compare="smallest")(y_true, y_pred, sensitive_features=sex)
    0.5
    """
    if not callable(metric):
        raise TypeError(f"metric must be a function metric(y_true, y_pred), got {metric!r}.")
    if compare not in get_args(GroupStatistic):
        raise ValueError(
            f"compare must be one of {', '.join(map(repr, get_args(GroupStatistic)))}, "
            f"got {compare!r}."
        )
    refuse_comparison(metric, getattr(metric, "__name__", repr(metric)))
    return GroupMetric(metric, compare)


# Arguments with a value for each row, whose index must be that of the labels.
_OF_ROWS = ("sensitive_features", "control_features", "sample_weight")


def against_rest(metric: Callable[..., float], label: Any) -> Callable[..., float]:
    """Return a metric of one class against the rest; call it with ``pos_label=True``."""

    def of_class(y_true: ColumnLike, y_pred: ColumnLike, **options: Any) -> float:
        return metric(np.asarray(y_true) == label, np.asarray(y_pred) == label, **options)

    return of_class


class WorstClass:
    """A metric of labels, computed for each class against the rest: the value of the worst one."""

    def __init__(
        self,
        metric: Callable[..., float],  # takes y_true, y_pred and pos_label
        is_greater_better: bool,  # whether the worst value is the smallest one
    ) -> None:
        parameters = signature(metric).parameters
        if "pos_label" not in parameters or "y_pred" not in parameters:
            raise ValueError(
                "worst_class=True needs a metric of labels with a pos_label, such as "
                f"demographic_parity_difference; got {metric!r}."
            )
        if isinstance(metric, partial) and "pos_label" in metric.keywords:
            raise ValueError("worst_class=True tries every class. Do not bind pos_label.")
        update_wrapper(self, metric)
        self._metric, self._worst = metric, np.min if is_greater_better else np.max

    def __call__(self, y_true: ColumnLike, y_pred: ColumnLike, **options: Any) -> float:
        """Compute the metric of the worst class."""
        if is_lazy(y_true, y_pred):
            raise TypeError(
                "worst_class=True needs rows in memory, got a Dask collection. compute() it."
            )
        rows = {name: options.get(name) for name in _OF_ROWS}
        check_aligned(y_true=y_true, y_pred=y_pred, **rows)
        levels = check_labels(y_true, "y_true").levels + check_labels(y_pred, "y_pred").levels
        values = [
            against_rest(self._metric, label)(y_true, y_pred, pos_label=True, **options)
            for label in dict.fromkeys(levels)
        ]
        return float(self._worst(values))


OwnMetrics: TypeAlias = Mapping[str, Callable[..., float]]
# Resamples have about this many rows at most, because a metric of a million rows takes minutes to
# compute 200 times.
_MOST_ROWS = 20_000
# A metric whose second argument has one of these names is given the scores.
_SCORE_NAMES = {"y_score", "y_proba", "y_prob"}


class OwnRows(NamedTuple):
    """The rows that own metrics are computed from.

    ``y_score`` and ``weights`` are None if they were not given. ``y_pred`` may be scores, if that
    is what the only metric takes (``GroupMetric``).
    """

    y_true: FloatArray
    y_pred: FloatArray
    y_score: ColumnLike | None
    weights: FloatArray | None
    pos_label: ClassLabel = None

    @classmethod
    def of(cls, rows: Cohort, pos_label: ClassLabel = None) -> OwnRows:
        """Return the columns of a cohort, as metrics of one's own take them."""
        true, predicted = (np.asarray(rows.columns[name]) for name in ("y_true", "y_pred"))
        return cls(true, predicted, rows.columns.get("y_score"), rows.weights, pos_label)


def check_own(metrics: OwnMetrics, *, taken: Collection[str], is_lazy: bool) -> None:
    """Raise unless ``metrics=`` of ``group_report`` can be computed.

    It must be a dict of functions of one group whose names are not among the columns ``taken``,
    and the rows must be in memory.
    """
    if not isinstance(metrics, Mapping) or not all(map(callable, metrics.values())):
        raise TypeError(
            f"metrics must be a dict of functions metric(y_true, y_pred), got {metrics!r}."
        )
    if is_lazy:
        raise TypeError(
            "metrics= reads single rows, and these are in Dask collections. compute() them."
        )
    for name, metric in metrics.items():
        if name in taken:
            raise ValueError(f"metrics names {name!r}, a column of the report. Choose another.")
        refuse_comparison(metric, repr(name))


def check_predictions(metrics: OwnMetrics | None, y_pred: Any, y_score: Any) -> None:
    """Raise if predicted labels are missing, or scores that a metric is computed from."""
    of_scores = [name for name, metric in (metrics or {}).items() if takes_scores(metric)]
    form = (
        "group_report(y_true, y_score > 0.5, y_score=y_score, metrics={'auc': roc_auc_score}, ...)"
    )
    if y_pred is None:
        raise ValueError(
            f"group_report needs predicted labels, but y_pred is None. Beside scores, pass {form}."
        )
    if of_scores and y_score is None:
        raise ValueError(
            f"The metric {of_scores[0]!r} is computed from scores. Pass y_score beside the "
            f"predicted labels, as in {form}."
        )


def refuse_comparison(metric: Callable[..., float], name: str) -> None:
    """Raise for a metric that compares groups, which has no value for a single one."""
    groups = _parameters(metric).get("sensitive_features")
    if groups is not None and groups.default is Parameter.empty:
        raise TypeError(
            f"The metric {name} compares groups, so it has no value for a single group. "
            "fairness_report lists all metrics that compare groups; pass one of a single group, "
            "metric(y_true, y_pred), such as recall_score."
        )


def measure_own(
    metrics: OwnMetrics,
    rows: OwnRows,
    cells: list[IntArray],  # the row numbers of each cell
    units: RowUnits | None,
    n_resamples: int,  # of each cell; if 0, there are no intervals
    confidence: float,
    random_state: Seed,
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Return the value of each metric in each cell, and the ends of its intervals.

    The ends are named ``..._low`` and ``..._high``. They are percentiles of resamples of the rows
    of each cell, or of its units. A metric that does not return a number has no interval.
    """
    values, limits, n = {}, {}, rows.y_true.shape[0]
    together = units or RowUnits(np.arange(n), n)
    rng = check_random_state(random_state)
    for name, metric in metrics.items():
        predicted = np.asarray(rows.y_score) if takes_scores(metric) else rows.y_pred
        metric = with_positive(metric, rows.pos_label, rows.y_true)
        of_cells = [value_of(metric, rows, predicted, cell) for cell in cells]
        is_number = all(isinstance(value, float) for value in of_cells)
        values[name] = np.empty(len(cells), np.float64 if is_number else object)
        values[name][:] = of_cells
        if n_resamples and is_number:
            draws = np.full((len(cells), n_resamples), np.nan)
            for i in [i for i, cell in enumerate(cells) if cell.size]:
                resamples = together.taken(cells[i]).resamples(rng, _MOST_ROWS)
                for draw, own in enumerate(islice(resamples, n_resamples)):
                    draws[i, draw] = value_of(metric, rows, predicted, cells[i][own])
            tail = 50 * (1 - confidence)
            with hidden("All-NaN", RuntimeWarning):
                ends = np.nanpercentile(draws, [tail, 100 - tail], axis=1)
            # A resample of fewer rows than the cell has varies too much, by the root of the share
            # of its rows, so its interval is shrunk by that factor towards the value.
            shares = np.sqrt([min(_MOST_ROWS / max(cell.size, 1), 1.0) for cell in cells])
            ends = np.where(shares < 1, values[name] + shares * (ends - values[name]), ends)
            limits[f"{name}_low"], limits[f"{name}_high"] = ends
    return values, limits


def _parameters(metric: Callable[..., float]) -> Mapping[str, Parameter]:
    """Return the parameters of a metric by name, or no parameters if it is written in C."""
    try:
        return signature(metric).parameters
    except (TypeError, ValueError):
        return {}


def takes_scores(metric: Callable[..., float]) -> bool:
    """Whether the second argument of a metric is a score, by its name."""
    return not _SCORE_NAMES.isdisjoint(list(_parameters(metric))[1:2])


def takes_pos_label(metric: Callable[..., float], **bound: object) -> bool:
    """Whether a metric must be given the positive class.

    It must if it has a parameter ``pos_label`` that is not among the options that are ``bound``
    (here or by ``functools.partial``), and if it does not average over several classes.
    """
    bound |= getattr(metric, "keywords", {})
    is_of_two = bound.get("average", "binary") == "binary"
    return is_of_two and "pos_label" in _parameters(metric) and "pos_label" not in bound


def with_positive(
    metric: Callable[..., float], pos_label: ClassLabel, y_true: ColumnLike
) -> Callable[..., float]:
    """Return a metric with its positive class bound, if it needs one.

    Without ``pos_label`` the metric is returned as it is, or an error is raised if the labels do
    not say which class is positive.
    """
    if not takes_pos_label(metric):
        return metric
    if pos_label is None:
        check_positive(y_true, "y_true", None)
        return metric
    return partial(metric, pos_label=pos_label)


def value_of(
    metric: Callable[..., float], rows: OwnRows, predicted: FloatArray, cell: IntArray
) -> Any:
    """Return the metric of the rows ``cell``: NaN without rows or weight.

    ``predicted`` is the second argument of the metric, labels or scores of all rows. A number is
    returned as a float, and anything else, such as a matrix, as it is.
    """
    if not cell.size:
        return np.nan
    weights = {} if rows.weights is None else {"sample_weight": rows.weights[cell]}
    if weights and not weights["sample_weight"].any():  # scikit-learn refuses such weights
        return np.nan
    with hidden(".*", UndefinedMetricWarning):
        value = metric(rows.y_true[cell], predicted[cell], **weights)
    return value if np.ndim(value) or isinstance(value, Mapping) else float(value)
