"""Functions of arrays that say how good, or how alike, representations are."""

from skident._math.information import Estimate
from skident.metrics._alignment import alignment_errors
from skident.metrics._alignment_result import AlignmentErrors, ica_efficiency
from skident.metrics._amari import amari_distance
from skident.metrics._dci import DCI, dci_score
from skident.metrics._factor_scorers import factor_scorer, infomec_scorer
from skident.metrics._gaps import mig_score, mutual_information, sap_score
from skident.metrics._infomec import InfoMEC, infomec_score
from skident.metrics._information import (
    BipartiteInformation,
    bipartite_information,
    total_correlation,
)
from skident.metrics._lipschitz import bi_lipschitz
from skident.metrics._mcc import MCC, mcc_score
from skident.metrics._probe import probe_transfer
from skident.metrics._probe_result import ProbeTransfer
from skident.metrics._selection import one_standard_error
from skident.metrics._similarity import (
    CCASimilarity,
    cca_similarity,
    hoyer_sparsity,
    linear_cka,
    procrustes_distance,
)

__all__ = [
    "DCI",
    "MCC",
    "AlignmentErrors",
    "BipartiteInformation",
    "CCASimilarity",
    "Estimate",
    "InfoMEC",
    "ProbeTransfer",
    "alignment_errors",
    "amari_distance",
    "bi_lipschitz",
    "bipartite_information",
    "cca_similarity",
    "dci_score",
    "factor_scorer",
    "hoyer_sparsity",
    "ica_efficiency",
    "infomec_score",
    "infomec_scorer",
    "linear_cka",
    "mcc_score",
    "mig_score",
    "mutual_information",
    "one_standard_error",
    "probe_transfer",
    "procrustes_distance",
    "sap_score",
    "total_correlation",
]
