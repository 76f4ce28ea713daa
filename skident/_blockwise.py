"""Checked rows from one table or from blocks of it, of which empty ones are skipped."""

import contextlib

import numpy as np
from sklearn.utils import gen_batches

from skident._math.blocks import LazyBlocks, as_blocks
from skident._validation import FLOATS, as_rows, validate_rows

# Numbers in a piece of a table that a function is applied to, and that is widened for
# passes in parallel.
_PIECE_ENTRIES = 2**18
_WIDENED_ENTRIES = 2**20


def as_source(estimator, X):
    """Return the rows of a fit, checked, as a sequence of blocks, and their number.

    Parameters
    ----------
    estimator : BaseEstimator
        Gets ``n_features_in_`` and ``feature_names_in_``.
    X : array-like of shape (n_samples, n_features), or blocks of rows
        At least two rows.

    Returns
    -------
    source : sequence of ndarray of shape (n_block_rows, n_features)
        Fetched and checked whenever they are asked for.
    n_samples : int

    Raises
    ------
    ValueError
        As :func:`validate_rows`, naming the block.
    """
    blocks = as_blocks(X)
    if blocks is None:
        X = validate_rows(estimator, X, reset=True, min_samples=2, dtype=None)
        return _as_floats(X), X.shape[0]
    kept, count = [], 0
    for k, block in _filled(blocks):
        with _named(k):
            rows = validate_rows(estimator, block, reset=not kept, name=f"X[{k}]")
        count += rows.shape[0]
        kept.append(k)
    if count < 2:
        raise ValueError(f"Found {count} sample(s) in X: a minimum of 2 is required.")
    return LazyBlocks(len(kept), lambda k: as_rows(blocks[kept[k]], name="X")), count


def by_blocks(X, function, check):
    """Apply a function to checked rows, block by block if they come so.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or blocks of rows
        The rows.
    function : callable
        ``function(rows, first)`` returns an array with as many rows, ``first`` their
        place in the table or block.
    check : callable
        ``check(X, name=..., dtype=None)`` returns an array of rows.

    Returns
    -------
    ndarray of shape (n_samples, ...)

    Raises
    ------
    ValueError
        For no rows, or as ``check``, naming the block.
    """
    blocks = as_blocks(X)
    if blocks is None:
        return _in_pieces(function, check(X, name="X", dtype=None))
    parts = []
    for k, block in _filled(blocks):
        with _named(k):
            rows = check(block, name=f"X[{k}]", dtype=None)
            parts.append(_in_pieces(function, rows))
    if not parts:
        raise ValueError("Found 0 sample(s) in X: a minimum of 1 is required.")
    return np.concatenate(parts)


def _as_floats(X):
    """Return blocks of a table as floats: itself, or pieces widened in every pass."""
    if X.dtype in FLOATS:
        return (X,)
    if X.size <= _WIDENED_ENTRIES:
        return (X.astype(np.float64),)
    cuts = list(_cuts(X, _WIDENED_ENTRIES))
    return LazyBlocks(len(cuts), lambda k: X[cuts[k]].astype(np.float64))


def _cuts(X, entries):
    return gen_batches(X.shape[0], max(1, entries // X.shape[1]))


def _in_pieces(function, X):
    """Apply a function to pieces of a table as floats, into one array."""
    result = None
    for cut in _cuts(X, _PIECE_ENTRIES):
        piece = X[cut] if X.dtype in FLOATS else X[cut].astype(np.float64)
        part = function(piece, cut.start)
        if result is None:
            result = np.empty((X.shape[0], *part.shape[1:]), part.dtype)
        result[cut] = part
    return result


def _filled(blocks):
    """Yield number and block of all but those without rows."""
    for k, block in enumerate(blocks):
        if getattr(block, "shape", (1,))[:1] != (0,):
            yield k, block


@contextlib.contextmanager
def _named(k):
    """Let an error about X say in which block."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if f"X[{k}]" in str(error):
            raise
        raise ValueError(f"In block X[{k}]: {error}") from error
