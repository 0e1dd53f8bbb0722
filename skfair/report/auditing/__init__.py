"""The audit of predictions, with what only this product needs, and its records.

``audit`` and ``Audit.from_estimator`` (``audit.py``) are called by users, and ``audit_table`` by
``python -m skfair audit`` as well, which adds up the blocks of a file itself. An audit calls

1. :mod:`skfair.groups.cohort`, which makes a cohort of the columns. From here on, functions take
   the cohort,
2. :mod:`skfair.report.tables` to read it, or ``engine_numbers.py`` for numbers in an engine, and
   ``people.py`` before, if a preset counts each person once,
3. :mod:`skfair.report.tables` for the sums, and ``own_measures.py`` for metrics that the user has
   made, which get the rows that were read,
4. :mod:`skfair.report.tables` again for rates and gaps, and ``impact.py`` for the table of a
   preset,
5. :mod:`skfair.report.results`, which keeps and shows the tables.

Rates and their differences are shares, and means of numbers have the unit of the numbers. Later,
``Audit.record`` calls ``record.py``, which gets digests from ``recorded_columns.py``, and so does
the command ``verify``.
"""
