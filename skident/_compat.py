"""The only file that touches private scikit-learn names."""

import numpy as np
from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import Interval as _Interval
from sklearn.utils._param_validation import StrOptions, validate_params

__all__ = [
    "Interval",
    "StrOptions",
    "fit_context",
    "validate_params",
]


class Interval(_Interval):
    """scikit-learn's interval, for floats of any width.

    numpy rounds a bound to the width of what it is compared with: to infinity, with a
    warning, in single precision.
    """

    def __contains__(self, val):
        return super().__contains__(float(val) if isinstance(val, np.floating) else val)
