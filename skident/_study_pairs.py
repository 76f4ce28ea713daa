"""What a study makes of its representations: pairs, components, factors."""

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import linear_sum_assignment

from skident._math.alignment import unmix
from skident._math.resampling import fold_labels, percentile_interval
from skident._random import generator
from skident._whiten_ica import WhitenICA
from skident.metrics import dci_score, infomec_score, mcc_score
from skident.metrics._crossfit import Workers

FACTOR_SCORES = (
    "infom", "infoe", "infoc",
    "disentanglement", "completeness", "informativeness", "mcc",
)  # fmt: skip


class Components(NamedTuple):
    """Independent components of the consensus, and how the runs agree about them.

    Attributes
    ----------
    unmixing : ndarray of shape (n_components, n_columns)
        Components are ``(Z - mean) @ unmixing.T`` of consensus rows ``Z``.
    mean : ndarray of shape (n_columns,)
    stability : ndarray of shape (n_components,)
        Mean over pairs of runs of the absolute correlation of the two runs' own
        components, each found on other rows.
    lowest : ndarray of shape (n_components,)
        The least agreement of any pair.
    """

    unmixing: np.ndarray
    mean: np.ndarray
    stability: np.ndarray
    lowest: np.ndarray


def compare_pairs(protocol, sides, pairs, solved, *, n_jobs, advance):
    """Compare every pair of representations.

    Parameters
    ----------
    protocol : Protocol
        How.
    sides : list of Rows
        The representations.
    pairs : list of pair of int
        Which to compare.
    solved : list of list of Unmixing, or None
        Of :meth:`Protocol.unmix`.
    n_jobs : int or None
        Threads, as in joblib.
    advance : callable
        Called after each pair.

    Returns
    -------
    list of Compared
    """

    def compare(i, j):
        return protocol.compare(
            sides[i],
            sides[j],
            Workers(1, lambda n: None),
            None if solved is None else (solved[i], solved[j]),
            names=(f"run {i}", f"run {j}"),
        )

    found = []
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    for compared in parallel(delayed(compare)(i, j) for i, j in pairs):
        found.append(compared)
        advance()
    return found


def interval_over_runs(errors, pairs, n_resamples, confidence_level, rng):
    """Return the bootstrap interval of the mean over pairs, runs being resampled.

    Pairs that share a run are not independent, so that runs are drawn, and pairs of
    two copies of one run left out.

    Parameters
    ----------
    errors : ndarray of shape (n_pairs, n_columns)
        One row a pair.
    pairs : list of pair of int
        All of them.
    n_resamples : int
    confidence_level : float
    rng : Generator

    Returns
    -------
    ndarray of shape (n_columns, 2) or None
        None for fewer than three runs.
    """
    n_runs = max(j for _, j in pairs) + 1
    if n_runs < 3:
        return None
    counts = rng.multinomial(n_runs, np.full(n_runs, 1 / n_runs), size=n_resamples)
    first, second = np.array(pairs).T
    weights = (counts[:, first] * counts[:, second]).astype(float)
    weights = weights[weights.sum(axis=1) > 0]
    means = weights @ errors / weights.sum(axis=1, keepdims=True)
    return percentile_interval(means, confidence_level)


def component_stability(sides, consensus, codes, *, n_rows, n_jobs, rng):
    """Return the components of the consensus, the most stable first.

    Every run is unmixed twice, on two halves of the rows, and runs are compared on
    other halves: on the same rows they would agree about axes that only these rows
    have.

    Parameters
    ----------
    sides : list of Rows
        Representations.
    consensus : Rows
        Their consensus.
    codes : ndarray of int of shape (n_samples,)
        Groups, which halves keep whole.
    n_rows : int
        Most rows on which ICA is solved, and runs are compared.
    n_jobs : int or None
        Threads, as in joblib.
    rng : Generator
        Draws halves and rows.

    Returns
    -------
    Components
    """
    labels = fold_labels(codes, 2, rng)
    order = rng.permutation(len(codes))
    every = np.sort(order[:n_rows])
    halves = [np.sort(order[labels[order] == k][:n_rows]) for k in (0, 1)]
    tasks = [(consensus, every), *((side, half) for side in sides for half in halves)]
    solved = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(unmix)(*task) for task in tasks
    )
    common = _sources(consensus, solved[0], every)
    found = [
        _matched(_sources(side, one, every), common)
        for (side, _), one in zip(tasks[1:], solved[1:], strict=True)
    ]
    agreement = np.array(
        [
            np.abs(np.einsum("ij,ij->j", found[2 * r + k], found[2 * s + 1 - k]))
            for r in range(len(sides))
            for s in range(r)
            for k in (0, 1)
        ]
    ) / len(every)
    agreement = agreement.reshape(-1, 2, common.shape[1]).mean(axis=1)
    stability = agreement.mean(axis=0)
    best = np.argsort(-stability, kind="stable")
    return Components(
        solved[0].components[best] / consensus.unit,
        (solved[0].mean + consensus.centre) * consensus.unit,
        stability[best],
        agreement.min(axis=0)[best],
    )


def _sources(side, unmixing, rows):
    """Return components of rows with mean 0 and variance 1; constant ones are 0."""
    S = (side.take(rows, np.float64) - unmixing.mean) @ unmixing.components.T
    S -= S.mean(axis=0)
    scale = S.std(axis=0)
    return S / np.where(scale > 0, scale, 1.0)


def _matched(S, common):
    """Return components in the order of ``common``; zeros where there is none."""
    rows, columns = linear_sum_assignment(np.abs(common.T @ S), maximize=True)
    found = np.zeros(common.shape)
    found[:, rows] = S[:, columns]
    return found


def score_factors(factors, embeddings, *, groups, n_jobs, seed, stream):
    """Score every representation against known factors, before and after ICA.

    Parameters
    ----------
    factors : ndarray of shape (n_samples, n_factors)
    embeddings : list of ndarray of shape (n_samples, n_columns)
    groups : ndarray of int of shape (n_samples,) or None
    n_jobs : int or None
    seed, stream : int
        Of the random numbers: the same for all runs.

    Returns
    -------
    dict of list
        One column a score, and one with "_ica" behind its name; one entry a run.
    """
    rows = Parallel(n_jobs=n_jobs)(
        delayed(_score_run)(factors, Z, groups, seed, stream) for Z in embeddings
    )
    return {name: [row[name] for row in rows] for name in rows[0]}


def _score_run(factors, Z, groups, seed, stream):
    unmixed = WhitenICA(random_state=0).fit_transform(Z)
    scores = {}
    for ending, latents in (("", Z), ("_ica", unmixed)):

        def drawn(k):
            return int(generator(seed, stream, k).integers(2**31))

        infomec = infomec_score(factors, latents, groups=groups, random_state=drawn(0))
        dci = dci_score(factors, latents, groups=groups, random_state=drawn(1))
        mcc = mcc_score(factors, latents, random_state=drawn(2))
        values = (*infomec[:3], *dci[:3], mcc.mcc)
        for name, value in zip(FACTOR_SCORES, values, strict=True):
            scores[name + ending] = float(value)
    return scores
