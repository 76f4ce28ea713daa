"""The only file that touches private scikit-learn names."""

import functools

import numpy as np
from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils._param_validation import validate_params as _validate_params

__all__ = [
    "Interval",
    "StrOptions",
    "fit_context",
    "validate_params",
]


def validate_params(constraints, *, prefer_skip_nested_validation):
    """Decorate a function with scikit-learn's checks of its parameters.

    The function gets numbers of numpy as Python's: integers that do not wrap, floats in
    double precision.
    """

    def decorate(function):
        checked = _validate_params(
            constraints, prefer_skip_nested_validation=prefer_skip_nested_validation
        )(function)

        @functools.wraps(checked)
        def call(*args, **kwargs):
            plain = {name: _plain(value) for name, value in kwargs.items()}
            return checked(*map(_plain, args), **plain)

        return call

    return decorate


def _plain(value):
    if isinstance(value, np.integer):
        return int(value)
    return float(value) if isinstance(value, np.floating) else value
