"""What the public estimators of a family share."""
