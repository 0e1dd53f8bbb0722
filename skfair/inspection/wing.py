"""Pictures as a wing, which ``skfair.utils.wings`` finds: it adds ``skfair.inspection``.

The empty text means that the name is this package, and not an object in one of its modules.
"""

NAMES = {"skfair": {"inspection": ""}}
