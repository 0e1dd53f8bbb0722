"""Predictions of numbers moved until groups are alike."""
