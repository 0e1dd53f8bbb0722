"""Solvers of clustering under limits."""
