import joblib
import numpy as np
import pytest
from scipy.stats import kstest

from skident.datasets import make_moving_square


def square(place, shape, side, softness):
    """One image, pixel by pixel, by its definition."""

    def f(t):
        above = 1 / (1 + np.exp(-(side / 2 + t) / softness))
        return above / (1 + np.exp(-(side / 2 - t) / softness))

    return np.array(
        [
            [f(i + 0.5 - place[0]) * f(j + 0.5 - place[1]) for j in range(shape[1])]
            for i in range(shape[0])
        ]
    )


@pytest.mark.parametrize(
    "shape, side, softness", [((32, 32), 12.0, 0.75), ((9, 17), 4, 0.4)]
)
def test_images_by_definition(shape, side, softness):
    X, y = make_moving_square(
        300, image_shape=shape, side=side, softness=softness, random_state=0
    )
    assert (X.shape, X.dtype) == ((300, shape[0] * shape[1]), np.float64)
    assert (y.shape, y.dtype) == ((300, 2), np.float64)
    for k in (0, 1, 299):
        expected = square(y[k], shape, side, softness).ravel()
        np.testing.assert_allclose(X[k], expected, atol=1e-12)
    assert X.min() >= 0
    assert X.max() <= 1


def test_factors_are_independent_and_uniform_inside_the_image():
    _, y = make_moving_square(20_000, image_shape=(24, 40), random_state=0)
    margin = 6 + 3 * 0.75
    u = (y - margin) / (np.array([24, 40]) - 2 * margin)
    assert u.min() > 0
    assert u.max() < 1
    for column in u.T:
        assert kstest(column, "uniform").pvalue > 1e-7
    for powers in ((1, 1), (2, 1), (1, 2), (2, 2)):
        a, b = (u[:, i] ** p for i, p in enumerate(powers))
        assert abs(np.corrcoef(a, b)[0, 1]) < 5.4 / np.sqrt(len(u))


def test_the_square_stays_inside():
    X, _ = make_moving_square(5000, random_state=0)
    images = X.reshape(-1, 32, 32)
    rim = np.r_[images[:, [0, -1]].ravel(), images[:, :, [0, -1]].ravel()]
    # The centres of the outer pixels lie half a pixel inside.
    assert rim.max() < 0.1
    # All of the square is there.
    np.testing.assert_allclose(X.sum(axis=1), X.sum(axis=1).mean(), rtol=0.01)


def test_variance_of_all_pixels():
    X, _ = make_moving_square(20_000, random_state=0)
    assert X.var(axis=0).sum() == pytest.approx(65, abs=1.5)


@pytest.mark.parametrize("softness, bound", [(0.75, 1.003), (1.5, 1.003), (0.5, 1.025)])
def test_generator_is_a_local_isometry_up_to_scale(softness, bound):
    _, y = make_moving_square(300, softness=softness, random_state=0)
    step = 1e-4
    moved = [
        np.stack([square(p + d, (32, 32), 12.0, softness) for p in y[:60]])
        for d in (np.r_[step, 0], np.r_[-step, 0], np.r_[0, step], np.r_[0, -step])
    ]
    jacobian = np.stack([moved[0] - moved[1], moved[2] - moved[3]], axis=-1) / step / 2
    singular = np.linalg.svd(jacobian.reshape(60, -1, 2), compute_uv=False)
    assert singular.max() / singular.min() < bound


def test_row_does_not_depend_on_how_many_are_asked():
    X, y = make_moving_square(700, noise=0.2, random_state=3)
    for n in (1, 255, 256, 257, 600):
        few, few_y = make_moving_square(n, noise=0.2, random_state=3)
        np.testing.assert_array_equal(few, X[:n])
        np.testing.assert_array_equal(few_y, y[:n])


