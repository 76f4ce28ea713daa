"""Functions of arrays that say how good, or how alike, representations are."""

from skident.metrics._alignment import (
    AlignmentErrors,
    alignment_errors,
    ica_efficiency,
)
from skident.metrics._amari import amari_distance

__all__ = [
    "AlignmentErrors",
    "alignment_errors",
    "amari_distance",
    "ica_efficiency",
]
