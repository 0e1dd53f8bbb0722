"""Kernels of assignments: distances with prices, moves of single rows."""
