"""How far two representations of the same rows are apart, out of sample."""

import itertools
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from skident._math import ica, procrustes
from skident._math.motion import Sums
from skident._math.paired_rows import blocks, in_larger_unit
from skident._math.whitening import noise_level, whiten

TRANSFORMATIONS = (*procrustes.TRANSFORMATIONS, "ica")
# Groups whose maps go from any unit to any other.
UNITLESS = {"linear", "ica"}
# Up to so many numbers a side, and with few rows a column, maps are fitted on the rows
# themselves: exact where columns are nearly dependent. Else on their moments.
SMALL = 2**20
_FEW_ROWS = 2
# Axes of ICA that agree less than this, by correlation, are not identified.
STABLE = 0.9
_SMALLEST = 1e-100
# Gradient at which ICA stops; where a pass has more than so many multiplications, half
# of its sampling error if that is larger.
_TOL, _CHEAP = 1e-3, 1e8
# Multiplications after which ICA gives up: but never before, nor after, so many passes.
_WORK, _PASSES = 1e11, (30, 200)


class Affine(NamedTuple):
    """A map ``X @ matrix + shift`` of centred rows.

    Attributes
    ----------
    matrix : ndarray of shape (n_source, n_target)
        Or, of a signed permutation, the source column of each target column, int.
    shift : ndarray of shape (n_target,)
        What is added.
    signs : ndarray of shape (n_target,) or None
        Of a signed permutation; 0 in target columns without a source.
    """

    matrix: np.ndarray
    shift: np.ndarray
    signs: np.ndarray | None = None

    @classmethod
    def of(cls, motion, *, columns=False, units=(1.0, 1.0)):
        """Return a motion as this.

        Parameters
        ----------
        motion : Motion
            Its means are those of rows in units of their own.
        columns : bool
            Whether it is a signed permutation, and kept as one.
        units : tuple of float
            Units of source and target, in that of the rows that it is applied to.
        """
        R = motion.rotation
        shift = units[1] * motion.target_mean - (units[0] * motion.source_mean) @ R
        if not columns:
            return cls(R, shift)
        source, signs = np.zeros(R.shape[1], dtype=np.intp), np.zeros(R.shape[1])
        rows, targets = np.nonzero(R)
        source[targets], signs[targets] = rows, R[rows, targets]
        return cls(source, shift, signs)

    def apply(self, A):
        """Return the mapped rows in the type of ``A``."""
        shift = self.shift.astype(A.dtype)
        if self.signs is None:
            mapped = A @ self.matrix.astype(A.dtype)
        else:
            mapped = A[:, self.matrix] * self.signs.astype(A.dtype)
        mapped += shift
        return mapped


class Unmixing(NamedTuple):
    """Whitening and rotation of one representation.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        Mean of the rows.
    components : ndarray of shape (n_components, n_features)
        Sources are ``(X - mean) @ components.T``.
    mixing : ndarray of shape (n_features, n_components)
        The way back.
    converged : bool
        Whether the solver did.
    """

    mean: np.ndarray
    components: np.ndarray
    mixing: np.ndarray
    converged: bool


def unmix(X, rows):
    """Whiten rows within their rank and separate; constant ones have no component.

    Parameters
    ----------
    X : Rows
        One side.
    rows : ndarray of int
        On which ICA is solved.

    Returns
    -------
    Unmixing

    Raises
    ------
    ValueError
        If no column varies by more than 1e-7 of its values, but some do.
    """
    Z = X.take(rows, np.float64)
    reach = np.ptp(Z, axis=0)
    # Constant for whitening too, which sees the rows centred; or so small beside the
    # others that squares are zero.
    size = np.abs(X.centre) + np.abs(Z).max(axis=0)
    dtype = np.float32 if X.array.dtype == np.float32 else np.float64
    dead = reach <= np.maximum(noise_level(dtype) * size, _SMALLEST * reach.max())
    if dead.all() and (reach > noise_level(dtype, 0.0) * size).any():
        raise ValueError(
            "For 'ica', a side varies by less than 1e-7 of its values, which counts as "
            "constant: subtract its first row."
        )
    if dead.all():
        empty = np.zeros((0, Z.shape[1]))
        return Unmixing(Z[0], empty, empty.T, True)
    Z[:, dead] = Z[0, dead]
    white = whiten(Z)
    Z -= white.mean
    Z = Z @ white.whitening.T
    work = Z.size * Z.shape[1]
    tol = _TOL if work <= _CHEAP else max(_TOL, 0.5 / np.sqrt(len(Z)))
    passes = int(np.clip(_WORK / work, *_PASSES))
    solution = ica.solve(Z, tol=tol, max_iter=passes)
    return Unmixing(
        white.mean,
        solution.rotation @ white.whitening,
        white.dewhitening @ solution.rotation.T,
        solution.converged,
    )


def axes_stability(solutions):
    """Return how well solutions of ICA on other rows find the same axes.

    Parameters
    ----------
    solutions : list of Unmixing
        Of one side; the same object counts once.

    Returns
    -------
    float
        The mean squared correlation of a component with its counterpart, over
        components and pairs of solutions: 1 for the same axes, about 1 over their
        number for unrelated ones. 1 for a single solution.
    """
    distinct = list({id(one): one for one in solutions}.values())
    found = []
    for one, other in itertools.combinations(distinct, 2):
        # Those of one are this product with those of the other, which are white.
        square = (one.components @ other.mixing) ** 2
        if square.size:
            square /= np.maximum(square.sum(axis=1, keepdims=True), 1e-300)
            match = linear_sum_assignment(square, maximize=True)
            found.append(square[match].sum() / max(square.shape))
    return float(np.mean(found)) if found else 1.0


