"""What is said of a wrong call, or of one to be careful with, as a table: error, words, call."""

from functools import partial, wraps

import pytest


def messages(*rows):
    """Make a test of rows ``(error or warning, words as a regular expression, call)``."""

    def test(kind, words, call):
        expected = pytest.warns if issubclass(kind, Warning) else pytest.raises
        with expected(kind, match=words):
            call()

    names = [f"{number}-{kind.__name__}" for number, (kind, _, _) in enumerate(rows)]
    return pytest.mark.parametrize(("kind", "words", "call"), rows, ids=names)(test)


def of_calls(function, *rows, error=ValueError):
    """List such rows for one function: the words, and the arguments that are wrong."""
    return [(error, words, partial(function, **wrong)) for words, wrong in rows]


def later(function):
    """Let calls be made by the test, not by the table."""
    return wraps(function)(lambda *args, **options: partial(function, *args, **options))
