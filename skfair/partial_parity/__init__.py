"""Limits within intervals of ranks: models of scores, and maps of the scores of other models."""
