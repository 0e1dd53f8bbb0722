"""Kernels of the papers safairkm (``swap_rows``, ``swaps``) and fair_spectral_dc (FFSC)."""
