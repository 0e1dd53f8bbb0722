"""Keeping limits exactly: a room for each kind of model, thresholds and rounds that they share."""
