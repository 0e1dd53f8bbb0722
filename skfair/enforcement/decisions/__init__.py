"""Decisions of any model under constraints on rates.

``search`` finds the decisions of largest utility within the limits, by thresholds of groups
(``windows``), by offsets (``offsets``, which uses ``dual``, ``rows`` and ``lines``), by ``repair``
and by ``mixtures``. ``levels`` repeats the search for objectives such as F1. All of them describe
the groups of rows by ``shares``.
"""
