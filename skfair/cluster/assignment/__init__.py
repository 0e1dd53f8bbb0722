"""Rows are assigned to clusters at least cost, within limits on the groups of each cluster."""
