"""Checked rows from one table or from blocks of it, of which empty ones are skipped."""

import contextlib

import numpy as np

from skident._math.blocks import LazyBlocks, as_blocks
from skident._validation import as_rows, validate_rows


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
        X = validate_rows(estimator, X, reset=True, min_samples=2)
        return (X,), X.shape[0]
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
        Of an array to one with the same number of rows.
    check : callable
        ``check(X, name=...)`` returns an array of rows.

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
        return function(check(X, name="X"))
    parts = []
    for k, block in _filled(blocks):
        with _named(k):
            parts.append(function(check(block, name=f"X[{k}]")))
    if not parts:
        raise ValueError("Found 0 sample(s) in X: a minimum of 1 is required.")
    return np.concatenate(parts)


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
