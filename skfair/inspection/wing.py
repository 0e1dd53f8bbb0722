"""Pictures as a wing: a public package."""

NAMES = {"skfair": {"inspection": ""}}
