"""Kernels of fits within intervals: steps and pairs of scores, and the middle of groups."""
