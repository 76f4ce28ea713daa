"""Drawing of patterns: images or rows side by side, and their overlaps."""

from typing import NamedTuple

import numpy as np

from skident.plotting._panels import ORANGE, import_matplotlib

# Told apart in grey print, and both from white paper.
DOWN, UP = "#D5D5D5", "#0B3C6F"
_PANEL_POINTS = 450


class Tile(NamedTuple):
    """A pattern to draw; ``signs`` is None where there is none."""

    kind: str
    index: int
    signs: np.ndarray | None
    wrong: np.ndarray | None = None

    @property
    def number(self):
        """Its index as text."""
        return "–" if self.signs is None else str(self.index)


def draw_images(ax, pairs, shape):
    """Draw each pair of patterns as a column of images.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where.
    pairs : list of lists of Tile
        What is to be compared, each list with the same kinds; at least one.
    shape : tuple of 2 ints
        Height and width of an image.
    """
    height, width = shape
    gap = max(1.0, 0.12 * max(shape))
    down, right = height + gap, width + gap
    for p, pair in enumerate(pairs):
        for k, tile in enumerate(pair):
            _draw_tile(ax, tile, shape, (k * down, p * right), len(pairs) * right)
    kinds = [tile.kind for tile in pairs[0]]
    _frame(ax, len(kinds) * down - gap, len(pairs) * right - gap)
    ax.set_aspect("equal")
    ax.set_yticks(np.arange(len(kinds)) * down + (height - 1) / 2, kinds)
    numbers = [" / ".join(tile.number for tile in pair) for pair in pairs]
    ax.set_xticks(np.arange(len(pairs)) * right + (width - 1) / 2, numbers)
    ax.set_xlabel(f"pattern ({' / '.join(kinds)})")


def draw_rows(ax, pairs, n_features):
    """Draw each pattern as a row, the pairs below one another.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where.
    pairs : list of lists of Tile
        As for :func:`draw_images`.
    n_features : int
        Length of a pattern.
    """
    places, labels = [], []
    for p, pair in enumerate(pairs):
        for k, tile in enumerate(pair):
            top = p * (1.1 * len(pair) + 0.4) + 1.1 * k
            _draw_tile(ax, tile, (1, n_features), (top, 0), n_features)
            places.append(top)
            labels.append(f"{tile.kind} {tile.number}")
    _frame(ax, places[-1] + 1, n_features)
    ax.set_aspect("auto")
    ax.set_yticks(places, labels)
    ax.set_xlabel("site")


def draw_overlaps(ax, overlaps, *, rows, columns, cmap, annotate):
    """Draw a matrix of absolute overlaps.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where.
    overlaps : ndarray of shape (n_rows, n_columns)
        In [0, 1].
    rows, columns : sequence of int
        Numbers to label them with.
    cmap : str or matplotlib.colors.Colormap
        From 0 to 1.
    annotate : bool
        Whether to write each number into its cell, in place of a colour bar.
    """
    image = ax.imshow(overlaps, cmap=cmap, vmin=0.0, vmax=1.0)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xticks(range(len(columns)), columns)
    ax.set_title("absolute overlap", loc="left", fontsize="medium")
    if not annotate:
        ax.figure.colorbar(image, ax=ax, shrink=0.9)
        return
    size = float(np.clip(70 / max(overlaps.shape), 4, 10))
    for (row, column), value in np.ndenumerate(overlaps):
        luminance = np.dot(image.to_rgba(value)[:3], (0.299, 0.587, 0.114))
        ax.text(
            column, row, f"{value:.2f}", ha="center", va="center", fontsize=size,
            color="white" if luminance < 0.5 else "black",
        )  # fmt: skip


def say(ax, text):
    """Write a sentence where there is nothing to draw."""
    ax.text(0.5, 0.5, text, ha="center", va="center", transform=ax.transAxes)
    ax.set_axis_off()


def _draw_tile(ax, tile, shape, corner, panel_width):
    """Draw one pattern with its first site at a corner, or say that there is none."""
    (height, width), (top, left) = shape, corner
    if tile.signs is None:
        centre = left + (width - 1) / 2, top + (height - 1) / 2
        ax.text(*centre, "none", ha="center", va="center", style="italic")
        return
    colors = import_matplotlib().matplotlib.colors
    extent = (left - 0.5, left + width - 0.5, top + height - 0.5, top - 0.5)
    ax.imshow(
        tile.signs.reshape(shape), cmap=colors.ListedColormap([DOWN, UP]),
        vmin=-1, vmax=1, extent=extent, interpolation="nearest",
    )  # fmt: skip
    if tile.wrong is not None:
        rows, columns = np.nonzero(tile.wrong.reshape(shape))
        # Half a site of a panel of usual width (points), so that sites stay visible.
        area = float(np.clip(0.5 * _PANEL_POINTS / panel_width, 1.5, 5.0)) ** 2
        ax.scatter(
            left + columns, top + rows, marker="x", s=area, linewidths=area**0.5 / 4,
            color=ORANGE,
        )  # fmt: skip


def _frame(ax, height, width):
    ax.set_xlim(-0.5, width - 0.5)
    ax.set_ylim(height - 0.5, -0.5)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
