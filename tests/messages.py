"""What is said of a wrong call, or of one to be careful with, as a table: error, words, call.

A remedy that a message writes as a setting, such as "Pass min_balance=None", is applied if the call
is a ``partial``. The call must then pass, or say something else.
"""

import ast
import re
import warnings
from functools import partial, wraps
from inspect import Parameter, signature

import numpy as np
import pytest

# A setting that a message tells to write: a verb, the name of an argument, and its value
REMEDY = re.compile(
    r"\b(?:pass|use|set|write|or)\s+(\w+)="
    r"('[^']*'|\"[^\"]*\"|True|False|None|numpy\.nan|-?\d+(?:\.\d+)?\b(?!\.\.))",
    re.IGNORECASE,
)


def messages(*rows):
    """Make a test of rows ``(error or warning, words as a regular expression, call)``."""

    def test(kind, words, call):
        if issubclass(kind, Warning):
            with pytest.warns(kind, match=words):
                call()
            return
        with pytest.raises(kind, match=words) as caught:
            call()
        if isinstance(call, partial):
            follow_remedies(call, str(caught.value))

    names = [f"{number}-{kind.__name__}" for number, (kind, _, _) in enumerate(rows)]
    return pytest.mark.parametrize(("kind", "words", "call"), rows, ids=names)(test)


def follow_remedies(call, said, seen=()):
    """Apply each setting that a message tells to write; no answer may lead back."""
    for name, value in settings_in(call, said):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                partial(call, **{name: value})()
        except Exception as error:
            again = str(error)
            assert again not in (said, *seen), f"{name}={value!r} leads back: {again}"
            if len(seen) < 2:
                follow_remedies(partial(call, **{name: value}), again, (said, *seen))


def settings_in(call, said):
    """List the (argument, value) in a message that the function of a call takes by name."""
    parameters = signature(call.func).parameters
    takes_any = any(own.kind is Parameter.VAR_KEYWORD for own in parameters.values())
    by_position = list(parameters)[: len(call.args)]
    return [
        (name, np.nan if text == "numpy.nan" else ast.literal_eval(text))
        for name, text in REMEDY.findall(said)
        if (name in parameters or takes_any) and name not in by_position
    ]


def of_calls(function, *rows, error=ValueError):
    """List such rows for one function: the words, and the arguments that are wrong."""
    return [(error, words, partial(function, **wrong)) for words, wrong in rows]


def later(function):
    """Let calls be made by the test, not by the table."""
    return wraps(function)(lambda *args, **options: partial(function, *args, **options))
