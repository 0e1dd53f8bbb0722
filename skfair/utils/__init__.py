"""Shared helpers below everything else: groups, validation, history, registry, callbacks."""
