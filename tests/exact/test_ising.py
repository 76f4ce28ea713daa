import itertools
import math

import numpy as np
import pytest
from scipy.special import ellipkm1

from skident.datasets._lattice import lattice
from skident.exact import _ising, ising, onsager
from skident.exact._ising import check_shape
from skident.exact._ising_transfer import transfer_cost, transfer_sums
from skident.exact._kaufman import torus

CRITICAL = 2 / math.log(1 + math.sqrt(2))
TEMPERATURES = (1.5, 2.0, 2.269, 2.5, 3.0, 4.0)
# Side, then one value a temperature, of an independent computation.
HALF_CUT = [
    (4, ".702 .733 .729 .692 .544 .296"),
    (6, ".706 .822 .934 .959 .765 .412"),
    (8, ".711 .889 1.155 1.278 1.010 .544"),
    pytest.param(10, ".715 .946 1.389 1.630 1.261 .680", marks=pytest.mark.slow),
]
CHECKERBOARD = [
    (4, ".728 .927 1.084 1.180 1.181 .849"),
    (6, ".764 1.296 1.933 2.431 2.639 1.876"),
    (8, ".818 1.790 3.209 4.418 4.789 3.336"),
]


def printed(value, digits):
    decimals = len(digits.split(".")[1])
    return abs(value - float(digits)) <= 0.5001 * 10.0**-decimals


@pytest.mark.parametrize("side, row", HALF_CUT, ids=lambda x: str(x)[:2])
def test_table_of_the_half_cut(side, row):
    for temperature, digits in zip(TEMPERATURES, row.split(), strict=True):
        assert printed(ising((side, side), temperature).bipartite_information, digits)


def test_half_cut_of_ten_by_ten():
    assert printed(ising((10, 10), 2.269).bipartite_information, "1.389")


@pytest.mark.parametrize("side, row", CHECKERBOARD, ids=lambda x: str(x)[:2])
def test_table_of_the_checkerboard_cut(side, row):
    for temperature, digits in zip(TEMPERATURES, row.split(), strict=True):
        truth = ising((side, side), temperature)
        assert printed(truth.checkerboard_information, digits)


def test_sheet_of_sixteen_sites():
    truth = ising((4, 4), 2.269)
    assert printed(truth.energy, "-1.56577")
    assert printed(truth.entropy, "4.4817")
    assert printed(truth.total_correlation, "6.6087")


@pytest.mark.slow
def test_twelve_layers_of_twelve():
    truth, closed = ising((12, 12), 2.269), torus((12, 12), 1 / 2.269)
    assert truth.energy == pytest.approx(-closed.bond_sum / 144, rel=1e-12)
    assert truth.entropy == pytest.approx(closed.entropy, rel=1e-12)
    # One grows by about .234 from side 8 to 10, the other nearly as the area.
    assert truth.bipartite_information == pytest.approx(1.389 + 0.234, abs=0.02)
    per_site = truth.checkerboard_information / 144
    assert 0.95 * 3.209 / 64 < per_site < 3.209 / 64


def entropy_of(p):
    p = p[p > 0]
    return -(p @ np.log(p))


