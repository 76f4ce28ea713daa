"""Does ICA disentangle what an autoencoder learned, and isometry further?

Theorems 2 and 3 of Nelson, Fumero, Karaletsos and Locatello (ICLR 2026): the latents of
an autoencoder that reconstructs, with a decoder near an isometry, are the factors of
the data up to a rigid map, and up to order and signs after whitening and ICA. Here
autoencoders with two latents a factor are trained on data whose factors are known,
plain and with ``isometry``, and scored as they are and after ICA, beside a beta-VAE and
a beta-TCVAE of the same networks. Directions with less than 1 % of the variance in all
are cut before whitening, or they would come back as noise of unit variance.

Data: ``dsprites`` (a grid over 3 shapes, 6 scales, 10 orientations and 16 x 16 places,
halved to 32 x 32 pixels, 10,000 images to train on), ``square``
(:func:`skident.datasets.make_moving_square`) and ``mixture``
(:func:`skident.datasets.make_nonlinear_mixture`). InfoMEC by
:func:`skident.metrics.infomec_score` on other rows, held out and with its bias taken
off; intervals are 95 % of the mean over seeds (Student's t).

dSprites is ``dsprites_factorial_46080.npz`` in the folder of ``--data`` or
$SKIDENT_TEST_DATA; without it that part is left out. Half an hour on two slow cores.

    python examples/benchmarks/exp_disentanglement.py --data DIR --figure infomec.png
"""

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
from disentangling.beta_vae import BetaVAE
from joblib import Parallel, delayed
from scipy.stats import t as student
from threadpoolctl import threadpool_limits

from skident import AutoencoderEmbedder, WhitenICA
from skident.datasets import make_moving_square, make_nonlinear_mixture
from skident.metrics import infomec_score

MODELS = ("AE", "AE + isometry", "beta-VAE", "beta-TCVAE")
# Means over four data sets: InfoM, InfoE, InfoC.
PAPER = {
    "AE": (0.39, 0.76, 0.25),
    "AE + ICA": (0.65, 0.83, 0.40),
    "beta-VAE": (0.59, 0.81, 0.55),
    "beta-TCVAE": (0.58, 0.72, 0.59),
}
BETA, TC_WEIGHT, ISOMETRY, VARIANCE = 4.0, 5.0, 0.5, 0.99


def dsprites(folder, n_rows):
    """Return images in rows, factors without the colour, and the shape of an image."""
    path = Path(folder) / "dsprites_factorial_46080.npz"
    if not folder or not path.is_file():
        return None
    with np.load(path) as archive:
        packed, factors = archive["packed"], archive["latents_classes"]
    rows = np.random.default_rng(0).permutation(len(packed))[:n_rows]
    images = np.unpackbits(packed[rows], axis=1).reshape(-1, 32, 2, 32, 2)
    factors = factors[rows]
    varied = np.ptp(factors, axis=0) > 0
    return images.mean((2, 4)).reshape(len(rows), -1), factors[:, varied], (32, 32)


def square(folder, n_rows):
    return *make_moving_square(n_rows, random_state=0), (32, 32)


def mixture(folder, n_rows):
    X, factors = make_nonlinear_mixture(n_rows, 5, 50, random_state=0)
    return X, factors, None


DATA = {"dsprites": dsprites, "square": square, "mixture": mixture}


def build(name, n_components, image_shape, epochs, seed):
    """Return an untrained model."""
    if name.startswith("beta"):
        return BetaVAE(
            n_components,
            beta=BETA if name == "beta-VAE" else 1.0,
            tc_weight=TC_WEIGHT if name == "beta-TCVAE" else 0.0,
            image_shape=image_shape,
            max_epochs=epochs,
            random_state=seed,
        )
    return AutoencoderEmbedder(
        n_components,
        architecture="mlp" if image_shape is None else "conv",
        image_shape=image_shape,
        isometry=ISOMETRY if "isometry" in name else 0.0,
        max_epochs=epochs,
        batch_size=128,
        learning_rate=1e-3,
        random_state=seed,
    )


def run(name, data, n_train, epochs, seed):
    """Return InfoM, InfoE and InfoC of one training, as it is and after ICA."""
    X, factors, image_shape = data
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", UserWarning)  # constant border pixels
        model = build(name, 2 * factors.shape[1], image_shape, epochs, seed)
        model.fit(X[:n_train])
        Z = model.transform(X[n_train:])
        unmixed = WhitenICA(VARIANCE, random_state=0).fit_transform(Z)
        return [
            infomec_score(factors[n_train:], latents, random_state=0)[:3]
            for latents in (Z, unmixed)
        ]


def interval(values):
    """Return mean and half-width of its 95 % interval, over the first axis."""
    n = len(values)
    width = student.ppf(0.975, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)
    return values.mean(axis=0), width


def table(data, args):
    """Train everything and print one row a model; return the rows by name."""
    jobs = [(name, seed) for name in MODELS for seed in range(args.seeds)]
    found = Parallel(args.jobs)(
        delayed(run)(name, data, args.rows, args.epochs, seed) for name, seed in jobs
    )
    found = np.array(found).reshape(len(MODELS), args.seeds, 2, 3)
    rows = {}
    for k, name in enumerate(MODELS):
        for ica, ending in enumerate(("", " + ICA")):
            rows[name + ending] = interval(found[k, :, ica])
    for name, (mean, width) in rows.items():
        cells = "  ".join(
            f"{m:.3f} +- {w:.3f}" for m, w in zip(mean, width, strict=True)
        )
        paper = " ".join(f"{value:.2f}" for value in PAPER.get(name, ()))
        print(f"{name:20} {cells}   {paper}", flush=True)
    return rows


def draw(path, tables):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(tables), figsize=(3.6 * len(tables), 3.6), layout="constrained",
        sharey=True, squeeze=False,
    )  # fmt: skip
    for panel, (title, rows) in zip(axes[0], tables.items(), strict=True):
        places = np.arange(len(rows))
        for k, (label, marker) in enumerate(
            (("InfoM", "o"), ("InfoE", "s"), ("InfoC", "^"))
        ):
            values = np.array([[mean[k], width[k]] for mean, width in rows.values()])
            panel.errorbar(
                values[:, 0], places + 0.15 * (k - 1), xerr=values[:, 1],
                fmt=marker, label=label,
            )  # fmt: skip
        panel.set(title=title, xlabel="score", yticks=places, yticklabels=list(rows))
        panel.grid(axis="x", alpha=0.3)
    axes[0, 0].invert_yaxis()
    axes[0, -1].legend()
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SKIDENT_TEST_DATA", ""))
    parser.add_argument("--systems", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000, help="to train on")
    parser.add_argument("--test-rows", type=int, default=5_000)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--figure", default="")
    args = parser.parse_args()
    tables = {}
    for system in args.systems:
        data = DATA[system](args.data, args.rows + args.test_rows)
        if data is None:
            print(f"{system}: not in --data, left out\n")
            continue
        n_factors = data[1].shape[1]
        print(
            f"{system}: {args.rows} rows to train, {n_factors} factors, "
            f"{2 * n_factors} latents, {args.seeds} seeds"
        )
        print(f"{'':20} {'InfoM':16} {'InfoE':16} {'InfoC':16} paper, mean of four")
        tables[system] = table(data, args)
        print(flush=True)
    if args.figure and tables:
        draw(args.figure, tables)


if __name__ == "__main__":
    main()
