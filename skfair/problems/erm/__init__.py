"""Empirical risk minimisation under constraints, as the problem that solvers see."""
