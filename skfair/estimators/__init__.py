"""What the public estimators share; a room for each family, and one for certified limits."""
