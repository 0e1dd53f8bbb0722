"""Audits: what predictions do to groups, as tables, as a page, and for pipelines.

The same from a shell: ``python -m skfair audit data.csv --help``.
"""

from skfair.report.audit import Audit, audit
from skfair.report.checks import Check
from skfair.report.less_discriminatory import Alternatives, alternatives
from skfair.report.slices import find_subgroups

__all__ = ["alternatives", "Alternatives", "audit", "Audit", "Check", "find_subgroups"]
