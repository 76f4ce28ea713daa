"""The decorator of every kernel: lazy, serial, ``nogil``, cached where possible."""

import numba


def kernel(function):
    """Compile a function on first call, without the GIL.

    The machine code is cached on disk where numba finds a folder that it can write,
    and is compiled anew in each process where it finds none: a read-only install with
    an unusable home works, only slower at the first call.

    Division by zero gives infinity or NaN, as in numpy, instead of the exception of
    Python, whose check would stand in every inner loop.
    """
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # "cannot cache function ...: no locator available"
        return numba.njit(**options)(function)
