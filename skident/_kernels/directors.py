"""Directors on the sphere that feel each other through one tensor (Maier-Saupe).

With beta = 1 / T the weight exp(beta N / 3 tr Q^2) of N directors is a Gaussian
integral over a traceless symmetric matrix A, the field in units of T: given the
directors A = beta Q plus noise of variance 3 beta / 2N in each of five orthonormal
coordinates, and given A the directors are independent, with density exp(n'An).

Only the eigenvalues of A are needed: the frame of the directors is drawn anew, uniform
over all rotations, at every sweep, which turns the whole configuration and so changes
neither energy nor distribution.

Kent, Ganeiber and Mardia, "A new unified approach for the simulation of a wide class
of directional distributions", J. Comput. Graph. Stat. 27, 291 (2018).
"""

import math

import numpy as np

from skident._kernels.jit import kernel
from skident._kernels.streams import (
    fill_normals,
    first_above,
    next_uniform,
    seed_stream,
)

_ROOT2 = math.sqrt(2.0)
_ROOT6 = math.sqrt(6.0)
# Sweeps of Jacobi rotations: they converge quadratically, five or six are enough.
_JACOBI_SWEEPS = 12
_NEWTON_STEPS = 60


@kernel
def order_tensor(directors, q):
    """Write the five components of Q = mean of 3/2 (nn' - I/3) to ``q``.

    The basis is orthonormal, sum q^2 = tr Q^2: diag(-1, -1, 2) / sqrt 6,
    diag(1, -1, 0) / sqrt 2, and the symmetric pairs xy, xz, yz over sqrt 2.

    Parameters
    ----------
    directors : ndarray of shape (n_sites, 3)
        Unit vectors.
    q : ndarray of shape (5,)
        Filled.
    """
    xx = yy = zz = xy = xz = yz = 0.0
    for k in range(directors.shape[0]):
        x, y, z = directors[k, 0], directors[k, 1], directors[k, 2]
        xx += x * x
        yy += y * y
        zz += z * z
        xy += x * y
        xz += x * z
        yz += y * z
    scale = 1.5 / directors.shape[0]
    q[0] = scale * (2 * zz - xx - yy) / _ROOT6
    q[1] = scale * (xx - yy) / _ROOT2
    q[2] = scale * xy * _ROOT2
    q[3] = scale * xz * _ROOT2
    q[4] = scale * yz * _ROOT2


@kernel
def tensor_matrix(q, matrix):
    """Write the traceless symmetric matrix (3, 3) with the five components ``q``."""
    matrix[0, 0] = q[1] / _ROOT2 - q[0] / _ROOT6
    matrix[1, 1] = -q[1] / _ROOT2 - q[0] / _ROOT6
    matrix[2, 2] = 2 * q[0] / _ROOT6
    matrix[0, 1] = matrix[1, 0] = q[2] / _ROOT2
    matrix[0, 2] = matrix[2, 0] = q[3] / _ROOT2
    matrix[1, 2] = matrix[2, 1] = q[4] / _ROOT2


@kernel
def eigenvalues(matrix, values):
    """Write the eigenvalues of a symmetric (3, 3) matrix, in falling order.

    Cyclic Jacobi rotations: the error is a rounding of the largest eigenvalue, however
    close the others are. The matrix is overwritten.
    """
    for _ in range(_JACOBI_SWEEPS):
        off = abs(matrix[0, 1]) + abs(matrix[0, 2]) + abs(matrix[1, 2])
        size = abs(matrix[0, 0]) + abs(matrix[1, 1]) + abs(matrix[2, 2])
        if size + off == size:
            break
        for p in range(2):
            for q in range(p + 1, 3):
                if matrix[p, q] != 0.0:
                    rotate_jacobi(matrix, p, q)
    a, b, c = matrix[0, 0], matrix[1, 1], matrix[2, 2]
    values[0] = max(a, b, c)
    values[2] = min(a, b, c)
    values[1] = max(min(a, b), min(max(a, b), c))


@kernel
def rotate_jacobi(matrix, p, q):
    """Annul the entry (p, q) of a symmetric (3, 3) matrix by a rotation."""
    r = 3 - p - q
    half = 0.5 * (matrix[q, q] - matrix[p, p])
    off = matrix[p, q]
    # The smaller root of t^2 + 2 t half / off - 1 = 0, without overflow.
    t = off / (abs(half) + math.hypot(half, off))
    if half < 0:
        t = -t
    c = 1.0 / math.sqrt(1.0 + t * t)
    s = t * c
    matrix[p, p] -= t * off
    matrix[q, q] += t * off
    matrix[p, q] = matrix[q, p] = 0.0
    x, y = matrix[r, p], matrix[r, q]
    matrix[r, p] = matrix[p, r] = c * x - s * y
    matrix[r, q] = matrix[q, r] = s * x + c * y


