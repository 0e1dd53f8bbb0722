"""Kernels of spectral clustering: affinities, products with weights, moves that lower a cut."""
