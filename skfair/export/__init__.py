"""Fitted models for other programs: ONNX graphs (extra ``onnx``), and files of skops and MLflow."""

from skfair.export.onnx import to_onnx, trusted_types

__all__ = ["to_onnx", "trusted_types"]
