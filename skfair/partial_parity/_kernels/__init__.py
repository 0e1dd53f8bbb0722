"""Kernels of partial parity: smooth steps, sums over pairs, and the middle of groups."""
