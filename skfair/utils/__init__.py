"""Helpers for all other folders: validation, factorizing, registry, history, warnings, Dask."""
