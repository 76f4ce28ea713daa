"""Decoded patterns beside true ones."""

import math

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.utils.validation import check_is_fitted

from skident.plotting._pairs import check_sides
from skident.plotting._panels import PanelDisplay
from skident.plotting._tiles import Tile, draw_images, draw_overlaps, draw_rows, say

_NONE = -1


class PatternDisplay(PanelDisplay):
    """Decoded patterns, beside the true ones where these are known.

    Left: each true pattern with the decoded one that it is matched to, by absolute
    overlap, with the sign of the decoded one turned to fit; sites where they differ are
    crossed. Right: absolute overlaps.

    Parameters
    ----------
    patterns : array-like of shape (n_patterns, n_features)
        Decoded patterns in {-1, 1}; there may be none.
    truth : array-like of shape (n_true, n_features), default=None
        True patterns in {-1, 1}.
    shape : tuple of 2 ints, default=None
        Height and width to draw a pattern as an image of, in C order; None draws it as
        a row.

    Attributes
    ----------
    overlaps_ : ndarray of shape (n_patterns, n_true)
        Absolute overlaps ``|sum_i a_i b_i| / n_features`` of decoded with true
        patterns; without ``truth`` of the decoded ones with each other.
    matches_ : ndarray of shape (n_pairs, 2), int
        Index of the true and of the decoded pattern of each pair drawn, -1 where there
        is none: true ones in order, then decoded ones without a true one.
    aligned_ : ndarray of shape (n_patterns, n_features), int8
        Decoded patterns, turned to overlap positively with their true ones.
    axes_ : ndarray of shape (2,) of matplotlib.axes.Axes
        Left and right panel; after ``plot``.
    figure_ : matplotlib.figure.Figure
        Figure that holds them; after ``plot``.

    Raises
    ------
    ValueError
        For a value other than -1 and 1, true patterns of another length, or a shape
        that does not have one site a column.

    See Also
    --------
    skident.HopfieldPatternDecoder : Decodes patterns.

    Examples
    --------
    >>> import matplotlib
    >>> import numpy as np
    >>> from skident.plotting import PatternDisplay
    >>> matplotlib.use("Agg")  # no window
    >>> truth = np.array([[1, 1, -1, -1], [1, -1, 1, -1]])
    >>> display = PatternDisplay(-truth[::-1], truth, shape=(2, 2)).plot()
    >>> display.matches_.tolist(), display.overlaps_.tolist()
    ([[0, 1], [1, 0]], [[0.0, 1.0], [1.0, 0.0]])
    >>> matplotlib.pyplot.close(display.figure_)
    """

    _width_ratios = (2, 1)

    def __init__(self, patterns, truth=None, *, shape=None):
        self.patterns = patterns
        self.truth = truth
        self.shape = shape
        decoded = _signs(patterns, "patterns")
        n_features = decoded.shape[1]
        self._true = None if truth is None else _signs(truth, "truth")
        if truth is not None and self._true.shape[1] != n_features:
            raise ValueError(
                f"truth must have {n_features} columns as patterns has, got shape "
                f"{self._true.shape}."
            )
        if shape is not None:
            sides = check_sides(shape)
            if len(sides) != 2 or math.prod(sides) != n_features:
                raise ValueError(
                    "shape must be a height and a width with one site a column: got "
                    f"{shape!r} for {n_features} columns."
                )
        self._match(decoded)

    def _match(self, decoded):
        """Pair decoded with true patterns and turn their signs."""
        true = decoded if self._true is None else self._true
        overlaps = decoded.astype(float) @ true.T / decoded.shape[1]
        self.overlaps_ = np.abs(overlaps)
        self.aligned_ = decoded.copy()
        if self._true is None:
            missing = np.full(len(decoded), _NONE)
            self.matches_ = np.stack([missing, np.arange(len(decoded))], axis=1)
            return
        found, partner = linear_sum_assignment(-self.overlaps_)
        self.aligned_[found[overlaps[found, partner] < 0]] *= -1
        of_true = np.full(len(true), _NONE)
        of_true[partner] = found
        extra = np.setdiff1d(np.arange(len(decoded)), found)
        self.matches_ = np.stack(
            [
                np.append(np.arange(len(true)), np.full(len(extra), _NONE)),
                np.append(of_true, extra),
            ],
            axis=1,
        )

    @property
    def _figsize(self):
        if self.shape is not None:
            return 11.0, 3.8
        return 11.0, float(np.clip(1.5 + 0.6 * len(self.matches_), 3.6, 10.0))

    @classmethod
    def from_estimator(cls, estimator, *, truth=None, shape=None, ax=None, **options):
        """Draw the patterns of a fitted decoder.

        Parameters
        ----------
        estimator : HopfieldPatternDecoder
            Fitted.
        truth : array-like of shape (n_true, n_features), default=None
            True patterns in {-1, 1}.
        shape : tuple of 2 ints, default=None
            Height and width to draw a pattern as an image of.
        ax : sequence of 2 matplotlib.axes.Axes, default=None
            Left and right panel; None makes a new figure.
        **options : dict
            Passed to :meth:`plot`: ``cmap``, ``annotate``, ``mark_errors``.

        Returns
        -------
        PatternDisplay
            The display, drawn.
        """
        check_is_fitted(estimator, "patterns_")
        return cls(estimator.patterns_, truth, shape=shape).plot(ax, **options)

    def plot(self, ax=None, *, cmap="Blues", annotate=True, mark_errors=True):
        """Draw both panels.

        Parameters
        ----------
        ax : sequence of 2 matplotlib.axes.Axes, default=None
            Left and right panel; None makes a new figure.
        cmap : str or matplotlib.colors.Colormap, default="Blues"
            Colour map of the overlaps, from 0 to 1.
        annotate : bool, default=True
            Whether to write each overlap into its cell, in place of a colour bar.
        mark_errors : bool, default=True
            Whether to cross the sites of a decoded pattern that differ from its true
            one.

        Returns
        -------
        PatternDisplay
            The display itself.
        """
        axes = self._take_axes(ax)
        self._draw_patterns(axes[0], mark_errors)
        self._draw_overlaps(axes[1], cmap, annotate)
        return self._keep(axes)

    def _draw_patterns(self, ax, mark_errors):
        if len(self.matches_) == 0:
            say(ax, "no patterns decoded")
            return
        pairs = [self._tiles(*pair, mark_errors) for pair in self.matches_.tolist()]
        if self.shape is None:
            draw_rows(ax, pairs, self.aligned_.shape[1])
        else:
            draw_images(ax, pairs, check_sides(self.shape))
        any_wrong = any(t.wrong is not None and t.wrong.any() for p in pairs for t in p)
        crosses = "; cross: differs" if any_wrong else ""
        ax.set_title(f"dark: +1, light: −1{crosses}", loc="left", fontsize="medium")

    def _tiles(self, true, found, mark_errors):
        """Return what is drawn of one pair: the true pattern and the decoded one."""
        signs = None if found == _NONE else self.aligned_[found]
        if self._true is None:
            return [Tile("decoded", found, signs)]
        target = None if true == _NONE else self._true[true]
        wrong = None
        if mark_errors and signs is not None and target is not None:
            wrong = signs != target
        return [Tile("true", true, target), Tile("decoded", found, signs, wrong)]

    def _draw_overlaps(self, ax, cmap, annotate):
        if self.overlaps_.size == 0:
            say(ax, "no overlaps")
            return
        # In the order of the pairs, so that a perfect decoding is a diagonal.
        found = self.matches_[self.matches_[:, 1] != _NONE, 1]
        columns = range(self.overlaps_.shape[1])
        draw_overlaps(
            ax, self.overlaps_[found], rows=found, columns=columns, cmap=cmap,
            annotate=annotate,
        )  # fmt: skip
        ax.set_ylabel("decoded pattern")
        ax.set_xlabel("decoded pattern" if self._true is None else "true pattern")


def _signs(patterns, name):
    """Return rows of -1 and 1 as int8, or raise a ``ValueError``."""
    patterns = np.asarray(patterns)
    if patterns.ndim != 2 or patterns.shape[1] == 0:
        raise ValueError(
            f"{name} must have shape (n_patterns, n_features), got {patterns.shape}."
        )
    wrong = ~np.isin(patterns, (-1, 1))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"{name} must have values -1 and 1 only, but column {column}, row {row} "
            f"is {patterns[row, column]}."
        )
    return patterns.astype(np.int8)
