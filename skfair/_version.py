"""The version of skfair, read by the build and by users."""

__version__ = "0.1.0rc1"
