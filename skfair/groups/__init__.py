"""Sensitive features: read here, and nowhere else."""
