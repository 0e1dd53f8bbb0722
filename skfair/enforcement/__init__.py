"""Keeping promises exactly: strict outer loops, thresholds, repaired scores."""
