"""The runs of a study: clones trained with seeds of their own, and their decoders."""

import contextlib
import os

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_memory
from threadpoolctl import threadpool_limits

from skident._math.lipschitz import bi_lipschitz_constant, singular_extremes
from skident._math.motion import EPS
from skident._random import generator, new_seed
from skident._validation import as_rows

# Numbers in a block of Jacobians, and how far from affine a step may be.
_BLOCK_ENTRIES = 2**22
_AFFINE = 1e-4


def reseeded(estimator, rng):
    """Clone an estimator and give all that is random in it a seed.

    Parameters
    ----------
    estimator : estimator
        Left as it is.
    rng : Generator
        Draws a seed for every parameter ``random_state``, nested ones included.

    Returns
    -------
    model : estimator
    found : bool
        Whether there is such a parameter.
    """
    model = clone(estimator)
    names = [
        name
        for name in sorted(model.get_params(deep=True))
        if name == "random_state" or name.endswith("__random_state")
    ]
    model.set_params(**{name: new_seed(rng) for name in names})
    return model, bool(names)


def fit_rows(model, X, rows):
    """Fit a model to some rows, or to all if ``rows`` is None, in one thread."""
    if rows is not None:
        X = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
    with threadpool_limits(limits=1):
        return model.fit(X)


def _run(fit, model, X, rows, number):
    """Fit one run and return it with its representation of all rows."""
    with _named(f"run {number}"):
        model = fit(model, X, rows)
        with threadpool_limits(limits=1):
            Z = model.transform(X)
        return model, as_rows(Z, name=f"the representation of run {number}")


def train(models, X, subsets, *, memory, n_jobs, advance):
    """Fit every model, and return them with their representations.

    Parameters
    ----------
    models : list of estimator
        Unfitted.
    X : array-like
        Rows, as the models take them.
    subsets : list of ndarray of int or None
        Rows that each is trained on; None for all.
    memory : None, path or joblib.Memory
        Where finished fits are kept, and found again.
    n_jobs : int or None
        As in joblib.
    advance : callable
        Called after each run.

    Returns
    -------
    models : list of estimator
    embeddings : list of ndarray of shape (n_samples, n_columns)
    """
    memory = os.fspath(memory) if isinstance(memory, os.PathLike) else memory
    fit = check_memory(memory).cache(fit_rows)
    runs = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_run)(fit, model, X, rows, k)
        for k, (model, rows) in enumerate(zip(models, subsets, strict=True))
    )
    done = []
    for run in runs:
        done.append(run)
        advance()
    return [model for model, _ in done], [Z for _, Z in done]


def draw_rows(codes, fraction, rng):
    """Return ascending rows of a random fraction of the groups; None for all."""
    if fraction == 1.0:
        return None
    n_groups = codes.max() + 1
    kept = rng.permutation(n_groups)[: max(1, round(fraction * n_groups))]
    return np.flatnonzero(np.isin(codes, kept))


def decoder_constant(model, X, quantile):
    """Return the bi-Lipschitz constant of a model's decoder, or None without one.

    Parameters
    ----------
    model : estimator
        Fitted, with ``decoder_jacobian``; or a pipeline with one such step, all steps
        behind which are affine and can be inverted.
    X : array-like
        Rows at which it is taken.
    quantile : float
        Fraction of rows to leave out at either end.

    Returns
    -------
    BiLipschitz or None
    """
    before, decoder, mixing = _split(model)
    if decoder is None:
        return None
    Z = decoder.transform(X if before is None else before.transform(X))
    first = decoder.decoder_jacobian(Z[:1])
    step = max(1, _BLOCK_ENTRIES // first.size)
    parts = []
    for start in range(0, len(Z), step):
        jacobians = np.asarray(decoder.decoder_jacobian(Z[start : start + step]))
        if mixing is not None:
            jacobians = jacobians @ mixing
        parts.append(singular_extremes(jacobians, first.dtype))
    smallest, largest = (np.concatenate(part) for part in zip(*parts, strict=True))
    return bi_lipschitz_constant(smallest, largest, quantile)


def _split(model):
    """Return what comes before the decoder, the decoder, and what follows as a matrix.

    The matrix, (n_latents, n_columns), maps the representation back to the latents;
    None for the identity. Without a decoder all three are None.
    """
    if not isinstance(model, Pipeline):
        found = model if hasattr(model, "decoder_jacobian") else None
        return None, found, None
    steps = [step for _, step in model.steps if step not in (None, "passthrough")]
    places = [k for k, step in enumerate(steps) if hasattr(step, "decoder_jacobian")]
    if len(places) != 1:
        return None, None, None
    place = places[0]
    before = Pipeline([(str(k), step) for k, step in enumerate(steps[:place])])
    mixing = None
    if place + 1 < len(steps):
        later = Pipeline([(str(k), s) for k, s in enumerate(steps[place + 1 :])])
        mixing = _inverse_matrix(later)
        if mixing is None:
            return None, None, None
    return before if place else None, steps[place], mixing


def _inverse_matrix(steps):
    """Return the matrix of the inverse of affine steps, or None if it is not affine."""
    if not hasattr(steps, "inverse_transform"):
        return None
    width = len(steps.get_feature_names_out())
    back = [
        np.asarray(steps.inverse_transform(points))
        for points in (np.zeros((1, width)), np.eye(width), -2.0 * np.eye(width))
    ]
    matrix = back[1] - back[0]
    bend = np.abs(back[2] - back[0] + 2.0 * matrix).max()
    size = np.abs(matrix).max() + np.abs(back[0]).max() * EPS / _AFFINE
    return matrix.T if bend <= _AFFINE * size else None


def seeded_models(estimator, n_runs, seed, stream):
    """Return one reseeded clone a run, and whether seeds make a difference."""
    drawn = [reseeded(estimator, generator(seed, stream, k)) for k in range(n_runs)]
    return [model for model, _ in drawn], all(found for _, found in drawn)


@contextlib.contextmanager
def _named(what):
    """Say in an error where it happened."""
    try:
        yield
    except Exception as error:
        error.add_note(f"This happened in {what} of the study.")
        raise
