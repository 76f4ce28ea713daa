"""InfoMEC: the reference's values, and the default's properties."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest

from skident.metrics import infomec_score, mutual_information

CARD = np.array([10, 10, 10, 8, 4, 15])


def load_straightforward():
    path = Path(__file__).with_name("straightforward_infomec.py")
    spec = importlib.util.spec_from_file_location("straightforward_infomec", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


straightforward = load_straightforward()


def draw(seed=7, n=3000, card=CARD, noise=0.1):
    """Factors and latents as the reference values were made."""
    rng = np.random.default_rng(seed)
    s = np.stack([rng.integers(c, size=n) for c in card], 1)
    u = (s / (np.array(card) - 1.0) - 0.5) * np.sqrt(12)
    return s, u + noise * rng.standard_normal(s.shape), rng


@pytest.fixture(scope="module")
def reference_data():
    s, u, rng = draw()
    Q = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    dead = 0.01 * rng.standard_normal((3000, 2)), rng.standard_normal((3000, 1))
    return s, {"u": u, "u@Q": u @ Q, "ext": np.c_[u, *dead], "round": np.round(u * 2)}


# InfoM; InfoE of lbfgs after 100 and after 10,000 steps, and converged; InfoC; active
REFERENCE = {
    "u": (0.99198, (0.94333, 0.94334, 0.94418), 0.99194, 6),
    "u@Q": (0.52512, (0.94324, 0.94324, 0.94418), 0.52995, 6),
    "ext": (0.87745, (0.94507, 0.94509, 0.94592), 0.98957, 7),
    "round": (0.96510, (0.78792, 0.78799, 0.78812), 0.96388, 6),
}


@pytest.mark.parametrize(
    "name", [*list(REFERENCE)[:3], pytest.param("round", marks=pytest.mark.slow)]
)
def test_reference_values(reference_data, name):
    s, latents = reference_data
    found = infomec_score(s, latents[name], reference=True, random_state=0)
    infom, infoe, infoc, active = REFERENCE[name]
    assert found.infom == pytest.approx(infom, abs=2e-5)
    assert found.infoc == pytest.approx(infoc, abs=2e-5)
    assert found.infoe == pytest.approx(infoe[-1], abs=2e-5)
    assert infoe == pytest.approx([found.infoe] * 3, abs=1e-3)
    assert found.active.sum() == active
    assert found.discrete_latents.all() == (name == "round")
    assert found.gradient <= 1e-8 and found.n_iter > 5


@pytest.mark.parametrize("seed", range(3))
def test_reference_mode_is_the_straightforward_one(seed):
    s, u, rng = draw(seed, 300, [3, 5, 8, 40])
    latents = np.c_[u @ rng.standard_normal((4, 4)), 1e-3 * u[:, :1], u[:, :1] ** 3]
    found = infomec_score(s, latents, reference=True, random_state=0)
    parts = straightforward.modularity_and_compactness(s, latents)
    for value, expected in zip(
        (found.infom, found.infoc, found.nmi, found.active), parts, strict=True
    ):
        np.testing.assert_allclose(value, expected, atol=1e-10)
    infoe = straightforward.infomec(s[:, :2], latents)[1]
    assert found.infoe_per_factor[:2].mean() == pytest.approx(infoe, abs=1e-6)


def test_reference_mode_of_discrete_latents_is_the_straightforward_one():
    s, u, _ = draw(0, 300, [3, 5])
    latents = np.c_[np.round(u), np.zeros(300)]
    found = infomec_score(s, latents, reference=True, random_state=0)
    np.testing.assert_allclose(found[:3], straightforward.infomec(s, latents, True)[:3])


def invertible(seed, p):
    """A map of condition number 100 or so, and a translation."""
    rng = np.random.default_rng(seed)
    a, b = (np.linalg.qr(rng.standard_normal((p, p)))[0] for _ in range(2))
    return a @ np.diag(np.logspace(-1, 1, p)) @ b, 5 * rng.standard_normal(p)


@pytest.mark.parametrize("reference", [True, False])
def test_explicitness_is_the_same_for_every_invertible_affine_map(reference):
    s, u, _ = draw(0, 400, [3, 5], noise=0.6)
    A, b = invertible(1, 2)
    first, second = (
        infomec_score(s, z, reference=reference, random_state=0).infoe
        for z in (u, u @ A + b)
    )
    assert second == pytest.approx(first, abs=1e-7)
    assert 0.2 < first < 0.9


def test_a_solver_that_stops_early_breaks_that_invariance():
    """What the converged probe is for: lbfgs at its own tolerance is off."""
    s, u, _ = draw(0, 400, [3, 5], noise=0.2)
    A, b = invertible(1, 2)
    first, second = (
        straightforward.explicitness(s, z, solver="lbfgs", tol=1e-4, max_iter=10_000)
        for z in (u, u @ A + b)
    )
    converged = infomec_score(s, u, reference=True, random_state=0).infoe
    assert 1e-5 < abs(first - second) < 0.05
    assert max(first, second) < converged


def test_noise_free_factors_are_punished():
    """2 % of each factor in the others, and noise in parts of the range."""
    s, _, rng = draw()
    mixed = (s / (CARD - 1.0)) @ (0.98 * np.eye(6) + 0.02)
    noise = rng.standard_normal(s.shape)
    options = {"reference": True, "random_state": 0}
    assert infomec_score(s, mixed + 1e-3 * noise, **options).infom < 0.8
    assert infomec_score(s, mixed + 0.03 * noise, **options).infom > 0.95


@pytest.mark.parametrize("seed", range(3))
def test_noise_scores_nothing_held_out_and_all_in_sample(seed):
    rng = np.random.default_rng(seed)
    s, noise = rng.integers(3, size=(60, 3)), rng.standard_normal((60, 50))
    held_out = infomec_score(s, noise, random_state=0)
    assert held_out.infom == held_out.infoc == 0.0
    assert held_out.infoe < 0.03
    assert infomec_score(s, noise, reference=True, random_state=0).infoe > 0.999


@pytest.mark.parametrize("seed", range(3))
def test_more_latents_than_rows_are_finite(seed):
    rng = np.random.default_rng(seed)
    s, noise = rng.integers(3, size=(30, 2)), rng.standard_normal((30, 40))
    for reference in (True, False):
        found = infomec_score(s, noise, reference=reference, random_state=0)
        assert all(np.isfinite(np.asarray(part, float)).all() for part in found)


def test_default_finds_what_the_latents_are_made_of():
    s, u, rng = draw(0, 800, [6, 4, 3])
    dead = 1e-6 * rng.standard_normal((800, 2))
    latents = np.c_[u * [1, 100, 1e-4], dead, np.ones(800)]
    found = infomec_score(s, latents, random_state=0)
    # By information, whatever the scale of a latent.
    np.testing.assert_array_equal(found.active, [1, 1, 1, 0, 0, 0])
    assert found.infom > 0.97 and found.infoc > 0.97 and found.infoe > 0.9
    np.testing.assert_array_equal(found.nmi[:, 3:], 0)
    assert found.infom == pytest.approx(found.infom_per_latent[:3].mean())
    assert found.infoe == pytest.approx(found.infoe_per_factor.mean())
    assert found.infoc == pytest.approx(found.infoc_per_factor.mean())


def test_small_classes_far_from_the_rest_are_no_outliers():
    rng = np.random.default_rng(0)
    s = rng.choice(3, size=500, p=[0.9, 0.05, 0.05])
    found = infomec_score(s, 100.0 * s + rng.random(500), random_state=0)
    assert found.infom == 1.0 and found.nmi[0, 0] > 0.98
    assert found.infoe > 0.99


def test_continuous_factors_and_text_beside_each_other():
    rng = np.random.default_rng(0)
    numbers, labels = rng.random(600), rng.choice(["a", "b", "c"], 600)
    factors = np.array([numbers, labels], dtype=object).T
    latents = np.c_[numbers, (labels == "a") + 2.0 * (labels == "b")]
    latents += 0.05 * rng.standard_normal(latents.shape)
    found = infomec_score(factors, latents, random_state=0)
    np.testing.assert_array_equal(found.discrete_factors, [False, True])
    assert found.infom > 0.99 and found.infoc > 0.99
    # Variance of the uniform factor that noise of .05 leaves.
    assert found.infoe_per_factor[0] == pytest.approx(1 / (1 + 12 * 0.05**2), abs=0.02)
    assert found.infoe_per_factor[1] > 0.97


@pytest.mark.parametrize("seed", range(3))
def test_the_bias_of_many_classes_is_taken_off(seed):
    """10 by 10 classes in 100 rows: the plain estimate is a sixth of the entropy."""
    s, z = np.random.default_rng(seed).integers(10, size=(2, 100))
    options = {"discrete_factors": True, "discrete_latents": True, "random_state": 0}
    assert infomec_score(s, z, **options).nmi[0, 0] == 0.0
    plain = infomec_score(s, z, reference=True, **options).nmi[0, 0]
    assert plain > 0.15
    assert infomec_score(s, s, **options).nmi[0, 0] == pytest.approx(1.0)


def test_groups_hide_what_repeats_would_leak():
    """Latents that only know which group a row is of, and each group has its factor."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 20)
    s = rng.integers(2, size=20)[groups]
    latents = rng.standard_normal((20, 12))[groups] + 0.01 * rng.standard_normal(
        (400, 12)
    )
    leaky = infomec_score(s, latents, random_state=0).infoe
    held_out = infomec_score(s, latents, groups=groups, random_state=0).infoe
    assert leaky > 0.6
    assert held_out < 0.2


