"""Fitted models for other programs: ONNX graphs (extra ``onnx``), and files of skops and MLflow.

The public functions are :func:`to_onnx` and :func:`trusted_types`, at the end. skl2onnx converts
scikit-learn's steps, and ``_register`` adds converters of skfair's estimators to it, so that
pipelines of both become one graph. The table ``KINDS`` has a converter for each class, and wings
add classes to it. A converter, ``convert(model, inputs, ops)``, gets the inputs as expressions and
returns the outputs as expressions. The inputs are the columns that the model uses. If it has other
models inside, the inputs are the outputs of these models. skl2onnx parses them like any model, so
they may be pipelines, or models that a user has registered. The operators added here compute in
double precision, as predictions do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.utils.validation import check_is_fitted

from skfair._typing import IntArray, MatrixLike
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.estimators.decisions.prediction import Decider
from skfair.estimators.group_probabilities import MOST_PAIRS, GroupModels
from skfair.estimators.probability_corrections import LEAST
from skfair.regression import ConstrainedERMRegressor
from skfair.utils.onnx_kinds import (
    Kind,
    labelled,
    linear_scores,
    one_number,
    onnx_classes,
    refuse_groups,
)
from skfair.utils.rounding import TINY
from skfair.utils.wings import functions_of_wings

__all__ = ["to_onnx", "trusted_types"]

_Outputs = tuple[Any, ...]
# The numbers of the types single and double precision in ONNX
_FLOAT, _DOUBLE = 1, 11


class _Ops:
    """ONNX operators of one version, for numbers of double precision."""

    def __init__(self, version: int) -> None:
        from skl2onnx.algebra import onnx_ops

        self._ops, self.version = onnx_ops, version

    def number(self, values: Any) -> Any:
        """Return numbers of any type in double precision."""
        return self("Cast", values, to=_DOUBLE)

    def sums(self, values: Any, n_columns: int) -> Any:
        """Return the sum of each row of a matrix with this many columns."""
        return self("MatMul", values, np.ones((n_columns, 1)))

    def __call__(self, name: str, *inputs: Any, **attributes: Any) -> Any:
        """Apply an operator."""
        return getattr(self._ops, f"Onnx{name}")(*inputs, op_version=self.version, **attributes)


class _Columns:
    """A step before a model, which makes one matrix of the columns that the model uses."""

    def __init__(self, positions: IntArray | None) -> None:
        self.positions = positions  # None for all


def _classifier(model: BaseEstimator, inputs: list[Any], ops: _Ops) -> _Outputs:
    """Convert a linear model or a network, or the certified decisions that replace it."""
    refuse_groups(model, getattr(model, "is_group_aware_", False))
    if not _certified_decisions(model):
        return labelled(model, linear_scores(model, ops.number(inputs[0]), ops), ops)
    # These are the log-odds that decision_function returns, which are 0 at the thresholds.
    lead = ops("MatMul", ops.number(inputs[0]), np.array([[-1.0], [1.0]]))
    lead = ops("Max", ops("Min", lead, np.full(1, 1 - 1e-12)), np.full(1, -1 + 1e-12))
    odds = ops("Div", ops("Add", lead, np.ones(1)), ops("Sub", np.ones(1), lead))
    return labelled(model, ops("Log", odds), ops)


def _certified_decisions(model: BaseEstimator) -> list[Any]:
    """Return the fair decisions by which a certificate has replaced a model, or an empty list.

    They are the only model inside, and their margins of both classes are the inputs.
    """
    return [model.decisions_] if hasattr(model, "decisions_") else []


def _decision_models(model: BaseEstimator) -> list[Any]:
    """Return the models inside fair decisions; raise if they cannot be converted.

    The models of the classes come first. If offsets depend on the group, models of the groups of
    each attribute follow. ``_decisions`` reads their outputs in this order.
    """
    hint = "Fit it with group_aware=False. Or convert the model inside, fitted before: with "
    hint += "cv='prefit' and group_aware=True, to_thresholds() has the cuts of its scores"
    refuse_groups(model, model.is_group_aware_, hint)
    if model._decider.strata is not None:
        raise ValueError(
            "Limits within strata have no ONNX converter. Fit without ConditionalOn, or use the "
            "model with Python."
        )
    models, groups = list(model.estimators_), model._decider.group_models
    if groups is not None and model.offsets_.any():
        models += chain.from_iterable(groups.models)
    for place, fitted in enumerate(models):
        kind = type(_last_step(_unwrapped(fitted)))
        if issubclass(kind, HistGradientBoostingClassifier):
            remedy = "Fit with group_estimator=LogisticRegression(): here it estimates the groups."
            if place < len(model.estimators_):
                remedy = "Fit LightGBM or XGBoost in its place, with group_estimator="
                remedy += "LogisticRegression(), and register their converters (guide: Export to "
                remedy += "ONNX)."
            raise ValueError(f"skl2onnx 1.20 converts no HistGradientBoostingClassifier. {remedy}")
        if kind in KINDS:
            raise TypeError(
                f"{type(model).__name__} has a {kind.__name__} inside, whose converter returns no "
                "probabilities. Use the model with Python."
            )
    return models


def _decisions(model: BaseEstimator, inputs: list[Any], ops: _Ops) -> _Outputs:
    """Convert fair decisions: the class with the largest expected utility minus offset.

    ``inputs`` are the probabilities that the models of ``_decision_models`` return.
    """
    of_models, decider = iter(inputs), model._decider
    chances = _mean_chances(model.estimators_, model._ordered_classes, of_models, ops)
    # Corrections are the same for all rows, because _decision_models raises if groups are needed.
    if decider.corrections is not None:
        slopes, offsets = decider.corrections.slopes[0], decider.corrections.offsets[0]
        logs = ops("Log", ops("Max", chances, np.full(1, LEAST)))
        chances = ops("Softmax", ops("Add", ops("MatMul", logs, slopes), offsets), axis=1)
    margins = ops("MatMul", chances, np.float64(decider.utility))
    if decider.offsets.any():
        margins = ops("Sub", margins, _expected_offsets(decider, chances, of_models, ops))
    number = ops("ArgMax", margins, axis=1, keepdims=0)
    if model._sign < 0:
        margins = ops("Gather", margins, np.array([1, 0]), axis=1)
    return ops("Gather", onnx_classes(model._ordered_classes), number, axis=0), margins


def _expected_offsets(decider: Decider, chances: Any, of_models: Iterator[Any], ops: _Ops) -> Any:
    """Return the expected offset of each decision, over the groups and classes of the row.

    ``chances`` are the probabilities of the classes, and ``of_models`` yields the outputs of the
    group models.
    """
    offsets, groups = decider.offsets[:, 0], decider.group_models
    if groups is None:  # no offset depends on the group
        of_anybody = offsets[decider.groups.offsets[:-1]].sum(axis=0)
        return ops("MatMul", chances, of_anybody)
    joint = [_joint_chances(groups, k, chances, of_models, ops) for k in range(len(groups.models))]
    together = ops("Concat", *joint, axis=1)
    return ops("MatMul", together, offsets.reshape(-1, offsets.shape[-1]))


def _joint_chances(
    groups: GroupModels, number: int, chances: Any, of_models: Iterator[Any], ops: _Ops
) -> Any:
    """Return P(group and class | row) for an attribute, with a column for each pair.

    Pairs are in the order of the offsets: all classes of the first group, then of the second.
    """
    models, size, n_classes = groups.models[number], groups.sizes[number], groups.n_classes
    of_group = np.repeat(np.eye(size), n_classes, axis=1)
    of_class = np.tile(np.eye(n_classes), (1, size))
    pairs = _mean_chances(models, groups.labels[number], of_models, ops)
    if size * n_classes > MOST_PAIRS:  # then the models predict groups, not pairs
        return ops("Mul", ops("MatMul", pairs, of_group), ops("MatMul", chances, of_class))
    # The models predict pairs. P(group | class) is the probability of the pair divided by the sum
    # over the pairs of this class. It is multiplied by P(class) from the models of classes. A tiny
    # multiple of P(group) is added to each pair, so that P(group) replaces P(group | class) if the
    # sum is 0.
    of_groups = ops("MatMul", pairs, np.full(1, TINY) * (of_group.T @ of_group))
    pairs = ops("Add", pairs, of_groups)
    ratio = ops("Div", chances, ops("MatMul", pairs, of_class.T))
    return ops("Mul", ops("MatMul", ratio, of_class), pairs)


def _mean_chances(
    models: list[BaseEstimator], classes: Any, of_models: Iterator[Any], ops: _Ops
) -> Any:
    """Return the mean probabilities of several models, whose outputs are next in ``of_models``.

    A model may lack some of the ``classes``, or have them in another order.
    """
    total = None
    for model in models:
        known = np.asarray(_unwrapped(model).classes_)
        mass = ops.number(next(of_models))
        part = ops("Div", mass, ops.sums(mass, known.size))
        if not np.array_equal(known, classes):
            part = ops("MatMul", part, np.float64(known[:, None] == np.asarray(classes)))
        total = part if total is None else ops("Add", total, part)
    return ops("Div", total, np.full(1, float(len(models))))


def _unwrapped(model: BaseEstimator) -> BaseEstimator:
    """Return the model whose probabilities a wrapper passes on.

    Only some classes are opened, because ``estimator_`` of forests and others is not such a model,
    but a template of their parts.
    """
    if isinstance(model, FrozenEstimator):
        return _unwrapped(model.estimator)
    if isinstance(model, FixedThresholdClassifier | TunedThresholdClassifierCV):
        return _unwrapped(model.estimator_)
    return model


def _last_step(model: BaseEstimator) -> BaseEstimator:
    """Return the last step of a pipeline, or any other model itself."""
    return _last_step(model.steps[-1][1]) if hasattr(model, "steps") else model


KINDS: Mapping[type, Kind] = {
    ConstrainedERMClassifier: Kind(_classifier, ("label", "scores"), _certified_decisions),
    ConstrainedERMRegressor: Kind(one_number, ("prediction",)),
    FairDecisionClassifier: Kind(_decisions, ("label", "margins"), _decision_models),
    **{kind: own for add in functions_of_wings("onnx") for kind, own in add().items()},
}


def _number_type(inputs: list[Any]) -> Any:
    """Return the type of numbers: single precision if all numbers of the inputs have it."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType

    kinds = {type(variable.type) for variable in inputs} - {StringTensorType}
    return FloatTensorType if kinds == {FloatTensorType} else DoubleTensorType