def enumerate_all(shape, temperature, field, coupling, periodic):
    """All that ``ising`` returns, from a list of all states."""
    n = math.prod(shape)
    graph = lattice(shape, periodic, coupling)
    states = np.array(list(itertools.product((-1, 1), repeat=n)), dtype=float)
    aligned = np.prod(states[:, graph.bonds], axis=2)
    energies = -coupling * aligned.sum(axis=1) - field * states.sum(axis=1)
    excess = energies - energies.min()
    # Energies that differ by rounding alone are equal, however cold.
    excess[excess < 1e-12 * np.abs(energies).max()] = 0.0
    weights = np.exp(-excess / temperature)
    p = weights / weights.sum()
    m = states @ graph.staggering / n
    ups, square = p @ (states > 0), p @ m**2
    entropy = entropy_of(p)
    coordinates = np.indices(shape).reshape(len(shape), -1)
    axis = int(np.argmax(shape))
    bonds = graph.bonds
    colours = coordinates.sum(axis=0) % 2
    two_coloured = (colours[bonds[:, 0]] != colours[bonds[:, 1]]).all()

    def information(side):
        numbers = np.stack(
            [(states[:, s] > 0) @ (1 << np.arange(s.sum())) for s in (side, ~side)]
        )
        return sum(entropy_of(np.bincount(x, p)) for x in numbers) - entropy

    return {
        "magnetization": p @ m,
        "abs_magnetization": p @ abs(m),
        "susceptibility": n * (p @ m**2),
        "binder": 1 - (p @ m**4) / (3 * square**2) if square > 1e-80 else None,
        "energy": p @ energies / n,
        "free_energy": energies.min() - temperature * np.log(weights.sum()),
        "entropy": entropy,
        "total_correlation": sum(entropy_of(np.array([u, 1 - u])) for u in ups)
        - entropy,
        "bipartite_information": information(coordinates[axis] < shape[axis] // 2),
        "checkerboard_information": (
            information(colours == 0) if two_coloured else None
        ),
        "order_parameter": np.sqrt(p @ m**2),
        "pair_correlation": (p @ aligned).mean() if len(bonds) else None,
    }


SHAPES = [
    (1,), (2,), (3,), (6,), (9,), (1, 1), (4, 1), (2, 2), (2, 3), (3, 3), (4, 2),
    (3, 4), (2, 2, 2), (3, 2, 2), (2, 1, 4), (1, 3, 3),
]  # fmt: skip


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_agrees_with_enumeration(shape, periodic):
    models = itertools.product((0.3, 1.7, 6.0), (0.0, 0.4, -1.0), (1.0, -1.0, 0.3, 0.0))
    for temperature, field, coupling in models:
        truth = ising(
            shape, temperature, field=field, coupling=coupling, periodic=periodic
        )
        expected = enumerate_all(shape, temperature, field, coupling, periodic)
        assert set(expected) == set(truth._fields)
        for name, value in expected.items():
            case = (name, temperature, field, coupling)
            if value is None:
                assert getattr(truth, name) is None, case
            else:
                assert getattr(truth, name) == pytest.approx(
                    value, rel=1e-9, abs=1e-10
                ), case


@pytest.mark.slow
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 4, 2), (17,)], ids=str)
def test_agrees_with_a_long_enumeration(shape, periodic):
    for temperature, field, coupling in [(2.3, 0.0, 1.0), (1.1, 0.2, -1.0)]:
        truth = ising(
            shape, temperature, field=field, coupling=coupling, periodic=periodic
        )
        expected = enumerate_all(shape, temperature, field, coupling, periodic)
        for name, value in expected.items():
            if value is not None:
                assert getattr(truth, name) == pytest.approx(value, abs=1e-9), name


@pytest.mark.parametrize(
    "shape, field, coupling, periodic",
    [
        ((5,), 0.0, -1.0, True),
        ((3, 3), 0.0, -1.0, True),
        ((4, 3), 0.25, -0.5, True),
        ((3, 3), 4.0, -1.0, True),
        ((5, 3), 0.3, -0.1, True),
        ((3, 4), 0.0, 2.0, False),
        ((2, 2, 2), 0.7, -0.1, True),
        ((3, 3), 1.0, -0.25, False),
        # 3 * 0.1 is not 0.3, but a tie.
        ((4, 2), 0.3, -0.1, False),
    ],
)
@pytest.mark.parametrize("temperature", [1e-100, 1e-5, 1e-2])
def test_cold_limit_is_the_ground_states(shape, field, coupling, periodic, temperature):
    # Among them are frustrated ones, and fields at which states of other
    # magnetisation cost the same.
    truth = ising(shape, temperature, field=field, coupling=coupling, periodic=periodic)
    # At 1e-3 all but the ground states are out of reach.
    expected = enumerate_all(shape, max(temperature, 1e-3), field, coupling, periodic)
    colder = max(temperature, 1e-3) - temperature
    expected["free_energy"] += colder * expected["entropy"]
    for name, value in expected.items():
        if value is not None:
            assert getattr(truth, name) == pytest.approx(value, rel=1e-9, abs=1e-9), (
                name
            )


