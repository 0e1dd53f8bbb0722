"""Audits: the effects of predictions on groups as tables, as a page, and for pipelines.

The same from a shell: ``python -m skfair audit data.csv --help``.

Four products have a room each: audits of predictions (``auditing``), audits of data sets
(``data_sets``), the page on which a committee chooses a limit (``choosing``), and comparisons of
models (``alternative_models``). They do not import each other. They share ``tables``, which
computes numbers from rows, and ``results``, which makes pages from numbers. ``find_subgroups`` is
in ``tables``, because audits search subgroups, too. ``commands`` runs all products from a shell but
``alternative_models``, and reads rows by ``files``.
"""

from typing import TYPE_CHECKING

from skfair.report.alternative_models.less_discriminatory import alternatives
from skfair.report.alternative_models.search import search_alternatives
from skfair.report.auditing.audit import Audit as Audit
from skfair.report.auditing.audit import audit
from skfair.report.data_sets.data_audit import DataAudit as DataAudit
from skfair.report.data_sets.data_audit import audit_data
from skfair.report.tables.subgroups import find_subgroups
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
