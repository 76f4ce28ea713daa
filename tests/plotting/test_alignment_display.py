import numpy as np
import pytest
from matplotlib import pyplot as plt

from skident.metrics import alignment_errors
from skident.plotting import AlignmentDisplay


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    Z1 = rng.laplace(size=(120, 2))
    return Z1, Z1 @ [[0.6, 0.8], [-0.8, 0.6]] + 0.1 * rng.normal(size=Z1.shape)


@pytest.fixture(scope="module")
def errors(pair):
    return alignment_errors(*pair, n_resamples=50, random_state=0)


def points(ax, label):
    """Return the offsets of the scatter of that label, one row a point."""
    (found,) = [c for c in ax.collections if c.get_label() == label]
    return np.asarray(found.get_offsets())


def test_what_is_drawn_is_the_errors(errors):
    ax = AlignmentDisplay.from_errors(errors).ax_
    lines = np.arange(4)
    drawn = points(ax, "error and interval")
    assert np.array_equal(drawn, np.stack([errors.error, lines], axis=1))
    drawn = points(ax, "chance (rows shuffled)")
    assert np.array_equal(drawn, np.stack([errors.chance, lines], axis=1))
    segments = np.array(ax.collections[0].get_segments())
    assert np.array_equal(segments[:, :, 0], errors.interval)
    assert np.array_equal(segments[:, :, 1], np.stack([lines, lines], axis=1))
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == list(errors.transformations)
    assert ax.get_xlabel() == "mean error / latent diameter"
    assert ax.get_xlim()[0] == 0


def test_mean_outside_its_interval_is_drawn(errors):
    above = errors._replace(interval=errors.interval + 1.0)
    segments = AlignmentDisplay(above).plot().ax_.collections[0].get_segments()
    assert np.array_equal(np.array(segments)[:, :, 0], above.interval)


def test_predictions_give_the_errors_of_the_metric(pair):
    options = {"n_resamples": 20, "transformations": ("rigid",), "random_state": 3}
    display = AlignmentDisplay.from_predictions(*pair, diameter="robust", **options)
    expected = alignment_errors(*pair, diameter="robust", **options)
    assert str(display.errors) == str(expected)
    assert np.array_equal(display.errors.forward, expected.forward)
    assert display.ax_.get_xlabel() == "mean error / latent diameter (robust)"
    assert display.ax_.get_title(loc="left") == ""


def test_options_of_the_figure(pair, errors):
    for display in (
        AlignmentDisplay(errors).plot(
            name="two seeds", plot_chance_level=False, color="red"
        ),
        AlignmentDisplay.from_predictions(
            *pair, name="two seeds", plot_chance_level=False, color="red",
            n_resamples=50, random_state=0,
        ),
    ):  # fmt: skip
        title = display.ax_.get_title(loc="left").splitlines()
        assert title[0] == "two seeds"
        assert title[1].startswith(f"ICA efficiency {errors.ica_efficiency:.0%} [")
        labels = [c.get_label() for c in display.ax_.collections]
        assert "chance (rows shuffled)" not in labels
        color = display.ax_.collections[1].get_facecolor()
        assert np.array_equal(color[0], [1.0, 0.0, 0.0, 1.0])


def test_given_axes_are_drawn_on_and_figures_close(errors):
    figure, ax = plt.subplots()
    display = AlignmentDisplay.from_errors(errors, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert len(plt.get_fignums()) == 1
    plt.close(display.figure_)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("name", ["error", "interval", "chance"])
def test_array_of_wrong_shape_or_value_is_named(errors, name):
    array = getattr(errors, name)
    with pytest.raises(ValueError, match=rf"errors\.{name} must be finite with shape"):
        AlignmentDisplay(errors._replace(**{name: array[:-1]}))
    with pytest.raises(ValueError, match=rf"errors\.{name} must be finite"):
        AlignmentDisplay(errors._replace(**{name: np.full_like(array, np.nan)}))


def test_what_is_no_errors_is_refused():
    with pytest.raises(TypeError, match="must be AlignmentErrors, got dict"):
        AlignmentDisplay({})


def test_other_number_of_axes_is_refused(errors):
    _, axes = plt.subplots(1, 2)
    with pytest.raises(ValueError, match="ax must be 1 matplotlib Axes"):
        AlignmentDisplay(errors).plot(axes)
    with pytest.raises(ValueError, match=r"AlignmentDisplay, got 'left'"):
        AlignmentDisplay(errors).plot("left")


def test_learning_curve_is_that_of_the_errors(errors):
    ax = AlignmentDisplay.from_errors(errors, kind="learning_curve", name="runs").ax_
    curves = [line for line in ax.lines if not line.get_label().startswith("_")]
    assert [line.get_label() for line in curves] == list(errors.transformations)
    for k, line in enumerate(curves):
        assert np.array_equal(line.get_xdata(), errors.train_sizes)
        assert np.array_equal(line.get_ydata(), errors.learning_curve[:, k])
    hollow = [line for line in ax.lines if line.get_fillstyle() == "none"]
    ends = [float(np.ravel(line.get_ydata())[0]) for line in hollow]
    assert ends == errors.expected_error.tolist()
    ticks = [text.get_text() for text in ax.get_xticklabels()]
    assert ticks == [*(f"{size:.0f}" for size in errors.train_sizes), "any"]
    assert ax.get_ylabel() == "mean error / latent diameter"
    assert ax.get_title(loc="left") == "runs"


def test_no_learning_curve_and_unknown_kind_are_said(pair, errors):
    without = alignment_errors(
        *pair, train_fractions=None, n_resamples=2, transformations=("rigid",)
    )
    with pytest.raises(ValueError, match="no learning curve: compute them with train_"):
        AlignmentDisplay(without).plot(kind="learning_curve")
    with pytest.raises(ValueError, match=r"kind must be one of .* got 'curve'"):
        AlignmentDisplay(errors).plot(kind="curve")


@pytest.mark.parametrize("interval", [None, np.zeros(3), np.array([0.1, np.nan])])
def test_efficiency_without_its_interval_is_named(errors, interval):
    with pytest.raises(
        ValueError, match=r"errors\.ica_efficiency_interval must be fin"
    ):
        AlignmentDisplay(errors._replace(ica_efficiency_interval=interval))
    none = errors._replace(ica_efficiency=None, ica_efficiency_interval=None)
    assert AlignmentDisplay(none).plot().ax_.get_title(loc="left") == ""


@pytest.mark.parametrize("kind", ["error", "learning_curve"])
def test_any_name_is_a_title(errors, kind):
    ax = AlignmentDisplay(errors).plot(name=3, kind=kind).ax_
    assert ax.get_title(loc="left").splitlines()[0] == "3"
