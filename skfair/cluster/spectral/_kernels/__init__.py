"""Kernels of spectral clustering: affinities, products, cuts."""