@pytest.mark.parametrize("shape", [(6, 6), (512, 512), (7,), (3, 3, 3)], ids=str)
@pytest.mark.parametrize("coupling", [1.0, -1.0])
def test_infinite_temperature_is_independent(shape, coupling):
    truth = ising(shape, np.inf, field=0.0, coupling=coupling)
    n = math.prod(shape)
    assert truth.entropy == pytest.approx(n * math.log(2), rel=1e-12)
    assert truth.total_correlation == pytest.approx(0, abs=1e-9)
    assert truth.energy == pytest.approx(0, abs=1e-12)
    assert truth.free_energy == -math.inf
    if truth.bipartite_information is not None:
        assert truth.bipartite_information == pytest.approx(0, abs=1e-10)
        assert truth.susceptibility == pytest.approx(1)


@pytest.mark.parametrize("temperature", [1e-100, 1e-3, 1e3, 1e100])
@pytest.mark.parametrize("coupling", [1e-100, 1.0, -1e100])
@pytest.mark.parametrize("field", [0.0, 1e100])
@pytest.mark.parametrize("shape", [(5, 4), (1000,), (3, 3, 2)], ids=str)
def test_extremes_are_finite(shape, temperature, coupling, field):
    truth = ising(shape, temperature, coupling=coupling, field=field)
    values = [v for v in truth if v is not None]
    assert np.isfinite(values).all()
    assert 0 <= truth.entropy <= math.prod(shape) * math.log(2) * (1 + 1e-12)
    assert truth.total_correlation >= 0


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 6), (2, 2), (9, 8), (9,)])
@pytest.mark.parametrize("temperature", [0.4, 1.5, CRITICAL, 2.5, 30.0, 1e5])
def test_kaufman_agrees_with_the_transfer_matrix(shape, temperature):
    sides = (1, *shape)[-2:]
    closed = torus(sides, 1 / temperature)
    sums = transfer_sums(shape, True, (1 / temperature, 0.0), staggered=False)
    log_z = sums.log_z.bonds / temperature + sums.log_z.log
    n = math.prod(shape)
    assert closed.log_z + closed.ground / temperature == pytest.approx(log_z, rel=1e-13)
    assert closed.bond_sum == pytest.approx(sums.bond_sum, abs=1e-11 * n)
    assert closed.entropy == pytest.approx(sums.entropies[2], abs=1e-11 * n)
    single = n * math.log(2)
    assert closed.total_correlation == pytest.approx(
        single - sums.entropies[2], abs=1e-11 * n
    )


def test_kaufman_agrees_with_enumeration():
    expected = enumerate_all((4, 4), 2.269, 0.0, 1.0, True)
    closed = torus((4, 4), 1 / 2.269)
    assert -closed.bond_sum / 16 == pytest.approx(expected["energy"], rel=1e-12)
    assert closed.entropy == pytest.approx(expected["entropy"], rel=1e-12)


@pytest.mark.parametrize("side", [512, 4096])
@pytest.mark.parametrize("temperature", [1e-100, 1e-3, 1.0, CRITICAL, 3.0, 1e3, 1e100])
def test_large_torus_neither_overflows_nor_loses_digits(side, temperature):
    truth, limit = ising((side, side), temperature), onsager(temperature)
    n = side**2
    # ln Z exceeds that of the plane by ln 2 in the cold, by a constant at T_c.
    amplitude = {True: math.log(2), False: 0.0}[temperature < 2]
    if temperature == CRITICAL:
        amplitude = math.log(2**0.25 + 2**-0.5)
    excess = n * limit.free_energy - truth.free_energy
    rounding = 1e-13 * abs(truth.free_energy)
    assert excess == pytest.approx(temperature * amplitude, rel=1e-6, abs=rounding)
    assert truth.entropy >= math.log(2) - 1e-9
    assert truth.energy == pytest.approx(
        limit.energy, abs=1e-12 if temperature != CRITICAL else 1 / side
    )


