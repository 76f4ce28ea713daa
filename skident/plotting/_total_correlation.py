"""What the latents leave between the columns."""

import math

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skident.plotting._pairs import (
    by_distance,
    check_sides,
    correlation,
    lattice_distances,
)
from skident.plotting._panels import BLANK, BLUE, GREY, PanelDisplay, percent


class TotalCorrelationDisplay(PanelDisplay):
    """Residual correlations given the latents: where a mean-field model fails.

    Left: the residual correlation of each two columns. Right: their mean against the
    distance on a lattice, or without one, all of them by size. Around zero everywhere:
    the latents explain what there is between two columns.

    Parameters
    ----------
    residual_covariance : array-like of shape (n_features, n_features)
        Covariance of the columns given the latents, at least two columns.
    shape : int or sequence of int, default=None
        Sides of the lattice that the columns are the sites of, in C order.
    periodic : bool, default=True
        Whether the lattice closes on itself along every axis.
    verdict : str, default=None
        Verdict of the litmus test, for the title.
    unexplained_fraction : tuple of 3 floats, default=None
        Unexplained fraction u of the total correlation with its lower and upper end,
        for the title.

    Attributes
    ----------
    residual_correlation_ : ndarray of shape (n_features, n_features)
        Covariance over the square root of the product of both variances; 0 where one
        is 0, and 1 on the diagonal.
    distances_ : ndarray of shape (n_distances,), int, or None
        Distances that occur between two sites, in bonds, ascending; None without
        ``shape``.
    correlations_ : ndarray of shape (n_distances,) or (n_pairs,)
        Mean residual correlation at each distance; without ``shape`` the residual
        correlation of each pair of columns, descending.
    standard_errors_ : ndarray of shape (n_distances,) or None
        Standard deviation over the pairs at each distance over the square root of
        their number, 0 for a single pair; None without ``shape``.
    axes_ : ndarray of shape (2,) of matplotlib.axes.Axes
        Left and right panel; after ``plot``.
    figure_ : matplotlib.figure.Figure
        Figure that holds them; after ``plot``.

    Raises
    ------
    ValueError
        For a matrix that is not square, finite and symmetric, or a shape that does not
        have one site a column.

    See Also
    --------
    skident.CondTotalCorrelation : The litmus test.

    Notes
    -----
    Pairs are not independent, so the bars are a guide to the scatter, not a test: that
    is ``pvalue_`` of the litmus test.

    Examples
    --------
    >>> import matplotlib
    >>> import numpy as np
    >>> from skident.plotting import TotalCorrelationDisplay
    >>> matplotlib.use("Agg")  # no window
    >>> ring = np.array([[4, 1, 0, 1], [1, 4, 1, 0], [0, 1, 4, 1], [1, 0, 1, 4]])
    >>> display = TotalCorrelationDisplay(ring, shape=4).plot()
    >>> display.distances_.tolist(), display.correlations_.tolist()
    ([1, 2], [0.25, 0.0])
    >>> matplotlib.pyplot.close(display.figure_)
    """

    _width_ratios = (1, 1)
    _figsize = (10.0, 4.0)

    def __init__(
        self,
        residual_covariance,
        *,
        shape=None,
        periodic=True,
        verdict=None,
        unexplained_fraction=None,
    ):
        self.residual_covariance = residual_covariance
        self.shape = shape
        self.periodic = periodic
        self.verdict = verdict
        self.unexplained_fraction = unexplained_fraction
        if unexplained_fraction is not None and np.shape(unexplained_fraction) != (3,):
            raise ValueError(
                "unexplained_fraction must be a value with its lower and upper end, "
                f"got {unexplained_fraction!r}."
            )
        self.residual_correlation_ = correlation(residual_covariance)
        self.distances_ = self.standard_errors_ = None
        n_features = len(self.residual_correlation_)
        upper = np.triu_indices(n_features, 1)
        values = self.residual_correlation_[upper]
        self.correlations_ = np.sort(values)[::-1]
        if shape is not None:
            sides = check_sides(shape)
            if math.prod(sides) != n_features:
                raise ValueError(
                    f"shape must have one site a column: {shape!r} has "
                    f"{math.prod(sides)} sites, residual_covariance {n_features} "
                    "columns."
                )
            self.distances_, self.correlations_, self.standard_errors_ = by_distance(
                lattice_distances(sides, periodic)[upper], values
            )

    @classmethod
    def from_estimator(
        cls, estimator, *, shape=None, periodic=True, ax=None, cmap="RdBu_r", vmax=None
    ):
        """Draw what a fitted litmus test found.

        Parameters
        ----------
        estimator : CondTotalCorrelation
            Fitted.
        shape : int or sequence of int, default=None
            Sides of the lattice that the columns are the sites of, in C order.
        periodic : bool, default=True
            Whether the lattice closes on itself along every axis.
        ax : sequence of 2 matplotlib.axes.Axes, default=None
            Left and right panel; None makes a new figure.
        cmap : str or matplotlib.colors.Colormap, default="RdBu_r"
            Diverging colour map of the matrix.
        vmax : float, default=None
            Correlation at the ends of the colour map; None is the largest there is.

        Returns
        -------
        TotalCorrelationDisplay
            The display, drawn.
        """
        check_is_fitted(estimator, "residual_covariance_")
        display = cls(
            estimator.residual_covariance_,
            shape=shape,
            periodic=periodic,
            verdict=estimator.verdict_,
            unexplained_fraction=estimator.unexplained_fraction_,
        )
        return display.plot(ax, cmap=cmap, vmax=vmax)

    def plot(self, ax=None, *, cmap="RdBu_r", vmax=None):
        """Draw both panels.

        Parameters
        ----------
        ax : sequence of 2 matplotlib.axes.Axes, default=None
            Left and right panel; None makes a new figure.
        cmap : str or matplotlib.colors.Colormap, default="RdBu_r"
            Diverging colour map of the matrix.
        vmax : float, default=None
            Correlation at the ends of the colour map; None is the largest there is.

        Returns
        -------
        TotalCorrelationDisplay
            The display itself.
        """
        axes = self._take_axes(ax)
        self._draw_matrix(axes[0], cmap, vmax)
        self._draw_pairs(axes[1])
        return self._keep(axes)

    def _draw_matrix(self, ax, cmap, vmax):
        import matplotlib

        diagonal = np.eye(len(self.residual_correlation_), dtype=bool)
        pairs = np.ma.masked_where(diagonal, self.residual_correlation_)
        if vmax is None:
            # Any number does where all are 0; matplotlib needs a range.
            vmax = np.abs(pairs).max() or 1.0
        cmap = matplotlib.colormaps.get_cmap(cmap).with_extremes(bad=BLANK)
        image = ax.imshow(
            pairs, cmap=cmap, vmin=-vmax, vmax=vmax, interpolation="nearest"
        )
        ax.figure.colorbar(image, ax=ax, label="residual correlation", shrink=0.9)
        ax.set(xlabel="column", ylabel="column")
        ax.set_title(self._title(), loc="left", fontsize="medium")

    def _draw_pairs(self, ax):
        ax.axhline(0.0, color=GREY, linewidth=1.0, zorder=1)
        if self.distances_ is None:
            ranks = np.arange(1, len(self.correlations_) + 1)
            ax.plot(ranks, self.correlations_, ".", color=BLUE, markersize=4)
            ax.set(xlabel="pair of columns, by rank", ylabel="residual correlation")
        else:
            ax.errorbar(
                self.distances_, self.correlations_, self.standard_errors_,
                fmt="o-", color=BLUE, capsize=3, markersize=5, linewidth=1.2,
            )  # fmt: skip
            ax.xaxis.get_major_locator().set_params(integer=True)
            ax.set(
                xlabel="lattice distance (bonds)", ylabel="mean residual correlation"
            )
        ax.spines[["top", "right"]].set_visible(False)

    def _title(self):
        parts = [] if self.verdict is None else [self.verdict]
        if self.unexplained_fraction is not None:
            parts.append(f"unexplained: u = {percent(self.unexplained_fraction)}")
        return "\n".join(parts)
