"""The audit of predictions, with what only this product needs, and its records.

``audit`` and ``Audit.from_estimator`` (``audit.py``) are called by users, and ``audit_table`` by
``python -m skfair audit`` as well, which adds up the blocks of a file itself. An audit calls

1. ``people.py``, if a preset counts each person once,
2. :mod:`skfair.report.tables`, or ``engine_numbers.py`` for numbers in an engine, for the sums,
3. ``own_measures.py`` for metrics that the user has made,
4. :mod:`skfair.report.tables` again for rates and gaps, and ``impact.py`` for the table of a
   preset,
5. :mod:`skfair.report.results`, which keeps and shows the tables.

Rates and their differences are shares, and means of numbers have the unit of the numbers. Later,
``Audit.record`` calls ``record.py``, which gets digests from ``recorded_columns.py``, and so does
the command ``verify``.
"""
