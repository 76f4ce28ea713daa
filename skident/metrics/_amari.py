"""Distance between mixing matrices."""

import numpy as np

from skident._math.motion import powers_of_two
from skident._validation import as_rows


def amari_distance(A, B):
    r"""Return how far two mixing matrices are from equal up to order, sign and scale.

    With columns of unit norm and :math:`P = A^+ B`, the index of Amari et al. is

    .. math:: d(P) = \frac{1}{2 k (k - 1)} \Big[ \sum_i \Big(
        \frac{\sum_j |P_{ij}|}{\max_j |P_{ij}|} - 1 \Big) + \sum_j \Big(
        \frac{\sum_i |P_{ij}|}{\max_i |P_{ij}|} - 1 \Big) \Big];

    the distance is the mean of :math:`d(A^+ B)` and :math:`d(B^+ A)`.

    Parameters
    ----------
    A, B : array-like of shape (n_features, n_components)
        Mixing matrices of full column rank, such as ``WhitenICA().fit(X).mixing_`` and
        the true one.

    Returns
    -------
    float
        In [0, 1], symmetric; 0 if each column of one is a multiple of a column of the
        other. One component gives 0.

    Raises
    ------
    ValueError
        If the shapes differ or the columns of a matrix are dependent.

    References
    ----------
    .. [1] S. Amari, A. Cichocki, H. Yang, "A new learning algorithm for blind signal
       separation", NIPS 1995.

    Examples
    --------
    >>> import numpy as np
    >>> from skident.metrics import amari_distance
    >>> A = np.array([[2.0, 0.0], [1.0, 1.0]])
    >>> round(amari_distance(A, -3 * A[:, ::-1]), 12)
    0.0
    """
    A, B = as_rows(A, name="A"), as_rows(B, name="B")
    if A.shape != B.shape:
        raise ValueError(
            f"A and B must have one shape: A has {A.shape}, B has {B.shape}."
        )
    A, B = _unit_columns(A, "A"), _unit_columns(B, "B")
    there, back = np.linalg.pinv(A) @ B, np.linalg.pinv(B) @ A
    return 0.5 * (_amari_index(np.abs(there)) + _amari_index(np.abs(back)))


def _unit_columns(matrix, name):
    # Divided by a power of two first: squares of any size are then floats.
    size = powers_of_two(np.abs(matrix).max(axis=0))
    matrix = matrix / size.astype(matrix.dtype)
    norms = np.linalg.norm(matrix, axis=0)
    unit = matrix / np.where(norms > 0, norms, 1.0)
    if np.linalg.matrix_rank(unit) < matrix.shape[1]:
        raise ValueError(
            f"The columns of {name}, shape {matrix.shape}, are dependent (rank "
            f"{np.linalg.matrix_rank(unit)})."
        )
    return unit.astype(np.float64, copy=False)


def _amari_index(P):
    """Return the index of a non-negative square matrix, in [0, 1]."""
    k = P.shape[0]
    if k == 1:
        return 0.0
    largest = P.max(axis=1), P.max(axis=0)
    if min(side.min() for side in largest) == 0.0:
        # a direction of one side that the other does not have at all
        return 1.0
    rows = (P.sum(axis=1) / largest[0] - 1.0).sum()
    columns = (P.sum(axis=0) / largest[1] - 1.0).sum()
    return float(min(1.0, (rows + columns) / (2.0 * k * (k - 1))))
