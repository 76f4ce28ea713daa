"""Directors on the sphere that all feel each other alike."""

import math
from functools import partial
from numbers import Integral
from typing import NamedTuple

import numpy as np

from skident._compat import Interval, StrOptions, validate_params
from skident._kernels.directors import (
    draw_given_field,
    measure_directors,
    propose_cells,
    seed_rows,
    start_directors,
    sweep_directors,
)
from skident.datasets._chains import CHAINS, COMMON, sample_chains, sample_exact
from skident.exact._maier_saupe import (
    depth_reach,
    field_depth,
    field_gaps,
    field_panels,
)

# Nanoseconds per director, per field of a chain, and per value of the density of the
# field.
_DIRECTOR_NS, _FIELD_NS, _DENSITY_NS = 50.0, 1000.0, 3000.0

# Cells of the bound on the density of the field: per interval in u, and in y.
_U_CELLS, _Y_CELLS = 4, 64
# What lies deeper than exp(-45) no uniform of 53 bits would find.
_DEPTH = 45.0
# Hotter than this the field of any draw, about sqrt(1 / T), is lost in rounding.
_FREE = 1e32
# Lets no rounding put the bound below the density.
_MARGIN = 1e-9
# The lowest u of which 1 + u is positive.
_LEAST = -1 + 2.0**-53

# The basis of the tensors, as skident._kernels.directors writes them.
_BASIS = np.zeros((5, 3, 3))
_BASIS[0] = np.diag([-1, -1, 2]) / math.sqrt(6)
_BASIS[1] = np.diag([1, -1, 0]) / math.sqrt(2)
for _k, (_i, _j) in enumerate([(0, 1), (0, 2), (1, 2)], start=2):
    _BASIS[_k, _i, _j] = _BASIS[_k, _j, _i] = 1 / math.sqrt(2)