@kernel
def envelope_scale(second, third):
    """Return b with 1 / b + 1 / (b + 2 second) + 1 / (b + 2 third) = 1.

    The left side falls and is convex, so that Newton's steps from b = 1 only grow.
    """
    b = 1.0
    for _ in range(_NEWTON_STEPS):
        u, v, w = 1.0 / b, 1.0 / (b + 2.0 * second), 1.0 / (b + 2.0 * third)
        step = (u + v + w - 1.0) / (u * u + v * v + w * w)
        b += step
        if step < 1e-14:
            break
    return b


@kernel
def random_rotation(state, rotation):
    """Write a rotation matrix (3, 3), uniform over all (a random quaternion)."""
    quaternion = np.empty(4)
    fill_normals(state, quaternion)
    w, x, y, z = quaternion
    scale = 2.0 / (w * w + x * x + y * y + z * z)
    rotation[0, 0] = 1.0 - scale * (y * y + z * z)
    rotation[1, 1] = 1.0 - scale * (x * x + z * z)
    rotation[2, 2] = 1.0 - scale * (x * x + y * y)
    rotation[0, 1], rotation[1, 0] = scale * (x * y - w * z), scale * (x * y + w * z)
    rotation[0, 2], rotation[2, 0] = scale * (x * z + w * y), scale * (x * z - w * y)
    rotation[1, 2], rotation[2, 1] = scale * (y * z - w * x), scale * (y * z + w * x)


@kernel
def draw_bingham(second, third, rotation, state, directors):
    """Fill directors, independent with density exp(n'An), and count the proposals.

    Proposals are uniform directions, squeezed along the axes (the angular central
    Gaussian envelope of Kent, Ganeiber and Mardia); at least 0.52 of them are
    accepted. A director and its reverse are equally likely.

    Parameters
    ----------
    second, third : float
        Gaps of A: largest eigenvalue minus second and minus third.
    rotation : ndarray of shape (3, 3)
        Its columns are the eigenvectors, from the largest eigenvalue to the smallest.
    state : uint64 ndarray of shape (4,)
        Random state.
    directors : ndarray of shape (n_sites, 3)
        Filled with unit vectors.

    Returns
    -------
    int
        Number of proposals.
    """
    b = envelope_scale(second, third)
    squeeze_y = 1.0 / math.sqrt(1.0 + 2.0 * second / b)
    squeeze_z = 1.0 / math.sqrt(1.0 + 2.0 * third / b)
    constant = math.exp(0.5 * (3.0 - b)) * (b / 3.0) ** 1.5
    proposals = 0
    for k in range(directors.shape[0]):
        while True:
            proposals += 1
            # A uniform direction (Marsaglia 1972).
            while True:
                u = 2.0 * next_uniform(state) - 1.0
                v = 2.0 * next_uniform(state) - 1.0
                s = u * u + v * v
                if s < 1.0:
                    break
            root = 2.0 * math.sqrt(1.0 - s)
            x, y, z = 1.0 - 2.0 * s, u * root * squeeze_y, v * root * squeeze_z
            inverse = 1.0 / (x * x + y * y + z * z)
            power = (second * (y * y) + third * (z * z)) * inverse
            scale = math.sqrt(inverse)
            chance = constant * math.exp(-power) * inverse * scale
            if next_uniform(state) < chance:
                break
        x, y, z = x * scale, y * scale, z * scale
        for i in range(3):
            directors[k, i] = (
                rotation[i, 0] * x + rotation[i, 1] * y + rotation[i, 2] * z
            )
    return proposals


@kernel
def draw_field(q, beta, n_sites, state, noise):
    """Replace the tensor Q of the directors by a field A given them.

    Parameters
    ----------
    q : ndarray of shape (5,)
        The components of Q, replaced by those of A, in the same basis.
    beta : float
        1 / T.
    n_sites : int
        Number of directors.
    state : uint64 ndarray of shape (4,)
        Random state.
    noise : ndarray of shape (5,)
        Scratch.
    """
    fill_normals(state, noise)
    width = math.sqrt(1.5 * beta / n_sites)
    for i in range(5):
        q[i] = beta * q[i] + width * noise[i]