def test_energy_of_a_large_torus_at_the_critical_point():
    # Ferdinand and Fisher 1969: -sqrt(2) - 2 t2 t3 t4 / (t2 + t3 + t4) / L with the
    # theta constants at exp(-pi).
    q = math.exp(-math.pi)
    n = np.arange(1, 20)
    t2 = 2 * (q ** ((n - 0.5) ** 2)).sum()
    t3, t4 = 1 + 2 * (q ** (n**2)).sum(), 1 + 2 * ((-1.0) ** n * q ** (n**2)).sum()
    amplitude = 2 * t2 * t3 * t4 / (t2 + t3 + t4)
    for side in (64, 512):
        energy = ising((side, side), CRITICAL).energy
        assert (-math.sqrt(2) - energy) * side == pytest.approx(amplitude, rel=1e-3)


def test_antiferromagnet_of_even_sides_is_the_ferromagnet():
    for shape in ((4, 6), (64, 32)):
        plus, minus = ising(shape, 2.0), ising(shape, 2.0, coupling=-1.0)
        assert minus.pair_correlation == pytest.approx(-plus.pair_correlation)
        for name in set(plus._fields) - {"pair_correlation"}:
            value = getattr(plus, name)
            if value is None:
                assert getattr(minus, name) is None
            else:
                assert getattr(minus, name) == pytest.approx(value, abs=1e-10), name


@pytest.mark.parametrize(
    "shape, field, coupling, periodic",
    [
        ((5, 3), 0.2, 1.0, True),
        ((5, 4), 0.3, -1.0, False),
        ((4, 3, 3), 0.1, 0.7, True),
        ((64, 48), 0.0, 1.0, True),
        ((300,), 0.5, -1.0, True),
    ],
)
def test_thermodynamic_identities(shape, field, coupling, periodic):
    n, beta, step = math.prod(shape), 0.45, 1e-4

    def log_z(b, h):
        truth = ising(shape, 1 / b, field=h, coupling=coupling, periodic=periodic)
        return -b * truth.free_energy

    truth = ising(shape, 1 / beta, field=field, coupling=coupling, periodic=periodic)
    slope = (log_z(beta + step, field) - log_z(beta - step, field)) / (2 * step)
    assert n * truth.energy == pytest.approx(-slope, rel=1e-6)
    expected = beta * (n * truth.energy - truth.free_energy)
    assert truth.entropy == pytest.approx(expected, rel=1e-10)
    if coupling > 0 and truth.susceptibility is not None:
        up, down = log_z(beta, field + step), log_z(beta, field - step)
        slope = (up - down) / (2 * step * beta * n)
        assert truth.magnetization == pytest.approx(slope, rel=1e-6)
        curvature = (up + down - 2 * log_z(beta, field)) / (step * beta) ** 2 / n
        variance = truth.susceptibility - n * truth.magnetization**2
        assert variance == pytest.approx(curvature, rel=1e-4)


def test_chain_in_a_field_has_its_closed_form():
    n, beta, field = 20_000, 0.8, 0.15
    truth = ising(n, 1 / beta, field=field)
    a = math.exp(beta) * math.cosh(beta * field)
    root = math.sqrt(
        math.exp(2 * beta) * math.sinh(beta * field) ** 2 + math.exp(-2 * beta)
    )
    assert -beta * truth.free_energy == pytest.approx(n * math.log(a + root))
    m = math.exp(beta) * math.sinh(beta * field) / root
    assert truth.magnetization == pytest.approx(m)
    correlation = (a - root) / (a + root)
    pair = m**2 + (1 - m**2) * correlation
    assert truth.pair_correlation == pytest.approx(pair)
    variance = (1 - m**2) * (1 + correlation) / (1 - correlation)
    assert truth.susceptibility - n * m**2 == pytest.approx(variance, rel=1e-6)


