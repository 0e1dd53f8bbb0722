"""Solvers of empirical risk minimisation under rules."""
