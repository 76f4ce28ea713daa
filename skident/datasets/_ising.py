"""Spins on a line, a sheet or a block that feel their neighbours."""

import math
from numbers import Integral, Real

from skident._compat import Interval, StrOptions, validate_params
from skident.datasets._chains import CHAINS, SPINS, sample_chains, sample_exact
from skident.datasets._ising_chains import (
    HOT,
    HeatBathChains,
    SwendsenWangChains,
    WolffChains,
)
from skident.datasets._ising_exact import exact_draws, table_size
from skident.datasets._lattice import lattice
from skident.datasets._multispin import MultispinChains
from skident.exact._ising import check_shape

_CHAINS = {
    "swendsen-wang": SwendsenWangChains,
    "wolff": WolffChains,
    "multispin": MultispinChains,
    "heat-bath": HeatBathChains,
}

# Bytes of the table of an exact method that is set up within a second or so.
_NARROW = 2**25


@validate_params(
    {
        **SPINS,
        **CHAINS,
        "shape": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "field": [Interval(Real, -1e100, 1e100, closed="both")],
        "coupling": [Interval(Real, -1e100, 1e100, closed="both")],
        "periodic": ["boolean"],
        "method": [StrOptions({"auto", "exact", *_CHAINS})],
    },
    prefer_skip_nested_validation=True,
)
def make_ising(
    n_samples,
    shape,
    *,
    temperature,
    field=0.0,
    coupling=1.0,
    periodic=True,
    method="auto",
    draws_per_chain=1,
    spacing="auto",
    spin_values=(-1, 1),
    out=None,
    return_info=False,
    n_jobs=None,
    verbose=0,
    random_state=None,
):
    r"""Draw independent samples of the Ising model on a lattice.

    The Hamiltonian, with :math:`k_B = 1` and spins :math:`s_i = \pm 1`, is

    .. math:: H(s) = -J \sum_{\langle ij \rangle} s_i s_j - h \sum_i s_i ,

    each bond counted once, and :math:`P(s) \propto e^{-H(s)/T}`.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    shape : int or tuple of 1 to 3 ints
        Sides of the lattice; an int is a chain. Sites are in C order.
    temperature : float
        Temperature T, at least 1e-100; infinity is allowed. On the square lattice
        with J = 1 the critical one is 2 / ln(1 + sqrt(2)) = 2.269.
    field : float, default=0.0
        Uniform field h.
    coupling : float, default=1.0
        Coupling J: positive is ferromagnetic, negative antiferromagnetic.
    periodic : bool, default=True
        Whether the lattice closes on itself along every axis: each site is bonded
        to the next one, and the last to the first. So along a periodic side of
        length 2 the two sites are joined by two bonds; along a side of length 1 there
        is none. If False the last site has no next one.
    method : str, default="auto"
        "exact", "swendsen-wang", "wolff", "multispin" or "heat-bath"; see Notes.
        "auto" depends on the model and the temperature alone:

        - "exact" if the lattice is narrow enough;
        - else "multispin" if it is frustrated (``coupling < 0`` and a periodic side of
          odd length above 1), where clusters grow over the whole lattice, or hot:
          T / \|J\| of at least 2, 2.8, 5.4 in one, two, three dimensions;
        - else "swendsen-wang".
    draws_per_chain : int, default=1
        Successive draws from one chain: row k is draw ``k % draws_per_chain`` of chain
        ``k // draws_per_chain``. By default every sample has its own chain and is
        independent of the others; more are cheaper, and correlated. An exact method has
        no chains and takes no notice.
    spacing : int or "auto", default="auto"
        Sweeps between the draws of a chain; "auto" is one autocorrelation time.
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
        The order parameter, in [-1, 1] for either ``spin_values``: the magnetisation
        a site, or for ``coupling < 0`` the staggered one, in which spins count with
        the sign (-1)^(sum of the site's coordinates).
    info : Bunch
        Only if ``return_info``:

        - ``method``, the one used;
        - ``energies`` (n_samples,), the total H; ``order_parameter``, which is y;
        - ``tau_int``, the integrated autocorrelation time :math:`1 + 2 \sum_t \rho(t)`
          in sweeps; ``burn_in`` and ``spacing`` in sweeps;
        - ``ess``, the number of independent samples that these are worth, for energy
          and order parameter; without a field for its absolute value, not for its sign,
          which chains of single spins keep below the transition;
        - ``acceptance``, the share of proposals accepted (1 if none are made);
        - ``start_disagreement``: by how many standard deviations pilot chains from a
          random and from an ordered start differ (0.1 is noise, 2 the most).

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it and its value.

    Warns
    -----
    ConvergenceWarning
        If the chains mix too slowly for the burn-in to be measured, if chains from
        random and from ordered starts disagree, or if the samples are worth less than
        a tenth of their number.

    Notes
    -----
    "exact" draws layer after layer, each from its distribution given those before
    (transfer matrix): no chain, no correlation. The other methods are Markov chains:

    - "swendsen-wang" turns over all clusters of spins at once, in a field with the
      heat bath probability of the whole cluster [1]_ [2]_;
    - "wolff" turns over one cluster, grown from a random site, a sweep [3]_;
    - "multispin" proposes to turn one spin after the other, in the order of the sites,
      in 64 chains at once: each lane of a 64-bit word is a chain with its own random
      bits. Proposals are accepted with the Metropolis probability, times 15/16 where
      they change H by less than T / 2, and if all do, with the heat bath's: a sweep in
      fixed order in which costless moves are certain would never forget its start;
    - "heat-bath" redraws one spin after the other, in the order of the sites.

    A chain starts at random, as symmetric as H, so that without a field a state and its
    reverse are equally likely. With clusters, and with single spins where they would
    leave stripes (not frustrated, and colder than hot as above), the start includes 24
    Swendsen-Wang updates. Pilot chains with random numbers of their own, half of
    them from an ordered start, choose the burn-in: as long as random starts take to
    settle, and eight times the autocorrelation time, of energy and (absolute, without a
    field) order parameter.

    References
    ----------
    .. [1] R. H. Swendsen and J.-S. Wang, "Nonuniversal critical dynamics in Monte
       Carlo simulations", Phys. Rev. Lett. 58, 86 (1987).
    .. [2] R. G. Edwards and A. D. Sokal, "Generalization of the Fortuin-Kasteleyn-
       Swendsen-Wang representation", Phys. Rev. D 38, 2009 (1988).
    .. [3] U. Wolff, "Collective Monte Carlo updating for spin systems", Phys. Rev.
       Lett. 62, 361 (1989).

    Examples
    --------
    >>> from skident.datasets import make_ising
    >>> X, m = make_ising(50, (8, 8), temperature=2.5, random_state=0)
    >>> X.shape, m.shape
    ((50, 64), (50,))
    """
    shape = check_shape(shape)
    beta, coupling, field = 1.0 / temperature, float(coupling), float(field)
    options = {
        "spin_values": spin_values, "out": out, "return_info": return_info,
        "n_jobs": n_jobs, "verbose": verbose, "random_state": random_state,
    }  # fmt: skip
    if method == "auto":
        method = _choose(shape, temperature, field, coupling, periodic)
    if method == "exact":
        exact = exact_draws(shape, beta, coupling, field, periodic)
        return sample_exact(
            exact.draw, n_samples, math.prod(shape), row_ns=exact.row_ns, **options
        )
    chains = _CHAINS[method](lattice(shape, periodic, coupling), beta, coupling, field)
    return sample_chains(
        chains, n_samples, draws_per_chain=draws_per_chain, spacing=spacing, **options
    )


def _choose(shape, temperature, field, coupling, periodic):
    """Return the method that "auto" stands for."""
    if table_size(shape, periodic, field) <= _NARROW:
        return "exact"
    frustrated = coupling < 0 and periodic and any(n > 1 and n % 2 for n in shape)
    dimension = sum(n > 1 for n in shape)
    hot = temperature >= HOT[dimension] * abs(coupling)
    return "multispin" if frustrated or hot else "swendsen-wang"
