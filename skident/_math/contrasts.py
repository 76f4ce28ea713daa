"""Contrasts of independent component analysis, and densities of sources.

A contrast takes rows of sources and returns its derivative at every entry, and the
column means of its second derivative and of itself.
"""

import numpy as np


def logcosh(Y):
    """Contrast ln cosh(y): robust, for all but very heavy or very light tails."""
    slope = np.tanh(Y)
    # ln cosh y = |y| - ln(1 + |tanh y|); the logarithm of a product of at most 512
    # factors below 2 replaces 512 logarithms.
    growth = np.abs(slope)
    growth += 1.0
    starts = np.arange(0, len(Y), 512)
    logs = np.log(np.multiply.reduceat(growth, starts, axis=0)).sum(axis=0)
    value = (np.abs(Y, out=growth).sum(axis=0) - logs) / len(Y)
    curvature = 1.0 - np.einsum("ij,ij->j", slope, slope) / len(Y)
    return slope, curvature, value


def exp(Y):
    """Contrast -exp(-y^2/2): for very heavy tails."""
    square = Y * Y
    bell = np.exp(-0.5 * square)
    curvature = np.mean(bell - square * bell, axis=0)
    return Y * bell, curvature, -bell.mean(axis=0)


def cube(Y):
    """Contrast y^4/4 (kurtosis): for light tails; sensitive to outliers."""
    square = Y * Y
    quartic = np.einsum("ij,ij->j", square, square) / len(Y)
    return square * Y, 3.0 * square.mean(axis=0), 0.25 * quartic


CONTRASTS = {"logcosh": logcosh, "exp": exp, "cube": cube}
# Mean of each contrast over a standard normal variable.
GAUSSIAN_VALUES = {"logcosh": 0.3745672075, "exp": -np.sqrt(0.5), "cube": 0.75}


def log_secant(Y):
    """Log density of the unit-variance hyperbolic secant, 1/(2 cosh(pi y/2))."""
    bend = 0.5 * np.pi * np.abs(Y)
    return -bend - np.log1p(np.exp(-2.0 * bend))


def log_two_peaks(Y):
    """Log density of two equal normals at +-1/sqrt(2), each of variance 1/2."""
    bend = np.sqrt(2.0) * np.abs(Y)
    logcosh = bend + np.log1p(np.exp(-2.0 * bend)) - np.log(2.0)
    return logcosh - Y * Y - 0.5 - 0.5 * np.log(np.pi)


def source_log_density(Y, sub_gaussian):
    """Return the log density of each source in nats, shape of ``Y``."""
    return np.where(sub_gaussian, log_two_peaks(Y), log_secant(Y))
