"""Several trainings: their errors, every pair, and stable components."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skident._math.alignment import STABLE
from skident.plotting._alignment import draw_errors
from skident.plotting._panels import BLANK, BLUE, GREY, PanelDisplay

# In cells of a matrix with no more runs, errors are written out.
_WRITTEN = 10


class StudyDisplay(PanelDisplay):
    """What several trainings have in common.

    Left: mean errors by group of transformations with their interval over rows (thick)
    and over runs (thin), and where unrelated rows would be. Middle: the error of every
    pair of runs, so that the odd one stands out. Right, if there are components: how
    well the runs agree about each independent component of the consensus.

    Parameters
    ----------
    table : dict of column
        "transformation", "error", "lower", "upper", "chance" and, maybe, "run_lower"
        and "run_upper": ``table_`` of an :class:`skident.IdentifiabilityStudy`.
    pair_table : dict of column
        "first", "second" and the errors by transformation: its ``pair_table_``.
    component_stability : array-like of shape (n_components,), default=None
        Its ``component_stability_``.
    diameter : str, default="max"
        Unit of the errors.

    Attributes
    ----------
    matrix_ : ndarray of shape (n_runs, n_runs)
        Error of each pair, rigid if there is such, else of the first transformation; 0
        on the diagonal.
    axes_ : ndarray of matplotlib.axes.Axes
        Panels from left to right; after ``plot``.
    figure_ : matplotlib.figure.Figure
        Figure that holds them; after ``plot``.

    Raises
    ------
    ValueError
        If a table lacks a column.

    See Also
    --------
    skident.IdentifiabilityStudy : Where the figures come from.
    AlignmentDisplay : Two representations.

    Examples
    --------
    >>> import matplotlib
    >>> import numpy as np
    >>> from skident import IdentifiabilityStudy
    >>> from skident.plotting import StudyDisplay
    >>> matplotlib.use("Agg")  # no window
    >>> Z = np.random.default_rng(0).laplace(size=(200, 2))
    >>> study = IdentifiabilityStudy.from_embeddings([Z, -Z, Z + 1], random_state=0)
    >>> display = StudyDisplay.from_estimator(study)
    >>> display.matrix_.shape, len(display.axes_)
    ((3, 3), 3)
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def __init__(self, table, pair_table, component_stability=None, *, diameter="max"):
        _check(table, ("transformation", "error", "lower", "upper", "chance"), "table")
        names = list(table["transformation"])
        self.transformation_ = "rigid" if "rigid" in names else names[0]
        _check(pair_table, ("first", "second", self.transformation_), "pair_table")
        self.table, self.pair_table = table, pair_table
        self.component_stability, self.diameter = component_stability, diameter
        first, second = (np.asarray(pair_table[name]) for name in ("first", "second"))
        self.matrix_ = np.zeros((max(first.max(), second.max()) + 1,) * 2)
        self.matrix_[first, second] = pair_table[self.transformation_]
        self.matrix_ += self.matrix_.T

    @property
    def _width_ratios(self):
        return (5, 4) if self.component_stability is None else (5, 4, 3)

    @property
    def _figsize(self):
        return sum(self._width_ratios), 2.6 + 0.4 * len(self.table["transformation"])

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, cmap="viridis"):
        """Draw what a fitted study found.

        Parameters
        ----------
        estimator : IdentifiabilityStudy
            Fitted.
        ax : sequence of matplotlib.axes.Axes, default=None
            One a panel; None makes a new figure.
        cmap : str or matplotlib.colors.Colormap, default="viridis"
            Colour map of the pairs.

        Returns
        -------
        StudyDisplay
            The display, drawn.
        """
        check_is_fitted(estimator, "pair_table_")
        display = cls(
            estimator.table_,
            estimator.pair_table_,
            estimator.component_stability_,
            diameter=estimator.diameter,
        )
        return display.plot(ax, cmap=cmap)

    def plot(self, ax=None, *, cmap="viridis"):
        """Draw all panels.

        Parameters
        ----------
        ax : sequence of matplotlib.axes.Axes, default=None
            One a panel; None makes a new figure.
        cmap : str or matplotlib.colors.Colormap, default="viridis"
            Colour map of the pairs.

        Returns
        -------
        StudyDisplay
            The display itself.
        """
        axes = self._take_axes(ax)
        table = self.table
        over_runs = None
        if "run_lower" in table:
            over_runs = np.transpose([table["run_lower"], table["run_upper"]])
        draw_errors(
            axes[0],
            table["transformation"],
            table["error"],
            np.transpose([table["lower"], table["upper"]]),
            chance=table["chance"],
            wider=over_runs,
            diameter=self.diameter,
        )
        self._draw_pairs(axes[1], cmap)
        if self.component_stability is not None:
            self._draw_components(axes[2])
        return self._keep(axes)

    def _draw_pairs(self, ax, cmap):
        import matplotlib

        n_runs = len(self.matrix_)
        pairs = np.ma.masked_where(np.eye(n_runs, dtype=bool), self.matrix_)
        top = pairs.max() or 1.0
        cmap = matplotlib.colormaps.get_cmap(cmap).with_extremes(bad=BLANK)
        image = ax.imshow(pairs, cmap=cmap, vmin=0.0, vmax=top, interpolation="nearest")
        ax.figure.colorbar(image, ax=ax, shrink=0.9)
        if n_runs <= _WRITTEN:
            for i, j in np.argwhere(~np.eye(n_runs, dtype=bool)):
                color = "black" if self.matrix_[i, j] > 0.6 * top else "white"
                ax.text(
                    j, i, f"{self.matrix_[i, j]:.2f}", color=color,
                    ha="center", va="center", fontsize="small",
                )  # fmt: skip
            ax.set_xticks(range(n_runs))
            ax.set_yticks(range(n_runs))
        ax.set(xlabel="run", ylabel="run")
        title = f"{self.transformation_} error of each pair"
        ax.set_title(title, loc="left", fontsize="medium")

    def _draw_components(self, ax):
        values = np.asarray(self.component_stability)
        places = np.arange(len(values))
        colors = [BLUE if value >= STABLE else GREY for value in values]
        ax.bar(places, values, color=colors)
        ax.axhline(STABLE, color=GREY, linestyle=":", linewidth=1.0)
        ax.set_ylim(0.0, 1.0)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="independent component", ylabel="correlation between runs")
        ax.set_title(f"stable from {STABLE} on", loc="left", fontsize="medium")
        ax.spines[["top", "right"]].set_visible(False)


def _check(table, columns, name):
    missing = [column for column in columns if column not in table]
    if missing:
        raise ValueError(f"{name} has no column {missing[0]!r}.")
