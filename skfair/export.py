"""Fitted models for other programs: ONNX graphs (extra ``onnx``), and files of skops and MLflow.

The public functions are :func:`to_onnx` and :func:`trusted_types`, at the end. skl2onnx converts
scikit-learn's steps, and ``_register`` adds converters of skfair's estimators to it, so that
pipelines of both become one graph. The table ``KINDS`` has a converter for each class, and wings
add classes to it. A converter, ``convert(model, inputs, ops)``, gets the inputs as expressions and
returns the outputs as expressions. The inputs are the columns that the model uses. If it has other
models inside, the inputs are the outputs of these models. skl2onnx parses them like any model, so
they may be pipelines, or models that a user has registered. The numbers of groups and strata of new
rows follow, if predictions read them. The operators added here compute in double precision, as
predictions do.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import _num_samples, check_is_fitted

from skfair._typing import ColumnsLike, IntArray, MatrixLike
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.estimators.decisions.onnx import decisions, levels_inside, models_inside, unwrapped
from skfair.groups.attributes import SENSITIVE
from skfair.groups.foreign_tables import native_table
from skfair.groups.levels import GroupLevels
from skfair.groups.named_columns import column_positions, dropped_columns
from skfair.regression import ConstrainedERMRegressor
from skfair.utils.onnx_groups import group_codes
from skfair.utils.onnx_inputs import Typed, own_name, type_of_groups, types_of_rows
from skfair.utils.onnx_kinds import (
    Kind,
    labelled,
    linear_scores,
    one_number,
    onnx_classes,
    refuse_groups,
)
from skfair.utils.onnx_ops import ops_of, put
from skfair.utils.onnx_steps import (
    ML_VERSION,
    SHAPES,
    check_library,
    conversions,
    register_classifiers,
)
from skfair.utils.text import listed
from skfair.utils.wings import functions_of_wings

__all__ = ["to_onnx", "trusted_types"]

_Outputs = tuple[Any, ...]
# Modules whose trees convert rows to single precision before they compare them with thresholds
_OF_SINGLE_PRECISION = (
    "xgboost.",
    "sklearn.tree.",
    "sklearn.ensemble._forest",
    "sklearn.ensemble._gb",
)


class _Columns:
    """A step before a model, which makes one matrix of the columns that the model uses."""

    def __init__(self, positions: IntArray | None) -> None:
        self.positions = positions  # None for all


class _Groups:
    """A step that reads the numbers of the groups of rows."""

    def __init__(self, levels: GroupLevels, positions: list[int] | None) -> None:
        self.levels = levels
        self.positions = positions  # of the attributes in a matrix; None for inputs of one column


class _InSingle(BaseEstimator):
    """A step before trees that read rows in single precision, whatever precision these have.

    XGBoost also reads the zeros of sparse rows as missing values.
    """

    def __init__(self, zeros_are_missing: bool) -> None:
        self.zeros_are_missing = zeros_are_missing


class _Whole(BaseEstimator):
    """A model with all inputs of its graph: columns of X, then groups and strata."""

    def __init__(self, model: BaseEstimator, n_columns: int, beside: dict[str, int]) -> None:
        self.model = model
        self.n_columns = n_columns  # number of inputs that are X
        self.beside = beside  # number of further inputs for each argument of ``predict``


def _classifier(model: BaseEstimator, inputs: list[Any], ops: Any) -> _Outputs:
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


def _steps(model: BaseEstimator) -> list[Any]:
    """Return the steps of a pipeline and of the pipelines in it, or any other model itself."""
    return [own for _, step in getattr(model, "steps", []) for own in _steps(step)] or [model]


KINDS: Mapping[type, Kind] = {
    ConstrainedERMClassifier: Kind(_classifier, ("label", "scores"), _certified_decisions),
    ConstrainedERMRegressor: Kind(one_number, ("prediction",)),
    FairDecisionClassifier: Kind(decisions, ("label", "margins"), models_inside, levels_inside),
    **{kind: own for add in functions_of_wings("onnx") for kind, own in add().items()},
}


def _number_type(inputs: list[Any]) -> Any:
    """Return the type of numbers: single precision if all numbers of the inputs have it."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType

    kinds = {type(variable.type) for variable in inputs} - {StringTensorType}
    return FloatTensorType if kinds == {FloatTensorType} else DoubleTensorType


