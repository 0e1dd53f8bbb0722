"""Spectral clustering under limits: affinities, eigenvectors, rounding to balanced labels."""
