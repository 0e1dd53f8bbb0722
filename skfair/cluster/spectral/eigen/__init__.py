"""Eigen-solvers of fair spectral clustering, found by name in the registry of ``base.py``."""
