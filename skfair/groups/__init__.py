"""Sensitive features, which only this folder interprets, and sums over groups of rows."""
