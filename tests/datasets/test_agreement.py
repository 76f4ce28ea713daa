"""Every spin sampler against the truth, over 20 seeds.

Small systems are enumerated: energy, order parameter and every pair correlation lie
within their standard errors, and the states have their probabilities by a chi-square
test. One test makes many comparisons; their rejection levels are divided by the number
of comparisons (Bonferroni), so that a right sampler fails once in ten million runs of
all seeds together. Large Ising lattices are compared with Kaufman's exact energy.
"""

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.stats import chi2, norm

from skident.datasets import (
    make_curie_weiss,
    make_hopfield,
    make_ising,
    make_maier_saupe,
    make_patterns,
    make_spin_glass,
)
from skident.exact import ising

SEEDS = 20
N_SAMPLES = 10_000
PATTERNS = make_patterns(3, 8, random_state=1)
GLASS = np.triu(np.random.default_rng(0).normal(size=(8, 8)), 1)


def glass(n, **options):
    return make_spin_glass(n, coo_array(GLASS + GLASS.T), temperature=1.2, **options)


def lattice(method, temperature, **model):
    def make(n, **options):
        return make_ising(n, temperature=temperature, method=method, **model, **options)

    return make, model, temperature


LATTICES = {
    "sheet": {"shape": (3, 3), "temperature": 2.3},
    "frustrated in a field": {
        "shape": (3, 3), "temperature": 1.5, "field": 0.5, "coupling": -0.7,
    },
    "open block": {"shape": (2, 2, 2), "temperature": 3.0, "periodic": False},
}  # fmt: skip

