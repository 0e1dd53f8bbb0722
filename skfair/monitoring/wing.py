"""Monitors as a wing: a public package."""

NAMES = {"skfair": {"monitoring": ""}}
