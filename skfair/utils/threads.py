"""Threads of the linear algebra library, where they do harm."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


@functools.cache
def _controller() -> ThreadpoolController:
    """Find the libraries that are loaded, once: it takes milliseconds."""
    return ThreadpoolController()


def one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that makes many small products: each uses one thread.

    Threads of a product that takes less than a millisecond wait for each other longer than they
    work, and where other programs run they wait for those: clustering 300,000 rows on two busy
    cores took 40 to 56 s instead of 12, a constrained classifier of 140 columns 3.0 s instead of
    0.4. On two idle cores one thread was no slower either, from 10 to 800 columns.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.utils.threads import one_blas_thread
    >>> @one_blas_thread
    ... def product(a, b):
    ...     return a @ b
    >>> product(np.eye(2), np.ones(2))
    array([1., 1.])
    """

    @functools.wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited
