"""Random numbers of tests: they depend on one global seed, on who draws them, and on a key.

``SKFAIR_TESTS_SEED`` is the global seed, which ``conftest.py`` reads. A test asserts what holds for
any of them.
"""

import os
import sys
from zlib import crc32

import numpy as np


def global_seed():
    """Return the seed of this run, a whole number."""
    return int(os.environ.get("SKFAIR_TESTS_SEED", "0"))


def seed_of(key=0, *, depth=1):
    """Return a seed of the function that calls, or of its module: equal keys give equal seeds."""
    frame = sys._getframe(depth)
    function = frame.f_code.co_qualname.partition(".<locals>")[0]
    name = f"{global_seed()} {frame.f_globals['__name__']} {function} {key}"
    return crc32(name.encode())


def generator(key=0):
    """Return a generator of random numbers for the function that calls, or for its module."""
    return np.random.default_rng(seed_of(key, depth=2))
