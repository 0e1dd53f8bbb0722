"""The command line: ``python -m skfair audit``, ``data`` and ``warm``."""