def _used_inputs(scope: Any, model: BaseEstimator, inputs: list[Any], as_matrix: bool) -> list[Any]:
    """Return the inputs of the model: one matrix, or inputs of one column each.

    It is the latter if columns are texts, or if ``as_matrix`` is False, because the model inside
    chooses columns.
    """
    from skl2onnx.common.data_types import StringTensorType

    positions = model._model_positions
    if len(inputs) > 1 and positions is not None:
        inputs, positions = [inputs[i] for i in positions], None
    is_text = [isinstance(own.type, StringTensorType) for own in inputs]
    if (len(inputs) > 1 and not as_matrix) or (any(is_text) and positions is None):
        return inputs
    # Steps that choose among columns need to know the number of columns.
    its_type = StringTensorType if any(is_text) else _number_type(inputs)
    step = _Columns(positions)
    return [_declared(scope, "columns", step, inputs, its_type([None, model.model_features_.size]))]


def _declared(scope: Any, name: str, step: object, inputs: list[Any], its_type: Any) -> Any:
    """Add a step of one of the classes above to the graph; return its output."""
    operator = scope.declare_local_operator(f"Skfair{type(step).__name__}", step)
    operator.inputs = inputs
    operator.outputs.append(scope.declare_local_variable(name, its_type))
    return operator.outputs[0]


def _reads_columns(model: BaseEstimator) -> bool:
    """Whether a model, or the first step of a pipeline, chooses among columns by itself."""
    steps = getattr(model, "steps", None)
    return _reads_columns(steps[0][1]) if steps else isinstance(model, ColumnTransformer)


def _parse_inside(
    scope: Any, outer: BaseEstimator, model: BaseEstimator, inputs: list[Any], parsers: Any
) -> Any:
    """Parse a model inside another; return its second output, the probabilities or scores."""
    from skl2onnx._parse import _parse_sklearn

    *before, last = _steps(model)
    if type(last) in KINDS and isinstance(outer, FairDecisionClassifier):
        raise TypeError(
            f"{type(outer).__name__} has a {type(last).__name__} inside, whose converter returns "
            "no probabilities. Use the model with Python."
        )
    check_library(last)
    if type(model) not in KINDS:
        scope.add_options(id(last), {"zipmap": False})
    if type(last).__module__.startswith(_OF_SINGLE_PRECISION):
        is_booster = type(last).__module__.startswith("xgboost.")
        step = _InSingle(is_booster and _reads_sparse(scope, before))
        model = make_pipeline(*before, step, last)
    return _parse_sklearn(scope, model, inputs, custom_parsers=parsers)[1]


def _reads_sparse(scope: Any, before: list[Any]) -> bool:
    """Whether a model gets sparse rows, given the steps before it.

    Further steps may be in the pipeline around the fair decisions.
    """
    whole = getattr(scope, "skfair_whole", None)
    outside = [] if whole is None else _steps(whole.model)[:-1]
    for step in reversed([*outside, *before]):
        for name in ("sparse_output_", "sparse_output"):
            if hasattr(step, name):
                return bool(getattr(step, name))
    return False


def _parse_codes(
    scope: Any, model: BaseEstimator, argument: str, levels: GroupLevels, inputs: list[Any]
) -> Any:
    """Declare the numbers of the groups or strata of new rows; return their variable.

    They are read from inputs of their own, or from the columns of X that ``sensitive`` names.
    """
    from skl2onnx.common.data_types import Int64TensorType

    columns, position = getattr(scope, "skfair_beside", {}).get(argument), None
    if columns is None:
        asked = model._sensitive
        named = asked.columns if argument == SENSITIVE.argument else asked.control_features
        if named is None:
            raise ValueError(
                f"This {type(model).__name__} reads {argument} of new rows. Pass some of them, "
                f"to_onnx(model, X, {argument}=...), from which the types of the inputs are read."
            )
        position = _positions(model, named)
        columns = [inputs[k] for k in position] if len(inputs) > 1 else inputs
        position = position if len(inputs) == 1 else None
    its_type = Int64TensorType([None, levels.offsets.size - 1])
    return _declared(scope, "codes", _Groups(levels, position), columns, its_type)


