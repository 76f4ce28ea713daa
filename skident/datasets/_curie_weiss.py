"""Spins that all feel each other alike, drawn exactly."""

from functools import partial
from numbers import Integral, Real

import numpy as np
from scipy.special import logsumexp

from skident._compat import Interval, validate_params
from skident._kernels.curie_weiss import draw_exchangeable
from skident.datasets._chains import SPINS, sample_exact
from skident.exact._curie_weiss import log_up_weights


@validate_params(
    {
        **SPINS,
        "n_sites": [Interval(Integral, 1, 2**31 - 1, closed="both")],
        "field": [Interval(Real, -1e100, 1e100, closed="both")],
    },
    prefer_skip_nested_validation=True,
)
def make_curie_weiss(
    n_samples,
    n_sites,
    *,
    temperature,
    field=0.0,
    spin_values=(-1, 1),
    out=None,
    return_info=False,
    n_jobs=None,
    verbose=0,
    random_state=None,
):
    r"""Draw independent, exact samples of the Curie-Weiss model.

    The Hamiltonian, self-terms included, with :math:`k_B = 1`, spins
    :math:`s_i = \pm 1` and :math:`M = \sum_i s_i`, is

    .. math:: H(s) = -\frac{M^2}{2N} - B M ,

    and :math:`P(s) \propto e^{-H(s)/T}`. M is drawn from its explicit distribution,
    then the spins are arranged uniformly at random: there is no chain, no burn-in and
    no correlation, at any temperature.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    n_sites : int
        Number of spins N.
    temperature : float
        Temperature T, at least 1e-100; infinity is allowed. The critical one is 1.
    field : float, default=0.0
        Uniform field B.
    spin_values : {(-1, 1), (0, 1)}, default=(-1, 1)
        How to write a spin that points down, up. The model is that of ±1 in both.
    out : ndarray of shape (n_samples, n_sites), dtype int8, default=None
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
    X : ndarray of shape (n_samples, n_sites), dtype int8
        The spins; ``out`` if it was given. Cast before a product
        such as X @ w: it stays int8 and wraps at 127 (X.sum() does not).
    y : ndarray of shape (n_samples,)
        The magnetisation M / N, in [-1, 1] for either ``spin_values``.
    info : Bunch
        Only if ``return_info``: ``method`` ("exact"), ``energies`` (n_samples,) the
        total H, ``order_parameter`` = y, and what is trivial without a chain:
        ``tau_int`` 1, ``ess`` = n_samples, ``burn_in`` and ``spacing`` 0,
        ``acceptance`` 1, ``start_disagreement`` 0.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it and its value.

    References
    ----------
    .. [1] M. Kac, "Mathematical mechanisms of phase transitions", in Statistical
       Physics, Phase Transitions and Superfluidity, Gordon and Breach, 1968.
    .. [2] R. W. Floyd and J. Bentley, "A sample of brilliance", Communications of
       the ACM 30, 754 (1987): the random arrangement.

    Examples
    --------
    >>> from skident.datasets import make_curie_weiss
    >>> X, m = make_curie_weiss(1000, 64, temperature=0.8, random_state=0)
    >>> X.shape, X.dtype
    ((1000, 64), dtype('int8'))
    >>> bool(abs(m).mean() > 0.5)
    True
    """
    log_weights = log_up_weights(n_sites, 1.0 / temperature, field)
    cdf = np.cumsum(np.exp(log_weights - logsumexp(log_weights)))
    cdf /= cdf[-1]
    return sample_exact(
        partial(_rows, cdf=cdf, field=field), n_samples, n_sites,
        row_ns=100 + 2 * n_sites, spin_values=spin_values, out=out,
        return_info=return_info, n_jobs=n_jobs, verbose=verbose,
        random_state=random_state,
    )  # fmt: skip


def _rows(key, start, stop, cdf, field):
    n_sites = len(cdf) - 1
    rows = np.empty((stop - start, n_sites), np.int8)
    ups = np.empty(stop - start, np.int64)
    draw_exchangeable(key, start, cdf, rows, ups)
    M = 2.0 * ups - n_sites
    return rows, M / n_sites, -(M**2) / (2 * n_sites) - field * M
