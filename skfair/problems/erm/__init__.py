"""Empirical risk minimisation under constraints."""