def _used_inputs(scope: Any, model: BaseEstimator, inputs: list[Any], as_matrix: bool) -> list[Any]:
    """Return the inputs of the model: one matrix, or inputs of one column each.

    It is the latter only if ``as_matrix`` is False, because the model inside chooses columns.
    """
    positions = model._model_positions
    if len(inputs) > 1 and positions is not None:
        inputs, positions = [inputs[i] for i in positions], None
    if len(inputs) > 1 and not as_matrix:
        return inputs
    operator = scope.declare_local_operator("SkfairColumns", _Columns(positions))
    operator.inputs = inputs
    # Steps that choose among columns need to know the number of columns.
    its_type = _number_type(inputs)([None, model.model_features_.size])
    operator.outputs.append(scope.declare_local_variable("columns", its_type))
    return list(operator.outputs)


def _reads_columns(model: BaseEstimator) -> bool:
    """Whether a model, or the first step of a pipeline, chooses among columns by itself."""
    steps = getattr(model, "steps", None)
    return _reads_columns(steps[0][1]) if steps else isinstance(model, ColumnTransformer)


def _parse_inside(scope: Any, model: BaseEstimator, inputs: list[Any], parsers: Any) -> Any:
    """Parse a model inside another; return its second output, the probabilities or scores."""
    from skl2onnx._parse import _parse_sklearn

    if type(model) not in KINDS:
        scope.add_options(id(_last_step(model)), {"zipmap": False})
    return _parse_sklearn(scope, model, inputs, custom_parsers=parsers)[1]


