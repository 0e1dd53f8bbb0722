"""Rows that lie in the partitions of Dask collections."""
