"""Decisions of any model under constraints on rates: score-space prices and exact scans."""
