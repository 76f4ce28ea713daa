"""Independent factors through a smooth map that is as far from isometric as asked."""

import math
from functools import partial
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch

from skident._compat import Interval, StrOptions, validate_params
from skident._random import draw_seed, generator
from skident.datasets._chains import check_out, fill_rows

# Rows that share a random stream. Blocks are computed whole and cut, as the rounding of
# a row may depend on the number of rows.
_BLOCK = 256
_FACTORS, _NOISE, _MAP = 0, 1, 2
# Distance of two places of largest and smallest slope, in standard deviations.
_HALF_WAVE = 2.0
# How far the middle of the two lies from 0: both are in the support of all factors
# within [-sqrt(3), sqrt(3)].
_JITTER = 0.7
_MAX_NEWTON = 100


def _uniform(rng, shape):
    return math.sqrt(3.0) * (2.0 * rng.random(shape) - 1.0)


def _laplace(rng, shape):
    return rng.laplace(scale=math.sqrt(0.5), size=shape)


def _exponential(rng, shape):
    return rng.standard_exponential(shape) - 1.0


def _gaussian(rng, shape):
    return rng.standard_normal(shape)


_DISTRIBUTIONS = {
    "uniform": _uniform,
    "laplace": _laplace,
    "exponential": _exponential,
    "gaussian": _gaussian,
}


