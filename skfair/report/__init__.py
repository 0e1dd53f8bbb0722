"""Audits: the effects of predictions on groups as tables, as a page, and for pipelines.

The same from a shell: ``python -m skfair audit data.csv --help``.
"""

from typing import TYPE_CHECKING

from skfair.report.alternatives_search import search_alternatives
from skfair.report.audit import Audit as Audit
from skfair.report.audit import audit
from skfair.report.data_audit import DataAudit as DataAudit
from skfair.report.data_audit import audit_data
from skfair.report.less_discriminatory import alternatives
from skfair.report.subgroups import find_subgroups
from skfair.utils.other_names import other_names

if not TYPE_CHECKING:
    __getattr__ = other_names(__name__)

__all__ = [
    "alternatives",
    "audit",
    "audit_data",
    "find_subgroups",
    "search_alternatives",
]
