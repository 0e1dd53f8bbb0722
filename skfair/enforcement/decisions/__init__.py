"""Decisions of any model under constraints on rates: score-space offsets and exact scans."""
