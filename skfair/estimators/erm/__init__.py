"""The constrained estimators: from their parameters to a problem, its solution and its report."""
