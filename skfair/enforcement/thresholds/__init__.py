"""The best thresholds within limits: exact, over rows in memory, in bins, or elsewhere."""
