"""The decorator of every kernel: lazy, serial, ``nogil``, cached where possible."""

import os

import numba


def kernel(function):
    """Compile a function on first call, without the GIL.

    The machine code is cached in the user's cache folder (or where ``NUMBA_CACHE_DIR``
    says), not in the package, which an uninstall could then not remove; failing that
    wherever numba can write, and where it can nowhere it is compiled anew in each
    process: a read-only install with an unusable home works, only slower at first.

    Division by zero gives infinity or NaN, as in numpy, instead of the exception of
    Python, whose check would stand in every inner loop.
    """
    # Nothing calls a kernel from C, and the wrapper for that takes a tenth of the time.
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    chosen = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = chosen or _user_cache()
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # "cannot cache function ...: no locator available"
        return numba.njit(**options)(function)
    finally:
        numba.config.CACHE_DIR = chosen


def _user_cache():
    """Return the user's cache folder for this package, or nothing without a home."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "skident") if os.path.isabs(base) else ""
