"""The driver of the samplers, on chains whose correlations are known."""

import threading
import time
import warnings
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skident.datasets import _chains, _pilot
from skident.datasets._chains import check_out, fill_rows, sample_chains, sample_exact
from skident.datasets._pilot import (
    Pilot,
    effective_size,
    integrated_time,
    run_pilot,
    settling_time,
    start_disagreement,
)


class Autoregressive(NamedTuple):
    """Chains with correlation memory**t, time (1 + memory) / (1 - memory)."""

    memory: float
    cold_shift: float = 0.0
    sweep_ns: float = 1e3
    lanes: int = 1
    bundle: int = 1
    method: str = "autoregressive"
    n_sites: int = 2

    def start(self, key, first, n_chains, cold):
        chains = range(first, first + n_chains)
        rngs = [np.random.default_rng([int(key), k]) for k in chains]
        values = np.array([[rng.normal(), cold * self.cold_shift] for rng in rngs])
        return rngs, values

    def advance(self, state, n_sweeps):
        rngs, values = state
        for _ in range(n_sweeps):
            noise = np.array([rng.normal() for rng in rngs])
            values[:, 0] *= self.memory
            values[:, 0] += np.sqrt(1 - self.memory**2) * noise

    def observe(self, state):
        return state[1].sum(axis=1, keepdims=True)

    def read(self, state):
        values = state[1]
        signs = np.where(values > 0, 1, -1).astype(np.int8)
        return signs, values[:, 0].copy(), values[:, 0] ** 2

    def acceptance(self, state):
        return 0.25


def trace_of(memory, seed=0, n_sweeps=4000):
    chains = Autoregressive(memory)
    return _pilot._traced(chains, seed, 0, 16, False, n_sweeps, [True])[0]


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_integrated_time_of_an_autoregressive_chain(memory):
    exact = (1 + memory) / (1 - memory)
    trace = trace_of(memory)
    tau_int, rho = integrated_time(trace)
    assert tau_int == pytest.approx(exact, rel=0.15)
    np.testing.assert_allclose(rho, memory ** np.arange(len(rho)), atol=0.1)
    # The slowest of the observables counts.
    both = np.concatenate([trace, trace_of(0.0, seed=1)], axis=2)
    assert integrated_time(both)[0] == pytest.approx(exact, rel=0.15)


def test_chains_stuck_apart_are_correlated_for_ever():
    trace = np.random.default_rng(0).normal(size=(16, 1000, 1))
    trace[::2] += 50
    assert integrated_time(trace)[0] > 300


def test_constant_observable_says_nothing():
    trace = np.random.default_rng(0).normal(size=(16, 500, 2))
    trace[:, :, 1] = -0.1
    assert integrated_time(trace)[0] < 1.5
    assert integrated_time(np.full((4, 100, 1), 0.3))[0] == 1.0


def test_no_time_depends_on_the_unit_of_energy():
    rng = np.random.default_rng(0)
    hot, cold = rng.normal(size=(2, 8, 400, 2)).cumsum(axis=2)
    hot[:, :50] += 5
    expected = [
        integrated_time(hot)[0], start_disagreement(hot, cold), settling_time(hot, cold)
    ]  # fmt: skip
    for unit in (2.0**-300, 2.0**300):
        scaled = hot * unit, cold * unit
        assert [
            integrated_time(scaled[0])[0], start_disagreement(*scaled),
            settling_time(*scaled),
        ] == expected  # fmt: skip


def test_disagreement_of_starts_is_in_standard_deviations():
    rng = np.random.default_rng(0)
    hot, cold = rng.normal(size=(2, 8, 500, 2))
    assert start_disagreement(hot, cold) < 0.15
    # A gap of g makes the standard deviation of both together sqrt(1 + g^2 / 4).
    gap = np.array([0.0, 3.0])
    assert start_disagreement(hot, cold + gap) == pytest.approx(
        3 / np.sqrt(1 + 9 / 4), abs=0.1
    )
    assert start_disagreement(np.zeros((2, 3, 1)), np.ones((2, 3, 1))) == 2.0
    assert start_disagreement(np.zeros((2, 3, 1)), np.zeros((2, 3, 1))) == 0.0


@pytest.mark.parametrize("draws, spacing", [(1, 1), (5, 1), (40, 2), (40, 500)])
def test_effective_size_is_that_of_the_mean(draws, spacing):
    memory, n = 0.8, 4000
    rho = memory ** np.arange(60)
    # The variance of the mean of the draws of one chain, term by term.
    lags = np.abs(np.subtract.outer(np.arange(draws), np.arange(draws)))
    variance = (memory ** (lags * spacing)).mean()
    expected = n / draws / variance
    assert effective_size(n, rho, draws, spacing) == pytest.approx(expected, rel=1e-4)


def test_settling_time_is_that_of_the_mean():
    rng = np.random.default_rng(0)
    hot, cold = rng.normal(size=(2, 8, 400, 2))
    assert settling_time(hot, cold) <= 2
    # A start 100 away that decays by a tenth a sweep is within 2 / sqrt(8) after
    # ln(100 / 0.7) / 0.1 = 50 sweeps.
    hot[:, :, 1] += 100 * np.exp(-0.1 * np.arange(400))
    assert 40 <= settling_time(hot, cold) <= 60
    assert settling_time(np.zeros((2, 5, 1)), np.zeros((2, 5, 1))) == 0


