import numpy as np
import pytest

from skident.datasets import make_patterns


def test_patterns_are_balanced_independent_signs():
    patterns = make_patterns(50, 2000, random_state=0)
    assert patterns.dtype == np.int8
    assert set(np.unique(patterns)) == {-1, 1}
    # Overlaps of independent patterns: mean 0, standard deviation 1 / sqrt(2000).
    gram = patterns.astype(float) @ patterns.T / 2000
    overlaps = gram[np.triu_indices(50, 1)]
    assert abs(overlaps.mean()) < 6 / np.sqrt(2000 * len(overlaps))
    assert overlaps.std() == pytest.approx(1 / np.sqrt(2000), rel=0.15)
    assert abs(patterns.mean()) < 6 / np.sqrt(patterns.size)


def test_pattern_does_not_depend_on_how_many_are_asked():
    np.testing.assert_array_equal(
        make_patterns(2, 33, random_state=7), make_patterns(5, 33, random_state=7)[:2]
    )


def test_random_state_of_each_kind():
    same = [make_patterns(3, 40, random_state=0) for _ in range(2)]
    np.testing.assert_array_equal(*same)
    assert (same[0] != make_patterns(3, 40, random_state=1)).any()
    rng = np.random.RandomState(0)
    first, second = (make_patterns(3, 40, random_state=rng) for _ in range(2))
    assert (first != second).any()
    assert make_patterns(3, 40).shape == (3, 40)


@pytest.mark.parametrize("arguments", [(0, 4), (4, 0), (1.5, 4), (-1, 4)])
def test_bad_input_is_named(arguments):
    with pytest.raises(ValueError, match=r"'n_(patterns|sites)' parameter"):
        make_patterns(*arguments)
