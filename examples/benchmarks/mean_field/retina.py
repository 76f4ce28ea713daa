"""Two collective variables of a retina, beside what is usually fitted to words.

The 40 most active cells; even repeats of the movie train, odd ones test. First a table
of likelihoods, then what the model of two latents says of words, and the patterns in
it. All intervals are over repeats, as time bins repeat one movie.
"""

import time
from typing import NamedTuple

import numpy as np
from mean_field import retina_patterns, retina_span, retina_words
from mean_field.files import find
from mean_field.pairwise import PairwiseMaxEnt, boltzmann_machine, independent

from skident import MeanFieldVAE

FILE = "retina_fishmovie32_160.npz"
CLAIM = (
    "Retina, 40 cells, nats a word on held-out repeats: 2 latents <= 8.45, 4 latents "
    "<= 8.26 (independent 10.408); P(K) within total variation .02"
)


class Words(NamedTuple):
    """Words of even and odd repeats, and the repeat of each."""

    train: np.ndarray
    test: np.ndarray
    train_repeats: np.ndarray
    test_repeats: np.ndarray


def load(path, n_cells=40, *, every=1):
    """Return the words of every so many repeats; cells by activity, descending."""
    counts = np.load(path)["bint"]
    cells = np.argsort(-counts.mean((0, 2)), kind="stable")[:n_cells]
    words = counts[:, cells].transpose(0, 2, 1)
    parts = words[:: 2 * every], words[1 :: 2 * every]
    repeats = [np.repeat(np.arange(len(p)), p.shape[1]) for p in parts]
    return Words(*(p.reshape(-1, n_cells) for p in parts), *repeats)


def run(args):
    """Print likelihoods, then what the model of two latents says."""
    path = find(args.data, FILE)
    if path is None:
        return
    quick, seed = args.size == "quick", args.seed
    words = load(path, every=30 if quick else 1)
    two = likelihoods(words, quick, seed)
    retina_words.run(two, words, args.figure_dir, seed)
    retina_patterns.run(two, words, quick, seed)
    retina_span.run(words, quick, seed)


def likelihoods(words, quick, seed):
    """Print one row a model; return that of two latents."""
    print(CLAIM)
    print(
        "model                      nats a word [95 % over repeats]   TV of P(K)    s"
    )
    train, test = words.train, words.test
    start = time.perf_counter()
    show("independent", independent(train, test), words, None, start)
    models = {}
    for latents in (1, 2) if quick else (1, 2, 4):
        start = time.perf_counter()
        epochs = 2 if quick else "auto"
        model = MeanFieldVAE(latents, max_epochs=epochs, random_state=seed).fit(train)
        fitted = time.perf_counter()
        drawn = model.sample(len(test), random_state=seed)
        scores = model.score_samples(test)
        start += time.perf_counter() - fitted
        show(f"VAE, {latents} latents", scores, words, drawn, start)
        models[latents] = model
    if not quick:
        start = time.perf_counter()
        pairwise = PairwiseMaxEnt().fit(train, seed=seed)
        drawn = pairwise.sample(len(test), seed=(seed, -1))
        scores = pairwise.score_samples(test)
        show("pairwise maximum entropy", scores, words, drawn, start)
        print(f"  its ln Z is known to {pairwise.log_z_error:.4f} nats")
        start = time.perf_counter()
        scores = boltzmann_machine(train, test, seed=seed)
        show("Boltzmann machine, 32", scores, words, None, start)
    return models[2]


def show(name, scores, words, drawn, start):
    seconds = time.perf_counter() - start
    repeats = words.test_repeats
    means = np.bincount(repeats, -scores) / np.bincount(repeats)
    rng = np.random.default_rng(0)
    draws = means[rng.integers(len(means), size=(2000, len(means)))].mean(1)
    low, high = np.quantile(draws, [0.025, 0.975])
    distance = "-"
    if drawn is not None:
        distance = f"{retina_words.total_variation(drawn, words.test):.4f}"
    print(
        f"{name:26}{means.mean():9.4f} [{low:.4f}, {high:.4f}]{distance:>16}"
        f"{seconds:9.0f}",
        flush=True,
    )
