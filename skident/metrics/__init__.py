"""Functions of arrays that say how good, or how alike, representations are."""

from skident._math.information import Estimate
from skident.metrics._alignment import alignment_errors
from skident.metrics._alignment_result import AlignmentErrors, ica_efficiency
from skident.metrics._amari import amari_distance
from skident.metrics._information import (
    BipartiteInformation,
    bipartite_information,
    total_correlation,
)
from skident.metrics._lipschitz import bi_lipschitz
from skident.metrics._selection import one_standard_error

__all__ = [
    "AlignmentErrors",
    "BipartiteInformation",
    "Estimate",
    "alignment_errors",
    "amari_distance",
    "bi_lipschitz",
    "bipartite_information",
    "ica_efficiency",
    "one_standard_error",
    "total_correlation",
]
