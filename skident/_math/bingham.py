"""Normaliser of the Bingham distribution on the unit sphere, and its derivatives.

With a_1 >= a_2 >= a_3 the eigenvalues of A and z(A) the mean of exp(n'An) over the
sphere, the polar axis along the third eigenvector and y = (a_1 - a_2)(1 - x^2) / 2,

    z(A) = exp(a_1) int_0^1 exp(-(a_1 - a_3) x^2) exp(-y) I_0(y) dx .

Here the integrand is a Gaussian times something smooth whatever the eigenvalues, so
that one Gauss-Legendre rule over the part that weighs does for all of them. Only the
two gaps matter: the largest eigenvalue is a factor.

Bingham, "An antipodally symmetric distribution on the sphere", Ann. Statist. 2, 1201
(1974).
"""

import numpy as np
from scipy.special import i0e, i1e, roots_legendre

# Exact to a few 1e-15; 22 nodes would be enough, 20 give 2e-13.
_NODES, _WEIGHTS = roots_legendre(26)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2
# What the Gaussian leaves out weighs exp(-42).
_REACH = 42.0
# From here on the expansion of I_1 / I_0 is exact in float64, and the difference of
# the two functions is not.
_LARGE = 100.0
# Entries of one block, which bounds the memory.
_BLOCK = 1 << 20


def log_normalizer(eigenvalues):
    """Log of the mean of exp(n'An) over the unit sphere.

    Parameters
    ----------
    eigenvalues : array-like of shape (..., 3)
        Eigenvalues of A, in any order.

    Returns
    -------
    ndarray of shape (...)
        ln z, with an error of a few 1e-15 beside the rounding of the largest
        eigenvalue; zero for A = 0, as the mean is over the uniform distribution.
    """
    a = np.sort(np.asarray(eigenvalues, dtype=np.float64), axis=-1)
    return a[..., 2] + log_excess(a[..., 2] - a[..., 1], a[..., 2] - a[..., 0])


def normalizer_gradient(eigenvalues):
    """Log of the mean of exp(n'An) over the unit sphere, and its gradient.

    Parameters
    ----------
    eigenvalues : array-like of shape (..., 3)
        Eigenvalues of A, in any order.

    Returns
    -------
    log_z : ndarray of shape (...)
        As of :func:`log_normalizer`.
    moments : ndarray of shape (..., 3)
        d ln z / d a_i = <n_i^2>, n_i the component along the eigenvector, in the order
        of ``eigenvalues``; they sum to 1.
    """
    eigenvalues = np.asarray(eigenvalues, dtype=np.float64)
    order = np.argsort(eigenvalues, axis=-1)[..., ::-1]
    a = np.take_along_axis(eigenvalues, order, axis=-1)
    excess, second, third = excess_moments(a[..., 0] - a[..., 1], a[..., 0] - a[..., 2])
    moments = np.empty_like(a)
    ranked = np.stack([1 - second - third, second, third], axis=-1)
    np.put_along_axis(moments, order, ranked, axis=-1)
    return a[..., 0] + excess, moments


def log_excess(second_gap, third_gap):
    """Log of the mean of exp(n'An - a_1) over the sphere.

    Parameters
    ----------
    second_gap, third_gap : ndarray
        a_1 - a_2 and a_1 - a_3, with 0 <= second_gap <= third_gap, of one shape.

    Returns
    -------
    ndarray
        ln z - a_1, between -ln(2 third_gap + 1) or so and 0.
    """
    return _in_blocks(_log_excess, second_gap, third_gap)[0]


def excess_moments(second_gap, third_gap):
    """Log of the mean of exp(n'An - a_1) over the sphere, and the small moments.

    Parameters
    ----------
    second_gap, third_gap : ndarray
        As for :func:`log_excess`.

    Returns
    -------
    excess, second, third : ndarray
        ln z - a_1, <n_2^2> and <n_3^2>, the moments with small relative error however
        large the gaps are.
    """
    return _in_blocks(_excess_moments, second_gap, third_gap)


def bessel_defect(y):
    """Return 1 - I_1(y) / I_0(y), y >= 0 an array, with small relative error."""
    defect = 1 - i1e(y) / i0e(y)
    large = y >= _LARGE
    if large.any():
        inverse = 1 / y[large]
        defect[large] = inverse * np.polynomial.polynomial.polyval(inverse, _SERIES)
    return defect


def _defect_series(n_terms):
    """Coefficients of y^-1, y^-2, ... in 1 - I_1 / I_0.

    R = I_1 / I_0 solves R' = 1 - R / y - R^2, which gives them one after another.
    """
    c = np.zeros(n_terms + 1)
    c[1] = 0.5
    for k in range(2, n_terms + 1):
        c[k] = ((k - 2) * c[k - 1] + c[1:k] @ c[k - 1 : 0 : -1]) / 2
    return c[1:]


_SERIES = _defect_series(10)


def _in_blocks(function, *gaps):
    """Apply a function of two flat arrays, a block at a time."""
    second, third = np.broadcast_arrays(*gaps)
    shape, second, third = second.shape, second.ravel(), third.ravel()
    size = _BLOCK // len(_NODES)
    parts = [
        function(second[i : i + size], third[i : i + size])
        for i in range(0, max(1, len(second)), size)
    ]
    columns = zip(*parts, strict=True)
    return tuple(np.concatenate(column).reshape(shape) for column in columns)


def _integrand(second, third):
    """Return x^2 and y at the nodes, the weighted integrand, and its sum."""
    reach = np.sqrt(_REACH / np.maximum(third, _REACH))[:, None]
    square = (reach * _NODES) ** 2
    y = second[:, None] * (1 - square) / 2
    values = reach * _WEIGHTS * np.exp(-third[:, None] * square) * i0e(y)
    return square, y, values, values.sum(axis=1)


def _log_excess(second, third):
    return (np.log(_integrand(second, third)[-1]),)


def _excess_moments(second, third):
    square, y, values, total = _integrand(second, third)
    second_moment = (values * (1 - square) * bessel_defect(y)).sum(axis=1) / (2 * total)
    return np.log(total), second_moment, (values * square).sum(axis=1) / total
