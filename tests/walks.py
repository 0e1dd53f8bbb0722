"""Which functions of the package a call enters before its arithmetic begins."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import skfair

_PACKAGE = str(Path(skfair.__file__).parent)


class _Arrived(BaseException):
    """The arithmetic begins; nothing of the package catches this."""


def functions_before(arithmetic: Callable[..., Any], call: Callable[[], Any]) -> list[str]:
    """Return the distinct functions of the package that ``call`` enters before ``arithmetic``.

    ``arithmetic`` is a function written in Python, of the package or of a library; calling it ends
    the walk. Lambdas and comprehensions are parts of the function that they stand in.
    """
    goal, entered = _code_of(arithmetic), dict[str, None]()

    def watch(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call":
            return
        if code is goal:
            raise _Arrived
        if code.co_filename.startswith(_PACKAGE) and not code.co_qualname.endswith(">"):
            entered[_name_of_code(code)] = None

    previous = sys.getprofile()
    sys.setprofile(watch)
    try:
        call()
    except _Arrived:
        return list(entered)
    finally:
        sys.setprofile(previous)
    raise AssertionError(f"The call never reached {arithmetic.__qualname__}.")


def name_of(function: Callable[..., Any]) -> str:
    """Return what :func:`functions_before` calls a function."""
    return _name_of_code(_code_of(function))


def _name_of_code(code: CodeType) -> str:
    return f"{Path(code.co_filename).stem}.{code.co_qualname}"


def _code_of(function: Callable[..., Any]) -> CodeType:
    """Return the code of a function; decorators are looked through."""
    inner: Any = function
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    return inner.__code__
