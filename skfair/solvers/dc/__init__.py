"""Solvers of problems whose parts are differences of convex functions."""
