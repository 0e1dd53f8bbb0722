"""Files that others check later: records of evidence, and the memo of a committee's decision.

Audits and monitors write records, and the page of a committee writes its memo. Functions and
commands of ``python -m skfair`` read these files again. The package knows neither groups nor rows:
it gets plain data that can be written as JSON.

1. ``decision_memo.py`` is used first: the page of a committee computes the checksum of its memo.
   Monitors and the command ``year`` call ``read_memo`` for its limits. The checks of audits
   and the command ``decide`` call ``open_memo``, because they read more of the memo than its
   limits. Limits are shares: 5% is 0.05.
2. ``record.py`` follows: an audit or a monitor passes its parts to ``write_record``, which adds the
   names and SHA-256 of the files that came before, such as the memo, and its own checksum.
3. ``python -m skfair verify`` calls ``run_verify``, which asks the wing that wrote the record to
   compute the parts again, and compares them.
"""
