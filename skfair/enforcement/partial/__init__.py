"""Limits within an interval of scores: what is promised, and how scores are repaired."""
