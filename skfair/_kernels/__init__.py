"""Compiled inner loops. Every file is closed: it calls kernels of its own file only."""
