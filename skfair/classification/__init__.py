"""Fair classification estimators."""
