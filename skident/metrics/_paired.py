"""Two representations of the same rows, matched by position or by ids of frames."""

import warnings

import numpy as np

from skident._validation import as_rows, check_same_length

_NAMED = 5


def match_rows(Z1, Z2, groups, *, unmatched, min_samples):
    """Return two arrays whose rows belong together, and groups in their order.

    Parameters
    ----------
    Z1, Z2 : array-like of shape (n_samples, n_features)
        Two pandas objects are joined by their index, in its order; all else by
        position.
    groups : array-like of shape (n_samples,) or None
        A pandas series follows the index of ``Z1`` if that has one; all else follows
        the rows of ``Z1``.
    unmatched : {"raise", "drop"}
        What becomes of ids that only one side has.
    min_samples : int
        Fewest rows allowed.

    Returns
    -------
    Z1, Z2 : ndarray of shape (n_samples, n_features)
        Of any real type.
    groups : array-like of shape (n_samples,) or None

    Raises
    ------
    ValueError
        For ids that occur twice or, with "raise", on one side only, naming them, and
        for other numbers of rows.
    """
    first, second = _ids(Z1), _ids(Z2)
    if first is not None and _ids(groups) is not None:
        groups = _groups_by_id(groups, first)
    if first is not None and second is not None and not first.equals(second):
        kept, places = _join(first, second, unmatched)
        if groups is not None:
            groups = np.asarray(groups)[kept]
        Z1, Z2 = Z1.iloc[kept], Z2.iloc[places]
    Z1, Z2 = (
        as_rows(
            Z,
            name=name,
            min_samples=min_samples,
            one_column=True,
            # Small types are widened block by block, not as a whole.
            **({"dtype": None} if _is_plain(Z) else {}),
        )
        for Z, name in ((Z1, "Z1"), (Z2, "Z2"))
    )
    check_same_length(Z1, Z2, names=("Z1", "Z2"))
    return Z1, Z2, groups


def _is_plain(Z):
    return isinstance(Z, np.ndarray) and Z.dtype.kind in "fiub" and Z.itemsize <= 8


def _ids(Z):
    """Return the index of a pandas object; None for anything else."""
    return getattr(Z, "index", None) if hasattr(Z, "iloc") else None


def _listed(ids):
    more = len(ids) - _NAMED
    return ", ".join(map(repr, ids[:_NAMED].tolist())) + (
        f" and {more} more" if more > 0 else ""
    )


def _check_unique(ids, name):
    repeated = ids[ids.duplicated()].unique()
    if len(repeated):
        raise ValueError(
            f"{name} has {len(repeated)} id(s) more than once in its index: "
            f"{_listed(repeated)}. Rows are joined by id: make ids unique, or pass "
            "arrays to join by position."
        )


def _join(first, second, unmatched):
    """Return the rows of the first side that stay, by id, and their partners."""
    _check_unique(first, "Z1")
    _check_unique(second, "Z2")
    places = second.get_indexer(first)
    kept = places >= 0
    lost = {"Z1": first[~kept], "Z2": second[first.get_indexer(second) < 0]}
    parts = [
        f"{len(ids)} are in {name} only ({_listed(ids)})"
        for name, ids in lost.items()
        if len(ids)
    ]
    if parts:
        message = f"Z1 and Z2 are joined by index, but of the ids {'; '.join(parts)}."
        if unmatched == "raise" or not kept.any():
            raise ValueError(
                f'{message} unmatched="drop" leaves them out; arrays (.to_numpy()) are '
                "joined by position."
            )
        warnings.warn(f"{message} They are left out.", UserWarning)
    kept = np.flatnonzero(kept)
    # By id, so that exchanging the sides does not change the order of the rows.
    kept = kept[_order_of(first[kept])]
    return kept, places[kept]


def _order_of(ids):
    """Return the positions that sort ids; those of several types by their text."""
    try:
        return np.asarray(ids.argsort())
    except TypeError:
        return np.argsort([f"{type(one).__name__} {one!r}" for one in ids])


def _groups_by_id(groups, ids):
    """Return the labels of groups in the order of ``ids``."""
    index = groups.index
    if index.equals(ids):
        return groups
    _check_unique(index, "groups")
    places = index.get_indexer(ids)
    if (places < 0).any():
        missing = ids[places < 0]
        raise ValueError(
            f"groups has no label for {len(missing)} id(s) of Z1: {_listed(missing)}."
        )
    return groups.iloc[places]
