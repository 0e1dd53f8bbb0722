"""Compiled kernels of the algorithms of papers."""