# name: (generator, H by its definition or as a lattice, temperature)
SYSTEMS = {
    "curie-weiss": (
        lambda n, **k: make_curie_weiss(n, 8, temperature=0.9, field=0.1, **k),
        lambda s: -(s.sum() ** 2) / 16 - 0.1 * s.sum(),
        0.9,
    ),
    "hopfield exact": (
        lambda n, **k: make_hopfield(
            n, PATTERNS, temperature=0.6, method="exact", **k
        ),
        lambda s: -((PATTERNS @ s) ** 2).sum() / 16,
        0.6,
    ),
    "hopfield tempering": (
        lambda n, **k: make_hopfield(
            n, PATTERNS, temperature=0.6, method="tempering", **k
        ),
        lambda s: -((PATTERNS @ s) ** 2).sum() / 16,
        0.6,
    ),
    "spin glass": (glass, lambda s: -s @ GLASS @ s, 1.2),
    **{
        f"{method}, {name}": lattice(method, **model)
        for method in ("exact", "swendsen-wang", "wolff", "multispin", "heat-bath")
        for name, model in LATTICES.items()
    },
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_small_systems_over_many_seeds(name, spins):
    make, energy, temperature = SYSTEMS[name]
    if isinstance(energy, dict):
        energy = spins.lattice_energy(**energy)
    drawn = [
        make(N_SAMPLES, random_state=seed, return_info=True) for seed in range(SEEDS)
    ]
    n_sites = drawn[0][0].shape[1]
    states = spins.all_states(n_sites)
    energies = np.array([energy(s) for s in states])
    p = spins.boltzmann(energies, temperature)
    upper = np.triu_indices(n_sites, 1)
    observables = {
        "energy": (energies, [info.energies for *_, info in drawn]),
        "magnetisation": (states.mean(1), [X.mean(axis=1) for X, *_ in drawn]),
        **{
            f"pair {i} {j}": (
                states[:, i] * states[:, j],
                [X[:, i].astype(float) * X[:, j] for X, *_ in drawn],
            )
            for i, j in zip(*upper, strict=True)
        },
    }
    bound = norm.isf(spins.LEVEL / 2 / len(observables) / (SEEDS + 1))
    for what, (values, samples) in observables.items():
        mean = p @ values
        error = np.sqrt(p @ (values - mean) ** 2 / N_SAMPLES)
        z = (np.mean(samples, axis=1) - mean) / error
        assert abs(z).max() < bound, what
        # All seeds together: an error shared by them is seen sqrt(20) times better.
        assert abs(z.sum()) / np.sqrt(SEEDS) < bound, what
    fits = [
        spins.chi_square(np.bincount(spins.state_numbers(X), minlength=len(p)), p)
        for X, *_ in drawn
    ]
    statistics, freedom = np.transpose(fits)
    level = spins.LEVEL / (SEEDS + 1)
    assert chi2.sf(statistics, freedom).min() > level
    assert chi2.sf(statistics.sum(), freedom.sum()) > level


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact", "block-gibbs"])
def test_two_directors_over_many_seeds(method, spins):
    """The cosine u of their angle has density exp(P2(u) / (2 T)) on [0, 1]."""
    temperature, edges = 0.15, np.linspace(0, 1, 21)
    fine = np.linspace(0, 1, 20_001)
    density = np.exp((1.5 * fine**2 - 0.5) / (2 * temperature))
    cdf = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    p = np.diff(np.interp(edges, fine, cdf / cdf[-1]))
    fits = []
    for seed in range(SEEDS):
        X, _ = make_maier_saupe(
            N_SAMPLES, 2, temperature=temperature, method=method, random_state=seed
        )
        u = abs((X[:, :3] * X[:, 3:]).sum(axis=1))
        fits.append(spins.chi_square(np.histogram(u, edges)[0], p))
    statistics, freedom = np.transpose(fits)
    level = spins.LEVEL / (SEEDS + 1)
    assert chi2.sf(statistics, freedom).min() > level
    assert chi2.sf(statistics.sum(), freedom.sum()) > level


@pytest.mark.slow
def test_draws_show_the_nematic_transition():
    """T_NI / U = 0.2202 and S = 0.4290, from draws alone, within finite-size error.

    Draws at one temperature, reweighted to others, give the temperature at which both
    peaks of tr Q^2 have the same weight. It lies above T_NI by a term of order 1 / N.
    """
    found = []
    for n_sites in (2000, 4000, 8000):
        start = 0.220194 * (1 + 11 / n_sites)
        _, Q, info = make_maier_saupe(
            4000, n_sites, temperature=start, random_state=n_sites, return_info=True
        )
        order = np.sqrt(2 / 3 * (Q**2).sum(axis=1))
        nematic = order > 0.25
        assert 0.1 < nematic.mean() < 0.9
        temperatures = start * (1 + np.linspace(-20, 20, 4001) / n_sites)
        energies = info.energies - info.energies.mean()
        weights = np.exp(np.outer(1 / start - 1 / temperatures, energies))
        share = weights @ nematic / weights.sum(axis=1)
        k = abs(share - 0.5).argmin()
        found.append((temperatures[k], weights[k, nematic] @ order[nematic]
                      / weights[k, nematic].sum()))  # fmt: skip
    size = 1 / np.array([2000, 4000, 8000])
    (slope, transition), (_, jump) = np.polyfit(size, found, 1).T
    # Errors of the extrapolation, from 100 other seeds: 2e-5 and 3e-3.
    assert abs(transition - 0.220194) < 2e-4
    assert abs(jump - 0.4290) < 0.02
    assert 0 < slope < 22 * 0.22


# On large lattices single spins are not compared at the critical point, where they
# relax in thousands of sweeps.
SWEEPS = [
    (method, side, temperature)
    for method in ("swendsen-wang", "wolff", "multispin")
    for side in (8, 32, 64)
    for temperature in (1.5, 2.0, 2.269, 2.5, 4.0)
    if method != "multispin" or side == 8 or temperature != 2.269
]


@pytest.mark.slow
@pytest.mark.parametrize("method, side, temperature", SWEEPS)
def test_energy_is_that_of_kaufman(method, side, temperature):
    n_samples = {8: 20_000, 32: 1000, 64: 300}[side]
    *_, info = make_ising(
        n_samples, (side, side), temperature=temperature, method=method,
        return_info=True, n_jobs=2, random_state=side,
    )  # fmt: skip
    truth = ising((side, side), temperature).energy
    energies = info.energies / side**2
    error = energies.std(ddof=1) / np.sqrt(n_samples)
    # Student's t of 300 draws and more: a tail of 1e-7 lies below 5.5.
    assert abs(energies.mean() - truth) < 5.5 * error


def test_comparison_sees_a_temperature_that_is_wrong_by_two_per_cent():
    # The guard of this module: without it the tests above would prove little.
    *_, info = make_ising(
        20_000, (8, 8), temperature=2.5, return_info=True, random_state=0
    )
    energies = info.energies / 64
    error = energies.std(ddof=1) / np.sqrt(len(energies))
    assert abs(energies.mean() - ising((8, 8), 2.55).energy) > 5.5 * error
