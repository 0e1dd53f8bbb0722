"""Affinities and normalised cuts."""
