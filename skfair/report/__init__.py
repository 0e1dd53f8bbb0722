"""Audits: what predictions do to groups, as tables, as a page, and for pipelines.

The same from a shell: ``python -m skfair audit data.csv --help``.
"""

from skfair.report.audit import Audit, audit
from skfair.report.checks import Check

__all__ = ["audit", "Audit", "Check"]