@validate_params(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "n_factors": [Interval(Integral, 1, None, closed="left")],
        "n_features": [Interval(Integral, 1, None, closed="left")],
        "bi_lipschitz": [Interval(Real, 1, 1e3, closed="both")],
        "distribution": [StrOptions(set(_DISTRIBUTIONS))],
        "n_layers": [Interval(Integral, 1, None, closed="left")],
        "noise": [Interval(Real, 0, None, closed="left")],
        "out": [np.ndarray, None],
        "return_info": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_nonlinear_mixture(
    n_samples,
    n_factors,
    n_features,
    *,
    bi_lipschitz=1.2,
    distribution="uniform",
    n_layers=2,
    noise=0.0,
    out=None,
    return_info=False,
    n_jobs=None,
    verbose=0,
    random_state=None,
):
    r"""Mix independent factors by a smooth map with a chosen bi-Lipschitz constant.

    The map g is injective on all of :math:`R^D`, and for all y, y'

    .. math:: \frac{\|y - y'\|}{1 + \delta} \le \|g(y) - g(y')\|
       \le (1 + \delta) \, \|y - y'\| .

    With independent, non-Gaussian factors such data is nearly identifiable: a model
    that reconstructs it through a near-isometric decoder finds the factors, up to
    rotation, within an error that vanishes with :math:`\delta`.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    n_factors : int
        Number of factors D.
    n_features : int
        Number of features, at least ``n_factors``.
    bi_lipschitz : float, default=1.2
        The constant :math:`1 + \delta`, at least 1 (an isometry: a rotation into the
        space of the features) and at most 1000.
    distribution : {"uniform", "laplace", "exponential", "gaussian"}, default="uniform"
        Distribution of each factor, with mean 0 and variance 1. "gaussian" is a
        control: such factors are identifiable up to a rotation only.
    n_layers : int, default=2
        Number of layers of the map. More of them bend it in more directions, each by
        less.
    noise : float, default=0.0
        Standard deviation of Gaussian noise added to each feature.
    out : ndarray of shape (n_samples, n_features), dtype float64, default=None
        Where to write X, for instance a memory map; None makes a new array.
    return_info : bool, default=False
        Whether to return ``info`` too.
    n_jobs : int or None, default=None
        Number of threads, as in joblib. The samples do not depend on it.
    verbose : int, default=0
        1 shows a progress bar.
    random_state : int, RandomState instance or None, default=None
        Seed of map and samples. Sample k does not depend on ``n_samples``; the map
        depends neither on that nor on ``distribution`` and ``noise``.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The features g(y) plus noise; ``out`` if it was given.
    y : ndarray of shape (n_samples, n_factors)
        The factors, of mean 0 and variance 1.
    info : Bunch
        Only if ``return_info``: ``map``, with ``map(y)`` the features without noise,
        ``map.jacobian(y)`` of shape (n_samples, n_features, n_factors) and
        ``map.inverse(x)``; and ``extremes`` (2, n_factors), two points at which all
        singular values of the Jacobian are :math:`1 + \delta` and
        :math:`1 / (1 + \delta)`.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it and its value.

    Notes
    -----
    With :math:`\kappa = (1 + \delta)^{1/L}`, each of the L layers rotates by a random
    orthogonal matrix Q and then bends each coordinate u by

    .. math:: \varphi(u) = c \, u + \frac{a}{\omega} \sin(\omega u + p) , \quad
       c = \frac{\kappa + 1/\kappa}{2} , \; a = \frac{\kappa - 1/\kappa}{2} ,

    whose slope runs through all of :math:`[1/\kappa, \kappa]`; at the end an
    orthonormal matrix leads into the space of the features. A layer's Jacobian,
    diag(slopes) Q, has the slopes as singular values, and so the product of all has
    its within :math:`[\kappa^{-L}, \kappa^L]`. As a layer and its inverse are defined
    on all of :math:`R^D`, the bounds of the Jacobians are those of distances.

    They are reached: Q takes the difference of two points to a multiple of a vector of
    signs; :math:`\omega` and the phases p are such that all slopes are
    :math:`\kappa` at the one point and :math:`1/\kappa` at the other, and there the
    sine vanishes, so that the next layer can do the same.

    References
    ----------
    .. [1] A. Hyvarinen and P. Pajunen, "Nonlinear independent component analysis:
       existence and uniqueness results", Neural Networks 12, 429 (1999).

    Examples
    --------
    >>> import numpy as np
    >>> from skident.datasets import make_nonlinear_mixture
    >>> X, y, info = make_nonlinear_mixture(
    ...     100, 3, 10, bi_lipschitz=1.5, return_info=True, random_state=0
    ... )
    >>> X.shape, y.shape
    ((100, 10), (100, 3))
    >>> singular = np.linalg.svd(info.map.jacobian(info.extremes), compute_uv=False)
    >>> singular.round(6)
    array([[1.5     , 1.5     , 1.5     ],
           [0.666667, 0.666667, 0.666667]])
    >>> bool(np.allclose(info.map.inverse(X), y))
    True
    """
    if n_features < n_factors:
        raise ValueError(
            f"n_features must be at least n_factors={n_factors}, got {n_features}."
        )
    X = check_out(out, (n_samples, n_features), np.float64)
    seed = draw_seed(random_state)
    mixing, extremes = _draw_map(
        generator(seed, _MAP), n_factors, n_features, bi_lipschitz, n_layers
    )
    task = partial(
        _rows, seed=seed, mixing=mixing, draw=_DISTRIBUTIONS[distribution], noise=noise
    )
    work = n_factors * (n_features + n_layers * (n_factors + 20))
    y, _ = fill_rows(
        task, X, row_ns=work + (20 if noise else 0) * n_features, granule=_BLOCK,
        n_jobs=n_jobs, verbose=verbose,
    )  # fmt: skip
    if not return_info:
        return X, y
    return X, y, Bunch(map=mixing, extremes=extremes)


class SmoothMap(NamedTuple):
    """Rotations and bends of coordinates by turns, then an orthonormal embedding.

    Attributes
    ----------
    rotations : ndarray of shape (n_layers, n_factors, n_factors)
        Orthogonal matrices.
    slope, ripple : float
        The slope of a bend is slope + ripple * cos(frequency * u + phase).
    frequencies : ndarray of shape (n_layers,)
        Of the bends.
    phases : ndarray of shape (n_layers, n_factors)
        Of the bends.
    embedding : ndarray of shape (n_features, n_factors)
        Orthonormal columns.
    """

    rotations: np.ndarray
    slope: float
    ripple: float
    frequencies: np.ndarray
    phases: np.ndarray
    embedding: np.ndarray

    def __call__(self, y):
        """Return the features (n_samples, n_features) of factors."""
        y = _as_rows(y, self.embedding.shape[1], "y")
        for rotation, frequency, phase in self._layers():
            y = self._bend(_product(y, rotation), frequency, phase)
        return _product(y, self.embedding)

    def jacobian(self, y):
        """Return the Jacobians (n_samples, n_features, n_factors) at factors."""
        y = _as_rows(y, self.embedding.shape[1], "y")
        product = np.eye(y.shape[1])
        for rotation, frequency, phase in self._layers():
            u = _product(y, rotation)
            slopes = self.slope + self.ripple * np.cos(frequency * u + phase)
            product = slopes[:, :, None] * (rotation @ product)
            y = self._bend(u, frequency, phase)
        return self.embedding @ product

    def inverse(self, x):
        """Return the factors (n_samples, n_factors) whose features are nearest to x."""
        y = _as_rows(x, len(self.embedding), "x") @ self.embedding
        for rotation, frequency, phase in reversed(list(self._layers())):
            target = frequency * y / self.slope + phase
            angle = _solve_kepler(target, self.ripple / self.slope)
            y = (angle - phase) / frequency @ rotation
        return y

    def _layers(self):
        return zip(self.rotations, self.frequencies, self.phases, strict=True)

    def _bend(self, u, frequency, phase):
        return self.slope * u + self.ripple / frequency * np.sin(frequency * u + phase)


def _as_rows(array, width, name):
    array = np.asarray(array, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != width:
        raise ValueError(f"{name} must have shape (n, {width}), got {array.shape}.")
    return array


def _product(rows, matrix):
    """Return rows @ matrix.T, the same for any number of threads."""
    return np.einsum("ni,ji->nj", rows, matrix)


def _solve_kepler(target, e):
    """Solve x + e sin(x) = target, 0 <= e < 1, by Newton steps kept in a bracket."""
    low, high, x = target - e, target + e, target
    for _ in range(_MAX_NEWTON):
        error = x + e * np.sin(x) - target
        low, high = np.where(error > 0, low, x), np.where(error > 0, x, high)
        newton = x - error / (1.0 + e * np.cos(x))
        inside = (newton > low) & (newton < high)
        after = np.where(inside, newton, 0.5 * (low + high))
        if np.array_equal(after, x):
            break
        x = after
    return x


def _draw_map(rng, n_factors, n_features, bi_lipschitz, n_layers):
    """Draw a map, with the two points at which its Jacobian is extreme."""
    stretch = bi_lipschitz ** (1.0 / n_layers)
    slope, ripple = (stretch + 1 / stretch) / 2, (stretch - 1 / stretch) / 2
    middle = rng.uniform(-_JITTER, _JITTER, n_factors)
    half = 0.5 * _HALF_WAVE * rng.choice([-1.0, 1.0], n_factors)
    extremes = points = np.stack([middle + half, middle - half])
    rotations, frequencies, phases = [], [], []
    for _ in range(n_layers):
        signs = rng.choice([-1.0, 1.0], n_factors)
        rotation, size = _rotation_onto(signs, points[1] - points[0], rng)
        u = _product(points, rotation)
        frequency = math.pi / size
        rotations.append(rotation)
        frequencies.append(frequency)
        # The sine is 0 at both points, its slope 1 at the first and -1 at the second.
        phases.append(-frequency * u[0])
        points = slope * u
    embedding = _orthonormal(rng, n_features, n_factors)
    return SmoothMap(
        np.array(rotations), slope, ripple, np.array(frequencies), np.array(phases),
        embedding,
    ), extremes  # fmt: skip


def _rotation_onto(signs, vector, rng):
    """Return a random orthogonal matrix that takes vector to size * signs, and size."""
    n = len(vector)
    size = math.sqrt((vector**2).sum() / n)
    matrix = _orthonormal(rng, n, n)
    mirror = _product(vector[None], matrix)[0] - size * signs
    square = (mirror**2).sum()
    if square > 1e-20 * size**2:
        along = np.einsum("i,ij->j", mirror, matrix)
        matrix = matrix - 2.0 / square * mirror[:, None] * along
    return matrix, size


def _orthonormal(rng, n_rows, n_columns):
    """Return a uniformly random matrix with orthonormal columns (Gram-Schmidt)."""
    basis = rng.standard_normal((n_columns, n_rows))
    for j in range(n_columns):
        # Once more, as the first projection leaves a rounding error.
        for _ in range(2):
            inner = np.einsum("ki,i->k", basis[:j], basis[j])
            basis[j] -= np.einsum("k,ki->i", inner, basis[:j])
        basis[j] /= math.sqrt((basis[j] ** 2).sum())
    return np.ascontiguousarray(basis.T)


def _rows(start, stop, seed, mixing, draw, noise):
    parts = [_block(b, seed, mixing, draw, noise) for b in range(start, stop, _BLOCK)]
    features, factors = (np.concatenate(p) for p in zip(*parts, strict=True))
    return features[: stop - start], factors[: stop - start], None


def _block(start, seed, mixing, draw, noise):
    """Features and factors of a whole block of rows."""
    block, n_factors = start // _BLOCK, mixing.embedding.shape[1]
    factors = draw(generator(seed, _FACTORS, block), (_BLOCK, n_factors))
    features = mixing(factors)
    if noise > 0:
        rng = generator(seed, _NOISE, block)
        features += noise * rng.standard_normal(features.shape)
    return features, factors
