"""Two collective variables of a retina, beside what is usually fitted to words."""

import time
from pathlib import Path

import numpy as np
from mean_field.pairwise import PairwiseMaxEnt, boltzmann_machine, independent

from skident import MeanFieldVAE

FILE = "retina_fishmovie32_160.npz"
CLAIM = (
    "Retina, 40 cells, nats a word on held-out repeats: 2 latents <= 8.45, 4 latents "
    "<= 8.26 (independent 10.408); P(K) within total variation .02"
)


def load(folder, n_cells=40):
    """Return words of even and of odd repeats, and the repeat of each odd word."""
    counts = np.load(Path(folder) / FILE)["bint"]
    cells = np.argsort(-counts.mean((0, 2)))[:n_cells]
    words = counts[:, cells].transpose(0, 2, 1)
    train, test = words[::2], words[1::2]
    repeats = np.repeat(np.arange(len(test)), test.shape[1])
    return train.reshape(-1, n_cells), test.reshape(-1, n_cells), repeats


def run(quick, folder, seed=0):
    """Print one row a model."""
    if not folder or not (Path(folder) / FILE).is_file():
        print(f"retina: no {FILE} in --data {folder!r}, left out")
        return
    print(CLAIM)
    print(
        "model                      nats a word [95 % over repeats]   TV of P(K)    s"
    )
    train, test, repeats = load(folder)
    if quick:
        train = train[::10]
    print(f"{'independent':26}{independent(train, test):9.4f}")
    for latents in (1, 2) if quick else (1, 2, 4):
        start = time.perf_counter()
        model = MeanFieldVAE(latents, random_state=seed).fit(train)
        seconds = time.perf_counter() - start
        scores = -model.score_samples(test)
        drawn = model.sample(len(test), random_state=seed)
        show(f"VAE, {latents} latents", scores, repeats, drawn, test, seconds)
    if quick:
        return
    start = time.perf_counter()
    pairwise = PairwiseMaxEnt().fit(train, seed=seed)
    seconds = time.perf_counter() - start
    drawn = pairwise.sample(len(test), seed=(seed, -1))
    show(
        "pairwise maximum entropy",
        -pairwise.score_samples(test),
        repeats,
        drawn,
        test,
        seconds,
    )
    print(f"  its ln Z is known to {pairwise.log_z_error:.4f} nats")
    start = time.perf_counter()
    nats = boltzmann_machine(train, test, seed=seed)
    print(f"{'Boltzmann machine, 32':26}{nats:9.4f}{time.perf_counter() - start:47.0f}")


def show(name, scores, repeats, drawn, test, seconds):
    means = np.bincount(repeats, scores) / np.bincount(repeats)
    rng = np.random.default_rng(0)
    draws = means[rng.integers(len(means), size=(2000, len(means)))].mean(1)
    low, high = np.quantile(draws, [0.025, 0.975])
    print(
        f"{name:26}{scores.mean():9.4f} [{low:.4f}, {high:.4f}]"
        f"{total_variation(drawn, test):16.4f}{seconds:9.0f}",
        flush=True,
    )


def total_variation(one, other):
    """Return that of the distributions of the number of spikes in a word."""
    size = one.shape[1] + 1
    p, q = (np.bincount(X.sum(1), minlength=size) / len(X) for X in (one, other))
    return 0.5 * np.abs(p - q).sum()
