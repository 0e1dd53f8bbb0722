"""Eigen-solvers of fair spectral clustering."""
