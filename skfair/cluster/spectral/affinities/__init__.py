"""Affinities: one file for each family, found by the registry of ``base.py``."""