@kernel
def start_directors(key, first, cold, states, directors):
    """Start chains from uniform directors, or (``cold``) from aligned ones.

    Parameters
    ----------
    key : uint64
        Names the streams; chain k of this call draws from stream ``first + k``.
    first : int
        Number of the first chain.
    cold : bool
        Whether the directors of a chain all lie along one random axis.
    states : uint64 ndarray of shape (n_chains, 4)
        Filled with the random states.
    directors : ndarray of shape (n_chains, n_sites, 3)
        Filled.
    """
    n_free = 1 if cold else directors.shape[1]
    rotation = np.zeros((3, 3))
    for i in range(3):
        rotation[i, i] = 1.0
    for k in range(states.shape[0]):
        seed_stream(key, first + k, states[k])
        draw_bingham(0.0, 0.0, rotation, states[k], directors[k, :n_free])
        for site in range(n_free, directors.shape[1]):
            for i in range(3):
                directors[k, site, i] = directors[k, 0, i]


@kernel
def sweep_directors(states, directors, beta, n_sweeps, counts):
    """Run chains in place: field given directors, then directors given the field.

    Parameters
    ----------
    states : uint64 ndarray of shape (n_chains, 4)
        Random states, advanced.
    directors : ndarray of shape (n_chains, n_sites, 3)
        Redrawn, and turned as a whole, at each sweep.
    beta : float
        1 / T, zero allowed.
    n_sweeps : int
        Number of sweeps.
    counts : int64 ndarray of shape (n_chains, 2)
        Proposed and accepted directors are added.
    """
    n_sites = directors.shape[1]
    q, noise, values = np.empty(5), np.empty(5), np.empty(3)
    matrix, rotation = np.empty((3, 3)), np.empty((3, 3))
    for k in range(states.shape[0]):
        for _ in range(n_sweeps):
            order_tensor(directors[k], q)
            draw_field(q, beta, n_sites, states[k], noise)
            tensor_matrix(q, matrix)
            eigenvalues(matrix, values)
            random_rotation(states[k], rotation)
            second, third = values[0] - values[1], values[0] - values[2]
            counts[k, 0] += draw_bingham(
                second, third, rotation, states[k], directors[k]
            )
            counts[k, 1] += n_sites


@kernel
def measure_directors(directors, q):
    """Write the tensor of each chain; see :func:`order_tensor`.

    Parameters
    ----------
    directors : ndarray of shape (n_chains, n_sites, 3)
        Unit vectors.
    q : ndarray of shape (n_chains, 5)
        Filled.
    """
    for k in range(directors.shape[0]):
        order_tensor(directors[k], q[k])


@kernel
def propose_cells(states, rows, cdf, cells, tops, points, levels):
    """Propose one point under a piecewise constant bound of a density in the plane.

    Parameters
    ----------
    states : uint64 ndarray of shape (n_rows, 4)
        Random states; those of ``rows`` advance.
    rows : int64 ndarray of shape (n_proposals,)
        Which rows want a proposal.
    cdf : ndarray of shape (n_cells,)
        Share of the mass of the bound up to each cell; the last entry is 1.
    cells : ndarray of shape (n_cells, 4)
        Lower left corner and widths.
    tops : ndarray of shape (n_cells,)
        Log of the bound in each cell.
    points : ndarray of shape (n_proposals, 2)
        Filled.
    levels : ndarray of shape (n_proposals,)
        Filled: accept where the log of the density is at least this.
    """
    for j in range(rows.shape[0]):
        state = states[rows[j]]
        c = first_above(cdf, next_uniform(state))
        points[j, 0] = cells[c, 0] + cells[c, 2] * next_uniform(state)
        points[j, 1] = cells[c, 1] + cells[c, 3] * next_uniform(state)
        levels[j] = tops[c] + math.log1p(-next_uniform(state))


@kernel
def draw_given_field(states, second, third, directors, q):
    """Draw the directors of each row given its field, in a random frame.

    Parameters
    ----------
    states : uint64 ndarray of shape (n_rows, 4)
        Random states, advanced.
    second, third : ndarray of shape (n_rows,)
        Gaps of the field, as for :func:`draw_bingham`.
    directors : ndarray of shape (n_rows, n_sites, 3)
        Filled.
    q : ndarray of shape (n_rows, 5)
        Filled with the tensors.
    """
    rotation = np.empty((3, 3))
    for k in range(states.shape[0]):
        random_rotation(states[k], rotation)
        draw_bingham(second[k], third[k], rotation, states[k], directors[k])
        order_tensor(directors[k], q[k])


@kernel
def seed_rows(key, first, states):
    """Fill the random states (n_rows, 4) of rows ``first, first + 1, ...``."""
    for k in range(states.shape[0]):
        seed_stream(key, first + k, states[k])