@validate_params(
    {
        **COMMON,
        **CHAINS,
        "n_sites": [Interval(Integral, 1, 10**7, closed="both")],
        "method": [StrOptions({"auto", "exact", "block-gibbs"})],
    },
    prefer_skip_nested_validation=True,
)
def make_maier_saupe(
    n_samples,
    n_sites,
    *,
    temperature,
    method="auto",
    draws_per_chain=1,
    spacing="auto",
    out=None,
    return_info=False,
    n_jobs=None,
    verbose=0,
    random_state=None,
):
    r"""Draw samples of the Maier-Saupe model of directors.

    The Hamiltonian of N unit vectors :math:`n_k` in space, self-terms included, with
    :math:`k_B = 1`, is

    .. math:: H = -\frac{1}{2N} \sum_{k,l} P_2(n_k \cdot n_l)
              = -\frac{N}{3} \operatorname{tr} Q^2 , \qquad
              Q = \frac{1}{N} \sum_k \tfrac{3}{2} \left(n_k n_k^T - I/3\right) ,

    with :math:`P_2(x) = (3 x^2 - 1) / 2`, and :math:`P(n) \propto e^{-H(n)/T}` with
    respect to the areas of the spheres. Directors have no head: each is drawn or its
    reverse, with equal probability.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    n_sites : int
        Number of directors N, at most 1e7.
    temperature : float
        Temperature T in units of the coupling, at least 1e-100; infinity is allowed.
        Large systems are nematic below 0.2202.
    method : {"auto", "exact", "block-gibbs"}, default="auto"
        "exact" draws independent samples at any size and temperature, and is what
        "auto" takes. "block-gibbs" runs Markov chains; it is there to check, and to
        study, that way of sampling.
    draws_per_chain : int, default=1
        Draws taken of each chain of block Gibbs sampling: row k is draw
        ``k % draws_per_chain`` of chain ``k // draws_per_chain``. Exact draws are
        independent whatever it is.
    spacing : int or "auto", default="auto"
        Sweeps between the draws of a chain; "auto" is one autocorrelation time.
    out : ndarray of shape (n_samples, 3 * n_sites), dtype float64, default=None
        Where to write X, for instance a memory map; None makes a new array.
    return_info : bool, default=False
        Whether to return ``info`` too.
    n_jobs : int or None, default=None
        Number of threads, as in joblib. The samples do not depend on it.
    verbose : int, default=0
        1 shows a progress bar.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples. Sample k does not depend on ``n_samples``.

    Returns
    -------
    X : ndarray of shape (n_samples, 3 * n_sites), dtype float64
        The directors, x, y and z of the first, then of the second, and so on; ``out``
        if it was given.
    y : ndarray of shape (n_samples, 5)
        The tensor Q of each sample in an orthonormal basis, so that the sum of squares
        is tr Q^2 and scalar products are those of tensors:
        :math:`(2 Q_{zz} - Q_{xx} - Q_{yy}) / \sqrt 6`,
        :math:`(Q_{xx} - Q_{yy}) / \sqrt 2`, :math:`\sqrt 2 Q_{xy}`,
        :math:`\sqrt 2 Q_{xz}` and :math:`\sqrt 2 Q_{yz}`. As tr Q = 0, the first two
        give the diagonal; the axis of order is the eigenvector of the largest
        eigenvalue.
    info : Bunch
        Only if ``return_info``: ``method``, ``energies`` (n_samples,) the total H,
        ``order_parameter`` = y; of block Gibbs sampling the integrated autocorrelation
        time ``tau_int`` (of energy and largest eigenvalue of Q), ``burn_in`` and
        ``spacing`` in sweeps, the effective sample size ``ess``, the ``acceptance``
        of the directors proposed, and ``start_disagreement``, by which pilot chains
        from random and aligned starts differ, in standard deviations. Of exact draws
        these are trivial: 1, 0, 0, n_samples, 1 and 0.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it and its value.

    Warns
    -----
    ConvergenceWarning
        Block Gibbs sampling only: if the chains mix too slowly for the burn-in to be
        measured, or the draws are worth few independent ones.

    See Also
    --------
    skident.exact.maier_saupe : Exact values of the same model.

    Notes
    -----
    A Gaussian tensor field M decouples the directors: the density of M depends on its
    three eigenvalues, which sum to zero, and given M the directors are independent
    with the Bingham density :math:`\propto e^{n^T M n / T}`. The exact method draws
    the eigenvalues by rejection from under a piecewise constant bound of their density
    (more than 80 % of the proposals are accepted at any size and temperature; a share
    of 1e-19 of the mass at the edges is left out), turns the frame at random, and draws
    the directors by the rejection of Kent, Ganeiber and Mardia. So both phases have
    their weights at the transition. Block Gibbs sampling draws M given the directors,
    which is Q plus Gaussian noise of variance 3 T / 2N in each of its five
    coordinates, then the directors given M, in a frame turned at random.

    References
    ----------
    .. [1] W. Maier and A. Saupe, "Eine einfache molekulare Theorie des nematischen
       kristallinflüssigen Zustandes", Z. Naturforsch. A 13, 564 (1958).
    .. [2] J. T. Kent, A. M. Ganeiber and K. V. Mardia, "A new unified approach for the
       simulation of a wide class of directional distributions", J. Comput. Graph.
       Stat. 27, 291 (2018).

    Examples
    --------
    >>> from skident.datasets import make_maier_saupe
    >>> X, tensors = make_maier_saupe(500, 64, temperature=0.18, random_state=0)
    >>> X.shape, tensors.shape
    ((500, 192), (500, 5))

    The order parameter that :func:`skident.exact.maier_saupe` gives has the mean inside
    the root:

    >>> order = (2 / 3 * (tensors**2).sum(axis=1).mean()) ** 0.5
    >>> bool(0.69 < order < 0.73)
    True
    """
    n_sites, temperature = int(n_sites), float(temperature)
    options = {
        "dtype": np.float64, "out": out, "return_info": return_info, "n_jobs": n_jobs,
        "verbose": verbose, "random_state": random_state,
    }  # fmt: skip
    if method == "block-gibbs":
        return sample_chains(
            _BlockGibbs(n_sites, 1.0 / temperature), n_samples,
            draws_per_chain=draws_per_chain, spacing=spacing, **options,
        )  # fmt: skip
    bound = None if temperature > _FREE else _field_bound(n_sites, temperature)
    draw = partial(_exact_rows, n_sites=n_sites, temperature=temperature, bound=bound)
    row_ns = _DENSITY_NS + _DIRECTOR_NS * n_sites
    return sample_exact(draw, n_samples, 3 * n_sites, row_ns=row_ns, **options)


class _FieldBound(NamedTuple):
    """A piecewise constant bound of the density of the tensor field.

    ``cdf`` (n_cells,) is the share of its mass up to each cell, ``cells`` (n_cells, 4)
    the lower left corners in (u, y) and the widths, ``tops`` (n_cells,) its logarithm.
    """

    cdf: np.ndarray
    cells: np.ndarray
    tops: np.ndarray