@pytest.mark.parametrize("reference", [True, False])
def test_one_factor_or_one_latent(reference):
    s, u, rng = draw(0, 200, [4, 3])
    score = lambda f, z: infomec_score(f, z, reference=reference, random_state=0)  # noqa: E731
    one = score(s[:, 0], u[:, 0])
    assert one.infom == one.infoc == 1.0 and one.infoe > 0.9
    assert score(s[:, :1], u).infom <= 1.0
    nothing = score(s[:, 0], np.ones(200))
    assert nothing[:3] == (0.0, pytest.approx(0.0, abs=1e-8), 0.0)
    if not reference:
        noise = rng.permutation(u[:, 0])
        assert score(s[:, 0], noise)[:3] == (0.0, pytest.approx(0.0, abs=0.02), 0.0)
        assert score(s[:, 0], u).infom == 1.0


def test_all_rows_are_taken_at_most():
    s, u, _ = draw(0, 400, [3, 4])
    cut, whole, default = (
        infomec_score(s, u, random_state=0, **options)
        for options in ({"max_samples": 150}, {"max_samples": None}, {})
    )
    assert cut.infom > 0.95
    assert cut.infoe != default.infoe
    np.testing.assert_array_equal(whole.nmi, default.nmi)
    assert whole.infoe == default.infoe


