"""The +-1 vectors of a subspace: patterns unmixed from the span that they share.

An orthonormal basis ``U`` (n_sites, n_dims) of a subspace is given, up to noise the
span of ``n_dims`` patterns in {-1, 1}. A unit vector ``w`` names the vector
``y = sqrt(n_sites) U w`` with mean square 1, and

    mean(y**4) >= mean(y**2)**2 = 1,   with equality iff every entry of y is +-1,

so the patterns are the global minima of the (uncentred) kurtosis on the sphere. They
are proposed by one of two solvers, refined to local minima of the residual
``1 - |U' s|**2 / n_sites`` (the squared sine of the angle between the sign vector
``s`` and the span) and chosen greedily, best first.

A span also holds +-1 vectors that are no patterns, such as ``a + b - c`` where it
happens to be +-1 at all sites. Nothing in the span tells them apart. They are likely
only for few sites: about ``4 C(n_dims, 3) (3/4)**n_sites`` of random draws have one.

References
----------
.. [1] M. Slawski, M. Hein, P. Lutsik, "Matrix factorization with binary components",
   NeurIPS 2013.
.. [2] A. Hyvarinen, "Fast and robust fixed-point algorithms for independent
   component analysis", IEEE Trans. Neural Networks 10 (1999).
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import qr

MAX_VERTEX_DIMS = 22
_MAX_VERTICES = 2**20  # over all choices of rows; one choice is always searched
_MAX_ROW_CHOICES = 8
_KEPT = 1024  # vertices refined for each choice of rows
_BLOCK_ENTRIES = 2**22  # of float32: 16 MiB a temporary array
_EXACT = 1e-9  # a residual below it is rounding
_INDEPENDENT = 1e-8  # least squared sine between a pattern and those before it


class DecodedSpan(NamedTuple):
    """The sign vectors found in a span, best first.

    Attributes
    ----------
    patterns : ndarray of shape (n_patterns, n_sites), int8
        Entries in {-1, 1}, linearly independent, +1 at the first site (a pattern and
        its negative are one). ``n_patterns`` is at most the dimension of the span.
    residuals : ndarray of shape (n_patterns,)
        ``1 - |projection on the span|**2 / n_sites``, ascending; 0 is exact.
    n_candidates : int
        Sign vectors proposed by the solver.
    """

    patterns: np.ndarray
    residuals: np.ndarray
    n_candidates: int


def decode_span(basis, *, solver="auto", seed=0):
    """Find the +-1 vectors nearest to a subspace.

    Parameters
    ----------
    basis : ndarray of shape (n_sites, n_dims)
        Orthonormal columns. Only their span matters.
    solver : {"auto", "ica", "vertex"}
        Key of ``SPAN_SOLVERS``. "ica" minimises the kurtosis from many starts: any
        number of dimensions, safe for few. "vertex" solves for every assignment of
        signs to ``n_dims`` well-conditioned sites: ``2**(n_dims - 1)`` vectors, for
        at most ``MAX_VERTEX_DIMS`` dimensions. "auto" pools the proposals of all the
        solvers that fit.
    seed : int
        Of the random starts and of the choices of sites.

    Returns
    -------
    DecodedSpan
    """
    basis = _as_basis(basis)
    n_sites, n_dims = basis.shape
    if n_dims == 0:
        return DecodedSpan(np.empty((0, n_sites), np.int8), np.empty(0), 0)
    rng = np.random.default_rng(seed)
    pool, n_candidates = np.empty((0, n_sites)), 0
    for name in _fitting_solvers(n_dims) if solver == "auto" else [solver]:
        proposed, count = SPAN_SOLVERS[name](basis, rng)
        n_candidates += count
        pool = np.concatenate([pool, proposed])
        patterns, residuals = _select(basis, pool)
        if _is_exact(basis, residuals):
            break
    return DecodedSpan(patterns.astype(np.int8), residuals, n_candidates)


def _fitting_solvers(n_dims):
    """Return the solvers to run in turn: the vertex search finds all exact vectors."""
    return ["vertex", "ica"] if n_dims <= MAX_VERTEX_DIMS else ["ica"]


def _is_exact(basis, residuals):
    """Tell whether sign vectors with these residuals span the space, up to rounding."""
    return len(residuals) == basis.shape[1] and residuals.max() < _EXACT


def _as_basis(basis):
    """Return the basis as float64 and refuse one that is not orthonormal."""
    basis = np.asarray(basis, dtype=np.float64)
    gram = basis.T @ basis
    if not np.allclose(gram, np.eye(basis.shape[1]), atol=1e-6):
        raise ValueError("The basis of a span must have orthonormal columns.")
    return basis


def _signs(values):
    """Return the signs as +-1 in the same dtype; 0 counts as +1."""
    return np.where(values < 0, -1.0, 1.0).astype(values.dtype, copy=False)


def _canonical(patterns):
    """Return distinct sign vectors, each with +1 at its first site."""
    patterns = patterns * patterns[:, :1]
    return np.unique(patterns.astype(np.int8), axis=0).astype(np.float64)


def _residuals(basis, patterns):
    """Return the squared sine of the angle between each pattern and the span."""
    projected = patterns @ basis
    explained = np.einsum("ij,ij->i", projected, projected) / basis.shape[0]
    return np.maximum(1.0 - explained, 0.0)


# Proposals


def _propose_ica(basis, rng):
    """Minimise the kurtosis over the sphere from many starts, then take signs."""
    n_sites, n_dims = basis.shape
    n_starts = 64 + 32 * n_dims
    # Starts are made over sites, so that they do not depend on the basis of the span.
    starts = rng.choice([-1.0, 1.0], size=(n_starts, n_sites)) @ basis
    directions = _minimise_kurtosis(basis, starts)
    return _refine(basis, _signs(directions @ basis.T)), n_starts


def _minimise_kurtosis(basis, starts, *, max_iter=100):
    """Follow the fixed-point iteration of the kurtosis from each start [2]_.

    Returns unit vectors (at most n_starts, n_dims); starts of length 0 are dropped.
    """
    scale = np.sqrt(basis.shape[0])
    norms = np.linalg.norm(starts, axis=1, keepdims=True)
    directions = starts[norms[:, 0] > 0] / norms[norms[:, 0] > 0]
    for _ in range(max_iter):
        values = scale * directions @ basis.T
        step = 3.0 * directions - values**3 @ basis / scale
        norms = np.linalg.norm(step, axis=1, keepdims=True)
        # A vanishing step is a saddle of no use: the direction stays.
        moved = np.divide(step, norms, out=directions.copy(), where=norms > 1e-12)
        cosines = np.abs(np.einsum("ij,ij->i", moved, directions))
        directions = moved
        if cosines.min() > 1 - 1e-10:
            break
    return directions


def _propose_vertex(basis, rng):
    """Solve for all sign assignments to a few choices of well-conditioned sites."""
    n_dims = basis.shape[1]
    if n_dims > MAX_VERTEX_DIMS:
        raise ValueError(
            f"The vertex search doubles with every dimension and stops at "
            f"{MAX_VERTEX_DIMS}: the span has {n_dims}. Use solver='ica'."
        )
    n_vertices = 2 ** (n_dims - 1)
    n_choices = min(_MAX_ROW_CHOICES, max(1, _MAX_VERTICES // n_vertices))
    pool = np.empty((0, basis.shape[0]))
    n_candidates, n_same, last = 0, 0, None
    for choice in range(n_choices):
        weights = rng.uniform(0.3, 1.0, size=basis.shape[0]) if choice else 1.0
        rows = _well_conditioned_rows(weights * basis.T)
        patterns = _refine(basis, _best_vertices(basis, rows))
        pool = _canonical(np.concatenate([pool, patterns]))
        n_candidates += n_vertices
        patterns, residuals = _select(basis, pool)
        n_same = n_same + 1 if np.array_equal(patterns, last) else 0
        if n_same == 2 or _is_exact(basis, residuals):
            break
        last = patterns
    return pool, n_candidates


def _well_conditioned_rows(columns):
    """Return as many of the columns as there are rows, far from dependent.

    Pivoted QR takes the column with the longest part outside those taken before.
    """
    _, _, order = qr(columns, mode="economic", pivoting=True)
    return np.sort(order[: columns.shape[0]])


def _best_vertices(basis, rows):
    """Return the sign vectors nearest to the span among all that a site choice gives.

    Every assignment of signs to the chosen sites, the first fixed at +1, extends to
    one vector of the span; its signs are scored by their residual, block by block.
    """
    n_sites, n_dims = basis.shape
    extend = np.linalg.solve(basis[rows].T, basis.T).astype(np.float32)
    basis32 = basis.astype(np.float32)
    n_vertices = 2 ** (n_dims - 1)
    block = max(64, _BLOCK_ENTRIES // n_sites)
    codes = np.empty(0, dtype=np.int64)
    scores = np.empty(0, dtype=np.float32)
    for start in range(0, n_vertices, block):
        new = np.arange(start, min(start + block, n_vertices))
        projected = _signs(_assignments(new, n_dims) @ extend) @ basis32
        codes = np.concatenate([codes, new])
        scores = np.concatenate([scores, np.einsum("ij,ij->i", projected, projected)])
        if len(codes) > _KEPT:
            best = np.argsort(-scores, kind="stable")[:_KEPT]
            codes, scores = codes[best], scores[best]
    vertices = _assignments(codes, n_dims) @ extend
    return _signs(vertices.astype(np.float64))


def _assignments(codes, n_dims):
    """Return the signs (n_codes, n_dims) that the bits of the codes stand for."""
    bits = (codes[:, None] >> np.arange(n_dims)) & 1
    return np.where(bits, np.float32(-1), np.float32(1))


# Refinement and choice


def _refine(basis, patterns):
    """Lower the residual of each sign vector until no step or single flip does."""
    patterns = _canonical(patterns)
    active = np.arange(len(patterns))
    for _ in range(100):
        projected = _signs(patterns[active] @ basis @ basis.T)
        moved = (projected != patterns[active]).any(axis=1)
        active = active[moved]
        if len(active) == 0:
            break
        patterns[active] = projected[moved]
    return _canonical(_flip_descent(basis, _canonical(patterns)))


def _flip_descent(basis, patterns):
    """Flip the best single site of each vector as long as its residual falls.

    Flipping site i changes ``|U' s|**2`` by ``4 (own_i - s_i (U U' s)_i)`` with
    ``own_i = |U_i|**2``. Alternating projection stops earlier, at vectors of which a
    site is wrong but held up by its own share.
    """
    own = np.einsum("ij,ij->i", basis, basis)
    patterns = patterns.copy()
    active = np.arange(len(patterns))
    for _ in range(4 * basis.shape[0]):
        current = patterns[active]
        gain = own - current * (current @ basis @ basis.T)
        site = gain.argmax(axis=1)
        better = gain[np.arange(len(active)), site] > _EXACT
        active, site = active[better], site[better]
        if len(active) == 0:
            break
        patterns[active, site] *= -1
    return patterns


def _select(basis, patterns):
    """Choose linearly independent sign vectors greedily, the smallest residual first.

    A vector counts as new if the part of its projection that lies outside those
    already chosen exceeds its own residual: else it may be one of their span, off by
    noise. Equal residuals are ordered by their signs, so that the result does not
    depend on the basis.
    """
    patterns = _canonical(patterns)
    residuals = _residuals(basis, patterns)
    # Columns run from the least to the most significant key.
    order = np.lexsort((*patterns.T[::-1], np.round(residuals, 9)))
    patterns, residuals = patterns[order], residuals[order]
    rest = patterns @ basis / np.sqrt(basis.shape[0])
    whole = np.einsum("ij,ij->i", rest, rest)
    chosen = []
    for _ in range(basis.shape[1]):
        new = np.einsum("ij,ij->i", rest, rest)
        eligible = np.flatnonzero(new > np.maximum(_INDEPENDENT, residuals) * whole)
        if len(eligible) == 0:
            break
        chosen.append(eligible[0])
        direction = rest[eligible[0]] / np.sqrt(new[eligible[0]])
        rest = rest - np.outer(rest @ direction, direction)
    return patterns[chosen], residuals[chosen]


SPAN_SOLVERS = {"ica": _propose_ica, "vertex": _propose_vertex}
