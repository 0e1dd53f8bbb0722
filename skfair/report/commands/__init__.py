"""The commands of ``python -m skfair`` that read files: a module for each product.

``wing.py`` defines the options of a command, and imports its module when it runs: ``audit-data`` is
in ``audit.py``, ``decide`` in ``choose.py``, and ``sample-size`` in ``year.py``. Each command

1. checks its options, and the files that it will write,
2. reads rows by :mod:`skfair.report.files`,
3. calls the function of Python that has the same name, or the monitor of another wing,
4. writes its files, prints a few lines, and returns its exit code.

Numbers of options are shares, also if they are written as 5%. ``verify.py`` computes the record of
an audit again, for ``skfair/records/record.py``.
"""
