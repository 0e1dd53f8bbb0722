"""Pictures as a wing, which ``skfair.utils.wings`` finds: it adds ``skfair.inspection``.

The empty text says that the name is this package, not something in one of its modules.
"""

NAMES = {"skfair": {"inspection": ""}}
