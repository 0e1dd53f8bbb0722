"""Limits for unseen data: paths of decisions, and how they are walked."""
