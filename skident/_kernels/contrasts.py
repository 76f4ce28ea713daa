"""Contrasts of independent component analysis: slope, curvature and value at once.

Each kernel takes a block of sources ``Y`` of shape (m, w), fills ``slope`` with the
derivative of the contrast, and adds to ``curvature`` and ``value``, of shape (w,), the
sums over the rows of its second derivative and of itself. The inner loops run along a
row without branches or calls, so that they compile to vector instructions: where
columns are few, lay several rows side by side.

Exponentials are 2^n times the Taylor polynomial of 2^f, |f| <= 1/2, with n set in the
bits of the exponent. Errors of slopes are below 5e-7 in float32 and 1e-15 in float64.
"""

import math

import numpy as np
from numba import types
from numba.extending import overload

from skident._kernels.jit import kernel

# Adding 3/2 2^(bits of the mantissa) leaves the nearest integer in the last bits.
_SHIFT32 = np.float32(1.5 * 2**23)
_SHIFT64 = np.float64(1.5 * 2**52)
_ONE_BITS32 = np.int32(0x3F800000)
_ONE_BITS64 = np.int64(0x3FF0000000000000)
_LOG2E32 = np.float32(np.log2(np.e))
_LOG2E64 = np.float64(np.log2(np.e))
# The exponential of minus this is nothing beside 1, and no underflow.
_FAR32 = np.float32(80.0)
_FAR64 = np.float64(600.0)
_LN2_POWERS = np.cumprod(np.log(2.0) / np.arange(1, 13))
_E1, _E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11, _E12 = _LN2_POWERS
_F1, _F2, _F3, _F4, _F5, _F6, _F7 = _LN2_POWERS[:7].astype(np.float32)
_ONE32 = np.float32(1.0)


@kernel
def decay32(x):
    """Return exp(-x) of a float32 x >= 0, exp(-80) beyond 80."""
    a = -_LOG2E32 * min(x, _FAR32)
    r = a + _SHIFT32
    f = a - (r - _SHIFT32)
    p = _F4 + f * (_F5 + f * (_F6 + f * _F7))
    p = _ONE32 + f * (_F1 + f * (_F2 + f * (_F3 + f * p)))
    bits = np.int32((np.float32(r).view(np.int32) << 23) + _ONE_BITS32)
    return p * np.int32(bits).view(np.float32)


@kernel
def decay64(x):
    """Return exp(-x) of a float64 x >= 0, exp(-600) beyond 600."""
    a = -_LOG2E64 * min(x, _FAR64)
    r = a + _SHIFT64
    f = a - (r - _SHIFT64)
    p = _E9 + f * (_E10 + f * (_E11 + f * _E12))
    p = _E5 + f * (_E6 + f * (_E7 + f * (_E8 + f * p)))
    p = 1.0 + f * (_E1 + f * (_E2 + f * (_E3 + f * (_E4 + f * p))))
    bits = np.int64((np.float64(r).view(np.int64) << 52) + _ONE_BITS64)
    return p * np.int64(bits).view(np.float64)


def decay(x):
    """Return exp(-x) of a float x >= 0 in its own precision."""
    return decay32(x) if isinstance(x, np.float32) else decay64(x)


@overload(decay)
def _overload_decay(x):
    if x == types.float32:
        return lambda x: decay32(x)
    return lambda x: decay64(x)


@kernel
def logcosh(Y, slope, curvature, value):
    """Contrast ln cosh(y) + ln 2."""
    m, w = Y.shape
    one, zero = Y.dtype.type(1.0), Y.dtype.type(0.0)
    # Factors below 2 whose product does not overflow.
    n_factors = 64 if Y.itemsize == 4 else 512
    growth = np.ones_like(value)
    for b in range(m):
        for j in range(w):
            y = Y[b, j]
            size = abs(y)
            e = decay(size + size)
            t = (one - e) / (one + e)
            slope[b, j] = t if y >= zero else -t
            curvature[j] += one - t * t
            value[j] += size
            growth[j] *= one + e
        if (b + 1) % n_factors == 0 or b + 1 == m:
            for j in range(w):
                value[j] += math.log(growth[j])
            growth[:] = one


@kernel
def bell(Y, slope, curvature, value):
    """Contrast -exp(-y^2/2)."""
    m, w = Y.shape
    half = Y.dtype.type(0.5)
    for b in range(m):
        for j in range(w):
            y = Y[b, j]
            square = y * y
            e = decay(half * square)
            slope[b, j] = y * e
            curvature[j] += e - square * e
            value[j] -= e


@kernel
def cube(Y, slope, curvature, value):
    """Contrast y^4/4."""
    m, w = Y.shape
    three, quarter = Y.dtype.type(3.0), Y.dtype.type(0.25)
    for b in range(m):
        for j in range(w):
            y = Y[b, j]
            square = y * y
            slope[b, j] = square * y
            curvature[j] += three * square
            value[j] += quarter * square * square
