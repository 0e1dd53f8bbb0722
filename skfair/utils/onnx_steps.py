"""Converters to ONNX of steps that skl2onnx does not convert, or not for all rows.

:func:`register_classifiers` adds boosters to skl2onnx: CatBoost by its own export, LightGBM and
XGBoost by the package onnxmltools. A converter that the user has registered stays.

:func:`conversions` and :data:`SHAPES` replace converters of skl2onnx in the calls of ``to_onnx``
only. Its converter of ``HistGradientBoostingClassifier`` raises, or compares in single precision.
Its imputer takes no numbers in double precision and no missing texts. ONNX has no missing text, so
a graph gets what ``str`` makes of it: "nan" or "None". ONNX Runtime does that with NaN and None in
arrays of Python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer

from skfair.utils.onnx_kinds import onnx_classes
from skfair.utils.onnx_ops import BOOL, ops_of, put
from skfair.utils.onnx_trees import catboost_trees, hist_gradient_boosting

# The versions of operators in the domain ai.onnx.ml that all converters can write
ML_VERSION = 3
# Functions of onnxmltools that convert boosters: module, function and name of the operator
_OF_ONNXMLTOOLS = {
    ("lightgbm", "LGBMClassifier"): (
        "onnxmltools.convert.lightgbm.operator_converters.LightGbm",
        "convert_lightgbm",
        "LightGbmLGBMClassifier",
    ),
    ("xgboost", "XGBClassifier"): (
        "onnxmltools.convert.xgboost.operator_converters.XGBoost",
        "convert_xgboost",
        "XGBoostXGBClassifier",
    ),
    ("xgboost", "XGBRFClassifier"): (
        "onnxmltools.convert.xgboost.operator_converters.XGBoost",
        "convert_xgboost",
        "XGBoostXGBRFClassifier",
    ),
}
_OPTIONS = {"zipmap": [True, False, "columns"], "nocl": [True, False]}


def register_classifiers() -> None:
    """Register classifiers whose libraries are imported, unless they are registered already."""
    kind = getattr(sys.modules.get("catboost"), "CatBoostClassifier", None)
    if kind is not None and not _is_registered(kind):
        convert = _by_trees(catboost_trees)
        _register(kind, "SkfairCatBoostClassifier", convert, _parse_classifier)
    if find_spec("onnxmltools") is None:
        return
    for (library, name), (module, function, alias) in _OF_ONNXMLTOOLS.items():
        kind = getattr(sys.modules.get(library), name, None)
        if kind is not None and not _is_registered(kind):
            _register(kind, alias, getattr(import_module(module), function))


def check_library(model: Any) -> None:
    """Raise if the converter of a model is in a package that is not installed."""
    library = type(model).__module__.partition(".")[0]
    if (library, type(model).__name__) in _OF_ONNXMLTOOLS and not _is_registered(type(model)):
        raise ImportError(
            f"The converter of {type(model).__name__} is in onnxmltools, which is not installed: "
            "pip install onnxmltools."
        )


def _is_registered(kind: type) -> bool:
    from skl2onnx._supported_operators import sklearn_operator_name_map

    return kind in sklearn_operator_name_map


def _register(
    kind: type, alias: str, convert: Callable[..., None], parser: Callable[..., Any] | None = None
) -> None:
    import skl2onnx
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes

    shapes = calculate_linear_classifier_output_shapes
    skl2onnx.update_registered_converter(
        kind, alias, shapes, convert, parser=parser, options=_OPTIONS
    )


def _parse_classifier(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare label and probabilities of a class that does not say that it is a classifier."""
    from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType

    operator = scope.declare_local_operator(f"Skfair{type(model).__name__}", model)
    operator.inputs = inputs
    is_text = onnx_classes(model.classes_).dtype.kind == "U"
    for name, its_type in (
        ("label", StringTensorType if is_text else Int64TensorType),
        ("probabilities", FloatTensorType),
    ):
        operator.outputs.append(scope.declare_local_variable(name, its_type()))
    return operator.outputs


