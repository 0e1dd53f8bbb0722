"""The Python source of a compiled function, and both of them for tests."""

import pytest


def as_python(kernel):
    """Return the function as Python runs it; with NUMBA_DISABLE_JIT=1 it is that already."""
    return getattr(kernel, "py_func", kernel)


def compiled_and_python(kernels):
    """Return a fixture that picks a kernel of a module by its name: compiled, then as Python."""

    @pytest.fixture(params=["compiled", "python"])
    def kernel(request):
        def pick(name):
            compiled = getattr(kernels, name)
            return compiled if request.param == "compiled" else as_python(compiled)

        return pick

    return kernel