def test_long_chain_without_a_field_has_its_closed_form():
    beta = 0.7
    for n in (1000, 10**9):
        truth = ising(n, 1 / beta)
        assert truth.free_energy == pytest.approx(
            -n * math.log(2 * math.cosh(beta)) / beta
        )
        assert truth.energy == pytest.approx(-math.tanh(beta))
    # Two cuts, each worth the information of one bond of an open chain.
    p = (1 + math.tanh(beta)) / 2
    bond = math.log(2) - entropy_of(np.array([p, 1 - p]))
    assert ising(1000, 1 / beta).bipartite_information == pytest.approx(2 * bond)
    open_chain = ising(1000, 1 / beta, periodic=False)
    assert open_chain.bipartite_information == pytest.approx(bond)


def test_moments_without_the_distribution_are_the_same():
    for shape, periodic, betas, staggered in [
        ((6, 3), True, (0.5, 0.1), False),
        ((7, 3), True, (-0.5, 0.2), True),
        ((5, 4), False, (-0.5, 0.2), True),
        ((40,), True, (0.9, 0.0), False),
        # Most numbers of spins are out of reach here.
        ((600,), True, (0.2, 2.0), False),
        ((150, 3), True, (-0.6, 2.0), True),
    ]:
        options = {"staggered": staggered}
        full = transfer_sums(shape, periodic, betas, **options).moments
        short = transfer_sums(shape, periodic, betas, distribution=False, **options)
        kept = [0, 2, 3]
        np.testing.assert_allclose(
            short.moments[kept], full[kept], rtol=1e-10, atol=1e-9
        )


@pytest.mark.parametrize("n", [20, 50, 350])
def test_without_the_distribution_nothing_is_made_up(monkeypatch, n):
    full = ising(n, 0.7, coupling=-1.0, field=0.3)
    cost, more, _ = transfer_cost((n,), True, True, False)
    monkeypatch.setattr(_ising, "_LONGEST", cost + more / 2)
    short = ising(n, 0.7, coupling=-1.0, field=0.3)
    for name, value in full._asdict().items():
        if name == "abs_magnetization":
            assert value is not None and short.abs_magnetization is None
        else:
            assert getattr(short, name) == pytest.approx(value, abs=1e-9), name
    # All spins up: the staggered sum vanishes but for rounding.
    for field in (5.0, 20.0):
        up = ising(n, 0.1, coupling=-1.0, field=field)
        assert up.order_parameter == pytest.approx(0, abs=1e-6)
        assert up.binder is None or field == 5.0


def test_information_obeys_the_area_law():
    # The longer strip has the same two cuts; the wider one has longer cuts.
    short, long, wide = (ising(s, 3.0) for s in ((12, 4), (24, 4), (16, 8)))
    information = short.bipartite_information
    assert long.bipartite_information == pytest.approx(information, rel=1e-3)
    assert wide.bipartite_information / information == pytest.approx(2, rel=0.1)
    # The checkerboard cut is extensive.
    ratio = long.checkerboard_information / short.checkerboard_information
    assert ratio == pytest.approx(2, rel=1e-2)
    # An open strip has one cut instead of two.
    one = ising((24, 4), 3.0, periodic=False).bipartite_information
    assert one < 0.6 * information


def test_entropy_grows_and_correlation_falls_with_temperature():
    for shape in ((6, 6), (64, 64)):
        truths = [ising(shape, t) for t in np.linspace(0.2, 8, 30)]
        assert (np.diff([t.entropy for t in truths]) > -1e-12).all()
        assert (np.diff([t.total_correlation for t in truths]) < 1e-12).all()


def test_order_of_the_sides_does_not_matter():
    first, second = ising((3, 6), 2.0, field=0.1), ising((6, 3), 2.0, field=0.1)
    for a, b in zip(first, second, strict=True):
        assert a == b or a == pytest.approx(b, rel=1e-12)


