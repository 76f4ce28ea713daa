"""Labels and batches of rows, and which labels a probe can carry over to a batch."""

import warnings

import numpy as np

from skident._entries import check_rectangular, is_missing

_NAMED = 5


def matched_labels(Z, **columns):
    """Refuse a pandas column whose index is not that of the frame beside it."""
    index = getattr(Z, "index", None) if hasattr(Z, "iloc") else None
    if index is None:
        return
    for name, column in columns.items():
        other = getattr(column, "index", None) if hasattr(column, "iloc") else None
        if other is not None and not index.equals(other):
            raise ValueError(
                f"{name} and Z are pandas objects of different index: pass "
                f"{name}.loc[Z.index], or arrays to go by position."
            )


def label_codes(values, n_samples, name):
    """Return the distinct labels of rows, sorted, and each row's place among them.

    Raises
    ------
    ValueError
        For another shape, a missing label, or labels of several types, naming the row.
    """
    check_rectangular(values, name)
    # In a list of texts numpy would make NaN and numbers texts too.
    plain = values.tolist() if hasattr(values, "tolist") else list(values)
    values = np.asarray(values)
    if values.shape != (n_samples,):
        raise ValueError(
            f"{name} must have one label a row, shape ({n_samples},), got shape "
            f"{values.shape}."
        )
    texts = [isinstance(label, str) for label in plain]
    for row, label in enumerate(plain):
        if is_missing(label):
            raise ValueError(f"{name} has no label in row {row}.")
        if texts[row] != texts[0]:
            raise ValueError(
                f"{name} must be all texts or all numbers, but row 0 has {plain[0]!r} "
                f"and row {row} {label!r}: pass them as strings."
            )
    try:
        names, codes = np.unique(values, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            f"{name} must be labels of one type that has an order ({error}): pass them "
            "as strings."
        ) from error
    return names, codes.reshape(-1)


def transferable(label_names, labels, batch_names, batches):
    """Return which rows have a label that other batches have too, and other labels.

    Parameters
    ----------
    label_names, batch_names : ndarray
        Distinct names.
    labels, batches : ndarray of int of shape (n_samples,)
        Places among them.

    Returns
    -------
    kept : ndarray of bool of shape (n_samples,)
        Rows that can be trained on and scored.
    left_out : tuple
        Names of the labels that occur in one batch only.

    Raises
    ------
    ValueError
        For a single batch, or fewer than two labels that can be carried over.
    """
    if len(batch_names) < 2:
        raise ValueError(
            f"batches has the one value {batch_names[0]!r}: leaving it out leaves no "
            "rows to train on."
        )
    together = np.zeros((len(label_names), len(batch_names)), dtype=bool)
    together[labels, batches] = True
    shared = together.sum(axis=1) > 1
    left_out = tuple(label_names[~shared].tolist())
    listed = ", ".join(map(repr, left_out[:_NAMED]))
    if len(left_out) > _NAMED:
        listed += f" and {len(left_out) - _NAMED} more"
    if shared.sum() < 2:
        raise ValueError(
            f"Only {shared.sum()} of the {len(label_names)} labels occur in two "
            "batches or more, and a probe needs two to tell apart (in one batch only: "
            f"{listed or 'none'})."
        )
    if left_out:
        warnings.warn(
            f"Labels in one batch only: {listed}. A probe that has not seen that batch "
            "cannot know them, and they are left out of the score.",
            UserWarning,
        )
    return shared[labels], left_out