@cache
def _register() -> None:
    """Register the converters with skl2onnx, once.

    For each class of ``KINDS`` skl2onnx calls ``parse``, which declares inputs and outputs, then
    ``shape``, then ``convert``, which writes the operators.
    """
    import skl2onnx
    from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType, StringTensorType

    def parse(scope: Any, model: BaseEstimator, inputs: Any, custom_parsers: Any = None) -> Any:
        kind = KINDS[type(model)]
        inside = [_unwrapped(inner) for inner in kind.models(model)]
        used = _used_inputs(scope, model, inputs, not any(map(_reads_columns, inside)))
        operator = scope.declare_local_operator(f"Skfair{type(model).__name__}", model)
        operator.inputs = [
            _parse_inside(scope, inner, used, custom_parsers) for inner in inside
        ] or used
        number = _number_type(used)
        for name in kind.outputs:
            its_type = number
            if name == "label":
                is_text = (
                    hasattr(model, "classes_") and onnx_classes(model.classes_).dtype.kind == "U"
                )
                its_type = StringTensorType if is_text else Int64TensorType
            operator.outputs.append(scope.declare_local_variable(name, its_type()))
        return operator.outputs

    def shape(operator: Any) -> None:
        for output in operator.outputs:
            output.type.shape = [None] if output.raw_name == "label" else [None, None]

    def add(values: Any, output: Any, ops: _Ops, scope: Any, container: Any) -> None:
        if not isinstance(output.type, Int64TensorType | StringTensorType):
            is_double = isinstance(output.type, DoubleTensorType)
            values = ops("Cast", values, to=_DOUBLE if is_double else _FLOAT)
        ops("Identity", values, output_names=[output]).add_to(scope, container)

    def convert(scope: Any, operator: Any, container: Any) -> None:
        model, ops = operator.raw_operator, _Ops(container.target_opset)
        outputs = KINDS[type(model)].convert(model, operator.inputs, ops)
        for output, values in zip(operator.outputs, outputs, strict=True):
            add(values, output, ops, scope, container)

    def convert_columns(scope: Any, operator: Any, container: Any) -> None:
        ops, positions = _Ops(container.target_opset), operator.raw_operator.positions
        columns = [ops.number(variable) for variable in operator.inputs]
        rows = ops("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]
        if positions is not None:
            rows = ops("Gather", rows, np.asarray(positions, dtype=np.int64), axis=1)
        add(rows, operator.outputs[0], ops, scope, container)

    for kind in KINDS:
        skl2onnx.update_registered_converter(
            kind, f"Skfair{kind.__name__}", shape, convert, parser=parse
        )
    skl2onnx.update_registered_converter(_Columns, "SkfairColumns", shape, convert_columns)


def to_onnx(
    model: BaseEstimator,
    X: MatrixLike,
    *,
    target_opset: int | Mapping[str, int] | None = None,
    options: Mapping[Any, Any] | None = None,
) -> Any:
    """Convert a fitted model, or a pipeline that ends in one, to an ONNX graph.

    The graph gives the same predictions as ``predict`` without sensitive features, but without the
    prices of ``size_bounds``. Linear models, networks and ``FairKMeans`` can be converted, and so
    can a :class:`~skfair.classification.FairDecisionClassifier` if skl2onnx can convert the models
    inside. The outputs of the graph are ``label`` and ``scores`` (or ``margins``, or
    ``distances``), or ``prediction``.

    Parameters
    ----------
    model : estimator
        A fitted estimator of skfair, or a fitted :class:`~sklearn.pipeline.Pipeline` that ends in
        one and whose other steps skl2onnx can convert.
    X : array-like of shape (n_samples, n_features)
        Some rows, from which the types of the inputs are read. For an array, the graph has one
        input ``X``. For a DataFrame, each column is one input. Sensitive columns of the model can
        be left out.
    target_opset : int or dict, default=None
        Versions of the operators, as in ``skl2onnx.to_onnx``. If None, the newest versions that it
        supports are used. Converters of other libraries may need a version of their domain, such as
        ``{"": 18, "ai.onnx.ml": 3}``.
    options : dict, default=None
        Options of other converters, as in ``skl2onnx.to_onnx``.

    Returns
    -------
    graph : onnx.ModelProto
        The graph. Use ``graph.SerializeToString()`` to write it to a file that runtimes load.

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
    last = _last_step(model)
    if type(last) not in KINDS:
        raise TypeError(
            f"to_onnx converts {', '.join(kind.__name__ for kind in KINDS)} and pipelines that end "
            f"in one of them. Got {type(last).__name__}."
        )
    settings = (of_step for of_step in (options or {}).values() if isinstance(of_step, Mapping))
    if any(of_step.get("raw_scores") for of_step in settings):
        raise ValueError(
            "options has raw_scores=True, but decisions are made from probabilities. Leave it out."
        )
    _register()
    rows: Any = np.asarray(X) if isinstance(X, list | tuple) else X
    if last is model and rows.shape[1] == model.model_features_.size:
        model = copy(model)  # the copy has no sensitive columns among its inputs
        if hasattr(model, "_used_weights"):
            model.coef_ = model._used_weights[None]
        model._model_positions, model.n_features_in_ = None, rows.shape[1]
    width = getattr(model, "n_features_in_", rows.shape[1])
    if rows.shape[1] != width:
        hint = "" if getattr(last, "query_column", None) is None else " without the query column"
        raise ValueError(
            f"X has {rows.shape[1]} columns, but the graph of {type(last).__name__} reads "
            f"{width}. Pass X{hint} as the graph will get it."
        )
    return skl2onnx.to_onnx(model, rows[:1], target_opset=target_opset, options=options)


def trusted_types(model: BaseEstimator) -> list[str]:
    """List the types that ``skops`` must be told to trust before it loads a fitted model.

    ``skops.io.load`` and MLflow read models without pickle, and create only objects of types that
    they know or that the user lists. Take the list from a model that you fitted yourself. Types in
    a file from somebody else should be reviewed before they are trusted.

    Parameters
    ----------
    model : estimator
        A fitted estimator of skfair, or another one that contains it, such as a pipeline or a
        search.

    Returns
    -------
    types : list of str
        The full names of the types in alphabetical order. Pass them as ``trusted=`` to
        ``skops.io.load``, or as ``skops_trusted_types=`` to ``mlflow.sklearn.log_model``.

    See Also
    --------
    to_onnx : Convert a model for programs without Python.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.classification import ConstrainedERMClassifier
    >>> from skfair.export import trusted_types
    >>> rng = np.random.default_rng(0)
    >>> X, sex = rng.normal(size=(100, 3)), rng.choice(["f", "m"], 100)
    >>> model = ConstrainedERMClassifier(max_disparity=0.1)
    >>> model = model.fit(X, X[:, 0] > 0, sensitive_features=sex)
    >>> trusted_types(model)[-1]  # doctest: +SKIP
    'skfair.groups.levels.GroupLevels'
    """
    try:
        from skops import io
    except ImportError as error:
        raise ImportError("trusted_types needs skops: pip install skops.") from error
    check_is_fitted(model)
    return sorted(io.get_untrusted_types(data=io.dumps(model)))
