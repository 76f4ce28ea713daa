"""The progress bar: the only place that imports tqdm."""

import contextlib


@contextlib.contextmanager
def progress_bar(total, description, *, verbose):
    """Show one progress bar, or nothing.

    Parameters
    ----------
    total : int
        Number of steps.
    description : str
        Text before the bar.
    verbose : int
        0 is silent and does not import tqdm.

    Yields
    ------
    callable
        ``advance(n=1, **figures)``: moves the bar by ``n`` steps and shows the
        figures (for instance a loss) behind it.
    """
    if not verbose:
        yield lambda n=1, **figures: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, desc=description, leave=True) as bar:

        def advance(n=1, **figures):
            if figures:
                bar.set_postfix(
                    {k: f"{v:.4g}" for k, v in figures.items()}, refresh=False
                )
            bar.update(n)

        yield advance
