"""Any metric of scikit-learn or of one's own: by group, between groups, or of the worst class.

- ``make_group_metric`` returns a ``GroupMetric``, which compares the values of the groups.
- ``check_own`` and ``check_predictions`` read what ``group_report(metrics=)`` is given.
- ``WorstClass`` is for scorers with ``worst_class=True``: a metric of labels of two classes,
  evaluated for each of several classes against the rest (``against_rest``).

:mod:`skfair.metrics.own_draws` has intervals and tests. ``value_of`` is the one place where such a
metric is called for the rows of a group. Whether it is
given scores or labels, and a positive class, follows from its signature (``takes_scores``,
``takes_pos_label``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial, update_wrapper, wraps
from inspect import Parameter, signature
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
import sklearn.metrics
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_consistent_length

from skfair._typing import (
    ClassLabel,
    ColumnLike,
    ColumnsLike,
    FloatArray,
    IntArray,
    MatrixLike,
)
from skfair.groups.attributes import check_aligned
from skfair.groups.cohort import Cohort, cohort_of, with_columns
from skfair.groups.cohort_calls import method_takes_cohort
from skfair.groups.cohort_rows import value_rows
from skfair.groups.compared_groups import (
    Agg,
    ComparedGroups,
    Reference,
    ZeroDivision,
    aggregate,
    check_agg,
    is_group,
    ratios,
)
from skfair.groups.declared_rates import RATES
from skfair.groups.labels import check_positive, positive_codes
from skfair.groups.measured_rows import Columns, MeasuredRows
from skfair.metrics.docs import documented_gap
from skfair.utils.dask_collections import is_lazy
from skfair.utils.keywords import Function
from skfair.utils.validation import check_labels
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
        return f"{self.measure}_{self.compare}"

    @property
    def measure(self) -> str:
        """Name of the metric; that of a ``functools.partial`` is the name of its function."""
        return str(getattr(getattr(self.metric, "func", self.metric), "__name__", "metric"))

    @property
    def rate(self) -> str:
        """The rate of labels that the metric is, such as "f1_score", see :func:`rate_of_metric`."""
        return rate_of_metric(self.metric)

    @property
    def is_extreme(self) -> bool:
        """Whether the value is that of a group, and no group is compared with another."""
        return self.compare in ("smallest", "largest")

    def __repr__(self) -> str:
        name = getattr(self.metric, "__name__", repr(self.metric))
        return f"make_group_metric({name}, compare={self.compare!r})"

    @_predictions_by_name
    @method_takes_cohort
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
        check_agg(agg)
        people = cohort_of(**locals())
        rows = self.read(people, intersectional, is_counted=False)
        *_, values = self.measured(rows, people.pos_label, reference, zero_division)
        first, second = (values[side] for side in self.compared(rows.groups, reference))
        if self.is_extreme:
            return float((np.min if self.compare == "smallest" else np.max)(first))
        if self.compare == "difference":
            apart = first - second
            signed = apart if is_group(reference) else np.abs(apart)
            return aggregate(signed, agg, zero_division)
        quotients = np.where(first == second, 1.0, ratios(first, second))
        return aggregate(quotients, agg, zero_division, worst_is_smallest=True)

    def read(self, people: Cohort, intersectional: bool, **options: Any) -> MeasuredRows:
        """Return the rows; raise for Dask collections."""
        if takes_scores(self.metric) and people.y_score is not None:
            people = with_columns(people, y_pred=people.y_score)
        rows = people.y_true, people.y_pred, people.sensitive_features
        if is_lazy(*rows, people.control_features, people.sample_weight):
            raise TypeError(f"{self!r} reads single rows. compute() the Dask collections.")
        return value_rows(people, _numbered, ("y_true", "y_pred"), intersectional, **options)

    def measured(
        self,
        given: MeasuredRows,
        pos_label: ClassLabel,
        reference: Reference,
        zero_division: ZeroDivision = "raise",
    ) -> tuple[Callable[..., float], OwnRows, list[IntArray], FloatArray]:
        """Return the metric, its rows, the rows of each cell, and the value of each cell.

        With ``reference="overall"`` the whole strata follow after the cells. A cell that is
        compared and has no value raises, unless ``zero_division`` is NaN.
        """
        rows, groups, columns = OwnRows.of(given), given.groups, given.columns
        predicted = None if takes_scores(self.metric) else columns["y_pred"]
        metric = with_positive(self.metric, pos_label, columns["y_true"], predicted)
        cells = groups.rows_of_cells()
        if not is_group(reference) and reference == "overall":
            parts = pairwise(groups.starts.tolist())
            cells += [np.unique(np.concatenate(cells[start:stop])) for start, stop in parts]
        values = _values(metric, rows, cells, groups.cells.names)
        of_cells = groups.present if self.is_extreme else groups.compared_by(reference)
        name = groups.undefined(values, of_cells, zero_division)
        if name is not None:
            raise ValueError(
                f"{self!r} is not defined for group {name!r}, such as a metric of two classes in a "
                "group that has rows of one class only. Merge small groups or add data, or pass "
                "zero_division=numpy.nan to get NaN."
            )
        return metric, rows, cells, values

    def compared(self, groups: ComparedGroups, reference: Reference) -> tuple[IntArray, IntArray]:
        """Return both sides of each comparison, as numbers of the cells of ``measured``."""
        if self.is_extreme:
            return groups.present, groups.present
        if is_group(reference) or reference != "overall":
            return groups.pairs_with(reference)
        n_peers = np.diff(groups.starts)
        whole = groups.group_of.size + np.repeat(np.arange(n_peers.size), n_peers)
        return groups.compared, whole[groups.compared]


def _numbered(columns: Columns) -> IntArray:
    """Return row numbers as values, since labels of any kind are no numbers."""
    true, predicted = (np.asarray(columns[name]) for name in ("y_true", "y_pred"))
    check_consistent_length(true, predicted)
    return np.arange(true.shape[0])


def _values(
    metric: Callable[..., float], rows: OwnRows, cells: list[IntArray], names: Sequence[str]
) -> FloatArray:
    """Return the metric of the rows of each cell; raise if it is not a number."""
    called, numbers = getattr(metric, "__name__", metric), []
    for i, cell in enumerate(cells):
        try:
            numbers.append(value_of(metric, rows, rows.y_pred, cell))
        except ValueError as error:
            name = names[i] if i < len(names) else "overall"
            raise ValueError(f"{called} cannot be computed of group {name!r}: {error}") from error
    if not all(isinstance(number, float) for number in numbers):
        raise TypeError(
            "Groups are compared by one number for each group, but "
            f"{called} returns more. List it by group with group_report(metrics=), or return a "
            "number."
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
    """Return a metric of one class against the rest, whose positive class is True.

    Scores as the second argument stay scores.
    """
    has_scores = takes_scores(metric)

    def of_class(y_true: ColumnLike, y_pred: ColumnLike, **options: Any) -> float:
        predicted = y_pred if has_scores else np.asarray(y_pred) == label
        return metric(np.asarray(y_true) == label, predicted, **options)

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
# The metrics of scikit-learn that are declared rates; two of them are F scores.
_RATES = dict.fromkeys(("f1_score", "fbeta_score"), "") | {
    function: name for name, rate in RATES.items() for function in rate.functions
}
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
    def of(cls, rows: MeasuredRows, pos_label: ClassLabel = None) -> OwnRows:
        """Return the columns of rows, as metrics of one's own take them."""
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
            "metrics= reads single rows, and these were counted where they are, in Dask or in an "
            "engine. Pass rows in memory."
        )
    for name, metric in metrics.items():
        if name in taken:
            raise ValueError(
                f"The report has a column {name!r} already, which metrics names again. Leave it "
                "out, give yours another name, or pass rates=False for your metrics alone."
            )
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
    groups = parameters_of(metric).get("sensitive_features")
    if groups is not None and groups.default is Parameter.empty:
        raise TypeError(
            f"The metric {name} compares groups, so it has no value for a single group. "
            "Call it by itself, or pass a metric of a single group, metric(y_true, y_pred), such "
            "as recall_score."
        )


