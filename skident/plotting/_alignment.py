"""Alignment errors by group of transformations."""

import numpy as np

from skident.metrics import AlignmentErrors, alignment_errors
from skident.plotting._panels import BLUE, GREY, PanelDisplay, percent

KINDS = ("error", "learning_curve")
_MARKERS = "osD^v"


class AlignmentDisplay(PanelDisplay):
    """Out-of-sample alignment errors of two representations, by transformation.

    One line a group of transformations: the mean error with its interval, and where
    unrelated rows would be. 0 is perfect agreement. Or, with ``kind="learning_curve"``,
    the errors against the number of rows that the maps were fitted on, and where they
    would end with any number of rows.

    Parameters
    ----------
    errors : AlignmentErrors
        As by :func:`skident.metrics.alignment_errors`.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes drawn on; after ``plot``.
    figure_ : matplotlib.figure.Figure
        Figure that holds it; after ``plot``.

    Raises
    ------
    TypeError
        If ``errors`` are not ``AlignmentErrors``.
    ValueError
        If the arrays of ``errors`` do not have one finite entry a transformation.

    See Also
    --------
    skident.metrics.alignment_errors : The figures drawn.

    Examples
    --------
    >>> import matplotlib
    >>> import numpy as np
    >>> from skident.plotting import AlignmentDisplay
    >>> matplotlib.use("Agg")  # no window
    >>> rng = np.random.default_rng(0)
    >>> Z1 = rng.laplace(size=(200, 2))
    >>> Z2 = Z1 @ np.array([[0.6, 0.8], [-0.8, 0.6]])
    >>> display = AlignmentDisplay.from_predictions(Z1, Z2, random_state=0)
    >>> display.ax_.get_xlabel()
    'mean error / latent diameter'
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def __init__(self, errors):
        _check(errors)
        self.errors = errors

    @property
    def _figsize(self):
        return 6.0, 2.0 + 0.5 * len(self.errors.transformations)

    @classmethod
    def from_errors(
        cls,
        errors,
        *,
        ax=None,
        kind="error",
        name=None,
        plot_chance_level=True,
        color=BLUE,
    ):
        """Draw errors that were computed before.

        Parameters
        ----------
        errors : AlignmentErrors
            As by :func:`skident.metrics.alignment_errors`.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; None makes a new figure.
        kind : {"error", "learning_curve"}, default="error"
            Errors with intervals, or errors against numbers of rows.
        name : str, default=None
            What was compared; becomes the title.
        plot_chance_level : bool, default=True
            Whether to mark the error of unrelated rows; not in a learning curve.
        color : str, default="#0072B2"
            Colour of the errors.

        Returns
        -------
        AlignmentDisplay
            The display, drawn.
        """
        return cls(errors).plot(
            ax,
            kind=kind,
            name=name,
            plot_chance_level=plot_chance_level,
            color=color,
        )

    @classmethod
    def from_predictions(
        cls,
        Z1,
        Z2,
        *,
        ax=None,
        kind="error",
        name=None,
        plot_chance_level=True,
        color=BLUE,
        **options,
    ):
        """Compute the errors of two representations and draw them.

        Parameters
        ----------
        Z1, Z2 : array-like of shape (n_samples, n_features)
            Representations of the same rows in the same order.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; None makes a new figure.
        kind : {"error", "learning_curve"}, default="error"
            Errors with intervals, or errors against numbers of rows.
        name : str, default=None
            What was compared; becomes the title.
        plot_chance_level : bool, default=True
            Whether to mark the error of unrelated rows; not in a learning curve.
        color : str, default="#0072B2"
            Colour of the errors.
        **options : dict
            Passed to :func:`skident.metrics.alignment_errors`: ``transformations``,
            ``cv``, ``groups``, ``diameter``, ``random_state`` and so on.

        Returns
        -------
        AlignmentDisplay
            The display, drawn; its ``errors`` hold the figures.
        """
        return cls.from_errors(
            alignment_errors(Z1, Z2, **options),
            ax=ax,
            kind=kind,
            name=name,
            plot_chance_level=plot_chance_level,
            color=color,
        )

    def plot(
        self, ax=None, *, kind="error", name=None, plot_chance_level=True, color=BLUE
    ):
        """Draw the errors.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; None makes a new figure.
        kind : {"error", "learning_curve"}, default="error"
            Errors with intervals, or errors against numbers of rows.
        name : str, default=None
            What was compared; becomes the title.
        plot_chance_level : bool, default=True
            Whether to mark the error of unrelated rows; not in a learning curve.
        color : str, default="#0072B2"
            Colour of the errors.

        Returns
        -------
        AlignmentDisplay
            The display itself.

        Raises
        ------
        ValueError
            For an unknown ``kind``, or a learning curve of errors that have none.
        """
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}, got {kind!r}.")
        axes = self._take_axes(ax)
        if kind == "learning_curve":
            self._draw_curve(axes[0], name, color)
        else:
            self._draw_errors(axes[0], name, plot_chance_level, color)
        return self._keep(axes)

    def _draw_errors(self, ax, name, plot_chance_level, color):
        errors = self.errors
        draw_errors(
            ax,
            errors.transformations,
            errors.error,
            errors.interval,
            chance=errors.chance if plot_chance_level else None,
            diameter=errors.diameter,
            color=color,
        )
        title = [] if name is None else [str(name)]
        if errors.ica_efficiency is not None:
            figures = (errors.ica_efficiency, *errors.ica_efficiency_interval)
            title.append(f"ICA efficiency {percent(figures, 0)}")
        ax.set_title("\n".join(title), loc="left", fontsize="medium")

    def _draw_curve(self, ax, name, color):
        errors = self.errors
        if errors.expected_error is None:
            raise ValueError(
                "errors have no learning curve: compute them with train_fractions=, "
                "and with enough rows for one."
            )
        sizes = errors.train_sizes
        beyond = sizes[-1] ** 2 / sizes[-2]
        for k, transformation in enumerate(errors.transformations):
            curve, marker = errors.learning_curve[:, k], _MARKERS[k % len(_MARKERS)]
            ax.plot(sizes, curve, marker=marker, color=color, label=transformation)
            ends = curve[-1], errors.expected_error[k]
            ax.plot([sizes[-1], beyond], ends, linestyle=":", color=color)
            ax.plot(beyond, ends[1], marker=marker, color=color, fillstyle="none")
        ax.set_xscale("log")
        ticks = [*sizes, beyond]
        ax.set_xticks(ticks, [*(f"{size:,.0f}" for size in sizes), "any"])
        ax.set_xticks([], minor=True)
        ax.set_xlabel("rows that the maps were fitted on")
        ax.set_ylabel(_unit(errors.diameter))
        ax.set_ylim(bottom=0.0)
        ax.legend(frameon=False, fontsize="small")
        if name is not None:
            ax.set_title(name, loc="left", fontsize="medium")
        ax.spines[["top", "right"]].set_visible(False)


def draw_errors(
    ax, names, error, interval, *, chance=None, wider=None, diameter="max", color=BLUE
):
    """Draw one line a group of transformations.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    names : sequence of str
        The groups, from top to bottom.
    error : ndarray of shape (n_transformations,)
    interval : ndarray of shape (n_transformations, 2)
        Of each error.
    chance : ndarray of shape (n_transformations,) or None
        Errors of unrelated rows.
    wider : ndarray of shape (n_transformations, 2) or None
        Intervals over runs, drawn thin.
    diameter : str
        Unit of the errors.
    color : str
        Of the errors.
    """
    from matplotlib.transforms import offset_copy

    lines = np.arange(len(names))
    if wider is not None:
        ends = np.transpose(wider)
        ax.hlines(lines, *ends, color=color, linewidth=1.0, label="interval over runs")
    # Not errorbar: the mean may lie outside a percentile interval.
    ax.hlines(lines, *np.transpose(interval), color=color, linewidth=2.5)
    ax.scatter(error, lines, color=color, zorder=3, label="error and interval")
    for line, value in zip(lines, error, strict=True):
        ax.annotate(
            f"{value:.3f}", (value, line), (0, 5), textcoords="offset points",
            ha="center", va="bottom", fontsize="small",
        )  # fmt: skip
    if chance is not None:
        ax.scatter(
            chance, lines, marker="|", s=300, linewidths=2, color=GREY,
            label="chance (rows shuffled)",
        )  # fmt: skip
    ax.set_yticks(lines, names)
    ax.set_ylim(len(lines) - 0.5, -0.6)
    ax.set_xlim(left=0.0)
    ax.margins(x=0.08)
    ax.set_xlabel(_unit(diameter))
    ax.spines[["top", "right"]].set_visible(False)
    # Below the label of the axis, at any height of the figure.
    below = offset_copy(ax.transAxes, ax.figure.figure, y=-36, units="points")
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, 0.0), bbox_transform=below,
        ncols=2, frameon=False,
    )  # fmt: skip


def _unit(diameter):
    unit = "" if diameter == "max" else f" ({diameter})"
    return f"mean error / latent diameter{unit}"


def _check(errors):
    """Raise an error that names the array of the wrong shape or not finite."""
    if not isinstance(errors, AlignmentErrors):
        raise TypeError(f"errors must be AlignmentErrors, got {type(errors).__name__}.")
    count = len(errors.transformations)
    shapes = {"error": (count,), "interval": (count, 2), "chance": (count,)}
    if errors.ica_efficiency is not None:
        shapes["ica_efficiency_interval"] = (2,)
    for name, shape in shapes.items():
        array = np.asarray(getattr(errors, name), dtype=float)
        if array.shape != shape or not np.isfinite(array).all():
            raise ValueError(
                f"errors.{name} must be finite with shape {shape}, for {count} "
                f"transformations; got shape {array.shape}."
            )
