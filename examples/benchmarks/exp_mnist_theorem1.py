"""Does the alignment error between trainings follow the bi-Lipschitz constant?

Theorem 1 of Nelson, Fumero, Karaletsos and Locatello (ICLR 2026): if a decoder is
(1 + L)-bi-Lipschitz, and two trainings reconstruct the same, they agree up to a rigid
map within a constant times sqrt(2 L + L^2), in units of the latent diameter. The slope
of LeakyReLU moves L: at slope 1 the decoder is linear, towards 0 its pieces differ ever
more. For each slope, several autoencoders with decoders of three layers are trained on
MNIST from different seeds; every pair is aligned by rigid maps out of sample, on rows
that no training saw. At slope 0.2 the trainings are repeated with ``isometry``, with
more weight decay, and with both.

Prints one row a setting, means over seeds and pairs: L, the bound, the error of rigid
and of affine maps, the part of the variance that is not reconstructed, and how far two
reconstructions of a row are apart, in the same unit; then the rank correlation of rigid
error and bound over slopes.

Trainings that reconstruct a row differently cannot agree on its latents, whatever L is:
weight decay brings their reconstructions together. L is not what the slope makes it
where latents are so many that near-linear decoders balance the last of them slowly.

MNIST is ``mnist_t10k.npz`` in the folder of ``--data`` or $SKIDENT_TEST_DATA, with an
array ``images`` (n, 28, 28); without it, the digits that scikit-learn ships.

    python examples/benchmarks/exp_mnist_theorem1.py --data DIR --figure theorem1.png
"""

import argparse
import itertools
import os
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import spearmanr
from sklearn.datasets import load_digits

from skident import AutoencoderEmbedder
from skident.metrics import alignment_errors

SLOPES = np.round(np.arange(0.1, 1.01, 0.1), 1)
DECAY, MORE_DECAY = 1e-4, 1.0


def load(folder):
    path = Path(folder) / "mnist_t10k.npz"
    if folder and path.is_file():
        images = np.load(path)["images"]
        return images.reshape(len(images), -1) / 255.0, "MNIST"
    return load_digits().data / 16.0, "digits"


def train(X, test, seed, options):
    """Return latents and reconstructions of the test rows, and L, of one training."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # constant border pixels
        model = AutoencoderEmbedder(random_state=seed, **options).fit(X)
    Z = model.transform(test)
    return Z, model.inverse_transform(Z), model.bi_lipschitz(test, quantile=0.05).L


def measure(X, test, seeds, options, n_jobs):
    """Return the means over seeds and pairs that make a row of the table."""
    runs = Parallel(n_jobs)(delayed(train)(X, test, seed, options) for seed in seeds)
    variance = np.square(test - X.mean(0)).mean()
    left = [np.square(decoded - test).mean() / variance for _, decoded, _ in runs]
    pairs = []
    for (Z1, decoded1, L1), (Z2, decoded2, L2) in itertools.combinations(runs, 2):
        result = alignment_errors(
            Z1, Z2, transformations=("rigid", "linear"), n_resamples=2, random_state=0
        )
        bound = np.sqrt(((1 + L1) * (1 + L2)) ** 2 - 1)
        apart = np.square(decoded1 - decoded2).mean() / variance
        pairs.append((bound, *result.error, apart))
    bound, rigid, affine, apart = np.mean(pairs, 0)
    return np.mean([L for _, _, L in runs]), bound, rigid, affine, np.mean(left), apart


def split(X):
    order = np.random.default_rng(0).permutation(len(X))
    n_test = min(len(X) // 4, 2000)
    return X[order[n_test:]], X[order[:n_test]]


def draw(path, table, title):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plain = table[:, 1] == 0
    figure, axes = plt.subplots(figsize=(4.5, 3.5), layout="constrained")
    for rows, marker, label in (
        (plain, "o", "isometry 0"),
        (~plain, "s", "isometry > 0"),
    ):
        points = axes.scatter(
            table[rows, 3], table[rows, 4], c=table[rows, 0], marker=marker,
            label=label, vmin=0.0, vmax=1.0,
        )  # fmt: skip
    figure.colorbar(points, label="slope of LeakyReLU")
    axes.legend()
    axes.set(
        xlabel=r"$\sqrt{(1 + L)^2 (1 + L')^2 - 1}$",
        ylabel="rigid error / latent diameter",
        title=title,
    )
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SKIDENT_TEST_DATA", ""))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--isometry", type=float, default=0.5)
    parser.add_argument("--components", type=int, default=12)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--figure", default="")
    args = parser.parse_args()
    X, name = load(args.data)
    X, test = split(X)
    options = {
        "n_components": args.components,
        "hidden_layer_sizes": (args.width, args.width),
        "max_epochs": args.epochs,
        "learning_rate": args.learning_rate,
    }
    print(f"{name}: {X.shape[0]} rows to train, {test.shape[0]} to test")
    print("slope isometry decay       L   bound   rigid  affine    left   apart")
    settings = [(slope, 0.0, DECAY) for slope in SLOPES]
    settings += [(0.2, args.isometry, DECAY)]
    settings += [(0.2, weight, MORE_DECAY) for weight in (0.0, args.isometry)]
    table = []
    for slope, weight, decay in settings:
        options |= {"negative_slope": slope, "isometry": weight, "weight_decay": decay}
        row = measure(X, test, range(args.seeds), options, args.jobs)
        table.append((slope, weight, *row))
        figures = " ".join(f"{value:7.4f}" for value in row)
        print(f"{slope:5.1f} {weight:8g} {decay:5g} {figures}", flush=True)
    table = np.array(table)
    correlation = spearmanr(*table[: len(SLOPES), 3:5].T)[0]
    print(f"rank correlation of rigid error and bound: {correlation:.3f}")
    plain, *others = table[[1, -3, -2, -1], 4]
    less = ", ".join(f"{plain / error:.2f}" for error in others)
    print(f"times less rigid error at slope 0.2 in the last rows: {less}")
    if args.figure:
        draw(args.figure, table, name)


if __name__ == "__main__":
    main()
