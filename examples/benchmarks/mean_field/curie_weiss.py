"""Curie-Weiss: is one latent the truth, and how nearly is it learned?"""

import time

import numpy as np

from skident import MeanFieldVAE, exact
from skident.datasets import make_curie_weiss

TEMPERATURES = (0.8, 0.9, 1.0, 1.1, 1.25)
N_SITES = 64
CLAIM = (
    "Curie-Weiss, N = 64, 1 latent: <|m|> and N<m^2> within 1 %, Binder within 0.01, "
    "KL(p || model) <= 0.01 nats, 30 s each"
)


def run(args):
    """Print one row a temperature."""
    quick, seed = args.size == "quick", args.seed
    n_rows, n_model = (2_000, 200_000) if quick else (50_000, 1_000_000)
    epochs = 20 if quick else "auto"
    print(CLAIM)
    print(
        "    T   |m| model/exact   N m^2 model/exact   Binder model-exact     KL +- se"
        "         s"
    )
    for temperature in TEMPERATURES[::4] if quick else TEMPERATURES:
        truth = exact.curie_weiss(N_SITES, temperature)
        X, _ = make_curie_weiss(
            n_rows, N_SITES, temperature=temperature, random_state=seed
        )
        start = time.perf_counter()
        model = MeanFieldVAE(1, max_epochs=epochs, random_state=seed).fit(X)
        seconds = time.perf_counter() - start
        m = model.sample(n_model, random_state=seed).mean(axis=1, dtype=float)
        m2 = np.mean(m**2)
        binder = 1 - np.mean(m**4) / (3 * m2**2)
        kl, error = divergence(model, temperature, seed + 1)
        print(
            f"{temperature:5.2f}{np.abs(m).mean() / truth.abs_magnetization:18.4f}"
            f"{N_SITES * m2 / truth.susceptibility:20.4f}"
            f"{binder - truth.binder:+21.4f}{kl:13.4f} +- {error:.4f}{seconds:6.1f}",
            flush=True,
        )


def divergence(model, temperature, seed, n_rows=100_000):
    """Return KL(p || model) on fresh draws of p, and its standard error, nats."""
    X, _ = make_curie_weiss(n_rows, N_SITES, temperature=temperature, random_state=seed)
    M = X.sum(axis=1, dtype=float)
    log_p = M**2 / (2 * N_SITES * temperature) - log_z(temperature)
    gap = log_p - model.score_samples(X)
    return gap.mean(), gap.std() / np.sqrt(n_rows)


def log_z(temperature):
    return -exact.curie_weiss(N_SITES, temperature).free_energy / temperature
