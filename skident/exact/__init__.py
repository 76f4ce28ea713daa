"""Closed forms and enumerations of solvable models: the truth to test against."""

from skident.exact._curie_weiss import CurieWeiss, curie_weiss
from skident.exact._hopfield import Hopfield, hopfield
from skident.exact._ising import Ising, ising
from skident.exact._maier_saupe import (
    MaierSaupe,
    MaierSaupeLimit,
    MaierSaupeTransition,
    maier_saupe,
    maier_saupe_limit,
    maier_saupe_transition,
)
from skident.exact._onsager import Onsager, onsager

__all__ = [
    "CurieWeiss",
    "Hopfield",
    "Ising",
    "MaierSaupe",
    "MaierSaupeLimit",
    "MaierSaupeTransition",
    "Onsager",
    "curie_weiss",
    "hopfield",
    "ising",
    "maier_saupe",
    "maier_saupe_limit",
    "maier_saupe_transition",
    "onsager",
]