def _positions(model: BaseEstimator, columns: Any) -> list[int]:
    """Return the positions of named or numbered columns in the X of ``fit``."""
    X: Any = np.empty((0, model.n_features_in_))
    if hasattr(model, "feature_names_in_"):
        import pandas as pd

        X = pd.DataFrame(X, columns=model.feature_names_in_)
    return column_positions(X, columns)


@cache
def _register() -> None:
    """Register the converters with skl2onnx, once.

    For each class of ``KINDS`` skl2onnx calls ``parse``, which declares inputs and outputs, then
    ``shape``, then ``convert``, which writes the operators.
    """
    import skl2onnx
    from skl2onnx._parse import _parse_sklearn
    from skl2onnx.common.data_types import (
        DoubleTensorType,
        FloatTensorType,
        Int64TensorType,
        StringTensorType,
    )

    def parse(scope: Any, model: BaseEstimator, inputs: Any, custom_parsers: Any = None) -> Any:
        kind = KINDS[type(model)]
        inside = [unwrapped(inner) for inner in kind.models(model)]
        used = _used_inputs(scope, model, inputs, not any(map(_reads_columns, inside)))
        operator = scope.declare_local_operator(f"Skfair{type(model).__name__}", model)
        operator.inputs = [
            _parse_inside(scope, model, inner, used, custom_parsers) for inner in inside
        ] or used
        for argument, levels in kind.levels(model).items():
            operator.inputs.append(_parse_codes(scope, model, argument, levels, inputs))
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

    def parse_whole(scope: Any, whole: _Whole, inputs: Any, custom_parsers: Any = None) -> Any:
        rows, others = inputs[: whole.n_columns], iter(inputs[whole.n_columns :])
        scope.skfair_whole = whole
        scope.skfair_beside = {
            argument: [next(others) for _ in range(n)] for argument, n in whole.beside.items()
        }
        kinds = {type(own.type) for own in rows} - {StringTensorType}
        if len(kinds) > 1:  # steps that join columns know one type of numbers only
            rows = [_in_double(scope, own) for own in rows]
        return _parse_sklearn(scope, whole.model, rows, custom_parsers=custom_parsers)

    def _in_double(scope: Any, column: Any) -> Any:
        if isinstance(column.type, DoubleTensorType | StringTensorType):
            return column
        its_type = DoubleTensorType([None, 1])
        return _declared(scope, column.raw_name, _Columns(None), [column], its_type)

    def shape(operator: Any) -> None:
        for output in operator.outputs:
            output.type.shape = [None] if output.raw_name == "label" else [None, None]

    def convert(scope: Any, operator: Any, container: Any) -> None:
        model, ops = operator.raw_operator, ops_of(container)
        outputs = KINDS[type(model)].convert(model, operator.inputs, ops)
        for output, values in zip(operator.outputs, outputs, strict=True):
            put(values, output, ops, scope, container)

    def convert_columns(scope: Any, operator: Any, container: Any) -> None:
        ops, positions = ops_of(container), operator.raw_operator.positions
        columns = operator.inputs
        if not isinstance(operator.outputs[0].type, StringTensorType):
            columns = [ops.number(variable) for variable in columns]
        rows = ops("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]
        if positions is not None:
            rows = ops("Gather", rows, np.asarray(positions, dtype=np.int64), axis=1)
        put(rows, operator.outputs[0], ops, scope, container)

    def convert_groups(scope: Any, operator: Any, container: Any) -> None:
        ops, step, columns = ops_of(container), operator.raw_operator, operator.inputs
        is_text = [isinstance(own.type, StringTensorType) for own in columns]
        if step.positions is not None:  # columns of one matrix
            is_text = is_text * len(step.positions)
            columns = [ops("Gather", columns[0], np.array([j]), axis=1) for j in step.positions]
        codes = group_codes(step.levels, list(zip(columns, is_text, strict=True)), ops)
        put(codes, operator.outputs[0], ops, scope, container)

    def shape_in_single(operator: Any) -> None:
        operator.outputs[0].type = FloatTensorType(operator.inputs[0].type.shape)

    def convert_to_single(scope: Any, operator: Any, container: Any) -> None:
        ops = ops_of(container)
        rows = ops.number(operator.inputs[0])
        if operator.raw_operator.zeros_are_missing:
            is_zero = ops("Equal", rows, np.zeros((1, 1)))
            rows = ops("Where", is_zero, np.full((1, 1), np.nan), rows)
        put(rows, operator.outputs[0], ops, scope, container)

    add = skl2onnx.update_registered_converter
    for kind in KINDS:
        add(kind, f"Skfair{kind.__name__}", shape, convert, parser=parse)
    add(_Whole, "Skfair_Whole", shape, convert, parser=parse_whole)
    add(_Columns, "Skfair_Columns", shape, convert_columns)
    add(_Groups, "Skfair_Groups", shape, convert_groups)
    add(_InSingle, "Skfair_InSingle", shape_in_single, convert_to_single)


def to_onnx(
    model: BaseEstimator,
    X: MatrixLike,
    *,
    sensitive_features: ColumnsLike | None = None,
    control_features: ColumnsLike | None = None,
    target_opset: int | Mapping[str, int] | None = None,
    options: Mapping[Any, Any] | None = None,
) -> Any:
    """Convert a fitted model, or a pipeline that ends in one, to an ONNX graph.

    The graph gives the same predictions as ``predict``, but without the prices of ``size_bounds``.
    Linear models, networks and ``FairKMeans`` can be converted, and so can a
    :class:`~skfair.classification.FairDecisionClassifier` if the models inside can be. Pass what
    ``predict`` gets: a group-aware ``FairDecisionClassifier`` reads the groups of new rows, as
    further inputs of the graph. The outputs of the graph are ``label`` and ``scores`` (or
    ``margins``, or ``distances``), or ``prediction``.

    Parameters
    ----------
    model : estimator
        A fitted estimator of skfair, or a fitted :class:`~sklearn.pipeline.Pipeline` that ends in
        one and whose other steps skl2onnx can convert.
    X : array-like of shape (n_samples, n_features)
        Some rows, from which the types of the inputs are read. For an array, the graph has one
        input ``X``. For a DataFrame, each column is one input. Sensitive columns of the model can
        be left out, unless decisions read the group there.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes), default=None
        The groups of these rows, if ``predict`` needs them and X does not hold them. Each attribute
        is one input of shape (n_samples, 1) with its name, after the inputs of X. If a column of X
        has the same name, the input is called ``sensitive_`` and the name. Numbers among which some
        are missing are inputs of double precision.
    control_features : array-like of shape (n_samples,) or (n_samples, n_attributes), default=None
        The strata of these rows, in the same way. The prefix is ``control_``.
    target_opset : int or dict, default=None
        Versions of the operators, as in ``skl2onnx.to_onnx``. If None, the newest versions that it
        supports are used. In any case, version 3 of the domain ``ai.onnx.ml`` is used unless a dict
        names another one, because converters of other libraries know no later version.
    options : dict, default=None
        Options of other converters, as in ``skl2onnx.to_onnx``.

    Returns
    -------
    graph : onnx.ModelProto
        The graph. Use ``graph.SerializeToString()`` to write it to a file that runtimes load.

    See Also
    --------
    trusted_types : Types to trust when a model is loaded by skops.

    Notes
    -----
    Graphs cannot raise. For a row whose group or stratum ``predict`` would refuse, the margins are
    NaN. Its label is "unknown group" if the classes are texts, and otherwise the smallest integer
    of 64 bits, -9223372036854775808.

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
        from skl2onnx.common.utils_sklearn import _process_options
    except ImportError as error:
        raise ImportError("to_onnx needs skl2onnx: pip install 'skfair-suite[onnx]'.") from error
    check_is_fitted(model)
    last = _steps(model)[-1]
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
    register_classifiers()
    rows = _rows(model, X)
    given = {"sensitive_features": sensitive_features, "control_features": control_features}
    beside = _types_beside(last, given, rows)
    if last is model and rows.shape[1] == model.model_features_.size:
        model = _of_model_columns(model, beside)
    width = getattr(model, "n_features_in_", rows.shape[1])
    if rows.shape[1] != width:
        hint = "" if getattr(last, "query_column", None) is None else " without the query column"
        raise ValueError(
            f"X has {rows.shape[1]} columns, but the graph of {type(last).__name__} reads "
            f"{width}. Pass X{hint} as the graph will get it."
        )
    types = types_of_rows(rows)
    whole = _Whole(model, len(types), {argument: len(own) for argument, own in beside.items()})
    return skl2onnx.convert_sklearn(
        whole,
        name=f"ONNX({type(model).__name__})",
        initial_types=[*types, *chain.from_iterable(beside.values())],
        target_opset=_versions(target_opset),
        options=_process_options(model, options),
        custom_conversion_functions=conversions(),
        custom_shape_calculators=SHAPES,
    )


def _rows(model: BaseEstimator, X: Any) -> Any:
    """Return X as a table or an array, with the columns of a table in the order of ``fit``."""
    X = native_table(X)
    if not hasattr(X, "columns"):
        return np.asarray(X)
    names = list(getattr(model, "feature_names_in_", X.columns))
    return X[names] if set(names) <= set(X.columns) else X


def _types_beside(
    model: BaseEstimator, given: dict[str, ColumnsLike | None], rows: Any
) -> dict[str, Typed]:
    """Return names and types of the inputs for groups and strata that a model reads, by argument.

    Arguments whose columns are in X have none. Raises for groups that ``predict`` would refuse.
    """
    beside, taken = {}, {str(name) for name in getattr(rows, "columns", ["X"])}
    for argument, levels in KINDS[type(model)].levels(model).items():
        values = given[argument]
        if values is None:
            continue
        is_lenient = argument == SENSITIVE.argument and model.unseen == "overall"
        levels.encode(values, _num_samples(rows), is_lenient, True)
        types, prefix = [], argument.partition("_")[0]
        columns = zip(levels.attributes, levels.columns(values), levels.levels, strict=True)
        for attribute, (_, own), known in columns:
            name = own_name(attribute, prefix, taken)
            taken.add(name)
            types.append((name, type_of_groups(own, known, attribute)))
        beside[argument] = types
    return beside


def _of_model_columns(model: BaseEstimator, beside: dict[str, Typed]) -> BaseEstimator:
    """Return a copy of a model that has no sensitive columns among its inputs."""
    left_out = model.n_features_in_ != model.model_features_.size
    missing = KINDS[type(model)].levels(model).keys() - beside.keys()
    if left_out and missing:
        raise ValueError(
            f"X has no column {listed(dropped_columns(model))}, where the decisions of this "
            f"{type(model).__name__} read the group. Pass X with it."
        )
    model = copy(model)
    if hasattr(model, "_used_weights"):
        model.coef_ = model._used_weights[None]
    if left_out:
        model._model_positions, model.n_features_in_ = None, model.model_features_.size
    return model


def _versions(target_opset: int | Mapping[str, int] | None) -> dict[str, int]:
    """Return the versions of the operators, with the domain ``ai.onnx.ml``."""
    from skl2onnx import __max_supported_opset__

    if target_opset is None:
        target_opset = __max_supported_opset__
    named = target_opset if isinstance(target_opset, Mapping) else {"": target_opset}
    return {"ai.onnx.ml": ML_VERSION, **named}


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
