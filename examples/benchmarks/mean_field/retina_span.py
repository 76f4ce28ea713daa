"""Real-valued patterns of a retina: models whose logits are a field and few patterns.

With a last hidden layer of A units the logits are h + sum_a xi_a phi_a(z) exactly, so
that the model is the generalised Hopfield model of A real patterns. They are defined
up to an invertible matrix, and the field up to their span: what two trainings can agree
on is the span and the field outside it.
"""

import time
from typing import NamedTuple

import numpy as np
from mean_field.retina_words import total_variation

from skident import MeanFieldVAE

CLAIM = "  the same with real patterns: units of the last hidden layer of the decoder"
N_POINTS = 5000


class Span(NamedTuple):
    """Orthonormal patterns (A, N), their rms amplitudes (A,), and the field (N,)."""

    patterns: np.ndarray
    amplitudes: np.ndarray
    field: np.ndarray


def run(words, quick, seed):
    """Print one row a number of patterns, and its stability between halves."""
    print(CLAIM)
    print(
        "  patterns  nats a word  TV of P(K)  correlations: r, rms error    halves: "
        "cosines of spans, field r     s"
    )
    epochs = 10 if quick else "auto"
    target = np.corrcoef(words.test.T)
    upper = np.triu_indices(len(target), 1)
    for n_patterns in (2, 4):
        start = time.perf_counter()
        model = fit(words.train, n_patterns, epochs, seed)
        seconds = time.perf_counter() - start
        drawn = model.sample(len(words.test), random_state=seed)
        gap = np.corrcoef(drawn.T)[upper] - target[upper]
        r = np.corrcoef(gap + target[upper], target[upper])[0, 1]
        halves = [words.train[words.train_repeats % 2 == half] for half in range(2)]
        one, other = (
            read(fit(rows, n_patterns, epochs, seed + half + 1), rows, n_patterns)
            for half, rows in enumerate(halves)
        )
        cosines = np.linalg.svd(one.patterns @ other.patterns.T, compute_uv=False)
        field = np.corrcoef(one.field, other.field)[0, 1]
        print(
            f"{n_patterns:10}{-model.score(words.test):13.4f}"
            f"{total_variation(drawn, words.test):12.4f}{r:20.4f}"
            f"{np.sqrt(np.mean(gap**2)):11.4f}    {cosines.round(2).tolist()}, "
            f"{field:.3f}{seconds:10.0f}",
            flush=True,
        )
        if n_patterns == 2:
            show(read(model, words.train, 2))


def fit(X, n_patterns, epochs, seed):
    """Fit two latents whose logits span so many patterns."""
    return MeanFieldVAE(
        2,
        objective="quadrature",
        hidden_layer_sizes=(n_patterns, 128, 128),
        max_epochs=epochs,
        random_state=seed,
    ).fit(X)


def read(model, X, n_patterns):
    """Read patterns, principal axes of the logits over data, and the field off them."""
    some = X[:: max(1, len(X) // N_POINTS)]
    logits = model.logits(model.sample_posterior(some, random_state=0)).astype(float)
    mean = logits.mean(0)
    _, size, axes = np.linalg.svd(logits - mean, full_matrices=False)
    patterns = axes[:n_patterns]
    field = mean - patterns.T @ (patterns @ mean)
    return Span(patterns, size[:n_patterns] / np.sqrt(len(logits)), field)


def show(span):
    """Print what each pattern is like."""
    for pattern, amplitude in zip(span.patterns, span.amplitudes, strict=True):
        sign = np.sign(pattern.sum())
        print(
            f"    pattern: logits vary by {amplitude:.2f} rms along it, "
            f"{(sign * pattern < 0).sum()} of {len(pattern)} cells against the others, "
            f"effective number of cells {1 / np.sum(pattern**4):.0f}"
        )
    print(
        f"    field: from {span.field.min():.2f} to {span.field.max():.2f}", flush=True
    )