def test_onsager_at_known_points():
    truth = onsager(CRITICAL)
    catalan = 0.915965594177219015
    assert truth.energy == pytest.approx(-math.sqrt(2), rel=1e-12)
    expected = math.log(2) / 2 + 2 * catalan / math.pi
    assert -truth.free_energy / CRITICAL == pytest.approx(expected, rel=1e-14)
    assert truth.order_parameter == pytest.approx(0, abs=0.02)
    assert onsager(CRITICAL * (1 + 1e-9)).order_parameter == 0.0
    assert onsager(1e-100) == (-2.0, -2.0, 0.0, math.log(2), 1.0, 1.0)
    hot = onsager(np.inf)
    assert hot.entropy == pytest.approx(math.log(2))
    assert hot.free_energy == -math.inf
    assert onsager(2.0, coupling=0.0).energy == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize(
    "temperature", [0.3, 1.0, 2.0, 2.26, 2.2691853, 2.28, 3.0, 50.0]
)
@pytest.mark.parametrize("coupling", [1.0, -2.0])
def test_onsager_agrees_with_elliptic_integrals(temperature, coupling):
    truth = onsager(abs(coupling) * temperature, coupling=coupling)
    K = 1 / temperature
    share = 2 * math.tanh(2 * K) ** 2 - 1
    energy = -(1 + 2 / math.pi * share * ellipkm1(share**2)) / math.tanh(2 * K)
    assert truth.energy / abs(coupling) == pytest.approx(energy, rel=1e-9)
    assert truth.pair_correlation == pytest.approx(
        math.copysign(energy / 2, coupling), rel=1e-9
    )
    beta = K / abs(coupling)
    assert truth.entropy == pytest.approx(
        beta * (truth.energy - truth.free_energy), abs=1e-13
    )
    assert truth.total_correlation == pytest.approx(math.log(2) - truth.entropy)
    if temperature < 2.2:
        yang = (1 - math.sinh(2 * K) ** -4) ** 0.125
        assert truth.order_parameter == pytest.approx(yang, rel=1e-12)


def test_onsager_is_the_limit_of_large_lattices():
    for temperature in (2.1, 2.5):
        truth, limit = ising((400, 400), temperature), onsager(temperature)
        assert truth.energy == pytest.approx(limit.energy, rel=1e-12)
        excess = math.log(2) / 400**2 if temperature < 2.2 else 0.0
        assert truth.entropy / 400**2 == pytest.approx(
            limit.entropy + excess, rel=1e-12
        )


@pytest.mark.parametrize(
    "changes, name",
    [
        ({"shape": 0}, "shape"),
        ({"shape": (2, 0)}, "shape"),
        ({"shape": (2, 2.5)}, "shape"),
        ({"shape": (2, 2, 2, 2)}, "shape"),
        ({"shape": (2**16, 2**16)}, "shape"),
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": np.nan}, "temperature"),
        ({"field": np.inf}, "field"),
        ({"coupling": 1e101}, "coupling"),
        ({"periodic": 1}, "periodic"),
    ],
)
def test_bad_input_is_named(changes, name):
    arguments = {"shape": (3, 3), "temperature": 2.0, **changes}
    with pytest.raises(ValueError, match=name):
        ising(**arguments)
    if "shape" not in changes and set(changes) & {"temperature", "coupling"}:
        with pytest.raises(ValueError, match=name):
            onsager(**{"temperature": 2.0, **changes})


@pytest.mark.parametrize(
    "shape, options",
    [
        ((40, 40), {"field": 0.1}),
        ((40, 40), {"periodic": False}),
        ((41, 41), {"coupling": -1.0}),
        ((10, 10, 10), {}),
        ((2000, 1000, 1000), {"field": 1.0}),
        (10**9, {"field": 1.0}),
    ],
)
def test_too_large_is_refused_with_its_size(shape, options):
    with pytest.raises(ValueError, match=r"too large .* seconds and .* GiB"):
        ising(shape, 2.0, **options)


def test_cost_grows_with_the_layers():
    cost = [transfer_cost((12, w), True, False, True) for w in range(2, 12)]
    assert (np.diff(np.array(cost), axis=0) > 0).all()


def test_shape_is_checked():
    assert check_shape(5) == (5,)
    assert check_shape(np.array([2, 3])) == (2, 3)
    for shape in ((), (2, 2, 2, 2), (0, 3), (2.5, 2), (-1,), [[2, 2]]):
        with pytest.raises(ValueError, match="shape must be one to three ints"):
            check_shape(shape)
    with pytest.raises(ValueError, match=r"fewer than 2\*\*31"):
        check_shape((2**16, 2**16))
