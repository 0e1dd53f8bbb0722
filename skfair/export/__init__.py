"""Fitted models for programs that have no Python: ONNX graphs (extra ``onnx``)."""

from skfair.export.onnx import to_onnx

__all__ = ["to_onnx"]
