"""The only file that touches private scikit-learn names."""

from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_params,
)

__all__ = [
    "Interval",
    "StrOptions",
    "fit_context",
    "validate_params",
]
