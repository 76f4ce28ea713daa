"""Data with a known answer: generators of solvable models."""

from skident.datasets._curie_weiss import make_curie_weiss
from skident.datasets._hopfield import make_hopfield
from skident.datasets._ising import make_ising
from skident.datasets._patterns import make_patterns

__all__ = ["make_curie_weiss", "make_hopfield", "make_ising", "make_patterns"]
