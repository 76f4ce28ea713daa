"""Does the alignment error between trainings follow the bi-Lipschitz constant?

Theorem 1 of Nelson, Fumero, Karaletsos and Locatello (ICLR 2026): if a decoder is
(1 + L)-bi-Lipschitz, two trainings agree up to a rigid map within a constant times
sqrt(2 L + L^2), in units of the latent diameter. The slope of LeakyReLU moves L: at
slope 1 the decoder is linear, towards 0 its pieces differ ever more. For each slope,
several autoencoders with decoders of three layers are trained on MNIST from different
seeds; every pair is aligned by rigid maps out of sample, on rows that no training saw.

Prints one row a slope: the mean of L, of the bound, and of the error over seeds and
pairs; then the rank correlation of error and bound over slopes; then what ``isometry``
does at slope 0.2.

Train to the end: where steps are few, near-linear decoders are still far from balanced,
and neither L nor the error is what the data makes it.

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


def load(folder):
    path = Path(folder) / "mnist_t10k.npz"
    if folder and path.is_file():
        images = np.load(path)["images"]
        return images.reshape(len(images), -1) / 255.0, "MNIST"
    return load_digits().data / 16.0, "digits"


def train(X, test, slope, seed, options):
    """Return the test latents, and L at the test rows, of one training."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # constant border pixels
        model = AutoencoderEmbedder(
            negative_slope=slope, random_state=seed, **options
        ).fit(X)
    return model.transform(test), model.bi_lipschitz(test, quantile=0.05).L


def measure(X, test, slope, seeds, options, n_jobs=1):
    """Return the mean L, bound and rigid error of one slope over seeds and pairs."""
    runs = Parallel(n_jobs)(
        delayed(train)(X, test, slope, seed, options) for seed in seeds
    )
    errors, bounds = [], []
    for (first, L1), (second, L2) in itertools.combinations(runs, 2):
        result = alignment_errors(
            first, second, transformations=("rigid",), n_resamples=2, random_state=0
        )
        errors.append(result.error[0])
        bounds.append(np.sqrt(((1 + L1) * (1 + L2)) ** 2 - 1))
    return np.mean([L for _, L in runs]), np.mean(bounds), np.mean(errors)


def split(X):
    order = np.random.default_rng(0).permutation(len(X))
    n_test = min(len(X) // 4, 2000)
    return X[order[n_test:]], X[order[:n_test]]


def draw(path, table, title):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(4.5, 3.5), layout="constrained")
    points = axes.scatter(table[:, 2], table[:, 3], c=table[:, 0])
    figure.colorbar(points, label="slope of LeakyReLU")
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
    parser.add_argument("--components", type=int, default=4)
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
    seeds = range(args.seeds)
    print(f"{name}: {X.shape[0]} rows to train, {test.shape[0]} to test")
    print(f"{'slope':>6} {'L':>8} {'bound':>8} {'error':>8}")
    table = []
    for slope in SLOPES:
        row = (slope, *measure(X, test, slope, seeds, options, args.jobs))
        table.append(row)
        print(" ".join(f"{value:8.4f}" for value in row), flush=True)
    table = np.array(table)
    correlation = spearmanr(table[:, 2], table[:, 3])[0]
    print(f"rank correlation of error and bound: {correlation:.3f}")
    options["isometry"] = 0.2
    _, bound, error = measure(X, test, 0.2, seeds, options, args.jobs)
    plain = table[np.isclose(table[:, 0], 0.2), 3][0]
    print(f"slope 0.2 with isometry=0.2: bound {bound:.4f}, error {error:.4f}")
    print(f"that is {plain / error:.2f} times less than without")
    if args.figure:
        draw(args.figure, table, name)


if __name__ == "__main__":
    main()
