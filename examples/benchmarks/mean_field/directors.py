"""Directors: do five latents of a Bingham decoder hold the nematic tensor?

The size "full" has 20,000 rows, two sizes and six temperatures, half an hour and more
on one core. By default there are half the rows, and the temperatures on both sides of
the transition.
"""

import time

import numpy as np
from sklearn.neural_network import MLPRegressor

from skident import MeanFieldVAE, exact
from skident._nn.bingham import statistics
from skident.datasets import make_maier_saupe

CLAIM = (
    "Maier-Saupe, 5 latents: R^2 of the tensor >= 0.95 on held-out rows; order "
    "parameter within 3 % of exact; T_NI located; 20,000 x 64 directors in 2 min"
)
# A decoder that turns sharply: the axes of the tensor are no part of a flat space, and
# between them a shallow one leaves states with less order than there are.
HIDDEN = (128,) * 4
# Rows, numbers of directors, temperatures and epochs, by size.
SIZES = {
    "quick": (1_000, (16,), (0.2,), 5),
    "default": (10_000, (32, 64), (0.18, 0.2202, 0.25), "auto"),
    "full": (20_000, (32, 64), (0.15, 0.18, 0.2, 0.2202, 0.25, 0.3), "auto"),
}


def run(args):
    """Print one row a number of directors and temperature."""
    n_rows, numbers, temperatures, epochs = SIZES[args.size]
    seed = args.seed
    print(CLAIM)
    T_NI = exact.maier_saupe_transition().temperature
    print(f"  N      T      R^2   order of the model / exact   T_NI ({T_NI:.4f})    s")
    for n_sites in numbers:
        for temperature in temperatures:
            X, tensor = make_maier_saupe(
                n_rows, n_sites, temperature=temperature, random_state=seed
            )
            start = time.perf_counter()
            model = MeanFieldVAE(
                5,
                likelihood="bingham",
                hidden_layer_sizes=HIDDEN,
                max_epochs=epochs,
                random_state=seed,
            ).fit(X)
            seconds = time.perf_counter() - start
            half = n_rows // 2
            Z = model.transform(X)
            head = MLPRegressor(
                hidden_layer_sizes=(64, 64), early_stopping=True, random_state=seed
            )
            score = head.fit(Z[:half], tensor[:half]).score(Z[half:], tensor[half:])
            order = order_parameter(model.sample(n_rows, random_state=seed), n_sites)
            truth = exact.maier_saupe(n_sites, temperature).order_parameter
            transition = T_NI * coupling(model, X, temperature)
            print(
                f"{n_sites:3}{temperature:8.4f}{score:8.3f}{order / truth:18.3f}"
                f"{transition:21.4f}{seconds:14.0f}",
                flush=True,
            )


def coupling(model, X, temperature):
    """Return the U of the theory, read off the fields A of the decoder.

    Of rows with the tensor Q the fields are U Q / T in the mean, whatever the sample
    size: the latent tensor is Q and Gaussian noise. T_NI is proportional to U.
    """
    Z = model.sample_posterior(X, random_state=0)
    A = model.logits(Z).reshape(len(X), -1, 5).mean(1)
    Q = 1.5 * statistics(X.reshape(len(X), -1, 3)).mean(1)
    return temperature * (A * Q).sum() / (Q * Q).sum()


def order_parameter(X, n_sites):
    """Return sqrt(2 <tr Q^2> / 3) of rows of flattened unit vectors."""
    n = X.reshape(len(X), n_sites, 3)
    Q = 1.5 * (np.einsum("rki,rkj->rij", n, n) / n_sites - np.eye(3) / 3)
    return np.sqrt(2 * np.einsum("rij,rij->r", Q, Q).mean() / 3)