def parameters_of(metric: Callable[..., float]) -> Mapping[str, Parameter]:
    """Return the parameters of a metric by name, or no parameters if it is written in C."""
    try:
        return signature(metric).parameters
    except (TypeError, ValueError):
        return {}


def takes_scores(metric: Callable[..., float]) -> bool:
    """Whether the second argument of a metric is a score, by its name."""
    return not _SCORE_NAMES.isdisjoint(list(parameters_of(metric))[1:2])


def takes_pos_label(metric: Callable[..., float], **bound: object) -> bool:
    """Whether a metric must be given the positive class.

    It must if it has a parameter ``pos_label`` that is not among the options that are ``bound``
    (here or by ``functools.partial``), and if it does not average over several classes.
    """
    bound |= getattr(metric, "keywords", {})
    is_of_two = bound.get("average", "binary") == "binary"
    return is_of_two and "pos_label" in parameters_of(metric) and "pos_label" not in bound


def rate_of_metric(metric: Callable[..., float]) -> str:
    """Return the declared rate that a metric of scikit-learn is, for two classes; "" if none.

    A metric that averages over classes, or has a value where the rate is undefined, is none.
    """
    base: Any = getattr(metric, "func", metric)
    bound = {"average": "binary", **getattr(metric, "keywords", {})}
    is_plain = bound["average"] == "binary" and bound.keys() <= {"average", "beta", "pos_label"}
    if not _is_rate(base) or not is_plain:
        return ""
    name, beta = _RATES[base.__name__], bound.get("beta", base is sklearn.metrics.f1_score)
    is_number = isinstance(beta, float | int) and 0.01 <= beta <= 100
    return name or (f"f{beta:.15g}_score" if is_number else "")