def test_same_for_any_number_of_jobs_and_backend(monkeypatch):
    expected = make_moving_square(1000, noise=0.1, random_state=0)
    monkeypatch.setattr("skident.datasets._chains.CALL_NS", 1e3)
    for n_jobs in (1, 2, -1):
        for backend in ("threading", "sequential"):
            with joblib.parallel_config(backend=backend):
                got = make_moving_square(1000, noise=0.1, random_state=0, n_jobs=n_jobs)
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_array_equal(a, b)


def test_noise_is_added_and_leaves_the_factors_alone():
    clean, y = make_moving_square(300, random_state=0)
    noisy, same_y = make_moving_square(300, noise=0.3, random_state=0)
    np.testing.assert_array_equal(y, same_y)
    z = (noisy - clean) / 0.3
    n = z.size
    assert abs(z.mean()) < 5.4 / np.sqrt(n)
    assert abs(z.var() - 1) < 5.4 * np.sqrt(2 / n)
    assert abs(np.corrcoef(z[::2].ravel(), z[1::2].ravel())[0, 1]) < 5.4 / np.sqrt(
        n / 2
    )


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_types_hold_the_same_numbers(noise):
    X, y = make_moving_square(10, noise=noise, random_state=0)
    for dtype in (np.float32, "float32", np.dtype("float32")):
        single, same_y = make_moving_square(
            10, noise=noise, dtype=dtype, random_state=0
        )
        assert single.dtype == np.float32
        np.testing.assert_array_equal(single, X.astype(np.float32))
        np.testing.assert_array_equal(same_y, y)


def test_writes_to_a_memory_map(tmp_path):
    out = np.memmap(tmp_path / "X", np.float32, "w+", shape=(600, 1024))
    X, _ = make_moving_square(600, dtype=np.float32, out=out, random_state=0)
    assert X is out
    expected, _ = make_moving_square(600, random_state=0)
    np.testing.assert_array_equal(out, expected.astype(np.float32))


def test_random_state_of_each_kind():
    X, _ = make_moving_square(20, random_state=0)
    assert (X != make_moving_square(20, random_state=1)[0]).any()
    assert (X != make_moving_square(20)[0]).any()
    states = [np.random.RandomState(3), np.random.RandomState(3)]
    first, second = (make_moving_square(20, random_state=s)[0] for s in states)
    np.testing.assert_array_equal(first, second)
    assert (first != make_moving_square(20, random_state=states[0])[0]).any()


def test_extreme_sizes():
    X, _ = make_moving_square(50, side=1e-9, image_shape=(9, 9))
    assert np.isfinite(X).all()
    X, _ = make_moving_square(50, softness=1e-3, random_state=0)
    assert np.isfinite(X).all()
    assert X.sum(axis=1).mean() == pytest.approx(144, rel=0.05)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"n_samples": 0}, "'n_samples' parameter"),
        ({"image_shape": (32,)}, "image_shape must be two ints"),
        ({"image_shape": (32, 0)}, "image_shape must be two ints"),
        ({"image_shape": (32, 32.5)}, "image_shape must be two ints"),
        ({"image_shape": 32}, "'image_shape' parameter"),
        ({"image_shape": (32, 16)}, r"side=12.0 .* 16.5 pixels.*=\(32, 16\)"),
        ({"side": 0}, "'side' parameter"),
        ({"side": 1e300}, "side=1e[+]300 .* no room to move"),
        ({"side": np.inf}, "'side' parameter"),
        ({"softness": 0}, "'softness' parameter"),
        ({"softness": 5.0}, "3 times softness=5.0"),
        ({"noise": -1}, "'noise' parameter"),
        ({"noise": np.inf}, "'noise' parameter"),
        ({"dtype": np.int8}, "dtype must be float64 or float32"),
        ({"dtype": "words"}, "dtype must be float64 or float32"),
        ({"out": np.empty((3, 5))}, r"out must have shape \(3, 1024\)"),
        ({"random_state": -1}, "'random_state' parameter"),
    ],
)
def test_bad_input_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        make_moving_square(**{"n_samples": 3, **changes})
