"""Solvers of empirical risk minimisation under constraints."""
