"""Limits for unseen data: paths of decisions, and the tests of their steps.

``offset_path`` lays out a path of offsets with the help of ``gap_solver``, and
``walk`` tests the decisions of its steps in order.
"""