def test_burn_in_follows_the_measured_time():
    pilot = run_pilot(Autoregressive(0.9), 0, n_jobs=None)
    assert pilot.tau_int == pytest.approx(19, rel=0.25)
    assert 0 <= pilot.burn_in - np.ceil(8 * pilot.tau_int) < 20
    assert pilot.acceptance == 0.25
    assert pilot.start_disagreement < 0.5
    assert pilot.trouble == ""
    again = run_pilot(Autoregressive(0.9), 0, n_jobs=2)
    assert (again.tau_int, again.burn_in) == (pilot.tau_int, pilot.burn_in)
    assert run_pilot(Autoregressive(0.9), 1, n_jobs=None).tau_int != pilot.tau_int
    assert run_pilot(Autoregressive(0.0), 0, n_jobs=None).burn_in == 16


def test_burn_in_that_cannot_be_measured_is_said():
    chains = Autoregressive(0.9999, sweep_ns=1e9)
    with pytest.warns(ConvergenceWarning, match="mix slowly") as record:
        *_, info = sample_chains(chains, 3, random_state=0, return_info=True)
    assert info.burn_in == 1024
    assert len(record) == 1


def test_starts_that_disagree_are_said(monkeypatch):
    # Chains as quick as these hide a constant gap from the autocorrelation time.
    monkeypatch.setattr(_pilot, "_PILOT_TIMES", 0)
    with pytest.warns(ConvergenceWarning, match="ordered starts disagree by 1"):
        sample_chains(Autoregressive(0.0, cold_shift=4.0), 3, random_state=0)


@pytest.mark.parametrize("draws, lanes", [(1, 1), (3, 1), (1, 4), (3, 4)])
def test_rows_are_the_draws_of_chains_in_turn(draws, lanes, monkeypatch):
    monkeypatch.setattr(_chains, "CALL_NS", 1e5)
    chains = Autoregressive(0.5, lanes=lanes)
    options = {"random_state": 3, "draws_per_chain": draws, "spacing": 2}
    X, y, info = sample_chains(chains, 31, return_info=True, **options)
    key = _chains.draws_key(3)
    state = chains.start(key, 0, 11 * 3 if draws == 1 else 11, False)
    chains.advance(state, info.burn_in)
    expected = [chains.read(state)]
    for _ in range(draws - 1):
        chains.advance(state, 2)
        expected.append(chains.read(state))
    for got, part in ((X, 0), (y, 1), (info.energies, 2)):
        both = np.stack([e[part] for e in expected], axis=1)
        both = both.reshape(-1, *both.shape[2:])[:31]
        np.testing.assert_array_equal(got, both)
    few_X, few_y = sample_chains(chains, 8, n_jobs=2, **options)
    np.testing.assert_array_equal(few_X, X[:8])
    np.testing.assert_array_equal(few_y, y[:8])


def test_small_effective_size_is_said():
    chains = Autoregressive(0.9)
    with pytest.warns(ConvergenceWarning, match="1000 draws, 1 sweeps apart .* worth"):
        *_, info = sample_chains(
            chains, 1000, draws_per_chain=500, spacing=1, random_state=0,
            return_info=True,
        )  # fmt: skip
    assert info.ess == pytest.approx(1000 / 19, rel=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        *_, info = sample_chains(
            chains, 1000, draws_per_chain=500, random_state=0, return_info=True
        )
    assert info.spacing == np.ceil(info.tau_int)
    assert 500 < info.ess < 1000


def squares(start, stop):
    k = np.arange(start, stop)
    return k[:, None], np.stack([k**2, k**3], axis=1), -k


def test_blocks_fill_every_row_once(monkeypatch):
    for n_rows, row_ns, granule in ((1, 1e9, 1), (7, 2e7, 2), (1000, 3e6, 7)):
        X = np.full((n_rows, 1), -1)
        y, energies = fill_rows(
            squares, X, row_ns=row_ns, granule=granule, with_energies=True, n_jobs=2
        )
        np.testing.assert_array_equal(X[:, 0], np.arange(n_rows))
        np.testing.assert_array_equal(y[:, 0], X[:, 0] ** 2)
        np.testing.assert_array_equal(energies, -X[:, 0])
    assert fill_rows(squares, X, row_ns=1e3)[1] is None


def test_out_that_does_not_fit_is_named():
    with pytest.raises(ValueError, match=r"shape \(3, 2\) and dtype int8, got shape"):
        check_out(np.empty((2, 3), np.int8), (3, 2), np.int8)
    with pytest.raises(ValueError, match=r"got shape \(3, 2\) and dtype float64"):
        check_out(np.empty((3, 2)), (3, 2), np.int8)
    locked = np.empty((3, 2), np.int8)
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="out must be writeable"):
        check_out(locked, (3, 2), np.int8)


def test_interrupt_in_a_block_is_raised_again():
    def draw(key, start, stop):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample_exact(draw, 3, 1, row_ns=1, random_state=0)


def test_threads_stop_when_the_call_is_interrupted(monkeypatch):
    advanced = []

    class Slow(Autoregressive):
        def advance(self, state, n_sweeps):
            me = threading.get_ident()
            advanced.append(me)
            time.sleep(0.01)
            # One of the two threads is interrupted, and the other must hear of it.
            if me == advanced[0] and advanced.count(me) == 3:
                raise KeyboardInterrupt

    pilot = Pilot(1.0, np.ones(1), 1000, 1.0, 0.0, "")
    monkeypatch.setattr(_chains, "run_pilot", lambda *args, **options: pilot)
    with pytest.raises(KeyboardInterrupt):
        sample_chains(Slow(0.0, sweep_ns=5e7), 2, random_state=0, n_jobs=2)
    time.sleep(0.05)
    count = len(advanced)
    time.sleep(0.1)
    assert len(advanced) == count < 50
    assert len(set(advanced)) == 2
