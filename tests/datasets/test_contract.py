"""What holds for every spin generator."""

import subprocess
import sys
import textwrap
from functools import partial

import joblib
import numpy as np
import pytest

from skident.datasets import (
    lattice_graph,
    make_curie_weiss,
    make_hopfield,
    make_ising,
    make_maier_saupe,
    make_patterns,
    make_spin_glass,
)

PATTERNS = make_patterns(3, 40, random_state=0)
LINKS = np.triu(np.random.default_rng(0).normal(size=(20, 20)), 1)


def ising(method, shape=(4, 5)):
    return (lambda n, **k: make_ising(n, shape, method=method, **k), 20, ())


# name: (generator of n rows, width of X, width of y)
SPINS = {
    "curie-weiss": (lambda n, **k: make_curie_weiss(n, 40, **k), 40, ()),
    "hopfield exact": (
        lambda n, **k: make_hopfield(n, PATTERNS, method="exact", **k), 40, (3,),
    ),
    "hopfield tempering": (
        lambda n, **k: make_hopfield(n, PATTERNS, method="tempering", **k), 40, (3,),
    ),
    "ising exact": ising("exact"),
    "swendsen-wang": ising("swendsen-wang"),
    "wolff": ising("wolff"),
    "multispin": ising("multispin"),
    "heat-bath": ising("heat-bath"),
    "spin glass": (
        lambda n, **k: make_spin_glass(n, LINKS + LINKS.T, **k), 20, (),
    ),
}  # fmt: skip
GENERATORS = {
    **SPINS,
    "maier-saupe": (lambda n, **k: make_maier_saupe(n, 6, **k), 18, (5,)),
}


def of(name):
    return partial(GENERATORS[name][0], temperature=2.5)


@pytest.fixture(params=GENERATORS)
def generate(request):
    return of(request.param)


@pytest.fixture(params=SPINS)
def generate_spins(request):
    return of(request.param)


@pytest.fixture
def small_blocks(monkeypatch):
    """Make every call run many blocks."""
    monkeypatch.setattr("skident.datasets._chains.CALL_NS", 5e3)


def assert_same(first, second):
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", GENERATORS)
def test_shapes_and_types(name):
    make, width, order = GENERATORS[name]
    for n in (1, 23):
        X, y, info = make(n, temperature=2.0, return_info=True, random_state=0)
        assert (X.shape, y.shape) == ((n, width), (n, *order))
        assert y.dtype == np.float64
        if name in SPINS:
            assert X.dtype == np.int8
            assert set(np.unique(X)) <= {-1, 1}
            assert abs(y).max() <= 1
        else:
            assert X.dtype == np.float64
            lengths = np.linalg.norm(X.reshape(n, -1, 3), axis=2)
            np.testing.assert_allclose(lengths, 1, rtol=1e-12)
        assert (info.energies.shape, info.energies.dtype) == ((n,), np.float64)
        assert info.order_parameter is y
        assert info.ess == n
        assert info.tau_int >= 1
        assert isinstance(info.burn_in, int)
        assert isinstance(info.spacing, int)
        assert 0 < info.acceptance <= 1
        assert 0 <= info.start_disagreement <= 2
        assert isinstance(info.method, str)


def test_out_takes_a_memory_map(generate, tmp_path):
    expected, _ = generate(40, random_state=0)
    place = tmp_path / "rows.npy"
    out = np.lib.format.open_memmap(place, "w+", expected.dtype, expected.shape)
    X, _ = generate(40, random_state=0, out=out)
    assert X is out
    out.flush()
    np.testing.assert_array_equal(np.load(place), expected)
    with pytest.raises(ValueError, match="out must have shape"):
        generate(41, random_state=0, out=out)
    with pytest.raises(ValueError, match="'out' parameter"):
        generate(40, out="file.npy")


def test_progress_is_shown_if_asked(generate, capsys):
    generate(5, random_state=0)
    assert capsys.readouterr() == ("", "")
    generate(5, random_state=0, verbose=1)
    assert "samples: 100%" in capsys.readouterr().err


@pytest.mark.parametrize("n_jobs", [2, 3, -1])
def test_same_for_any_number_of_jobs(generate, n_jobs, small_blocks):
    assert_same(
        generate(500, random_state=0), generate(500, random_state=0, n_jobs=n_jobs)
    )


def test_same_for_any_size_of_block(generate, small_blocks, monkeypatch):
    many = generate(300, random_state=5)
    monkeypatch.setattr("skident.datasets._chains.CALL_NS", 1e12)
    assert_same(many, generate(300, random_state=5))


