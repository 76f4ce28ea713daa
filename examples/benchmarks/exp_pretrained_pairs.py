"""Do networks that were trained apart agree, and up to what?

The question of Nelson, Fumero, Karaletsos and Locatello (ICLR 2026) for pretrained
pairs, asked of networks that can be had or trained on one core:

- the six pairs among four chars2vec networks, 50 to 200 columns, trained by others on
  characters of words: 5,000 words;
- pairs of networks trained here on MNIST: autoencoders, masked autoencoders, small ones
  beside large ones of these, and classifiers; three seeds each. They train on 8,000
  images and are compared on 2,000 others.

Each representation is divided by one number, its spread, since rigid maps keep lengths.
Every pair is a row: out-of-sample errors in latent diameters of the best signed
permutation, of ICA on either side, of the best rigid and affine map; the rigid error of
unrelated rows; the ICA efficiency with its interval over rows; how well ICA finds its
axes on other rows (the worse side); debiased CKA; and whether more rows would lower an
error by more than 5 %. Means of each kind stand beside the figures of the paper. The
words are compared once more after low-variance directions were cut, with one study of
all four: whitening blows up directions that hold no signal.

Data is ``words_chars2vec_4models_5000.npz`` (arrays c2v50, ..., c2v200) and
``mnist_t10k.npz`` (images, labels) in the folder of ``--data`` or $SKIDENT_TEST_DATA.
Without the first, words are left out; without the second, scikit-learn's digits serve.

    python examples/benchmarks/exp_pretrained_pairs.py --data DIR --figure pairs.png
"""

import argparse
import itertools
import os
import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

from skident import AutoencoderEmbedder, IdentifiabilityStudy, LayerEmbedder
from skident.metrics import alignment_errors, ica_efficiency, linear_cka

GROUPS = ("permutation", "ica", "rigid", "linear")
# Errors as the paper gives them, in the order of GROUPS.
PAPER = {
    "Pythia-160M, two seeds": (0.219, 0.202, 0.150, 0.131),
    "MAE, two releases": (0.197, 0.145, 0.109, 0.036),
    "CheXpert MAE, small and base": (0.218, 0.175, 0.104, 0.048),
    "ResNet-18 classifier, two runs": (0.382, 0.312, 0.206, 0.175),
}


def unit_spread(Z):
    """Return centred rows, divided by their root mean squared distance to the mean."""
    Z = np.asarray(Z, dtype=float)
    Z = Z - Z.mean(axis=0)
    return Z / np.sqrt(Z.var(axis=0).sum())


def leading(Z, share):
    """Return the principal components that hold this share of the variance."""
    U, sizes, _ = np.linalg.svd(unit_spread(Z), full_matrices=False)
    held = np.cumsum(sizes**2) / np.sum(sizes**2)
    kept = int(np.searchsorted(held, share)) + 1
    return unit_spread(U[:, :kept] * sizes[:kept])


def load_words(folder):
    path = Path(folder) / "words_chars2vec_4models_5000.npz"
    if not (folder and path.is_file()):
        return {}
    archive = np.load(path)
    return {f"{width}-d": archive[f"c2v{width}"] for width in (50, 100, 150, 200)}


def load_images(folder):
    path = Path(folder) / "mnist_t10k.npz"
    if folder and path.is_file():
        archive = np.load(path)
        return archive["images"] / 255.0, archive["labels"], "MNIST"
    digits = load_digits()
    return digits.images / 16.0, digits.target, "digits"


