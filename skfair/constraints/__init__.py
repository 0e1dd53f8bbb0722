"""Fairness rules in score space: one file per rule."""
