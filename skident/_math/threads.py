"""Threads over blocks of rows, as many as numpy's own products may use."""

import contextlib
import functools
import threading
from concurrent.futures import ThreadPoolExecutor

import threadpoolctl

# Fewer numbers than this are not worth waking a thread for.
_LEAST_ENTRIES = 2**18
_MOST_THREADS = 16
# Held by the solver that runs threads of its own.
_RUNNING = threading.Lock()


@functools.cache
def _blas():
    return threadpoolctl.ThreadpoolController().select(user_api="blas")


@contextlib.contextmanager
def workers(n_entries):
    """Yield a ``map`` over blocks of rows that uses threads if it pays.

    Results come in order, so that sums do not depend on the number of threads: that is
    what the BLAS library of numpy may use (``OMP_NUM_THREADS``, ``threadpoolctl``, or
    the share of a joblib worker), at most 16. Meanwhile that library uses one thread a
    product. Of solvers in parallel threads of the caller one runs threads of its own.

    Parameters
    ----------
    n_entries : int
        How many numbers the rows hold.
    """
    if n_entries < _LEAST_ENTRIES or not _RUNNING.acquire(blocking=False):
        yield map
        return
    try:
        before = min((library["num_threads"] for library in _blas().info()), default=1)
        if before == 1:
            yield map
            return
        with (
            _blas().limit(limits=1),
            ThreadPoolExecutor(min(before, _MOST_THREADS)) as pool,
        ):
            yield pool.map
    finally:
        _RUNNING.release()