def match_components(cross, left, right):
    """Return the two maps between representations through matched components.

    The only supervision is the signed permutation that matches the components.

    Parameters
    ----------
    cross : ndarray of shape (n_left, n_right)
        Inner products of the centred components of either side.
    left, right : Unmixing
        Of either side.

    Returns
    -------
    forward, backward : Affine
    """
    match = np.zeros(cross.shape)
    if cross.size:
        none = np.zeros(0)
        sums = Sums(*(np.zeros(size) for size in cross.shape), cross, none, none)
        found = procrustes.permutation_from_sums(sums, check=False)
        match = found.rotation[:, : cross.shape[1]]
    forward = left.components.T @ match @ right.mixing.T
    backward = right.components.T @ match.T @ left.mixing.T
    return (
        Affine(forward, right.mean - left.mean @ forward),
        Affine(backward, left.mean - right.mean @ backward),
    )


def both_maps(name, training, units=(1.0, 1.0), check=True):
    """Return the best maps of one group there and back, and whether data fix them.

    Parameters
    ----------
    name : str
        A key of ``procrustes.TRANSFORMATIONS``.
    training : Sums or tuple of ndarray
        Sums of the training rows, or the rows themselves, the wider side first.
    units : tuple of float
        As by :func:`skident._math.paired_rows.in_larger_unit`. Maps that keep lengths
        are between rows in the larger unit, all others from unit to unit.
    check : bool
        Whether ``unique`` must be known where that takes time.

    Returns
    -------
    forward : Affine
    backward : Affine or None
        None if it is the inverse of ``forward`` and so has the same errors.
    unique : bool
    """
    group = procrustes.TRANSFORMATIONS[name]
    summed = isinstance(training, Sums)
    find = group.from_sums if summed else group.from_rows
    forth = (training,) if summed else training
    there = find(*forth, **({} if check else group.unchecked))
    if group.orthogonal:
        columns = name == "permutation"
        return Affine.of(there, columns=columns, units=units), None, there.unique
    back = find(*((training.swapped(),) if summed else training[::-1]))
    return Affine.of(there), Affine.of(back), there.unique and back.unique


def fit_maps(names, training, unmixings, units=(1.0, 1.0), check=True):
    """Return the maps of every group fitted on the training rows of one fold.

    Parameters
    ----------
    names : sequence of str
        Groups.
    training : Sums or tuple of ndarray
        As for :func:`both_maps`.
    unmixings : pair of Unmixing or None
        Of either side; None without "ica".
    units, check
        As for :func:`both_maps`.

    Returns
    -------
    maps : list of pairs of Affine
        Forward and backward; the latter None if it has the errors of the former.
    sound : list of bool
        Whether the rows determine each map (and ICA converged).
    """
    maps, sound = [], []
    for name in names:
        if name == "ica":
            cross = _component_products(training, *unmixings)
            maps.append(match_components(cross, *unmixings))
            sound.append(all(side.converged for side in unmixings))
        else:
            *pair, unique = both_maps(name, training, units, check)
            maps.append(tuple(pair))
            sound.append(unique)
    return maps, sound


def _component_products(training, left, right):
    """Return the inner products of centred components of training rows."""
    if isinstance(training, Sums):
        return left.components @ training.xy @ right.components.T
    A, B = (
        (rows - rows.mean(axis=0)) @ side.components.T
        for rows, side in zip(training, (left, right), strict=True)
    )
    return A.T @ B


def fits_on_rows(shape_x, shape_y):
    """Return whether maps are fitted on rows rather than on their moments."""
    width = max(shape_x[1], shape_y[1])
    return shape_x[0] * width <= SMALL or shape_x[0] < _FEW_ROWS * width


def _residual_norms(mapped, target):
    """Return the distance of each mapped row from its target; overwrites ``mapped``."""
    mapped[:, : target.shape[1]] -= target
    return np.sqrt(np.einsum("ij,ij->i", mapped, mapped))


def score_rows(X, Y, folds, maps, rows):
    """Return the error of each row under the maps of its fold, in one pass.

    Parameters
    ----------
    X, Y : Rows
        Paired rows, the wider side first.
    folds : ndarray of int of shape (n_samples,)
        Fold of each row.
    maps : list
        Of each fold, as by :func:`fit_maps`.
    rows : slice
        Which rows.

    Returns
    -------
    ndarray of shape (2, n_rows, n_transformations)
        Distances in units of the target: X to Y, then Y to X.
    """
    units = in_larger_unit(X, Y)
    errors = np.empty((2, rows.stop - rows.start, len(maps[0])))
    for block in blocks(rows.stop, X.shape[1], rows.start):
        A, B = X.take(block), Y.take(block)
        labels = folds[block]
        for fold in np.unique(labels):
            mine = np.flatnonzero(labels == fold)
            place = mine + block.start - rows.start
            a, b = A[mine], B[mine]
            both = (a, b) if units == (1.0, 1.0) else (a * units[0], b * units[1])
            for k, (there, back) in enumerate(maps[fold]):
                if back is None:
                    away = _residual_norms(there.apply(both[0]), both[1])
                    errors[0, place, k] = away / units[1]
                    errors[1, place, k] = away / units[0]
                    continue
                errors[0, place, k] = _residual_norms(there.apply(a), b)
                errors[1, place, k] = _residual_norms(back.apply(b), a)
    return errors
