"""Scorers: fairness metrics for GridSearchCV, cross_validate and friends.

``get_scorer`` looks a name up in ``SCORERS`` and calls ``make_fairness_scorer``, which returns a
``FairnessScorer``. It differs from scikit-learn's scorers in three ways:

- It requests ``sensitive_features`` by itself, so nothing has to be set if metadata routing is on.
- It can instead read them from columns of X (``sensitive=``), which works without routing.
  ``control_features`` and ``query_id`` can be passed in both ways, too (see ``_OPTIONS``).
- It passes groups and control features to an estimator whose prediction method takes them, even if
  the metric, such as accuracy, does not.

The names of a metric's positional parameters say what it is given: ``y_true``, ``y_pred`` (labels
from ``predict``), ``y_score`` (from ``decision_function`` or ``predict_proba``), ``labels``
(clusters) and ``X``. A regressor has only ``predict``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from sys import _getframe
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import is_clusterer, is_regressor
from sklearn.metrics import accuracy_score
from sklearn.metrics._scorer import _BaseScorer
from sklearn.utils.metadata_routing import MetadataRequest

from skfair._typing import ClassLabel, ColumnLike, ColumnNames, MatrixLike
from skfair.groups.attributes import check_aligned
from skfair.groups.compared_groups import refuse_signed
from skfair.groups.named_columns import column_positions, take_columns
from skfair.metrics import __all__ as PUBLIC
from skfair.metrics import clusters, labels, losses, scores
from skfair.metrics.own_metrics import WorstClass, takes_pos_label
from skfair.utils.dask_collections import align, is_lazy, known_sizes, meta_of, without_rows
from skfair.utils.response import get_response, positive_class, response_method_of, takes_groups
from skfair.utils.text import did_you_mean, listed
from skfair.utils.validation import one_dimensional
from skfair.utils.wings import names_of_wings
from skfair.utils.wrappers import refuse_positions

# For each positional parameter of a metric: the method of the estimator that computes it, or None
# if it is not a prediction.
RESPONSES: dict[str, str | tuple[str, ...] | None] = {
    "X": None,
    "y_true": None,
    "y_pred": "predict",
    "labels": "predict",
    "y_score": ("decision_function", "predict_proba"),
}

Metric = Callable[..., float]

# The end of a metric's name says if larger or smaller values are better. A metric whose name ends
# in another way, or that takes no groups, does not become a scorer.
_LARGER = ("_ratio", "_score", "ndcg")
_SMALLER = ("_difference", "_gap", "_loss", "_rate", "_deviation", "_error")
_WITHOUT_GROUPS = {"expected_calibration_error"}
_MODULES = (labels, scores, losses, clusters)
_METRICS: dict[str, Metric] = {
    name: getattr(module, name) for module in _MODULES for name in PUBLIC if hasattr(module, name)
} | {
    name: getattr(import_module(module), name)
    for name, module in names_of_wings("skfair.metrics").items()
}
# Name of the scorer -> (metric, greater is better). As in scikit-learn, a metric that is better
# when smaller is negated, and its scorer's name says so.
SCORERS: dict[str, tuple[Metric, bool]] = {
    # scikit-learn's scorer of this name passes no groups to group-aware models.
    "accuracy": (accuracy_score, True),
    **{
        (name if name.endswith(_LARGER) else f"neg_{name}"): (metric, name.endswith(_LARGER))
        for name, metric in _METRICS.items()
        if name.endswith(_LARGER + _SMALLER) and name not in _WITHOUT_GROUPS
    },
}

# Metrics that need other methods than ``RESPONSES`` says. If there are several, the first one that
# the estimator has is called.
METHODS: dict[Metric, str | tuple[str, ...]] = {
    # Losses are defined for decision values, and would be wrong for probabilities.
    losses.loss_parity_difference: "decision_function",
    losses.largest_group_loss: "decision_function",
    losses.excess_loss: "decision_function",
    # Calibration is defined for probabilities only.
    scores.calibration_difference: "predict_proba",
    scores.expected_calibration_error: "predict_proba",
    # Rankers have only ``predict``.
    **{
        metric: ("decision_function", "predict_proba", "predict")
        for metric, _ in SCORERS.values()
        if "query_id" in inspect.signature(metric).parameters
    },
}


# Arguments with a value for each row, and the option that names their columns of X.
_OPTIONS = {
    "sensitive_features": "sensitive",
    "control_features": "control_columns",
    "query_id": "query_column",
}


class FairnessScorer(_BaseScorer):
    """Scorer of a fairness metric, as returned by :func:`make_fairness_scorer`.

    Examples
    --------
    >>> from skfair.metrics import get_scorer
    >>> get_scorer("neg_demographic_parity_difference")
    make_fairness_scorer(demographic_parity_difference, greater_is_better=False)
    """

    def __init__(
        self,
        metric: Metric,
        sign: int,
        kwargs: dict[str, Any],
        response_method: Any,
        # For each argument in _OPTIONS, its columns of X; None if it arrives as metadata
        columns: dict[str, ColumnNames | int | None],
    ) -> None:
        try:
            parameters = inspect.signature(metric).parameters
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"metric must be a metric of skfair.metrics, got {metric!r}."
            ) from error
        self._inputs = [
            name
            for name, parameter in parameters.items()
            if parameter.kind is not parameter.KEYWORD_ONLY and name in RESPONSES
        ]
        defaults = [RESPONSES[name] for name in self._inputs if RESPONSES[name] is not None]
        if len(defaults) != 1:
            raise ValueError(
                f"The positional parameters of the metric {metric!r} must name exactly one "
                "prediction (y_pred, y_score or labels), besides y_true and X."
            )
        self._metric, self._sign, self._kwargs = metric, sign, kwargs
        self._response_method: Any = response_method or defaults[0]
        self._columns = columns
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        # A metric such as accuracy takes no groups. They are then only passed to the model.
        self._compares_groups = takes_any or "sensitive_features" in parameters
        groups = parameters.get("sensitive_features")
        self._needs_groups = self._compares_groups and (
            groups is None or groups.default is not None
        )
        if not takes_any:
            _check_arguments(metric, parameters, kwargs)
        # The requests are set here, because set_score_request raises while routing is off.
        self._metadata_request = MetadataRequest(owner=self)
        for param, set_columns in self._columns.items():
            for_model = param != "query_id" and not self._compares_groups
            is_taken = param in parameters or param == "sensitive_features" or for_model
            if set_columns is not None and not is_taken:
                raise ValueError(
                    f"{_OPTIONS[param]}={set_columns!r} needs a metric that takes {param}; "
                    f"{metric!r} does not."
                )
            if set_columns is None and param not in kwargs and is_taken:
                self._metadata_request.score.add_request(param=param, alias=True)
        self._metadata_request.score.add_request(param="sample_weight", alias=None)

    def __call__(
        self,
        estimator: object,
        X: MatrixLike,
        y_true: ColumnLike | None = None,
        *,
        sample_weight: ColumnLike | None = None,
        **kwargs: Any,
    ) -> float:
        """Score a fitted estimator.

        Parameters
        ----------
        estimator : object
            A fitted classifier, regressor or clusterer.
        X : array-like
            The rows for which predictions are made.
        y_true : array-like, default=None
            True labels, if the metric needs them.
        sample_weight : array-like, default=None
            Weights of the rows.
        **kwargs
            ``sensitive_features``, ``control_features`` and, for metrics of rankings, ``query_id``.
            They are not needed if the scorer reads them from columns of X.

        Returns
        -------
        score : float
            The value of the metric, which is negated if smaller values are better.
        """
        if sample_weight is not None:
            kwargs["sample_weight"] = sample_weight
        return self._score(_call, estimator, X, y_true, **kwargs)

    @property
    def _score_func(self) -> Metric:
        """The metric, as ``TunedThresholdClassifierCV`` takes it out of a scorer.

        That class calls the metric without the scorer, so groups in columns of X would be lost. The
        caller is recognised by its name, ``from_scorer``.
        """
        reads_columns = any(columns is not None for columns in self._columns.values())
        is_lost = reads_columns or (
            self._needs_groups and not get_config()["enable_metadata_routing"]
        )
        if is_lost and self._compares_groups and _getframe(1).f_code.co_name == "from_scorer":
            raise ValueError(
                f"A classifier that tunes its threshold calls the metric of {self!r} by itself, "
                "without columns of X. Enable metadata routing "
                "(sklearn.set_config(enable_metadata_routing=True)), make the scorer without "
                "sensitive=, and pass sensitive_features= to fit."
            )
        return self._metric

    def set_score_request(self, **kwargs: Any) -> FairnessScorer:
        """Request further metadata, such as ``sample_weight=True``.

        The sensitive features stay requested.

        Parameters
        ----------
        **kwargs
            Names of metadata, each with True, False, None or an alias.

        Returns
        -------
        scorer : FairnessScorer
            The scorer itself.
        """
        for param, alias in kwargs.items():
            self._metadata_request.score.add_request(param=param, alias=alias)
        return self

    def _score(
        self,
        method_caller: Any,
        estimator: object,
        X: MatrixLike,
        y_true: ColumnLike | None = None,
        **kwargs: Any,
    ) -> float:
        """Return the signed value of the metric.

        scikit-learn calls this if there are several scorers, with a ``method_caller`` that computes
        each prediction only once. ``__call__`` passes ``_call``, which has no cache.
        """
        kwargs = {**self._kwargs, **kwargs}
        attributes = {param: self._attributes(param, X, kwargs) for param in _OPTIONS}
        if not is_lazy(X, y_true, *attributes.values()):
            check_aligned(X=X, **attributes, sample_weight=kwargs.get("sample_weight"))
            if hasattr(y_true, "array"):
                # y goes by position: permutation tests shuffle a Series together with its index.
                y_true = one_dimensional(y_true, "y_true")
        groups = attributes["sensitive_features"]
        if groups is None and self._needs_groups:
            raise ValueError(
                f"{self!r} got no sensitive_features. Either enable metadata routing "
                "(sklearn.set_config(enable_metadata_routing=True)) and pass sensitive_features= "
                "to fit or cross_validate(params=...), or make the scorer with "
                "sensitive=, the names of the columns of X that hold the groups."
            )
        wanted = "predict" if is_regressor(estimator) else self._response_method
        method = response_method_of(estimator, wanted)
        bound = getattr(self._metric, "keywords", {}) | kwargs
        pos_label = positive_class(estimator, bound.get("pos_label"))
        is_worst = isinstance(self._metric, WorstClass)
        if pos_label is not None and not is_worst and takes_pos_label(self._metric, **bound):
            kwargs["pos_label"] = pos_label
        taken = {
            param: attributes[param]
            for param in ("sensitive_features", "control_features")
            if attributes[param] is not None and takes_groups(estimator, method, param)
        }
        if is_lazy(X):
            response = _lazy_response(estimator, X, method, taken, pos_label)
        elif taken:
            # The cache of ``method_caller`` is not used. Its key is the method alone, so it could
            # return predictions that another scorer computed without groups.
            response = get_response(estimator, X, method, pos_label=pos_label, **taken)
        elif is_clusterer(estimator):
            response = getattr(estimator, method)(X)
        else:
            response = method_caller(estimator, method, X, pos_label=pos_label)
        arguments = [{"X": X, "y_true": y_true}.get(name, response) for name in self._inputs]
        kwargs |= {
            param: values
            for param, values in attributes.items()
            if values is not None and (self._compares_groups or param == "query_id")
        }
        if not self._compares_groups:  # a metric of scikit-learn, which needs arrays in memory
            arguments = [_gathered(values) for values in arguments]
            kwargs = {name: _gathered(values) for name, values in kwargs.items()}
        result = self._metric(*arguments, **kwargs)
        return self._sign * result

    def _attributes(self, param: str, X: MatrixLike, kwargs: dict[str, Any]) -> Any:
        """Return the values of an argument of ``_OPTIONS``, or None if it is not used.

        They are taken out of ``kwargs`` if they were passed, or else out of columns of X.
        """
        values, columns = kwargs.pop(param, None), self._columns[param]
        if columns is None:
            return values
        if values is not None:
            raise ValueError(
                f"The scorer got {param} and reads {_OPTIONS[param]} of X as well. Use one of the "
                "two."
            )
        return _take(X, columns, _OPTIONS[param])

    def __repr__(self) -> str:
        extra = ", worst_class=True" if isinstance(self._metric, WorstClass) else ""
        columns = {_OPTIONS[param]: columns for param, columns in self._columns.items()}
        options = {key: value for key, value in columns.items() if value is not None} | self._kwargs
        extra += "".join(f", {key}={value!r}" for key, value in options.items())
        name = _name_of(self._metric)
        return f"make_fairness_scorer({name}, greater_is_better={self._sign > 0}{extra})"


def _check_arguments(
    metric: Metric, parameters: Mapping[str, inspect.Parameter], kwargs: dict[str, Any]
) -> None:
    """Raise if the metric does not take an argument in ``kwargs``, or needs one that is missing."""
    for name in kwargs:
        if name not in parameters:
            options = [p for p in parameters if p not in RESPONSES] + [*_OPTIONS.values()]
            raise TypeError(
                f"{_name_of(metric)} takes no argument {name!r}.{did_you_mean(name, options)} It "
                f"takes {', '.join(options)}."
            )
    arriving = {*RESPONSES, *_OPTIONS, "sample_weight", *kwargs}
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in arriving:
            raise TypeError(f"The scorer of {_name_of(metric)} needs the argument {name}=.")


def _name_of(metric: Metric) -> str:
    return str(getattr(metric, "__name__", repr(metric)))


def _call(estimator: object, method: str, X: MatrixLike, pos_label: ClassLabel = None) -> Any:
    """Predict without a cache, if a scorer is called alone."""
    return get_response(estimator, X, method, pos_label=pos_label)


def _take(X: Any, columns: ColumnNames, argument: str) -> Any:
    """Take columns out of X, also out of a Dask collection."""
    refuse_positions("a scorer", [columns])
    if not is_lazy(X):
        return take_columns(X, columns, argument)
    positions = column_positions(meta_of(X), columns, argument)
    return X.iloc[:, positions] if hasattr(X, "iloc") else X[:, positions]


def _gathered(values: Any) -> Any:
    """Return a Dask collection as an array in memory, and anything else as it is."""
    return np.asarray(values) if is_lazy(values) else values


def _lazy_response(
    estimator: object, X: MatrixLike, method: str, taken: dict[str, Any], pos_label: ClassLabel
) -> Any:
    """Return the predictions for a Dask collection as a Dask array, computed block by block."""
    dtype: Any = np.float64
    if method == "predict" and not is_regressor(estimator):
        dtype = getattr(getattr(estimator, "classes_", None), "dtype", np.int64)
    arguments = without_rows(estimator), method, pos_label, dtype
    rows = align(X=X, **taken)
    return rows.to_array(_response_of_block, *arguments, dtype=dtype, sizes=known_sizes(X))


def _response_of_block(
    block: dict[str, Any], estimator: object, method: str, pos_label: ClassLabel, dtype: Any
) -> Any:
    """Return the predictions for one block of a Dask collection, which may be empty.

    ``block`` has "X" and the arguments of the prediction method, such as groups.
    """
    if not block["X"].shape[0]:
        return np.empty(0, dtype)
    X, taken = block["X"], {name: values for name, values in block.items() if name != "X"}
    return np.asarray(get_response(estimator, X, method, pos_label=pos_label, **taken))


def make_fairness_scorer(
    metric: Metric,
    *,
    greater_is_better: bool | None = None,
    response_method: str | Sequence[str] | None = None,
    sensitive: ColumnNames | None = None,
    control_columns: ColumnNames | None = None,
    query_column: str | int | None = None,
    worst_class: bool = False,
    **kwargs: Any,
) -> FairnessScorer:
    """Make a scorer from a fairness metric.

    Parameters
    ----------
    metric : callable
        A metric of :mod:`skfair.metrics`, or a function that takes ``sensitive_features`` as a
        keyword and whose positional parameters are named ``y_true``, ``y_pred``, ``y_score``,
        ``labels`` or ``X``. The metric may also be one that does not take groups, such as
        ``sklearn.metrics.f1_score``. Groups are then passed only to the model, if it needs them.
    greater_is_better : bool, default=None
        Whether larger values are better. If not, the metric is negated. It may be None for the
        metrics of this package.
    response_method : str or sequence of str, default=None
        Prediction method(s) to use. If None, ``predict`` is used for labels, and
        ``decision_function`` or ``predict_proba`` for scores. Losses need ``decision_function``,
        and regressors need ``predict``.
    sensitive : str, int or list of them, default=None
        Columns of X that hold the groups. If None, the groups are passed as metadata, which
        requires ``sklearn.set_config(enable_metadata_routing=True)``.
    control_columns : str, int or list of them, default=None
        Columns of X that hold control features, such as the department. Groups are then compared
        only within each of their levels. If None, ``control_features`` may be passed as metadata.
    query_column : str or int, default=None
        Column of X that holds the queries, for metrics of rankings. If None, ``query_id`` is passed
        as metadata.
    worst_class : bool, default=False
        Whether a metric of labels is computed for each class against all others, which allows
        several classes. The score is the worst value over the classes.
    **kwargs
        Further arguments of the metric, such as ``interval`` or ``pos_label``.

    Returns
    -------
    scorer : FairnessScorer
        The scorer. Call it as ``scorer(estimator, X, y, sensitive_features=...)``, or pass it as
        ``scoring=``.

    See Also
    --------
    get_scorer : Gets a scorer of a metric by its name.
    make_group_metric : Makes a metric that the scorer can take.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from skfair.metrics import demographic_parity_difference, make_fairness_scorer
    >>> X, y, sex = [[0], [1], [2], [3]], [0, 0, 1, 1], ["f", "m", "f", "m"]
    >>> scorer = make_fairness_scorer(demographic_parity_difference)
    >>> float(scorer(DummyClassifier().fit(X, y), X, y, sensitive_features=sex))
    -0.0
    """
    if not callable(metric):
        raise TypeError(
            f"metric must be a function, got {metric!r}. For a name use "
            "skfair.metrics.get_scorer(name)."
        )
    known = dict(SCORERS.values())
    underlying = metric.func if isinstance(metric, partial) else metric
    if greater_is_better is None:
        if underlying not in known:
            raise ValueError(
                "greater_is_better must be given for a metric that is not from skfair.metrics: "
                "True if larger values are better, False if smaller ones are."
            )
        greater_is_better = known[underlying]
    elif known.get(underlying, greater_is_better) != greater_is_better:
        better = "smaller" if greater_is_better else "larger"
        raise ValueError(
            f"greater_is_better={greater_is_better} would choose the least fair model, because "
            f"{better} values of {getattr(underlying, '__name__', underlying)} are better. Leave "
            "greater_is_better out."
        )
    response_method = METHODS.get(underlying) if response_method is None else response_method
    sign = 1 if greater_is_better else -1
    _refuse_signed(metric, kwargs)
    if worst_class:
        metric = WorstClass(metric, known.get(underlying, greater_is_better))
        if "pos_label" in kwargs:
            raise ValueError("worst_class=True tries every class. Do not pass pos_label.")
    columns = dict(zip(_OPTIONS, (sensitive, control_columns, query_column), strict=True))
    return FairnessScorer(metric, sign, kwargs, response_method, columns)


def make_measure(metric: Metric, **kwargs: Any) -> FairnessScorer:
    """Make a scorer that gives the value of a metric as it is, so it cannot choose a model."""
    underlying = metric.func if isinstance(metric, partial) else metric
    _refuse_signed(metric, kwargs)
    return FairnessScorer(metric, 1, kwargs, METHODS.get(underlying), dict.fromkeys(_OPTIONS))


def _refuse_signed(metric: Metric, kwargs: dict[str, Any]) -> None:
    """Raise for a signed difference: a smaller value is only better if it cannot be negative."""
    underlying = metric.func if isinstance(metric, partial) else metric
    if not dict(SCORERS.values()).get(underlying, True):
        refuse_signed(**getattr(metric, "keywords", {}) | kwargs)


def get_scorer(name: str, **kwargs: Any) -> FairnessScorer:
    """Get a fairness scorer by name.

    Parameters
    ----------
    name : str
        Name of the scorer, from :func:`get_scorer_names`. As in scikit-learn, the prefix ``neg_``
        marks a metric for which smaller values are better, and which is negated.
    **kwargs
        Arguments that are passed to :func:`make_fairness_scorer`, such as ``sensitive``,
        ``control_columns``, ``worst_class`` or arguments of the metric.

    Returns
    -------
    scorer : FairnessScorer
        A new scorer.

    See Also
    --------
    get_scorer_names : Lists the names.
    make_fairness_scorer : Makes a scorer of a metric with options.

    Examples
    --------
    >>> from skfair.metrics import get_scorer
    >>> get_scorer("equalized_odds_ratio", sensitive=["sex"])
    make_fairness_scorer(equalized_odds_ratio, greater_is_better=True, sensitive=['sex'])
    """
    if not isinstance(name, str) or name not in SCORERS:
        negated = f"neg_{name}"
        hint = did_you_mean(negated if negated in SCORERS else name, SCORERS)
        raise ValueError(
            f"{name!r} is not a fairness scorer.{hint} The names, from get_scorer_names(): "
            f"{listed(get_scorer_names())}."
        )
    metric, greater_is_better = SCORERS[name]
    return make_fairness_scorer(metric, greater_is_better=greater_is_better, **kwargs)


def get_scorer_names() -> list[str]:
    """List the names that :func:`get_scorer` knows.

    Returns
    -------
    names : list of str
        The names in alphabetical order.

    See Also
    --------
    get_scorer : Gets the scorer of a name.

    Examples
    --------
    >>> from skfair.metrics import get_scorer_names
    >>> "neg_demographic_parity_difference" in get_scorer_names()
    True
    """
    return sorted(SCORERS)
