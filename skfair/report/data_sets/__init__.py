"""The audit of a data set before training.

``audit_data`` (``data_audit.py``) is called by users and by ``python -m skfair audit-data``. It
reads the rows by :mod:`skfair.report.tables`, makes its four tables, of which ``proxies.py`` makes
those about columns that predict the group, and returns them in a class of
:mod:`skfair.report.results`. Shares of groups and rates lie between 0 and 1, and so does the area
under the curve of a proxy. ``data_schema.json`` is the form of ``DataAudit.to_dict``.
"""
