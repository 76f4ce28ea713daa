"""Every likelihood: normalised, differentiable, and drawn from as it says."""

import numpy as np
import pytest
import torch
from scipy import stats

from skident._nn.likelihoods import LIKELIHOODS
from skident._nn.threads import seeded

RNG = np.random.default_rng(0)
SPINS = RNG.choice([-1, 1], (60, 3))
REALS = RNG.standard_normal((60, 3)) * [1.0, 50.0, 1e-3] + [0.0, 7.0, 1.0]
COUNTS = RNG.poisson([0.3, 4.0, 60.0], (60, 3))
LEVELS = np.stack([RNG.integers(0, 2, 60), RNG.choice([3, 7, 9, 40], 60)], axis=1)
ONE_HOT = np.concatenate(
    [np.eye(2)[LEVELS[:, 0]], np.eye(3)[RNG.integers(0, 3, 60)]], 1
)
VECTORS = RNG.standard_normal((60, 2, 3)) + [2.0, 0.0, 0.0]
DIRECTORS = (VECTORS / np.linalg.norm(VECTORS, axis=2, keepdims=True)).reshape(60, 6)
DATA = {
    "bernoulli": SPINS,
    "bingham": DIRECTORS,
    "categorical": LEVELS,
    "gaussian": REALS,
    "poisson": COUNTS,
}
every = pytest.mark.parametrize("name", sorted(DATA))


def learned(name, values, masked=False):
    units = LIKELIHOODS[name].learn(values, np.ones(values.shape, bool))
    family = type(LIKELIHOODS[name])
    return family(masked=masked, n_features=values.shape[1], **units)


def parameters(family, n=5, scale=0.7, seed=1):
    rng = np.random.default_rng(seed)
    shape = n, family.n_outputs + family.n_shared
    return torch.tensor(scale * rng.standard_normal(shape))


def rows(family, values):
    return torch.tensor(np.asarray(family.rows(values, None), dtype=float))


def test_table_has_the_names_of_its_families():
    assert set(LIKELIHOODS) == set(DATA)
    assert all(family.name == name for name, family in LIKELIHOODS.items())


@every
def test_gradient_equals_finite_differences(name):
    family = learned(name, DATA[name])
    x = rows(family, DATA[name][:5])
    torch.autograd.gradcheck(
        lambda p: family.log_prob(p, x),
        parameters(family).requires_grad_(),
        eps=1e-5,
        atol=1e-4,
    )


@every
@pytest.mark.parametrize("masked", [False, True])
def test_joint_of_all_pairs_is_that_of_each(name, masked):
    values = DATA[name]
    family = learned(name, values, masked)
    missing = np.repeat(RNG.random((60, family.n_sites)) < 0.3, 3, 1)[
        :, : 3 * family.n_sites
    ]
    missing = missing if name == "bingham" else missing[:, ::3]
    x = family.rows(values, missing if masked else None)
    x = torch.tensor(np.asarray(x, dtype=float))
    points = parameters(family, n=4)
    log_weights = torch.log_softmax(torch.arange(4.0, dtype=torch.float64), 0)
    joint = family.log_joint(*family.natural(points), log_weights, x)
    expected = family.log_prob(points, x[:, None]) + log_weights
    torch.testing.assert_close(joint, expected)


@every
def test_missing_site_counts_for_nothing(name):
    values = DATA[name]
    whole, masked = learned(name, values), learned(name, values, masked=True)
    missing = np.zeros(values.shape, bool)
    missing[:, masked.site_of_column == 0] = True
    x = torch.tensor(np.asarray(masked.rows(values, missing), dtype=float))
    points = parameters(whole, n=60)
    # what the site says: the change where its value is another one
    other = np.where(missing, np.roll(values, 1, axis=0), values)
    changed = torch.tensor(np.asarray(masked.rows(other, missing), dtype=float))
    torch.testing.assert_close(
        masked.log_prob(points, x), masked.log_prob(points, changed)
    )
    nothing = torch.tensor(
        np.asarray(masked.rows(values, np.ones(values.shape, bool)), dtype=float)
    )
    torch.testing.assert_close(
        masked.log_prob(points, nothing), torch.zeros(60, dtype=torch.float64)
    )
    alone = torch.tensor(np.asarray(masked.rows(values, ~missing), dtype=float))
    torch.testing.assert_close(
        masked.log_prob(points, x) + masked.log_prob(points, alone),
        whole.log_prob(points, rows(whole, values)),
    )


@every
def test_independent_parameters_are_the_most_likely_ones(name):
    family = learned(name, DATA[name])
    x = rows(family, DATA[name])
    best = family.independent(x)
    value = family.log_prob(best, x).mean()
    for seed in range(20):
        shift = parameters(family, n=1, scale=0.3, seed=seed)[0]
        assert family.log_prob(best + shift, x).mean() < value + 1e-3


@every
def test_draws_have_the_mean_and_come_in_the_order_of_rows(name):
    family = learned(name, DATA[name])
    point = parameters(family, n=1, seed=3).float()
    with seeded(0):
        draws = family.sample(point.expand(40_000, -1))
    with seeded(0):
        few = family.sample(point.expand(7, -1))
    torch.testing.assert_close(few, draws[:7])
    if name == "bingham":
        return  # means of directors: see test_bingham.py
    error = 6 * draws.std(0) / np.sqrt(40_000) + 1e-6
    assert ((draws.mean(0) - family.mean(point)[0]).abs() < error).all()


