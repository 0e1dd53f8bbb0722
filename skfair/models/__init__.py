"""Score models: parameters to scores, and the pull-back from scores to parameters."""
