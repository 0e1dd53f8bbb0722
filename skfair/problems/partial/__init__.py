"""Rules within percentile intervals."""
