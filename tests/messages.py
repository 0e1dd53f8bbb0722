"""What is said of a wrong call, or of one to be careful with, as a table: error, words, call."""

import pytest


def messages(*rows):
    """Make a test of rows ``(error or warning, words as a regular expression, call)``."""

    def test(kind, words, call):
        expected = pytest.warns if issubclass(kind, Warning) else pytest.raises
        with expected(kind, match=words):
            call()

    names = [f"{number}-{kind.__name__}" for number, (kind, _, _) in enumerate(rows)]
    return pytest.mark.parametrize(("kind", "words", "call"), rows, ids=names)(test)