def test_same_seed_same_scores():
    s, u, _ = draw(0, 200, [3, 4])
    first, second = (infomec_score(s, u, random_state=3) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_probe_that_does_not_converge_warns(monkeypatch):
    from sklearn.exceptions import ConvergenceWarning

    from skident.metrics import _logistic

    s, u, _ = draw(0, 200, [3, 4])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        infomec_score(s, u, reference=True, random_state=0)
    monkeypatch.setattr(_logistic, "_MAX_ITER", 2)
    with pytest.warns(ConvergenceWarning, match="did not converge: its gradient is"):
        infomec_score(s, u, reference=True, random_state=0)


def test_reference_refuses_quantities():
    s, u, _ = draw(0, 200, [3, 4])
    with pytest.raises(ValueError, match=r"factors, column 1, is continuous, and the"):
        infomec_score(np.c_[s[:, 0], u[:, 0]], u, reference=True)
    with pytest.raises(ValueError, match=r"factors, column 0, is continuous"):
        infomec_score(s, u, reference=True, discrete_factors=False)
    # Whole numbers are classes, be there many of them.
    found = infomec_score(np.arange(200) // 2, u, reference=True)
    assert found.infoe > 0


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_information_by_kinds_agrees_with_the_truth(correlation):
    rng = np.random.default_rng(0)
    x, noise = rng.standard_normal((2, 3000))
    y = correlation * x + np.sqrt(1 - correlation**2) * noise
    truth = -0.5 * np.log(1 - correlation**2)
    continuous = mutual_information(x, y, random_state=0)[0, 0]
    assert continuous == pytest.approx(truth, abs=0.04)
    # Cut at the median, on one side and on both: the exact value for normal columns.
    both = np.log(2) + np.sum([p * np.log(p) for p in quadrants(correlation)])
    cut = [
        mutual_information(x > 0, y, random_state=0)[0, 0],
        mutual_information(x, (y > 0) * 1.0, discrete_latents=True)[0, 0],
        mutual_information(x > 0, (y > 0) * 1.0, random_state=0)[0, 0],
    ]
    assert cut[0] == pytest.approx(cut[1], abs=0.03)
    assert cut[2] == pytest.approx(both, abs=0.02)
    assert cut[2] - 0.03 <= cut[0] <= truth + 0.03


def test_information_is_at_most_the_entropy():
    """Of classes far apart, where the neighbours' estimate goes a little beyond."""
    beyond = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        s = rng.choice(3, size=100, p=[0.8, 0.1, 0.1])
        z = 10.0 * s + rng.random(100)
        entropy = mutual_information(s, s, n_permutations=None)[0, 0]
        found = mutual_information(s, z, n_neighbors=5, n_permutations=None)[0, 0]
        assert found <= entropy + 1e-12
        beyond += found == pytest.approx(entropy, abs=1e-12)
    assert beyond > 0


def quadrants(correlation):
    """Probabilities of the sign of y given that of x."""
    agree = 0.5 + np.arcsin(correlation) / np.pi
    return agree, 1 - agree


def test_information_without_correction_is_biased():
    s, z = np.random.default_rng(0).integers(10, size=(2, 200))
    options = {"discrete_factors": True, "discrete_latents": True}
    plain = mutual_information(s, z, n_permutations=None, **options)[0, 0]
    corrected = mutual_information(s, z, random_state=0, **options)[0, 0]
    assert plain > 0.15 and 0 <= corrected < 0.05
    full = mutual_information(s, s, random_state=0, **options)[0, 0]
    assert full <= np.log(10)


@pytest.mark.slow
def test_the_default_agrees_with_the_reference_where_that_is_sound(reference_data):
    """Plenty of rows, no dead latents; a mixed code has many small entries."""
    s, latents = reference_data
    for name in ("u", "u@Q"):
        table = infomec_score(s, latents[name], random_state=0)
        expected = REFERENCE[name]
        assert table.infom == pytest.approx(expected[0], abs=0.01)
        assert table.infoc == pytest.approx(expected[2], abs=0.01)
        assert expected[1][-1] - 0.02 < table.infoe < expected[1][-1]
