"""Fair clustering estimators."""
