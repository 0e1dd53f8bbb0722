"""The Python source of a compiled function."""


def as_python(kernel):
    """Return the function as Python runs it; with NUMBA_DISABLE_JIT=1 it is that already."""
    return getattr(kernel, "py_func", kernel)