def positive_of(metric: Any, pos_label: ClassLabel) -> ClassLabel:
    """Return the positive class, which may be bound to a metric of one's own."""
    function = metric.metric if isinstance(metric, GroupMetric) else metric
    bound: dict[str, ClassLabel] = getattr(function, "keywords", {})
    return bound.get("pos_label", pos_label)


def _is_rate(function: Any) -> bool:
    """Whether a function is one of scikit-learn's that ``_RATES`` names."""
    name = getattr(function, "__name__", "")
    return name in _RATES and function is getattr(sklearn.metrics, name)


def with_positive(
    metric: Callable[..., float],
    pos_label: ClassLabel,
    y_true: ColumnLike,
    y_pred: ColumnLike | None = None,  # None for scores
) -> Callable[..., float]:
    """Return a metric with its positive class bound, if it needs one.

    With more than two labels, the positive class is compared with the rest. Without ``pos_label``
    an error is raised if the labels do not say which class is positive. F1, precision and recall
    are 0 in scikit-learn, with a warning, for rows that do not define them. They are NaN here,
    unless ``zero_division`` is bound.
    """
    base, bound = getattr(metric, "func", metric), getattr(metric, "keywords", {})
    is_of_two = bound.get("average", "binary") == "binary"
    if is_of_two and _is_rate(base) and "zero_division" not in bound:
        metric = partial(metric, zero_division=np.nan)
    positive = bound.get("pos_label", pos_label)
    if not is_of_two or "pos_label" not in parameters_of(metric):
        return metric
    if positive is None:
        check_positive(y_true, "y_true", None)
        return metric
    true = check_labels(y_true, "y_true")
    other = [] if y_pred is None else check_labels(y_pred, "y_pred").levels
    positive_codes(true, "y_true", positive, other)  # raises for a label that does not occur
    if len({*true.levels, *other}) <= 2:
        return partial(metric, pos_label=positive)
    return against_rest(partial(metric, pos_label=True), positive)


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
