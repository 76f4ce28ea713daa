"""Random patterns to store."""

from numbers import Integral

import numpy as np

from skident._compat import Interval, validate_params
from skident._random import draw_seed, generator


@validate_params(
    {
        "n_patterns": [Interval(Integral, 1, None, closed="left")],
        "n_sites": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_patterns(n_patterns, n_sites, *, random_state=None):
    """Draw independent random patterns of +1 and -1, each with probability 1/2.

    Parameters
    ----------
    n_patterns : int
        Number of patterns P.
    n_sites : int
        Number of sites N.
    random_state : int, RandomState instance or None, default=None
        Seed of the patterns. Pattern k does not depend on ``n_patterns``.

    Returns
    -------
    ndarray of shape (n_patterns, n_sites), dtype int8
        Values in {-1, 1}. Cast before a product such as patterns @ x: it wraps at 127.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it and its value.

    Examples
    --------
    >>> from skident.datasets import make_patterns
    >>> make_patterns(2, 8, random_state=0).shape
    (2, 8)
    """
    rng = generator(draw_seed(random_state))
    bits = rng.integers(0, 2, size=(n_patterns, n_sites), dtype=np.int64)
    return (2 * bits - 1).astype(np.int8)
