"""Empirical risk minimisation under rules."""
