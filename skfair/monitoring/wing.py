"""Monitors as a wing, which ``skfair.utils.wings`` finds: it adds ``skfair.monitoring``.

The empty text says that the name is this package, not something in one of its modules.
"""

NAMES = {"skfair": {"monitoring": ""}}
