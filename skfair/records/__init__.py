"""Files that others check later: records of evidence, and the memo of a committee's decision.

Audits, monitors and the page of a committee write these files, and commands of ``python -m skfair``
read them again. The package knows neither groups nor rows: it gets plain data, as JSON holds them.

1. ``decision_memo.py`` is used first: the page of a committee computes the checksum of its memo,
   and audits and monitors call ``read_memo`` for the limits. Limits are shares: 5% is 0.05.
2. ``record.py`` follows: an audit or a monitor passes its parts to ``write_record``, which adds the
   files before the record, such as the memo, and a checksum.
3. ``python -m skfair verify`` calls ``run_verify``, which asks the wing that wrote the record to
   compute the parts again, and compares them.
"""
