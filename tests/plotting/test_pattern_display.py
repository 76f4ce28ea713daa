import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.exceptions import NotFittedError

from skident import HopfieldPatternDecoder
from skident.plotting import PatternDisplay
from skident.plotting._tiles import DOWN, UP


@pytest.fixture
def truth():
    return np.random.default_rng(0).choice([-1, 1], size=(3, 20))


def tiles(display):
    """Return the patterns drawn, in order, flattened."""
    return [np.asarray(i.get_array()).ravel() for i in display.axes_[0].images]


def tick_labels(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def fitted(patterns):
    """A decoder with the attributes that a fit leaves, without the fit."""
    decoder = HopfieldPatternDecoder()
    decoder.patterns_ = np.asarray(patterns, dtype=np.int8)
    return decoder


@pytest.mark.parametrize("shape", [None, (4, 5)])
def test_pairs_are_matched_turned_and_drawn(truth, shape):
    decoded = truth[[2, 0, 1]] * [[-1], [1], [-1]]
    display = PatternDisplay.from_estimator(fitted(decoded), truth=truth, shape=shape)
    assert display.matches_.tolist() == [[0, 1], [1, 2], [2, 0]]
    assert np.array_equal(display.aligned_, truth[[2, 0, 1]])
    expected = np.abs(decoded @ truth.T) / 20
    assert np.allclose(display.overlaps_, expected)
    drawn = tiles(display)
    assert len(drawn) == 6
    for true, pattern, found in zip(truth, drawn[1::2], drawn[::2], strict=True):
        assert np.array_equal(found, true)
        assert np.array_equal(pattern, true)
    matrix = np.asarray(display.axes_[1].images[0].get_array())
    assert np.array_equal(matrix, display.overlaps_[[1, 2, 0]])
    assert np.array_equal(np.diag(matrix), np.ones(3))
    assert tick_labels(display.axes_[1].yaxis) == ["1", "2", "0"]
    texts = [text.get_text() for text in display.axes_[1].texts]
    assert texts == [f"{value:.2f}" for value in matrix.ravel()]


def test_dark_is_up(truth):
    image = PatternDisplay(truth).plot().axes_[0].images[0]
    colors = [image.to_rgba(sign)[:3] for sign in (-1, 1)]
    assert np.allclose(colors, [plt.matplotlib.colors.to_rgb(c) for c in (DOWN, UP)])


def test_images_and_rows_are_labelled(truth):
    left, _ = PatternDisplay(truth[::-1], truth, shape=(4, 5)).plot().axes_
    assert tick_labels(left.xaxis) == ["0 / 2", "1 / 1", "2 / 0"]
    assert tick_labels(left.yaxis) == ["true", "decoded"]
    assert left.images[0].get_array().shape == (4, 5)
    left, _ = PatternDisplay(truth[::-1], truth).plot().axes_
    assert tick_labels(left.yaxis)[:4] == ["true 0", "decoded 2", "true 1", "decoded 1"]
    assert left.get_xlabel() == "site"


@pytest.mark.parametrize("shape", [None, (4, 5)])
def test_sites_that_differ_are_crossed(truth, shape):
    decoded = truth.copy()
    decoded[1, [3, 12]] *= -1
    display = PatternDisplay(decoded, truth, shape=shape).plot()
    left = display.axes_[0]
    crosses = [np.asarray(c.get_offsets()) for c in left.collections]
    assert [len(c) for c in crosses] == [0, 2, 0]
    extent = left.images[3].get_extent()
    width = 20 if shape is None else shape[1]
    column = np.array([3, 12]) % width + extent[0] + 0.5
    row = np.array([3, 12]) // width + extent[3] + 0.5
    assert np.allclose(crosses[1], np.stack([column, row], axis=1))
    assert "cross: differs" in left.get_title(loc="left")
    plain = display.plot(mark_errors=False).axes_[0]
    assert len(plain.collections) == 0
    assert "cross" not in plain.get_title(loc="left")


@pytest.mark.parametrize("shape", [None, (4, 5)])
def test_missing_and_extra_patterns(truth, shape):
    missed = PatternDisplay(truth[1:], truth, shape=shape).plot()
    assert missed.matches_.tolist() == [[0, -1], [1, 0], [2, 1]]
    assert len(tiles(missed)) == 5
    assert [t.get_text() for t in missed.axes_[0].texts] == ["none"]
    extra = PatternDisplay(truth, truth[:2], shape=shape).plot()
    assert extra.matches_.tolist() == [[0, 0], [1, 1], [-1, 2]]
    assert len(tiles(extra)) == 5
    assert extra.axes_[1].images[0].get_array().shape == (3, 2)


@pytest.mark.parametrize("shape", [None, (4, 5)])
def test_without_truth_overlaps_are_mutual(truth, shape):
    display = PatternDisplay(truth, shape=shape).plot()
    assert np.array_equal(tiles(display), truth)
    assert np.allclose(display.overlaps_, np.abs(truth @ truth.T) / 20)
    assert display.axes_[1].get_xlabel() == "decoded pattern"


@pytest.mark.parametrize("shape", [None, (4, 5)])
def test_no_pattern_is_drawn_as_such(truth, shape):
    alone = PatternDisplay.from_estimator(fitted(truth[:0]), shape=shape)
    assert alone.overlaps_.shape == (0, 0)
    assert alone.axes_[0].texts[0].get_text() == "no patterns decoded"
    beside = PatternDisplay(truth[:0], truth, shape=shape).plot()
    assert len(tiles(beside)) == 3
    assert beside.matches_.tolist() == [[0, -1], [1, -1], [2, -1]]
    assert beside.overlaps_.shape == (0, 3)
    for display in (alone, beside):
        assert display.axes_[1].texts[0].get_text() == "no overlaps"
        display.figure_.canvas.draw()


def test_options_of_the_figure(truth):
    figure, axes = plt.subplots(1, 2)
    display = PatternDisplay.from_estimator(
        fitted(truth), truth=truth, ax=axes, cmap="Greys", annotate=False
    )
    assert display.figure_ is figure
    assert display.axes_.tolist() == axes.tolist()
    assert axes[1].images[0].get_cmap().name == "Greys"
    assert len(axes[1].texts) == 0
    assert axes[1].images[0].colorbar is not None
    assert len(plt.get_fignums()) == 1
    plt.close(display.figure_)
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("patterns", "options", "message"),
    [
        (np.ones(4), {}, r"patterns must have shape .* got \(4,\)"),
        (np.ones((2, 0)), {}, r"patterns must have shape .* got \(2, 0\)"),
        ([[1, 1], [1, 0]], {}, "patterns must .* column 1, row 1 is 0"),
        ([[1, 1]], {"truth": [[1, np.nan]]}, "truth must .* column 1, row 0 is nan"),
        ([[1, 1]], {"truth": [[1, 1, 1]]}, r"truth must have 2 columns .* \(1, 3\)"),
        ([[1, 1]], {"shape": (2, 2)}, r"shape must be .* \(2, 2\) for 2 columns"),
        ([[1, 1]], {"shape": 2}, "shape must be a height and a width"),
        ([[1, 1]], {"shape": (1, 2, 1)}, "shape must be a height and a width"),
    ],
)
def test_bad_arguments_are_refused(patterns, options, message):
    with pytest.raises(ValueError, match=message):
        PatternDisplay(patterns, **options)


def test_unfitted_decoder_is_refused():
    with pytest.raises(NotFittedError):
        PatternDisplay.from_estimator(HopfieldPatternDecoder())
