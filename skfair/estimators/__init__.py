"""The steps of the public estimators: a folder for each family, and one for certified limits."""
