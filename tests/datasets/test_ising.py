import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skident.datasets import make_ising
from skident.exact import ising

METHODS = ["exact", "heat-bath", "multispin", "swendsen-wang", "wolff"]

# shape, temperature, field, coupling, periodic
MODELS = {
    "chain": ((8,), 1.5, 0.0, 1.0, True),
    "open chain in a field": (7, 1.0, 0.4, 1.0, False),
    "sheet": ((3, 3), 2.3, 0.0, 1.0, True),
    "cold sheet": ((2, 4), 1.2, 0.0, 1.0, True),
    "sheet in a field": ((3, 3), 2.5, -0.3, 1.0, True),
    "open antiferromagnet": ((3, 3), 1.8, 0.0, -1.0, False),
    "frustrated": ((3, 3), 1.5, 0.0, -1.0, True),
    "frustrated in a field": ((3, 3), 1.5, 0.5, -0.7, True),
    "double bonds": ((2, 2, 2), 4.0, 0.0, 1.0, True),
    "antiferromagnet in a field": ((2, 2, 2), 3.0, 1.0, -1.0, False),
    "side of one": ((1, 6), 1.0, 0.2, 1.0, True),
    "no coupling": ((5,), 1.0, 0.3, 0.0, True),
    "infinite temperature": ((2, 3), np.inf, 1.0, 1.0, True),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", MODELS)
def test_every_state_has_its_probability(assert_boltzmann, spins, model, method):
    shape, temperature, field, coupling, periodic = MODELS[model]
    X, y, info = make_ising(
        10_000, shape, temperature=temperature, field=field, coupling=coupling,
        periodic=periodic, method=method, return_info=True, random_state=0,
    )  # fmt: skip
    energy = spins.lattice_energy(shape, field, coupling, periodic)
    assert_boltzmann(X, energy, temperature)
    np.testing.assert_allclose(
        info.energies[:40], [energy(s) for s in X[:40].astype(float)], atol=1e-12
    )
    signs = (-1.0) ** np.indices(np.atleast_1d(shape)).sum(axis=0).ravel()
    signs = signs if coupling < 0 else np.ones_like(signs)
    np.testing.assert_allclose(y, X @ signs / X.shape[1], atol=1e-12)
    assert info.method == method


def test_energy_of_a_sheet_at_the_critical_point():
    # Exact finite-size value of the 4 x 4 torus at T = 2.269: -1.56577 a site.
    for method in METHODS:
        *_, info = make_ising(
            20_000, (4, 4), temperature=2.269, method=method, return_info=True,
            random_state=0,
        )  # fmt: skip
        error = info.energies.std() / np.sqrt(20_000) / 16
        assert abs(info.energies.mean() / 16 + 1.56577) < 5.7 * error


def test_methods_agree_in_three_dimensions():
    means, errors = [], []
    for method in METHODS:
        _, m, info = make_ising(
            1500, (5, 4, 3), temperature=4.0, coupling=-1.0, periodic=False,
            method=method, return_info=True, random_state=0,
        )  # fmt: skip
        observed = np.stack([info.energies, m**2])
        means.append(observed.mean(axis=1))
        errors.append(observed.std(axis=1) / np.sqrt(1500))
    for mean, error in zip(means[1:], errors[1:], strict=True):
        assert (abs(mean - means[0]) < 5.7 * np.hypot(error, errors[0])).all()


@pytest.mark.parametrize("method", METHODS)
def test_both_signs_below_the_critical_point(assert_distribution, method):
    for coupling in (1.0, -1.0):
        _, m = make_ising(
            500, (6, 6), temperature=1.6, coupling=coupling, method=method,
            random_state=0,
        )  # fmt: skip
        assert abs(m).mean() > 0.9
        assert_distribution([(m > 0).sum(), (m < 0).sum()], [0.5, 0.5])


@pytest.mark.parametrize(
    "shape, temperature, coupling, periodic, method",
    [
        ((4, 4), 2.3, 1.0, True, "exact"),
        ((5, 1), 2.3, -1.0, True, "exact"),
        ((9,), 0.3, 1.0, False, "exact"),
        ((24, 24), 2.3, 1.0, True, "swendsen-wang"),
        ((24, 24), 2.3, -1.0, True, "swendsen-wang"),
        ((25, 24), 2.3, -1.0, True, "multispin"),
        ((25, 24), 2.3, -1.0, False, "swendsen-wang"),
        ((25, 24), 2.3, 1.0, True, "swendsen-wang"),
        ((24, 24), 2.9, 1.0, True, "multispin"),
        ((24, 24), 2.9, 2.0, True, "swendsen-wang"),
        ((24, 1, 24), 2.9, 1.0, True, "multispin"),
        ((8, 8, 8), 4.5, 1.0, True, "swendsen-wang"),
        ((8, 8, 8), 6.0, 1.0, True, "multispin"),
    ],
)
def test_auto_chooses_by_lattice_and_temperature(
    shape, temperature, coupling, periodic, method
):
    *_, info = make_ising(
        2, shape, temperature=temperature, coupling=coupling, periodic=periodic,
        return_info=True, random_state=0,
    )  # fmt: skip
    assert info.method == method


@pytest.mark.parametrize("method", METHODS)
def test_cold_limit(method):
    X, m = make_ising(
        20, (2, 3), temperature=1e-100, field=5.0, method=method, random_state=0
    )
    assert (X == 1).all()
    assert (m == 1).all()


@pytest.mark.parametrize("method", ["heat-bath", "multispin"])
@pytest.mark.parametrize(
    "shape, temperature, field, coupling",
    [
        ((4, 4), 0.9, 0.0, 1.0),
        ((8, 8), 1.0, 0.05, 1.0),
        ((8, 8), 1.2, 0.0, -1.0),
        ((8, 8), 1.5, 0.0, 1.0),
        ((3, 4, 4), 2.0, 0.0, 1.0),
    ],
)
def test_cold_single_spins_leave_no_stripes(
    method, shape, temperature, field, coupling
):
    model = {"temperature": temperature, "field": field, "coupling": coupling}
    *_, info = make_ising(
        4000, shape, method=method, return_info=True, random_state=0, **model
    )
    truth = ising(shape, **model).energy * np.prod(shape)
    # A stripe costs more than the spread; where no draw is excited, 1 / n bounds it.
    error = max(info.energies.std(), 1.0) / np.sqrt(4000)
    assert abs(info.energies.mean() - truth) < 5.5 * error


def test_large_lattices_are_refused_with_their_size():
    with pytest.raises(ValueError, match=r"9e\+08 sites, .* take 40 GiB"):
        make_ising(2, (30_000, 30_000), temperature=1.0)


def test_slow_mixing_is_said(monkeypatch):
    monkeypatch.setattr("skident.datasets._pilot._PILOT_NS", 1e8)
    # Single spins do not cross between the two cold states: their chains stay apart.
    with pytest.warns(ConvergenceWarning, match="mix slowly"):
        make_ising(
            1, (32, 32), temperature=0.5, field=1e-6, method="heat-bath",
            random_state=0,
        )  # fmt: skip


@pytest.mark.parametrize(
    "changes, name",
    [
        ({"shape": (2, 0)}, "shape"),
        ({"shape": np.array(2.5)}, "shape must be one to three ints"),
        ({"shape": "ab"}, "shape"),
        ({"coupling": np.nan}, "coupling"),
        ({"field": np.inf}, "field"),
        ({"periodic": 2}, "periodic"),
        ({"method": "wolf"}, "method"),
    ],
)
def test_bad_input_is_named(changes, name):
    arguments = {"shape": (3, 3), "temperature": 2.0, **changes}
    with pytest.raises(ValueError, match=name):
        make_ising(5, **arguments)
