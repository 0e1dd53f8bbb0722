"""Clusterings whose groups are in proportion."""
