"""Reproducible comparisons; each module prints a table and writes JSON (python -m benchmarks)."""
