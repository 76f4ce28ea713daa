"""What all displays share: axes, colours and the import of matplotlib."""

import numpy as np

# Okabe and Ito's palette: told apart with any colour vision and in grey print.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#6E6E6E"
BLANK = "#E8E8E8"


def import_matplotlib():
    """Return ``matplotlib.pyplot``, or say how to install it."""
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError(
            'Drawing needs matplotlib: pip install "skident[plot]".'
        ) from error
    return matplotlib.pyplot


class PanelDisplay:
    """Base of the displays: one row of panels in a figure."""

    _width_ratios = (1,)
    _figsize = (6.0, 3.5)

    def _take_axes(self, ax):
        """Return one Axes a panel: those given, or of a new figure."""
        plt = import_matplotlib()
        if ax is None:
            return self._add_axes(_new_figure(plt, self._figsize))
        axes = np.ravel(np.asarray(ax, dtype=object))
        wanted = len(self._width_ratios)
        if len(axes) != wanted or not all(isinstance(a, plt.Axes) for a in axes):
            raise ValueError(
                f"ax must be {wanted} matplotlib Axes, one a panel of "
                f"{type(self).__name__}, got {ax!r}."
            )
        return axes

    def _add_axes(self, figure):
        """Add one Axes a panel to an empty figure or part of a figure."""
        axes = figure.subplots(
            1, len(self._width_ratios), width_ratios=self._width_ratios, squeeze=False
        )
        return axes[0]

    def _keep(self, axes):
        """Store what was drawn on; the figure is the whole one, not a part of it."""
        self.figure_ = axes[0].figure.figure
        if len(axes) == 1:
            self.ax_ = axes[0]
        else:
            self.axes_ = axes
        return self


def draw_together(*displays, title=None):
    """Draw several displays below one another in one figure.

    Parameters
    ----------
    *displays : AlignmentDisplay, PatternDisplay or TotalCorrelationDisplay
        What to draw, from top to bottom; at least one. Each is drawn anew, with the
        defaults of its ``plot``.
    title : str, default=None
        Title of the figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, to be saved with its ``savefig``.

    Raises
    ------
    ValueError
        Without a display.
    TypeError
        For anything else than a display.
    ImportError
        Without matplotlib.

    Examples
    --------
    >>> import matplotlib
    >>> import numpy as np
    >>> from skident.plotting import PatternDisplay, draw_together
    >>> matplotlib.use("Agg")  # no window
    >>> patterns = np.array([[1, 1, -1, -1], [1, -1, 1, -1]])
    >>> figure = draw_together(
    ...     PatternDisplay(patterns), PatternDisplay(patterns, shape=(2, 2))
    ... )
    >>> len(figure.subfigs)
    2
    >>> matplotlib.pyplot.close(figure)
    """
    if not displays:
        raise ValueError("draw_together needs at least one display, got none.")
    for display in displays:
        if not isinstance(display, PanelDisplay):
            raise TypeError(
                "draw_together takes displays one by one, got "
                f"{type(display).__name__}: pass draw_together(*displays), each as by "
                "AlignmentDisplay(errors)."
            )
    plt = import_matplotlib()
    widths, heights = zip(*(display._figsize for display in displays), strict=True)
    figure = _new_figure(plt, (max(widths), sum(heights)))
    parts = figure.subfigures(len(displays), 1, height_ratios=heights, squeeze=False)
    for display, part in zip(displays, parts[:, 0], strict=True):
        display.plot(ax=display._add_axes(part))
    if title is not None:
        figure.suptitle(title)
    return figure


def _new_figure(plt, size):
    figure = plt.figure(figsize=size, layout="constrained")
    # Keeps the label of a colour bar off that of the next panel.
    figure.get_layout_engine().set(wspace=0.08)
    return figure


def percent(estimate, digits=1):
    """Return a fraction with the ends of its interval as text, in per cent."""
    value, low, high = estimate
    return f"{value:.{digits}%} [{low:.{digits}%}, {high:.{digits}%}]"
