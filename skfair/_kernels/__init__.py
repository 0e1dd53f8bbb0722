"""Compiled inner loops of the core.

Every file is closed: its kernels call only kernels of the same file. numba compiles a kernel anew
when its own file changes, and would not see a change in another one. ``declaring`` has the
decorator.
"""
