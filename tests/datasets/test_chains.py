import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skident.datasets._chains import integrated_time, measure_burn_in, run_blocks


def autoregressive(start, stop, key, n_sweeps, memory):
    """Chains with correlation memory**t, time (1 + memory) / (1 - memory)."""
    rng = np.random.default_rng([int(key), start])
    noise = rng.normal(size=(stop - start, n_sweeps, 1))
    trace = np.empty_like(noise)
    trace[:, 0] = noise[:, 0]
    for t in range(1, n_sweeps):
        trace[:, t] = memory * trace[:, t - 1] + np.sqrt(1 - memory**2) * noise[:, t]
    return trace


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_integrated_time_of_an_autoregressive_chain(memory):
    exact = (1 + memory) / (1 - memory)
    trace = autoregressive(0, 16, 0, 4000, memory)
    assert integrated_time(trace) == pytest.approx(exact, rel=0.15)
    # The slowest of the observables counts.
    both = np.concatenate([trace, autoregressive(0, 16, 1, 4000, 0.0)], axis=2)
    assert integrated_time(both) == pytest.approx(exact, rel=0.15)


def test_chains_stuck_apart_are_correlated_for_ever():
    trace = np.random.default_rng(0).normal(size=(16, 1000, 1))
    trace[::2] += 50
    assert integrated_time(trace) > 300


def test_constant_observable_says_nothing():
    trace = np.random.default_rng(0).normal(size=(16, 500, 2))
    trace[:, :, 1] = -0.1
    assert integrated_time(trace) < 1.5
    assert integrated_time(np.full((4, 100, 1), 0.3)) == 1.0


def measure(memory, seed=0, n_sites=1000):
    def pilot(start, stop, key, n_sweeps):
        return autoregressive(start, stop, key, n_sweeps, memory)

    return measure_burn_in(pilot, seed, n_sites=n_sites, n_observables=1, n_jobs=None)


def test_burn_in_follows_the_measured_time():
    tau_int, burn_in = measure(0.9)
    assert tau_int == pytest.approx(19, rel=0.2)
    assert burn_in == np.ceil(8 * tau_int)
    assert measure(0.9) == (tau_int, burn_in)
    assert measure(0.9, seed=1) != (tau_int, burn_in)
    assert measure(0.0)[1] == 16


def test_burn_in_that_cannot_be_measured_is_said():
    with pytest.warns(ConvergenceWarning, match="mix slowly"):
        _, burn_in = measure(0.9999, n_sites=10**7)
    assert burn_in == 1024


def test_blocks_fill_every_row_once():
    for n_rows, row_ns in ((1, 1e9), (7, 2e7), (1000, 3e6)):
        rows, squares = np.full(n_rows, -1), np.full((n_rows, 2), -1)

        def task(start, stop):
            k = np.arange(start, stop)
            return k, np.stack([k**2, k**3], axis=1)

        run_blocks(task, (rows, squares), row_ns=row_ns, n_jobs=2)
        np.testing.assert_array_equal(rows, np.arange(n_rows))
        np.testing.assert_array_equal(squares[:, 0], rows**2)


def test_interrupt_in_a_block_is_raised_again():
    def task(start, stop):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_blocks(task, (np.empty(3),), row_ns=1, n_jobs=None)
