"""Kernels of ``cost_table.py``, ``points.py`` and ``placement.py``: distances, prices, moves."""
