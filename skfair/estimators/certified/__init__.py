"""Limits certified for unseen data: which candidates are tested, on which rows, and by whom."""
