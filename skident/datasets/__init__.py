"""Data with a known answer: generators of solvable models, readers of public files."""

from skident.datasets._couplings import lattice_graph, make_couplings
from skident.datasets._curie_weiss import make_curie_weiss
from skident.datasets._hopfield import make_hopfield
from skident.datasets._ising import make_ising
from skident.datasets._maier_saupe import make_maier_saupe
from skident.datasets._moving_square import make_moving_square
from skident.datasets._nonlinear_mixture import make_nonlinear_mixture
from skident.datasets._patterns import make_patterns
from skident.datasets._renders import load_falcor3d, load_isaac3d
from skident.datasets._retina import load_retina
from skident.datasets._rxrx3 import load_rxrx3_core
from skident.datasets._spin_glass import make_spin_glass
from skident.datasets._sprites import load_dsprites, load_mpi3d, load_shapes3d

__all__ = [
    "lattice_graph",
    "load_dsprites",
    "load_falcor3d",
    "load_isaac3d",
    "load_mpi3d",
    "load_retina",
    "load_rxrx3_core",
    "load_shapes3d",
    "make_couplings",
    "make_curie_weiss",
    "make_hopfield",
    "make_ising",
    "make_maier_saupe",
    "make_moving_square",
    "make_nonlinear_mixture",
    "make_patterns",
    "make_spin_glass",
]
