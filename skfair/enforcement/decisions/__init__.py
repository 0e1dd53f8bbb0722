"""Decisions of any model under rules on rates: score-space prices and exact scans."""
