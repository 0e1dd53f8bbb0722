"""Odd and bad input for every public function and estimator; ``make fuzz`` runs many cases.

A case is one call (for an estimator: ``fit`` and what may follow). It must work, or raise one of
the documented exceptions with a message that names what is wrong. :mod:`tests.fuzz.values` spoils
data, :mod:`tests.fuzz.parameters` knows arguments by their names, :mod:`tests.fuzz.cases` makes the
calls, and :mod:`tests.fuzz.verdict` judges them.

The attack has hard but valid cases, and checks all that a fit promises:
:mod:`tests.fuzz.hard_rows` draws rows, :mod:`tests.fuzz.families` draws fits and counts what they
keep, :mod:`tests.fuzz.attack` checks.
"""
