"""Operators of ONNX for the converters of :mod:`skfair.export`, by the algebra of skl2onnx."""

from __future__ import annotations

from typing import Any

import numpy as np

# The numbers of types: single precision, integers of 64 bits, truth values, double precision
FLOAT, INTEGER, BOOL, DOUBLE = 1, 7, 9, 11


class Ops:
    """ONNX operators of one version, for numbers of double precision."""

    def __init__(self, version: int) -> None:
        from skl2onnx.algebra import onnx_ops

        self._ops, self.version = onnx_ops, version

    def number(self, values: Any) -> Any:
        """Return an expression that casts values, numbers of any type, to double precision."""
        return self("Cast", values, to=DOUBLE)

    def sums(self, values: Any, n_columns: int) -> Any:
        """Return the sum of each row of a matrix with this many columns."""
        return self("MatMul", values, np.ones((n_columns, 1)))

    def tensor(self, values: Any) -> Any:
        """Return a vector in double precision as an attribute of an operator."""
        from onnx.helper import make_tensor

        return make_tensor("values", DOUBLE, [len(values)], np.asarray(values, dtype=np.float64))

    def __call__(self, name: str, *inputs: Any, **attributes: Any) -> Any:
        """Apply an operator.

        A name such as "LabelEncoder_2" asks for version 2; otherwise the version of the graph is
        used.
        """
        version = int(name.partition("_")[2] or self.version)
        return getattr(self._ops, f"Onnx{name}")(*inputs, op_version=version, **attributes)


def ops_of(container: Any) -> Ops:
    """Return the operators for a graph that skl2onnx writes."""
    return Ops(container.target_opset)


def put(values: Any, output: Any, ops: Ops, scope: Any, container: Any) -> None:
    """Cast an expression to the type of an output, and add it to the graph as this output.

    ``output`` is a variable of skl2onnx. Integers and texts are not cast.
    """
    from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType, StringTensorType

    if not isinstance(output.type, Int64TensorType | StringTensorType):
        is_double = isinstance(output.type, DoubleTensorType)
        values = ops("Cast", values, to=DOUBLE if is_double else FLOAT)
    ops("Identity", values, output_names=[output]).add_to(scope, container)
