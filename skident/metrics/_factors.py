"""Factors and latents of the same rows: labels or numbers, column by column."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from skident._entries import check_rectangular, describe_column, is_missing
from skident._math.disentanglement import as_column, quantile_codes
from skident._math.probes import (
    canonical_order,
    clip_outliers,
    first_come_codes,
    pull_in,
    stratified_folds,
)
from skident._math.resampling import fold_labels
from skident._random import generator
from skident._validation import as_group_codes, as_rows, check_same_length, to_cpu

_FEWEST_ROWS = 4
# "auto": numbers are classes if there are no more of them, each in so many rows.
_MOST_CLASSES = 100
_ROWS_PER_CLASS = 4
# In single columns, values so many median distances from the median are brought back:
# 7 standard deviations of normal columns, 10 of Laplace ones.
FARTHEST = 10.0
KINDS = ["boolean", "array-like", str]


class Factor(NamedTuple):
    """A checked column of the truth.

    Attributes
    ----------
    name : str
        How an error calls it.
    values : ndarray of shape (n_samples,)
        float64, or codes of labels that are no numbers.
    nominal : bool
        Whether the labels are no numbers.
    """

    name: str
    values: np.ndarray
    nominal: bool


class Problem(NamedTuple):
    """Rows of a comparison, in an order that does not depend on that of the input.

    Attributes
    ----------
    factors : list of ndarray of shape (n_samples,)
        Codes of the discrete ones, numbers of the others.
    discrete : ndarray of shape (n_factors,), bool
        Which are discrete.
    latents : ndarray of shape (n_samples, n_latents)
        float64.
    discrete_latents : ndarray of shape (n_latents,), bool
        Which are discrete.
    groups : ndarray of int of shape (n_samples,) or None
        Groups.
    """

    factors: list
    discrete: np.ndarray
    latents: np.ndarray
    discrete_latents: np.ndarray
    groups: np.ndarray | None

    def latent_columns(self):
        """Return the latents as columns for information."""
        pairs = zip(self.latents.T, self.discrete_latents, strict=True)
        return [as_column(first_come_codes(z) if d else z, d) for z, d in pairs]

    def classes(self, n_bins):
        """Return the codes of every factor, continuous ones cut at quantiles."""
        pairs = zip(self.factors, self.discrete, strict=True)
        return [f if d else quantile_codes(f, n_bins) for f, d in pairs]

    def folds(self, codes, cv, seed, *stream):
        """Return the fold of each row: groups whole, else each class evenly."""
        rng = generator(seed, *stream)
        if self.groups is None:
            return stratified_folds(codes, cv, rng)
        return fold_labels(self.groups, cv, rng)

    def features(self):
        """Return latents as a linear probe takes them: discrete ones one-hot."""
        which = self.discrete_latents
        parts = one_hot(self.latents[:, which], which[which])
        near = clip_outliers(self.latents[:, ~which])
        return np.append(pull_in(near), parts, axis=1)


def one_hot(latents, discrete):
    """Return discrete columns as one indicator a value, and the others as they are."""
    parts = [
        (z[:, None] == np.unique(z)).astype(float) if d else z[:, None]
        for z, d in zip(latents.T, discrete, strict=True)
    ]
    return np.concatenate([np.empty((len(latents), 0)), *parts], axis=1)


def problem(
    factors, latents, *, discrete_factors, discrete_latents,
    groups=None, cv=2, max_samples=None, seed=0,
):  # fmt: skip
    """Check factors and latents, and bring rows in an order of their own.

    Parameters
    ----------
    factors, latents : array-like
        As in :func:`skident.metrics.infomec_score`.
    discrete_factors, discrete_latents : "auto", bool or array-like of bool
        As there.
    groups : array-like of shape (n_samples,) or None
        As there.
    cv : int
        Fewest rows, or groups.
    max_samples : int or None
        Most rows, drawn at random.
    seed : int
        Of the rows drawn.

    Returns
    -------
    Problem

    Raises
    ------
    ValueError
        As there.
    """
    columns, latents = paired(factors, latents, min_samples=max(_FEWEST_ROWS, cv))
    discrete = factor_kinds(columns, discrete_factors)
    which = latent_kinds(latents, discrete_latents)
    codes = None
    if groups is not None:
        codes = as_group_codes(groups, len(latents))
        if codes.max() + 1 < cv:
            raise ValueError(
                f"groups has {codes.max() + 1} group(s), fewer than cv={cv}."
            )
    order = canonical_order(np.where(which, latents, clip_outliers(latents)))
    if max_samples is not None and len(order) > max_samples:
        drawn = generator(seed, 0).choice(len(order), max_samples, replace=False)
        order = order[np.sort(drawn)]
    values = [
        first_come_codes(column.values[order])
        if d
        else clip_outliers(column.values[order, None], FARTHEST)[:, 0]
        for column, d in zip(columns, discrete, strict=True)
    ]
    for column, value in zip(columns, values, strict=True):
        if np.ptp(value) == 0:
            raise ValueError(f"{column.name} is constant in the rows drawn.")
    return Problem(
        values, discrete, latents[order], which,
        None if codes is None else first_come_codes(codes[order]),
    )  # fmt: skip


def paired(factors, latents, *, min_samples=_FEWEST_ROWS):
    """Return checked columns of factors and rows of latents, float64."""
    latents = as_rows(latents, name="latents", one_column=True, min_samples=min_samples)
    columns = as_factors(factors)
    check_same_length(
        np.empty((len(columns[0].values), len(columns))),
        latents,
        ("factors", "latents"),
    )
    for column in columns:
        if np.all(column.values == column.values[0]):
            raise ValueError(
                f"{column.name} is constant: there is nothing to tell of it. Leave it "
                "out."
            )
    return columns, latents.astype(np.float64, copy=False)


def as_factors(factors):
    """Return the columns of a table of labels and numbers.

    Parameters
    ----------
    factors : array-like of shape (n_samples, n_factors) or (n_samples,)
        Array, also of strings or objects, list, tensor, or data frame.

    Returns
    -------
    list of Factor

    Raises
    ------
    ValueError
        For no rows or columns, a label or number that is missing or infinite, or a
        column of labels of several types, naming column and row.
    """
    names = getattr(factors, "columns", None)
    if names is not None:
        # By position where that can be: names may occur twice.
        table = [
            np.asarray(
                factors.iloc[:, j] if hasattr(factors, "iloc") else factors[name]
            )
            for j, name in enumerate(names)
        ]
        columns = list(names)
    else:
        table, columns = _array_columns(factors), None
    if not table or not len(table[0]):
        raise ValueError(f"factors is empty: {len(table)} column(s), no rows.")
    return [
        _as_factor(column, f"factors, {describe_column(j, columns)},")
        for j, column in enumerate(table)
    ]


def _array_columns(factors):
    check_rectangular(factors, "factors")
    if isinstance(factors, Sequence) and not isinstance(factors, str):
        # Kept apart, lest one string turn the numbers beside it into text.
        factors = np.array([list(r) if _is_row(r) else [r] for r in factors], object)
    elif hasattr(factors, "detach") or not isinstance(factors, np.ndarray):
        factors = np.asarray(to_cpu(factors, "factors"))
    if factors.ndim == 1:
        factors = factors[:, None]
    if factors.ndim != 2:
        raise ValueError(
            "factors must have one row a sample and one column a factor, but has shape "
            f"{factors.shape}."
        )
    return list(factors.T)


def _is_row(entry):
    return hasattr(entry, "__len__") and not isinstance(entry, str | bytes)


def _as_factor(column, name):
    if column.dtype.kind in "OUSmM":
        missing = [k for k, label in enumerate(column.tolist()) if is_missing(label)]
        if missing:
            raise ValueError(f"{name} has no label in row {missing[0]}.")
    if column.dtype.kind == "O" and all(_is_number(x) for x in column):
        column = column.astype(np.float64)
    if column.dtype.kind not in "fiubOUSmM":
        raise ValueError(f"{name} has numbers or labels of type {column.dtype}.")
    if column.dtype.kind in "fiub":
        return Factor(name, _as_numbers(column, name), column.dtype.kind == "b")
    try:
        codes = np.unique(column, return_inverse=True)[1].reshape(-1)
    except TypeError as error:
        kinds = [type(label) for label in column]
        row = next(k for k, kind in enumerate(kinds) if kind is not kinds[0])
        raise ValueError(
            f"{name} must have labels of one type, but row 0 has {column[0]!r} and row "
            f"{row} {column[row]!r}: pass them as strings."
        ) from error
    return Factor(name, codes, True)


def _is_number(entry):
    return isinstance(entry, int | float | np.number) and not np.iscomplexobj(entry)


def _as_numbers(column, name):
    numbers = column.astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if wrong.size:
        raise ValueError(
            f"{name} is {numbers[wrong[0]]:g} in row {wrong[0]}. Remove or impute such "
            "rows first."
        )
    return numbers


def factor_kinds(columns, discrete):
    """Return which factors are discrete.

    Parameters
    ----------
    columns : list of Factor
        Factors.
    discrete : "auto", bool or array-like of bool of shape (n_factors,)
        "auto": labels that are no numbers; numbers of which there are at most 100
        different ones, each in four rows on average.

    Returns
    -------
    ndarray of shape (n_factors,), bool

    Raises
    ------
    ValueError
        For another shape, or if labels that are no numbers are called continuous.
    """
    if isinstance(discrete, str):
        _check_auto(discrete, "discrete_factors")
        return np.array([c.nominal or _repeats(c.values) for c in columns])
    mask = _as_mask(discrete, len(columns), "discrete_factors")
    for column, value in zip(columns, mask, strict=True):
        if column.nominal and not value:
            raise ValueError(
                f"{column.name} has labels, not numbers, but discrete_factors calls it "
                "continuous."
            )
    return mask


def latent_kinds(latents, discrete):
    """Return which latents are discrete, by the rule of :func:`factor_kinds`."""
    if isinstance(discrete, str):
        _check_auto(discrete, "discrete_latents")
        return np.array([_repeats(column) for column in latents.T])
    return _as_mask(discrete, latents.shape[1], "discrete_latents")


def _repeats(values):
    most = max(2, min(_MOST_CLASSES, len(values) // _ROWS_PER_CLASS))
    return len(np.unique(values)) <= most


def _check_auto(value, name):
    if value != "auto":
        raise ValueError(f"{name} must be 'auto', a bool, or one a column: {value!r}.")


def _as_mask(value, width, name):
    mask = np.asarray(value)
    if mask.dtype != bool or mask.shape not in ((), (width,)):
        raise ValueError(
            f"{name} must be 'auto', a bool, or {width} of them, one a column, got "
            f"{value!r}."
        )
    return np.broadcast_to(mask, width).copy()
