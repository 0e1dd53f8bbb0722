"""Limits certified for unseen data: the tested candidates, their rows, and their tests."""
