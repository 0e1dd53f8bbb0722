"""What each kind of fitted model computes, in the operators of ONNX.

skl2onnx converts scikit-learn's steps; it is told here how ours are converted, so that pipelines of
both become one graph. A converter gets the input and returns the outputs as expressions; the table
``KINDS`` says which classes it is for and how the outputs are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.utils.validation import check_is_fitted

from skfair._typing import MatrixLike
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
    PartialParityClassifier,
)
from skfair.cluster import FairKMeans
from skfair.estimators.group_chances import MOST_PAIRS, GroupModels
from skfair.ranking import FairRanker
from skfair.regression import ConstrainedERMRegressor

_Outputs = tuple[Any, ...]


class _Ops:
    """ONNX operators of one version, for numbers of one precision."""

    def __init__(self, version: int, dtype: type[np.floating]) -> None:
        from skl2onnx.algebra import onnx_ops
        from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

        self._ops, self.version, self.dtype = onnx_ops, version, dtype
        self.matrix = (DoubleTensorType if dtype is np.float64 else FloatTensorType)([None, None])

    def number(self, values: Any) -> Any:
        """Return numbers of any type in the precision."""
        return self("Cast", values, to=11 if self.dtype is np.float64 else 1)

    def __call__(self, name: str, *inputs: Any, **attributes: Any) -> Any:
        """Apply an operator; floating-point arrays become constants of the precision."""
        constants = [
            given.astype(self.dtype) if getattr(given, "dtype", None) == np.float64 else given
            for given in inputs
        ]
        return getattr(self._ops, f"Onnx{name}")(*constants, op_version=self.version, **attributes)


def _model_rows(model: BaseEstimator, inputs: list[Any], ops: _Ops) -> Any:
    """Return the columns that the model uses, of a matrix or of inputs of one column each."""
    positions = model._model_positions
    if len(inputs) > 1:  # others may be text
        used = inputs if positions is None else [inputs[i] for i in positions]
        return ops("Concat", *(ops.number(one) for one in used), axis=1)
    rows = ops.number(inputs[0])
    if positions is None:
        return rows
    return ops("Gather", rows, np.asarray(positions, dtype=np.int64), axis=1)


def _scores(model: BaseEstimator, rows: Any, ops: _Ops) -> Any:
    """Return the scores of a linear model or a network, one column."""
    if hasattr(model, "parameters_"):
        raise ValueError(
            f"{type(model).__name__}(model=...) has no ONNX converter: convert the model that was "
            "plugged in with its own library, and add the threshold of the fitted estimator."
        )
    if not hasattr(model, "coefs_"):
        coef, intercept = np.ravel(model.coef_), np.ravel(getattr(model, "intercept_", 0.0))
        return ops("Add", ops("MatMul", rows, coef[:, None]), intercept)
    for layer, (coef, intercept) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        rows = rows if layer == 0 else ops("Relu", rows)
        rows = ops("Add", ops("MatMul", rows, np.float64(coef)), np.float64(intercept))
    return rows


def _labelled(model: BaseEstimator, scores: Any, ops: _Ops) -> _Outputs:
    """Return the classes of scores that are positive, and of others; and the scores."""
    is_positive = ops("Greater", scores, np.zeros(1))
    number = ops("Reshape", ops("Cast", is_positive, to=7), np.array([-1], dtype=np.int64))
    return ops("Gather", _classes(model), number, axis=0), scores


def _classes(model: BaseEstimator) -> Any:
    """Return the classes as ONNX knows them: integers or strings."""
    classes = np.asarray(model.classes_)
    return classes.astype(np.int64 if classes.dtype.kind in "iubf" else np.str_)


def _classifier(model: BaseEstimator, rows: Any, ops: _Ops) -> _Outputs:
    return _labelled(model, _scores(model, rows, ops), ops)


def _partial(model: BaseEstimator, rows: Any, ops: _Ops) -> _Outputs:
    _refuse_groups(model, model.is_group_aware_)
    scores = ops("Sub", _scores(model, rows, ops), np.float64(model.thresholds_[:1]))
    return _labelled(model, scores, ops)


def _one_number(model: BaseEstimator, rows: Any, ops: _Ops) -> _Outputs:
    return (_scores(model, rows, ops),)


def _clusters(model: BaseEstimator, rows: Any, ops: _Ops) -> _Outputs:
    """Nearest centres, as ``predict`` of rows whose groups are not known."""
    _refuse_groups(model, model.sensitive_columns is not None)
    centers = np.float64(model.cluster_centers_)
    # Rows and centres are moved to where the centres are: squares of large numbers lose digits.
    middle = centers.mean(axis=0)
    rows, centers = ops("Sub", rows, middle), centers - middle
    squared = ops("ReduceSumSquare", rows, np.array([1], dtype=np.int64), keepdims=1)
    inner = ops("MatMul", rows, -2.0 * centers.T)
    distances = ops("Add", ops("Add", inner, (centers**2).sum(axis=1)), squared)
    labels = ops("ArgMin", distances, axis=1, keepdims=0)
    return labels, ops("Sqrt", ops("Max", distances, np.zeros(1)))


def _decisions(model: BaseEstimator, rows: Any, ops: _Ops) -> _Outputs:
    """The decision of largest worth minus price; the group is estimated from the row."""
    _refuse_groups(model, model.is_group_aware_)
    groups = model._group_models
    if model._strata_levels is not None or (groups is not None and len(groups.models) > 1):
        raise ValueError("Decisions with several attributes or strata have no ONNX converter.")
    chances = _mean_chances(model.estimators_, model.classes_, rows, ops)
    margins = ops("MatMul", chances, np.float64(model._worth))
    if groups is not None and model.prices_.any():
        joint = _joint_chances(groups, chances, rows, ops)
        prices = np.float64(model.prices_).reshape(-1, model.prices_.shape[-1])
        margins = ops("Sub", margins, ops("MatMul", joint, prices))
    number = ops("ArgMax", margins, axis=1, keepdims=0)
    return ops("Gather", _classes(model), number, axis=0), margins


def _joint_chances(groups: GroupModels, chances: Any, rows: Any, ops: _Ops) -> Any:
    """Return P(group and class | row) as one column a pair, group by group: as the prices lie."""
    size, n_classes = groups.sizes[0], groups.n_classes
    of_group = np.repeat(np.eye(size), n_classes, axis=1)
    of_class = np.tile(np.eye(n_classes), (1, size))
    if size * n_classes > MOST_PAIRS:
        found = _mean_chances(groups.models[0], np.arange(size), rows, ops)
        known = ops("MatMul", found, of_group)
    else:
        pairs = _mean_chances(groups.models[0], np.arange(size * n_classes), rows, ops)
        alike = ops("MatMul", pairs, of_class.T @ of_class)  # P(class) by the models of pairs
        known = ops("Div", pairs, ops("Max", alike, np.full(1, 1e-37)))
    return ops("Mul", known, ops("MatMul", chances, of_class))


def _mean_chances(models: list[BaseEstimator], classes: Any, rows: Any, ops: _Ops) -> Any:
    """Return the mean of the probabilities of several models, which may each lack classes."""
    from skl2onnx.algebra.onnx_operator import OnnxSubEstimator

    total = None
    for model in models:
        inner = _unwrapped(model)
        found = OnnxSubEstimator(
            inner,
            rows,
            op_version=ops.version,
            options={"zipmap": False},
            input_types=[ops.matrix],
        )
        place = np.float64(np.asarray(inner.classes_)[:, None] == np.asarray(classes))
        # Forests give single precision, whatever they read.
        part = ops("MatMul", ops.number(found[1]), place / len(models))
        total = part if total is None else ops("Add", total, part)
    return total


def _unwrapped(model: BaseEstimator) -> BaseEstimator:
    """Return the model whose probabilities a wrapper passes on.

    Forests and others have an ``estimator_``, too, but it is what their parts are copied from.
    """
    if isinstance(model, FrozenEstimator):
        return _unwrapped(model.estimator)
    if isinstance(model, FixedThresholdClassifier | TunedThresholdClassifierCV):
        return _unwrapped(model.estimator_)
    return model


def _refuse_groups(model: BaseEstimator, uses_groups: bool) -> None:
    if uses_groups:
        raise ValueError(
            f"This {type(model).__name__} asks for the groups of new rows, and graphs have no "
            "input for them. Fit it with group_aware=False, or without sensitive_columns, or "
            "convert the model inside and apply to_thresholds()."
        )


class Kind(NamedTuple):
    """What a converter computes, and how its outputs are called."""

    convert: Callable[[Any, Any, _Ops], _Outputs]
    outputs: tuple[str, ...]


KINDS: Mapping[type, Kind] = {
    ConstrainedERMClassifier: Kind(_classifier, ("label", "scores")),
    ConstrainedERMRegressor: Kind(_one_number, ("prediction",)),
    PartialParityClassifier: Kind(_partial, ("label", "scores")),
    FairRanker: Kind(_one_number, ("scores",)),
    FairDecisionClassifier: Kind(_decisions, ("label", "margins")),
    FairKMeans: Kind(_clusters, ("label", "distances")),
}


@cache
def _register() -> None:
    """Tell skl2onnx of all kinds, once."""
    import skl2onnx
    from skl2onnx.common.data_types import (
        DoubleTensorType,
        FloatTensorType,
        Int64TensorType,
        StringTensorType,
    )

    def are_double(inputs: list[Any]) -> bool:
        return any(isinstance(one.type, DoubleTensorType) for one in inputs)

    def parse(scope: Any, model: BaseEstimator, inputs: Any, custom_parsers: Any = None) -> Any:
        operator = scope.declare_local_operator(f"Skfair{type(model).__name__}", model)
        operator.inputs = inputs
        number = DoubleTensorType if are_double(inputs) else FloatTensorType
        for name in KINDS[type(model)].outputs:
            kind = number
            if name == "label":
                is_text = hasattr(model, "classes_") and _classes(model).dtype.kind == "U"
                kind = StringTensorType if is_text else Int64TensorType
            operator.outputs.append(scope.declare_local_variable(name, kind()))
        return operator.outputs

    def shape(operator: Any) -> None:
        for output in operator.outputs:
            output.type.shape = [None] if output.raw_name == "label" else [None, None]

    def convert(scope: Any, operator: Any, container: Any) -> None:
        model, inputs = operator.raw_operator, operator.inputs
        ops = _Ops(container.target_opset, np.float64 if are_double(inputs) else np.float32)
        rows = _model_rows(model, inputs, ops)
        for output, value in zip(
            operator.outputs, KINDS[type(model)].convert(model, rows, ops), strict=True
        ):
            ops("Identity", value, output_names=[output]).add_to(scope, container)

    for kind in KINDS:
        skl2onnx.update_registered_converter(
            kind, f"Skfair{kind.__name__}", shape, convert, parser=parse
        )


def to_onnx(model: BaseEstimator, X: MatrixLike) -> Any:
    """Convert a fitted model, or a pipeline that ends in one, to an ONNX graph.

    The graph computes what ``predict`` computes without the groups of the rows: scores of linear
    models and networks, nearest centres, and decisions of a :class:`~skfair.classification.\
FairDecisionClassifier` whose models skl2onnx can convert. Its outputs are ``label`` and ``scores``
    (``margins``, ``distances``) or ``prediction``.

    Parameters
    ----------
    model : estimator
        A fitted estimator of skfair, or a fitted :class:`~sklearn.pipeline.Pipeline` of steps that
        skl2onnx knows and one of skfair.
    X : array-like of shape (n_samples, n_features)
        Some rows, from which the types of the inputs are read. An array is one input, ``X``; of a
        DataFrame each column is one. The sensitive columns of a model can be left out.

    Returns
    -------
    graph : onnx.ModelProto
        ``graph.SerializeToString()`` is what runtimes load.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.classification import ConstrainedERMClassifier
    >>> from skfair.export import to_onnx
    >>> rng = np.random.default_rng(0)
    >>> X, sex = rng.normal(size=(100, 3)).astype("float32"), rng.choice(["f", "m"], 100)
    >>> model = ConstrainedERMClassifier(max_disparity=0.1)
    >>> model = model.fit(X, X[:, 0] > 0, sensitive_features=sex)
    >>> graph = to_onnx(model, X)  # doctest: +SKIP
    >>> [output.name for output in graph.graph.output]  # doctest: +SKIP
    ['label', 'scores']
    """
    try:
        import skl2onnx
    except ImportError as error:
        raise ImportError("to_onnx needs skl2onnx: pip install 'skfair-suite[onnx]'.") from error
    check_is_fitted(model)
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if type(last) not in KINDS:
        raise TypeError(
            f"to_onnx converts {', '.join(kind.__name__ for kind in KINDS)} and pipelines that end "
            f"in one of them. Got {type(last).__name__}."
        )
    _register()
    rows: Any = np.asarray(X) if isinstance(X, list | tuple) else X
    if last is model and rows.shape[1] == model.model_features_.size:
        model = copy(model)  # that gets no sensitive columns
        model._model_positions, model.n_features_in_ = None, rows.shape[1]
    width = getattr(model, "n_features_in_", rows.shape[1])
    if rows.shape[1] != width:
        hint = "" if getattr(last, "query_column", None) is None else " without the query column"
        raise ValueError(
            f"X has {rows.shape[1]} columns, but the graph of {type(last).__name__} reads "
            f"{width}. Pass X{hint} as the graph will get it."
        )
    return skl2onnx.to_onnx(model, rows[:1])
