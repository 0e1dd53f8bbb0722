"""Limits kept by scores that are trained: smooth problems in rounds, judged by true values."""
