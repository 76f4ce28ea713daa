"""Graphs, and random couplings on their edges."""

from numbers import Integral, Real

import numpy as np
from scipy import sparse

from skident._compat import Interval, StrOptions, validate_params
from skident._random import draw_seed, generator
from skident.datasets._lattice import lattice
from skident.exact._ising import check_shape

# A larger coupling, times the largest inverse temperature, would come near overflow.
LARGEST = 1e100


@validate_params(
    {
        "shape": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "periodic": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def lattice_graph(shape, *, periodic=True):
    """Return which sites of a lattice are neighbours, as a sparse matrix.

    Parameters
    ----------
    shape : int or tuple of 1 to 3 ints
        Sides of the lattice; an int is a chain. Sites are in C order.
    periodic : bool, default=True
        Whether the lattice closes on itself along every axis: each site is bonded
        to the next one, and the last to the first, as in :func:`make_ising`. If False
        the last site has no next one.

    Returns
    -------
    csr_array of shape (n_sites, n_sites), dtype float64
        Symmetric; an entry is the number of bonds: 1, or along a periodic side of
        length 2 two.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it and its value.

    Examples
    --------
    >>> from skident.datasets import lattice_graph
    >>> lattice_graph((2, 3), periodic=False).toarray().astype(int)
    array([[0, 1, 0, 1, 0, 0],
           [1, 0, 1, 0, 1, 0],
           [0, 1, 0, 0, 0, 1],
           [1, 0, 0, 0, 1, 0],
           [0, 1, 0, 1, 0, 1],
           [0, 0, 1, 0, 1, 0]])
    """
    shape = check_shape(shape)
    n_sites = int(np.prod(shape))
    first, second = lattice(shape, periodic, 1.0).bonds.T
    return _symmetric(first, second, np.ones(len(first)), n_sites)


@validate_params(
    {
        "graph": ["array-like", "sparse matrix"],
        "distribution": [StrOptions({"gaussian", "binary"})],
        "mean": [Interval(Real, None, None, closed="neither")],
        "scale": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_couplings(
    graph, *, distribution="gaussian", mean=0.0, scale=1.0, random_state=None
):
    r"""Draw independent random couplings on the edges of a graph: a spin glass.

    On a lattice (:func:`lattice_graph`) this is the Edwards-Anderson model; on the
    complete graph with ``scale`` :math:`1/\sqrt{N}` (and ``mean`` :math:`J_0 / N`) the
    Sherrington-Kirkpatrick model; on a random regular graph the Bethe spin glass.

    Parameters
    ----------
    graph : array-like or sparse matrix of shape (n_sites, n_sites)
        Symmetric, with zeros on its diagonal. Two sites are coupled where the entry is
        not 0, whatever its value.
    distribution : {"gaussian", "binary"}, default="gaussian"
        "gaussian": normal with standard deviation ``scale``; "binary": ``scale`` or
        ``-scale`` (±J), with probability ``(1 + mean / scale) / 2`` of the former.
    mean : float, default=0.0
        Mean of the couplings; for "binary" at most ``scale`` in size.
    scale : float, default=1.0
        Their standard deviation or size, an energy: the T of
        :func:`make_spin_glass` is in the same units.
    random_state : int, RandomState instance or None, default=None
        Seed of the couplings.

    Returns
    -------
    csr_array of shape (n_sites, n_sites), dtype float64
        The couplings, symmetric: for :func:`make_spin_glass`.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or ``graph`` is not square, finite and
        symmetric with a zero diagonal; the message names the entry.

    References
    ----------
    .. [1] S. F. Edwards and P. W. Anderson, "Theory of spin glasses", J. Phys. F 5,
       965 (1975).
    .. [2] D. Sherrington and S. Kirkpatrick, "Solvable model of a spin-glass", Phys.
       Rev. Lett. 35, 1792 (1975).

    Examples
    --------
    >>> import numpy as np
    >>> from skident.datasets import lattice_graph, make_couplings
    >>> J = make_couplings(lattice_graph((4, 4)), distribution="binary", random_state=0)
    >>> J.shape, J.nnz
    ((16, 16), 64)

    The Sherrington-Kirkpatrick model of 64 spins:

    >>> everyone = np.ones((64, 64)) - np.eye(64)
    >>> J = make_couplings(everyone, scale=1 / np.sqrt(64), random_state=0)
    >>> bool(abs(J - J.T).max() == 0)
    True
    """
    graph = check_couplings(graph, "graph")
    if distribution == "binary" and abs(mean) > scale:
        raise ValueError(
            f"mean must be at most scale={scale!r} in size for binary couplings, got "
            f"{mean!r}."
        )
    first = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    upper = first < graph.indices
    rng = generator(draw_seed(random_state))
    values = _DISTRIBUTIONS[distribution](rng, int(upper.sum()), mean, scale)
    return _symmetric(first[upper], graph.indices[upper], values, graph.shape[0])


def _gaussian(rng, size, mean, scale):
    return mean + scale * rng.standard_normal(size)


def _binary(rng, size, mean, scale):
    chance = 0.5 * (1 + mean / scale) if scale > 0 else 0.5
    return np.where(rng.random(size) < chance, float(scale), -float(scale))


_DISTRIBUTIONS = {"gaussian": _gaussian, "binary": _binary}


def _symmetric(first, second, values, n_sites):
    """Return a symmetric sparse matrix from its entries of one side."""
    rows, columns = np.concatenate([[first, second], [second, first]], axis=1)
    entries = np.concatenate([values, values])
    matrix = sparse.csr_array((entries, (rows, columns)), shape=(n_sites, n_sites))
    matrix.sum_duplicates()
    return matrix


def check_couplings(couplings, name="couplings"):
    """Return a symmetric matrix without diagonal as sorted compressed rows.

    Parameters
    ----------
    couplings : array-like or sparse matrix of shape (n_sites, n_sites)
        Of any real type.
    name : str
        What to call it in errors.

    Returns
    -------
    csr_array of shape (n_sites, n_sites), dtype float64
        A copy without explicit zeros.

    Raises
    ------
    ValueError
        Naming the first entry that is wrong.
    """
    if np.ma.is_masked(couplings):
        raise ValueError(f"{name} has masked entries: fill or remove them.")
    if not sparse.issparse(couplings):
        couplings = np.asarray(couplings)
    if couplings.dtype.kind not in "buif":
        raise ValueError(f"{name} must be real numbers, got type {couplings.dtype}.")
    if couplings.ndim != 2 or len({*couplings.shape}) > 1 or 0 in couplings.shape:
        raise ValueError(
            f"{name} must have shape (n_sites, n_sites), got {couplings.shape}; for a "
            "lattice see lattice_graph."
        )
    matrix = sparse.csr_array(couplings, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    sites = np.arange(matrix.shape[0])
    rows = np.repeat(sites, np.diff(matrix.indptr))

    def check(wrong, what):
        if wrong.any():
            p = wrong.argmax()
            raise ValueError(
                f"{name} must be {what}, got {float(matrix.data[p])!r} in row "
                f"{rows[p]}, column {matrix.indices[p]}."
            )

    check(~np.isfinite(matrix.data), "finite")
    check(np.abs(matrix.data) > LARGEST, f"at most {LARGEST:g} in size")
    check(rows == matrix.indices, "zero on the diagonal (where s_i s_i = 1)")
    _check_symmetric(matrix, name)
    return matrix


def _check_symmetric(matrix, name):
    odd = sparse.coo_array(matrix - matrix.T)
    wrong = np.flatnonzero(odd.data)
    if len(wrong):
        i, j = odd.row[wrong[0]], odd.col[wrong[0]]
        raise ValueError(
            f"{name} must be symmetric, but has {float(matrix[i, j])!r} in row {i}, "
            f"column {j} and {float(matrix[j, i])!r} in row {j}, column {i}. Take "
            "(J + J.T) / 2 for the same H with half of each entry."
        )


def check_field(field, n_sites):
    """Return the field of each site, or raise a ``ValueError``."""
    if np.ma.is_masked(field):
        raise ValueError("field has masked entries: fill or remove them.")
    array = np.asarray(field)
    if array.dtype.kind not in "buif" or array.shape not in ((), (n_sites,)):
        raise ValueError(
            f"field must be a number or an array of shape ({n_sites},), got shape "
            f"{array.shape} and type {array.dtype}."
        )
    array = np.broadcast_to(array.astype(np.float64), (n_sites,))
    wrong = ~(np.abs(array) <= LARGEST)
    if wrong.any():
        i = wrong.argmax()
        raise ValueError(
            f"field must be finite and at most {LARGEST:g} in size, got "
            f"{float(array[i])!r} at site {i}."
        )
    return array
