import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import chi2

# Rejection level of every test of a distribution. The samplers are right for every
# seed but about one in ten millions.
LEVEL = 1e-7


def all_states(n):
    """Every configuration of n spins of -1 and 1, the first spin slowest."""
    return np.array(list(itertools.product((-1, 1), repeat=n)), dtype=float)


def boltzmann(energies, temperature):
    weights = np.exp(-(energies - energies.min()) / temperature)
    return weights / weights.sum()


def state_numbers(X):
    """Index in ``all_states`` of each row."""
    return (X > 0) @ (1 << np.arange(X.shape[1])[::-1])


def chi_square(counts, p, least=10):
    """Chi-square of counts against probabilities, rare states pooled, and its df."""
    expected = p * counts.sum()
    rare = expected < least
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < least:
        # The pool itself is rare: join it to the smallest of the others.
        smallest = expected[:-1].argmin()
        for part in (observed, expected):
            part[smallest] += part[-1]
        observed, expected = observed[:-1], expected[:-1]
    statistic = ((observed - expected) ** 2 / expected).sum()
    return statistic, max(1, len(expected) - 1)


def chi_square_pvalue(counts, p):
    """P-value of counts against probabilities; rare states are pooled."""
    return chi2.sf(*chi_square(counts, p))


@pytest.fixture
def assert_boltzmann():
    """Check draws of few spins against the distribution over all states."""

    def check(X, energy, temperature):
        states = all_states(X.shape[1])
        p = boltzmann(np.array([energy(s) for s in states]), temperature)
        counts = np.bincount(state_numbers(X), minlength=len(p))
        assert chi_square_pvalue(counts, p) > LEVEL

    return check


@pytest.fixture
def assert_distribution():
    """Check counts against probabilities."""

    def check(counts, p):
        assert chi_square_pvalue(np.asarray(counts, float), np.asarray(p)) > LEVEL

    return check


def lattice_energy(shape, field=0.0, coupling=1.0, periodic=True):
    """H of an Ising lattice by its definition: each site with the next one."""
    shape = (shape,) if isinstance(shape, int) else shape

    def energy(s):
        s = s.reshape(shape)
        bonds = 0.0
        for axis, side in enumerate(shape):
            product = s * np.roll(s, -1, axis=axis)
            if not periodic:
                product = np.take(product, range(side - 1), axis=axis)
            if side > 1:
                bonds += product.sum()
        return -coupling * bonds - field * s.sum()

    return energy


@pytest.fixture(scope="session")
def spins():
    """The functions above, for tests that compare in ways of their own."""
    return SimpleNamespace(
        LEVEL=LEVEL,
        all_states=all_states,
        boltzmann=boltzmann,
        state_numbers=state_numbers,
        chi_square=chi_square,
        lattice_energy=lattice_energy,
    )