def autoencode(X, test, seed, side, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # constant border pixels
        model = AutoencoderEmbedder(
            image_shape=(side, side), random_state=seed, **options
        ).fit(X)
    return model.transform(test)


def classify(X, digit, test, seed, side, n_epochs):
    """Train a small convolutional classifier; return 16 features of the test rows."""
    torch.manual_seed(seed)
    quarter = -(-side // 4)
    net = nn.Sequential(
        nn.Unflatten(1, (1, side, side)),
        nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * quarter**2, 128), nn.ReLU(), nn.Linear(128, 16),
        nn.Linear(16, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    rows, labels = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(digit)
    labels = labels.long()
    for _ in range(n_epochs):
        for batch in torch.randperm(len(rows)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(rows[batch]), labels[batch]).backward()
            optimizer.step()
    features = "8"  # the place of the layer of width 16
    return LayerEmbedder(net, features).fit_transform(test.astype(np.float32))


def train(images, digit, seeds, epochs):
    """Return, for each kind of network, the representations of held-out images."""
    side = images.shape[1]
    order = np.random.default_rng(0).permutation(len(images))
    n_test = min(len(images) // 4, 2000)
    rows, test = order[n_test:], order[:n_test]
    X = images.reshape(len(images), -1)
    base = {
        "n_components": 16,
        "hidden_layer_sizes": (256, 256),
        "max_epochs": epochs,
        "learning_rate": 3e-3,
    }
    # A square is a seventh of a side of MNIST, a quarter of one of the digits.
    mask = {"mask_ratio": 0.5, "patch_size": 4 if side > 8 else 2}
    small = {"n_components": 8, "hidden_layer_sizes": (64, 64)}
    kinds = {"autoencoder": base, "masked": base | mask, "small": base | mask | small}
    found = {
        kind: [autoencode(X[rows], X[test], seed, side, options) for seed in seeds]
        for kind, options in kinds.items()
    }
    found["classifier"] = [
        classify(X[rows], digit[rows], X[test], seed, side, max(1, epochs // 4))
        for seed in seeds
    ]
    return found


def pairs_of(networks):
    """Yield (kind, name, representation, representation) of networks trained here."""
    for kind in ("autoencoder", "masked", "classifier"):
        for (i, Z1), (j, Z2) in itertools.combinations(enumerate(networks[kind]), 2):
            yield f"{kind}, two seeds", f"{i} and {j}", Z1, Z2
    both = zip(networks["small"], networks["masked"], strict=True)
    for seed, (Z1, Z2) in enumerate(both):
        yield "masked, small and base", f"seed {seed}", Z1, Z2


def compare(kind, name, Z1, Z2, n_resamples):
    """Print one row; return the kind, the errors and the rigid error of chance."""
    Z1, Z2 = unit_spread(Z1), unit_spread(Z2)
    result = alignment_errors(
        Z1, Z2, transformations=GROUPS, train_fractions=(0.5,),
        n_resamples=n_resamples, random_state=0,
    )  # fmt: skip
    efficiency = "not defined"
    if result.ica_efficiency is not None:
        low, high = result.ica_efficiency_interval
        efficiency = f"{result.ica_efficiency:4.0%} [{low:.0%}, {high:.0%}]"
    if result.enough_rows is None:
        verdict = "too few rows to say"
    elif result.enough_rows.all():
        verdict = "enough rows"
    else:
        short = itertools.compress(GROUPS, ~result.enough_rows)
        verdict = "more rows: " + ", ".join(short)
    chance = result.chance[GROUPS.index("rigid")]
    print(
        f"{kind:<26} {name:<16}" + "".join(f"{error:8.3f}" for error in result.error)
        + f"{chance:8.3f}   {efficiency:<18}{result.ica_stability.min():6.2f}"
        f"{linear_cka(Z1, Z2):7.2f}  {verdict}",
        flush=True,
    )  # fmt: skip
    return kind, result.error, chance


def efficiency(errors):
    permutation, ica, rigid, _ = errors
    return ica_efficiency(permutation, rigid, ica)


def summarise(rows):
    """Print the means of each kind beside the paper's figures; return them."""
    kinds = {}
    for kind, errors, chance in rows:
        kinds.setdefault(kind, []).append((*errors, chance))
    means = {kind: np.mean(found, axis=0) for kind, found in kinds.items()}
    heads = "".join(f"{name[:7]:>8}" for name in (*GROUPS, "chance"))
    print(f"\n{'mean over pairs':<32}{heads}  efficiency of the means")
    for name, values in means.items():
        figures = "".join(f"{value:8.3f}" for value in values)
        print(f"{name:<32}{figures}  {efficiency(values[:4]):.0%}")
    print("in the paper, on its own networks and data")
    for name, values in PAPER.items():
        figures = "".join(f"{value:8.3f}" for value in values)
        print(f"{name:<32}{figures}{'':8}  {efficiency(values):.0%}")
    return means


def study_of_words(words, share, n_resamples):
    """Print what a study says of the words after low-variance directions were cut."""
    cut = [leading(Z, share) for Z in words.values()]
    widths = ", ".join(str(Z.shape[1]) for Z in cut)
    print(f"\nWords, the directions of {share:.0%} of the variance ({widths} columns):")
    study = IdentifiabilityStudy.from_embeddings(
        cut, transformations=GROUPS, n_resamples=n_resamples, random_state=0
    )
    print(study.summary(), flush=True)
    return study


def draw(path, means):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        2, 1, figsize=(7, 4.6), sharex=True, layout="constrained",
        height_ratios=(len(means), len(PAPER)),
    )  # fmt: skip
    for ax, table, title in zip(
        axes, (means, PAPER), ("here", "paper (its own networks and data)"), strict=True
    ):
        values, place = np.array([row[:4] for row in table.values()]), range(len(table))
        ax.hlines(place, values.min(1), values.max(1), color="0.8", zorder=0)
        for column, group in enumerate(GROUPS):
            ax.plot(values[:, column], place, "osD^"[column], label=group)
        if table is means:
            chance = [row[4] for row in table.values()]
            ax.plot(chance, place, "k|", markersize=12, label="chance (rigid)")
            ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        ax.set_yticks(place, table)
        ax.set(title=title, xlim=(0, None), ylim=(len(table) - 0.5, -0.5))
    axes[1].set_xlabel("mean error of the best map / latent diameter")
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SKIDENT_TEST_DATA", ""))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--resamples", type=int, default=500)
    parser.add_argument("--variance", type=float, default=0.9)
    parser.add_argument("--figure", default="")
    args = parser.parse_args()
    words, (images, digit, name) = load_words(args.data), load_images(args.data)
    heads = "".join(f"{group[:7]:>8}" for group in (*GROUPS, "chance"))
    print(f"{'pair':<43}{heads}   {'ICA efficiency':<18}stable    CKA")
    rows = [
        compare("chars2vec", f"{one} and {other}", Z1, Z2, args.resamples)
        for (one, Z1), (other, Z2) in itertools.combinations(words.items(), 2)
    ]
    networks = train(images, digit, range(args.seeds), args.epochs)
    print(f"networks trained here on {name}")
    rows += [compare(*pair, args.resamples) for pair in pairs_of(networks)]
    means = summarise(rows)
    if words:
        study_of_words(words, args.variance, args.resamples)
    if args.figure:
        draw(args.figure, means)


if __name__ == "__main__":
    main()