@every
def test_data_survives_the_way_in_and_out(name):
    family = learned(name, DATA[name])
    x = np.asarray(family.rows(DATA[name], None), dtype=float)
    if name == "bingham":
        # n and -n are one
        outer = np.einsum("nsi,nsj->nsij", *2 * [DIRECTORS.reshape(60, 2, 3)])
        from skident._nn.bingham import BASIS

        matrices = np.einsum("nsa,aij->nsij", x.reshape(60, 2, 5), BASIS)
        np.testing.assert_allclose(matrices, outer - np.eye(3) / 3, atol=1e-12)
        return
    statistic = x[:, :3] if name == "gaussian" else x
    np.testing.assert_allclose(family.outward(statistic), DATA[name], rtol=1e-12)
    assert not family.breaches(DATA[name]).any()


def test_words_and_spins_are_told_apart():
    spins, words = learned("bernoulli", SPINS), learned("bernoulli", SPINS > 0)
    assert spins.values == (-1, 1) and words.values == (0, 1)
    np.testing.assert_array_equal(spins.inward(SPINS), words.inward(SPINS > 0))
    assert words.breaches(np.array([[0, 1, 2]])).tolist() == [[False, False, True]]


def test_gaussian_is_the_density_in_units_of_the_data():
    family = learned("gaussian", REALS)
    points = parameters(family, n=60)
    mean = family.fields(points).numpy()
    scale = np.sqrt(1e-4 + np.logaddexp(0, points[:, 3:].numpy())) * REALS.std(0)
    expected = stats.norm(mean, scale).logpdf(REALS).sum(1)
    got = family.log_prob(points, rows(family, REALS))
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_gaussian_variance_has_its_floor():
    family = learned("gaussian", REALS)
    points = torch.cat([torch.zeros(1, 3), torch.full((1, 3), -80.0)], 1).double()
    at_mean = family.log_prob(points, rows(family, REALS.mean(0)[None]))
    expected = stats.norm(0, 0.01 * REALS.std(0)).logpdf(0).sum()
    assert float(at_mean) == pytest.approx(expected, rel=1e-9)


def test_poisson_is_its_probability_and_no_rate_overflows():
    family = learned("poisson", COUNTS)
    points = parameters(family, n=60)
    rate = np.exp(family.fields(points).numpy())
    expected = stats.poisson(rate).logpmf(COUNTS).sum(1)
    got = family.log_prob(points, rows(family, COUNTS))
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    np.testing.assert_allclose(family.mean(points), rate)
    extreme = family.log_prob(torch.full((1, 3), 1e6), rows(family, COUNTS[:1]).float())
    assert torch.isfinite(extreme).all()


def test_categorical_sums_to_one_with_unequal_numbers_of_levels():
    family = learned("categorical", LEVELS)
    assert family.sizes.tolist() == [2, 4]
    every_row = np.array([[a, b] for a in (0, 1) for b in (3, 7, 9, 40)])
    total = (
        family.log_prob(parameters(family, n=1), rows(family, every_row)).exp().sum()
    )
    assert float(total) == pytest.approx(1, abs=1e-12)


def test_categorical_mean_is_that_of_the_numbers_or_probabilities():
    family, hot = learned("categorical", LEVELS), learned("categorical", ONE_HOT)
    p = np.exp(family.fields(parameters(family)).numpy())
    np.testing.assert_allclose(p[:, :2].sum(1), 1)
    np.testing.assert_allclose(
        family.outward(p), np.stack([p[:, 1], p[:, 2:] @ [3, 7, 9, 40]], 1)
    )
    assert hot.one_hot and hot.sizes.tolist() == [2, 3]
    np.testing.assert_array_equal(hot.outward(ONE_HOT), ONE_HOT)


def test_one_hot_groups_end_where_every_row_has_its_one():
    def sizes(values):
        family = learned("categorical", np.asarray(values, dtype=float))
        return family.sizes.tolist() if family.one_hot else None

    assert sizes([[1, 0, 0, 1, 0], [0, 1, 1, 0, 0]]) == [2, 3]  # last level unused
    assert sizes([[1, 0, 1], [0, 1, 0], [0, 0, 1]]) is None
    assert sizes([[1, 0], [1, 1]]) is None
    assert sizes([[0, 2], [2, 0]]) is None


@pytest.mark.parametrize(
    "name, values, wrong",
    [
        ("poisson", [[0, 1.5, -1]], [False, True, True]),
        ("poisson", [[2**24, 2**24 + 2, 0]], [False, True, False]),
        ("categorical", [[1, 8]], [False, True]),
        ("gaussian", [[0.0, 1e300, 1.0]], [False, True, False]),
        ("bingham", [[1, 0, 0, 0.5, 0.5, 0.5]], [False] * 3 + [True] * 3),
    ],
)
def test_values_that_do_not_belong_are_seen(name, values, wrong):
    family = learned(name, DATA[name])
    assert family.breaches(np.array(values, dtype=float)).tolist() == [wrong]