def _field_bound(n_sites, temperature):
    """Bound the density of (u, y) from above, cell by cell.

    The part of the logarithm that has no closed form, :func:`field_depth`, is convex
    in u and falls with y: over a cell it lies below its chord along the side y = low.
    """
    low, high = field_panels(n_sites, temperature)
    edges = np.linspace(low, high, _U_CELLS + 1)
    low, high = edges[:-1].T.ravel(), edges[1:].T.ravel()
    reach = depth_reach(n_sites, temperature, (low + high) / 2, _DEPTH)
    edges = reach[:, None] * np.linspace(0, 1, _Y_CELLS + 1) ** 2
    y_low, y_width = edges[:, :-1], np.diff(edges, axis=1)
    low, high = np.broadcast_arrays(low[:, None], high[:, None], y_low)[:2]
    left = field_depth(n_sites, temperature, low, y_low)
    right = field_depth(n_sites, temperature, high, y_low)
    tops = _chord_top(low, high, left, right, temperature / n_sites) + _MARGIN
    cells = np.stack([low, y_low, high - low, y_width], axis=-1).reshape(-1, 4)
    mass = np.exp(tops - tops.max()) * ((high - low) / np.ptp(high)) * y_width
    cdf = np.cumsum(mass / mass.max())
    return _FieldBound(cdf / cdf[-1], cells, tops.ravel())


def _chord_top(low, high, left, right, variance):
    """Return the maximum over u of 4 ln(1 + u) - u^2 / 2 variance + a chord."""
    slope = (right - left) / (high - low)
    # The root u of 4 / (1 + u) - u / variance + slope = 0, written without cancelling.
    p = 1 - variance * slope
    root = np.hypot(1 + variance * slope, 4 * math.sqrt(variance))
    small = 2 * variance * (4 + slope) / np.where(p > 0, p + root, 1.0)
    best = np.clip(np.where(p > 0, small, (root - p) / 2), low, high)
    return _noise_part(best, variance) + left + slope * (best - low)


def _noise_part(u, variance):
    """Log of the density of (u, y), but for the part of the normaliser."""
    return 4 * np.log1p(np.maximum(u, _LEAST)) - (u / math.sqrt(variance)) ** 2 / 2


def _exact_rows(key, start, stop, n_sites, temperature, bound):
    """Independent rows ``start:stop``, their tensors and energies."""
    n_rows = stop - start
    states = np.empty((n_rows, 4), np.uint64)
    seed_rows(key, start, states)
    second = third = np.zeros(n_rows)
    if bound is not None:
        u, y = _draw_field(states, n_sites, temperature, bound)
        _, second, third = field_gaps(temperature, u, y)
    directors, q = np.empty((n_rows, n_sites, 3)), np.empty((n_rows, 5))
    draw_given_field(states, second, third, directors, q)
    return directors.reshape(n_rows, -1), q, _energies(n_sites, q)


def _draw_field(states, n_sites, temperature, bound):
    """Draw u and y of each row by rejection from under the bound."""
    chosen = np.empty((len(states), 2))
    rows = np.arange(len(states))
    while len(rows):
        points, levels = np.empty((len(rows), 2)), np.empty(len(rows))
        propose_cells(states, rows, *bound, points, levels)
        u, y = points.T
        log_p = _noise_part(u, temperature / n_sites)
        log_p += field_depth(n_sites, temperature, u, y)
        accepted = log_p >= levels
        chosen[rows[accepted]] = points[accepted]
        rows = rows[~accepted]
    return chosen.T


def _energies(n_sites, q):
    """H of each sample, from the components of its tensor."""
    return -n_sites / 3 * (q**2).sum(axis=1)


class _BlockGibbs(NamedTuple):
    """Block Gibbs chains, as :func:`sample_chains` wants them."""

    n_directors: int
    beta: float
    method: str = "block-gibbs"
    lanes: int = 1
    bundle: int = 1

    @property
    def n_sites(self):
        return 3 * self.n_directors

    @property
    def sweep_ns(self):
        return _FIELD_NS + _DIRECTOR_NS * self.n_directors

    def start(self, key, first, n_chains, cold):
        states = np.empty((n_chains, 4), np.uint64)
        directors = np.empty((n_chains, self.n_directors, 3))
        start_directors(key, first, cold, states, directors)
        return states, directors, np.zeros((n_chains, 2), np.int64)

    def advance(self, state, n_sweeps):
        states, directors, counts = state
        sweep_directors(states, directors, self.beta, n_sweeps, counts)

    def observe(self, state):
        q = _tensors(state[1])
        largest = np.linalg.eigvalsh(np.tensordot(q, _BASIS, 1))[:, -1]
        return np.stack([_energies(self.n_directors, q), largest], axis=1)

    def read(self, state):
        directors = state[1]
        q = _tensors(directors)
        rows = directors.reshape(len(directors), -1).copy()
        return rows, q, _energies(self.n_directors, q)

    def acceptance(self, state):
        proposed, accepted = state[2].sum(axis=0)
        return accepted / proposed if proposed else 1.0


def _tensors(directors):
    """Components of the tensor of each chain."""
    q = np.empty((len(directors), 5))
    measure_directors(directors, q)
    return q
