"""The estimators of partial parity: from their parameters to a problem, and predictions."""
