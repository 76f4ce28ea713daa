"""Functions of arrays that say how good, or how alike, representations are."""

from skident.metrics._alignment import alignment_errors
from skident.metrics._alignment_result import AlignmentErrors, ica_efficiency
from skident.metrics._amari import amari_distance
from skident.metrics._lipschitz import bi_lipschitz

__all__ = [
    "AlignmentErrors",
    "alignment_errors",
    "amari_distance",
    "bi_lipschitz",
    "ica_efficiency",
]
