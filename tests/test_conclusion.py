"""Words follow from errors by the rules of the user guide."""

import re

import numpy as np
import pytest
from scipy.stats import ortho_group

from skident import IdentifiabilityStudy
from skident._conclusion import conclude_pair, conclude_study, count_non_gaussian
from skident.metrics import alignment_errors

TURN = ortho_group.rvs(3, random_state=0)
SHEAR = TURN @ np.diag([1.0, 4.0, 12.0])


def draw(seed, kind="laplace"):
    rng = np.random.default_rng([seed, 7])
    return getattr(rng, kind)(size=(400, 3))


def noisy(Z, seed, size=0.1):
    return Z + size * np.random.default_rng([seed, 8]).standard_normal(Z.shape)


def conclude(Z1, Z2, **options):
    options = {"n_resamples": 50, "random_state": 0, **options}
    return conclude_pair(alignment_errors(Z1, Z2, **options))


@pytest.mark.parametrize("seed", range(3))
def test_same_axes_in_another_order(seed):
    Z = draw(seed)
    found = conclude(Z, noisy(-Z[:, [2, 0, 1]], seed))
    assert found[:3] == (True, True, None)
    assert found.headline == "Single axes and distances may be interpreted."
    assert "axis by axis" in found.reasons[0]


@pytest.mark.parametrize("seed", range(3))
def test_turned_independent_components(seed):
    Z = draw(seed)
    found = conclude(Z, noisy(Z @ TURN, seed))
    assert found[:3] == (False, True, True)
    assert found.headline == (
        "Distances and the axes of ICA may be interpreted; single axes may not."
    )
    assert "up to a rotation" in found.reasons[0]
    assert "no truth" in found.reasons[-1]


@pytest.mark.parametrize("seed", range(3))
def test_turned_gaussian_components(seed):
    Z = draw(seed, "standard_normal")
    found = conclude(Z, noisy(Z @ TURN, seed, 0.2))
    assert found[:3] == (False, True, False)
    assert found.headline == (
        "Distances may be interpreted; single axes and the axes of ICA may not."
    )
    assert "other axes on other folds" in found.reasons[1]


@pytest.mark.parametrize("seed", range(3))
def test_sheared(seed):
    Z = draw(seed)
    found = conclude(Z, noisy(Z @ SHEAR, seed))
    assert found[:3] == (False, False, True)
    assert found.headline == (
        "The axes of ICA may be interpreted; single axes and distances may not."
    )
    assert "shear or to scales" in found.reasons[0]


def test_another_unit_is_named_beside_a_shear():
    Z = draw(0)
    found = conclude(Z, noisy(3.0 * Z @ TURN, 0))
    assert found.distances is False
    assert "times as wide" in found.reasons[1] and "divide each" in found.reasons[1]
    assert "1.2 times as wide" in conclude(Z, 1.2 * Z @ TURN).reasons[1]
    assert conclude(Z, 1.05 * Z @ TURN).distances is True


@pytest.mark.parametrize("seed", range(3))
def test_rows_in_another_order(seed):
    Z = draw(seed)
    found = conclude(Z, np.random.default_rng(seed).permutation(Z))
    assert found[:3] == (False, False, False)
    assert found.headline == "Neither axes nor distances may be interpreted."
    assert "not in the same order" in found.reasons[0]


@pytest.mark.parametrize("seed", range(3))
def test_half_of_it_is_noise(seed):
    Z = draw(seed)
    found = conclude(Z @ TURN, noisy(Z, seed, 1.2))
    assert found[:3] == (False, False, False)
    assert "learned different things" in found.reasons[0]


@pytest.mark.parametrize("seed", range(3))
def test_gaussian_components_are_counted(seed):
    """One of them is identified by the others, two are not."""
    rng = np.random.default_rng(seed)
    gaussian, others = rng.standard_normal((2000, 2)), rng.laplace(size=(2000, 2))
    assert count_non_gaussian(others @ TURN[:2, :2]) == (2, 2)
    assert count_non_gaussian(np.c_[others, gaussian[:, :1]] @ TURN) == (3, 3)
    assert count_non_gaussian(np.c_[others, gaussian]) == (2, 4)


def test_axes_of_noise_that_agree_by_accident():
    """Two runs of rows without axes, ICA of which happens to agree."""
    Z = draw(0, "standard_normal")
    sides = Z, noisy(Z @ TURN, 0)
    errors = alignment_errors(*sides, n_resamples=50, random_state=0)
    lucky = errors._replace(ica_stability=np.ones(2), ica_efficiency=1.0)
    assert conclude_pair(lucky).ica_axes is True
    found = conclude_pair(lucky, sides)
    assert found.ica_axes is False and found.headline == (
        "Distances may be interpreted; single axes and the axes of ICA may not."
    )
    assert "cannot be told from Gaussian" in found.reasons[1]


def test_what_was_not_tested_is_not_claimed():
    Z = draw(0)
    turned = noisy(Z @ TURN, 0)
    found = conclude(Z, turned, transformations=("rigid",))
    assert found[:3] == (None, True, None)
    assert found.headline == "Distances may be interpreted."
    found = conclude(Z, turned, transformations=("linear",))
    assert found[:3] == (None, None, None)
    assert found.headline == "Neither axes nor distances were tested."
    assert "up to a linear map" in found.reasons[0]
    found = conclude(Z, turned, transformations=("permutation",))
    assert found[:3] == (False, None, False)
    assert found.headline == "Single axes may not be interpreted."
    assert "linear ones were not tested" in found.reasons[0]
    found = conclude(Z, turned, transformations=("ica",))
    assert found[:3] == (None, None, True)


def study(sources, size):
    runs = [
        noisy(sources @ ortho_group.rvs(sources.shape[1], random_state=k), k, size)
        for k in range(3)
    ]
    options = {"n_resamples": 50, "random_state": 0}
    return conclude_study(IdentifiabilityStudy.from_embeddings(runs, **options))


@pytest.mark.parametrize("seed", range(3))
def test_all_components_of_a_study_are_stable(seed):
    found = study(np.random.default_rng(seed).laplace(size=(1000, 3)), 0.1)
    assert found[:3] == (False, True, True)
    assert "3 of 3" in found.reasons[1] and "every time" in found.reasons[1]


@pytest.mark.parametrize("seed", range(3))
def test_some_components_of_a_study_are_stable(seed):
    rng = np.random.default_rng(seed)
    sources = np.c_[rng.laplace(size=(2000, 2)), rng.standard_normal((2000, 3))]
    found = study(sources, 0.1)
    assert found[:3] == (False, True, False)
    # on these rows a direction of noise may stand out, all of them may not
    assert re.fullmatch(
        "Distances and [23] axes of ICA may be interpreted; single axes may not.",
        found.headline,
    )


@pytest.mark.parametrize("seed", range(3))
def test_no_components_of_a_gaussian_study(seed):
    """On the same rows ICA agrees about axes of noise: only other rows tell."""
    found = study(np.random.default_rng(seed).standard_normal((1000, 4)), 0.1)
    assert found[:3] == (False, True, False)
    assert "arbitrary" in found.reasons[1]