def _by_trees(trees: Callable[..., Any]) -> Callable[..., None]:
    """Return the converter of a classifier whose probabilities ``trees`` returns."""

    def convert(scope: Any, operator: Any, container: Any) -> None:
        ops, model = ops_of(container), operator.raw_operator
        columns = [ops.number(variable) for variable in operator.inputs]
        rows = ops("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]
        chances = trees(model, rows, ops)
        number = ops("ArgMax", chances, axis=1, keepdims=0)
        labels = ops("Gather", onnx_classes(model.classes_), number, axis=0)
        put(labels, operator.outputs[0], ops, scope, container)
        put(chances, operator.outputs[1], ops, scope, container)

    return convert


def conversions() -> dict[type, Callable[..., None]]:
    """Return the converters that replace those of skl2onnx in the calls of ``to_onnx``."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return {
        SimpleImputer: _impute,
        HistGradientBoostingClassifier: _by_trees(hist_gradient_boosting),
    }


def _impute(scope: Any, operator: Any, container: Any) -> None:
    ops, model = ops_of(container), operator.raw_operator
    is_text = _is_text(operator.inputs)
    columns = operator.inputs if is_text else [ops.number(own) for own in operator.inputs]
    rows = ops("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]
    is_missing = _is_missing(rows, model.missing_values, is_text, ops)
    kept, fill = _filled(model, np.str_ if is_text else np.float64)
    result = ops("Where", is_missing, fill[None], rows)
    result = ops("Gather", result, kept, axis=1)
    if model.add_indicator:
        marks = ops("Gather", is_missing, model.indicator_.features_.astype(np.int64), axis=1)
        result = ops("Concat", result, ops.number(marks), axis=1)
    put(result, operator.outputs[0], ops, scope, container)


def _shape_of_imputed(operator: Any) -> None:
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType

    model, kinds = operator.raw_operator, {type(own.type) for own in operator.inputs}
    if model.add_indicator and _is_text(operator.inputs):
        raise ValueError(
            "SimpleImputer(add_indicator=True) of texts has no ONNX converter. Leave it out, "
            "and fill missing texts by a word of their own, SimpleImputer(strategy='constant')."
        )
    its_type = DoubleTensorType
    if _is_text(operator.inputs):
        its_type = StringTensorType
    elif kinds == {FloatTensorType}:
        its_type = FloatTensorType
    n_kept = _filled(model, object)[0].size
    if model.add_indicator:
        n_kept += model.indicator_.features_.size
    n_rows = operator.inputs[0].get_first_dimension()
    operator.outputs[0].type = its_type([n_rows, n_kept])


SHAPES: dict[type, Callable[[Any], None]] = {SimpleImputer: _shape_of_imputed}


def _is_text(inputs: list[Any]) -> bool:
    from skl2onnx.common.data_types import StringTensorType

    return any(isinstance(own.type, StringTensorType) for own in inputs)


def _filled(model: SimpleImputer, dtype: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the positions of the columns that an imputer keeps, and the value for each column.

    A column without any value in ``fit`` has no statistic, and is left out unless
    ``keep_empty_features`` or a constant fills it.
    """
    fill = np.asarray(model.statistics_)
    is_kept = np.array([own == own and own is not None for own in fill.tolist()])
    blank = "" if dtype is np.str_ else 0.0
    values = [own if known else blank for own, known in zip(fill.tolist(), is_kept, strict=True)]
    return np.flatnonzero(is_kept), np.array(values, dtype=dtype)


def _is_missing(rows: Any, missing: Any, is_text: bool, ops: Any) -> Any:
    """Return which values of a matrix are the missing one of an imputer."""
    if is_text:
        words = {"keys_strings": [str(missing)], "values_int64s": [1], "default_int64": 0}
        return ops("Cast", ops("LabelEncoder_2", rows, **words), to=BOOL)
    if missing is None or missing != missing:  # NaN, or a missing value of another library
        return ops("IsNaN", rows)
    return ops("Equal", rows, np.array([[float(missing)]]))
