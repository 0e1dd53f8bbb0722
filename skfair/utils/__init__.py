"""Shared helpers below everything else: validation, factorizing, registry, history, warnings."""