@pytest.mark.parametrize(
    "name",
    [
        "hopfield tempering",
        # One generator is enough for every day: processes start slowly.
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in GENERATORS
            if name != "hopfield tempering"
        ),
    ],
)
def test_same_for_any_backend(name, small_blocks):
    generate = of(name)
    expected = generate(100, random_state=0)
    for backend in ("sequential", "threading", "loky"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            assert_same(expected, generate(100, random_state=0))


def test_row_does_not_depend_on_how_many_are_asked(generate):
    X, y, info = generate(200, random_state=1, return_info=True)
    few_X, few_y, few_info = generate(11, random_state=1, return_info=True)
    assert_same((X[:11], y[:11]), (few_X, few_y))
    np.testing.assert_array_equal(info.energies[:11], few_info.energies)
    assert info.burn_in == few_info.burn_in


def test_rows_are_not_repeated(generate):
    X, _ = generate(300, random_state=2, temperature=8.0)
    assert len(np.unique(X, axis=0)) > 250


def test_random_state_of_each_kind(generate):
    X, _ = generate(50, random_state=0)
    assert (X != generate(50, random_state=1)[0]).any()
    assert (X != generate(50)[0]).any()
    seeds = [np.random.RandomState(3), np.random.RandomState(3)]
    first, second = (generate(50, random_state=s)[0] for s in seeds)
    np.testing.assert_array_equal(first, second)
    # A RandomState advances.
    assert (first != generate(50, random_state=seeds[0])[0]).any()


def test_zero_and_one(generate_spins):
    generate = generate_spins
    X, y = generate(60, random_state=0)
    for spin_values in ((0, 1), [0, 1], np.array([0, 1])):
        bits, same_y = generate(60, random_state=0, spin_values=spin_values)
        assert bits.dtype == np.int8
        np.testing.assert_array_equal(2 * bits - 1, X)
        np.testing.assert_array_equal(same_y, y)


def test_infinite_temperature_is_independent(generate):
    X, _, info = generate(5000, random_state=0, temperature=np.inf, return_info=True)
    assert np.isfinite(info.energies).all()
    # The variance of a spin is 1, that of a component of a director 1/3.
    variance = 1 if X.dtype == np.int8 else 1 / 3
    covariance = X.astype(float).T @ X / len(X) / variance
    error = covariance - np.eye(X.shape[1])
    assert abs(error).max() < 6.2 / np.sqrt(len(X))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"temperature": 0}, "'temperature' parameter .* Got 0"),
        ({"temperature": -1.5}, "'temperature' parameter .* Got -1.5"),
        ({"temperature": np.nan}, "'temperature' parameter .* Got nan"),
        ({"temperature": "hot"}, "'temperature' parameter .* Got 'hot'"),
        ({"random_state": -3}, "'random_state' parameter .* Got -3"),
        ({"random_state": "x"}, "'random_state' parameter .* Got 'x'"),
        ({"return_info": 3}, "'return_info' parameter"),
        ({"n_jobs": 1.5}, "'n_jobs' parameter"),
    ],
)
def test_bad_input_is_named(generate, changes, message):
    with pytest.raises(ValueError, match=message):
        generate(4, **changes)


@pytest.mark.parametrize(
    "spin_values, message",
    [
        ((1, -1), r"spin_values must be .* got \(1, -1\)"),
        ((-1, 0, 1), r"spin_values must be .* got \(-1, 0, 1\)"),
        ("ab", "'spin_values' parameter"),
    ],
)
def test_bad_spin_values_are_named(generate_spins, spin_values, message):
    with pytest.raises(ValueError, match=message):
        generate_spins(4, spin_values=spin_values)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.longdouble])
def test_numpy_numbers_are_taken_for_what_they_are(generate, kind):
    narrow, _ = generate(
        np.int8(100), temperature=kind(2.5), n_jobs=np.int8(1), random_state=np.int16(7)
    )
    wide, _ = generate(100, random_state=7)
    np.testing.assert_array_equal(narrow, wide)


def test_narrow_integers_do_not_wrap():
    wide, _ = make_curie_weiss(50, 100, temperature=0.9, random_state=0)
    narrow, _ = make_curie_weiss(50, np.int8(100), temperature=0.9, random_state=0)
    np.testing.assert_array_equal(narrow, wide)
    options = {"temperature": 5.0, "method": "multispin", "random_state": 0}
    wide, _ = make_ising(600, (3, 3), draws_per_chain=4, spacing=100, **options)
    narrow, _ = make_ising(
        600, np.array([3, 3], np.int8), draws_per_chain=np.int8(4),
        spacing=np.int8(100), **options,
    )  # fmt: skip
    np.testing.assert_array_equal(narrow, wide)
    assert lattice_graph((np.int8(100), np.int8(100))).shape == (10_000, 10_000)


def test_huge_requests_are_refused_with_their_size(generate):
    with pytest.raises(MemoryError, match=r"takes .* GiB: ask for fewer samples"):
        generate(10**15)


@pytest.mark.parametrize("name", ["patterns", "couplings", "field"])
def test_masked_entries_are_refused(name):
    values = {
        "patterns": make_patterns(2, 5, random_state=0), "couplings": np.zeros((5, 5)),
        "field": np.zeros(5),
    }  # fmt: skip
    values[name] = np.ma.masked_array(values[name])
    values[name].mask = np.arange(values[name].size).reshape(values[name].shape) == 3
    with pytest.raises(ValueError, match=f"{name} has masked entries"):
        make_hopfield(2, values["patterns"], temperature=1.0)
        make_spin_glass(2, values["couplings"], field=values["field"], temperature=1.0)


@pytest.mark.parametrize("n_samples", [0, -2, 2.5, None])
def test_bad_number_of_samples_is_named(generate, n_samples):
    with pytest.raises(ValueError, match="'n_samples' parameter"):
        generate(n_samples)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_is_heard(n_jobs):
    script = f"""
        import _thread, threading
        from skident.datasets import make_ising
        make_ising(2, (16, 16), temperature=2.3)
        threading.Timer(1.0, _thread.interrupt_main).start()
        try:
            make_ising(100_000, (64, 64), temperature=2.3, n_jobs={n_jobs})
        except KeyboardInterrupt:
            print("heard")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True, text=True, timeout=90, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "heard"
