"""Monitors as a wing, which ``skfair.utils.wings`` finds: it adds ``skfair.monitoring``.

The empty text says that the name is this package, not something in one of its modules.
:func:`verifiers` is for ``python -m skfair verify``, and :func:`monitors` for the command
``monitor``, which reads files as audits do (``skfair/report/commands/monitor.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skfair.records.record import Verifier

# Options of ``verify`` about rows and models, which records of monitors do not have
_OF_ROWS = ("key", "model_file", "table", "query", "encoding", "decimal")
NAMES = {"skfair": {"monitoring": ""}}


def verifiers() -> dict[str, Verifier]:
    """Return what compares the record of a monitor with the saved monitor, by its kind."""

    def verify(record: Any, options: Any) -> Any:
        from skfair.monitoring import DisparityMonitor
        from skfair.monitoring.state import parts_of
        from skfair.records.record import unused

        lacks = dict.fromkeys(_OF_ROWS, "a record of a monitor has none")
        return parts_of(DisparityMonitor.load(options.data)), list(unused(options, lacks))

    return {"skfair record of a monitor": verify}


def monitors() -> Any:
    """Return the class of monitors."""
    from skfair.monitoring import DisparityMonitor

    return DisparityMonitor
