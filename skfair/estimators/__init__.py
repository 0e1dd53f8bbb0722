"""The insides of the public estimators; a room for each family, and one for certified limits."""
