"""Words of a retina under a model: their rates, spike counts and overlaps."""

from pathlib import Path

import numpy as np
from mean_field.pairwise import independent

CLAIM = "  word rates, P(K) (total variation <= .02) and overlaps, on held-out repeats"
# Test words seen so often have a rate known to some 14 %.
LEAST_SEEN = 50
N_RESAMPLES = 500


def run(model, words, figure_dir, seed):
    """Print numbers with intervals over repeats; save a figure if there is a folder."""
    print(CLAIM)
    test, repeats = words.test, words.test_repeats
    drawn = model.sample(2 * len(test), random_state=seed)
    rng = np.random.default_rng(seed)
    shuffled = np.stack([rng.permutation(column) for column in words.train.T], axis=1)
    # repeats drawn with replacement, as how often each counts
    n = repeats.max() + 1
    weights = rng.multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES)
    weights = np.vstack([np.ones(n, int), weights])

    common, counts = common_words(test, repeats)
    observed = weights @ counts / len(test)
    predicted = {
        "VAE, 2 latents": np.exp(model.score_samples(common)),
        "independent": np.exp(independent(words.train, common)),
    }
    print(
        f"  {len(common)} words seen {LEAST_SEEN} times or more make up "
        f"{observed[0].sum():.3f} of all; rms of ln(rate / predicted rate), words "
        "equal [95 %]:"
    )
    for name, rate in predicted.items():
        with np.errstate(divide="ignore"):
            gap = np.square(np.log(observed) - np.log(rate))
        seen = np.isfinite(gap)
        rms = np.sqrt(np.where(seen, gap, 0).sum(1) / seen.sum(1))
        print(f"    {name:28}{interval(rms)}")

    spikes = {
        "VAE, 2 latents": drawn.sum(1),
        "training repeats": words.train.sum(1),
        "independent": shuffled.sum(1),
    }
    size = test.shape[1] + 1
    table = np.stack(
        [np.bincount(test[repeats == r].sum(1), minlength=size) for r in range(n)]
    )
    of_data = weights @ table / len(test)
    print("  total variation of P(K), held-out repeats against [95 %]:")
    for name, number in spikes.items():
        p = np.bincount(number, minlength=size) / len(number)
        print(f"    {name:28}{interval(0.5 * np.abs(of_data - p).sum(1))}")

    pairs = {
        "held-out repeats": overlaps(test, rng),
        "VAE, 2 latents": overlaps(drawn, rng),
        "training repeats": overlaps(words.train, rng),
        "independent": overlaps(shuffled, rng),
    }
    print("  overlap q of two words: mean, variance, P(q > .9), total variation")
    for name, p in pairs.items():
        q = np.linspace(-1, 1, len(p))
        mean, high = p @ q, p[q > 0.9].sum()
        print(
            f"    {name:28}{mean:.4f}  {p @ (q - mean) ** 2:.5f}  {high:.4f}"
            f"  {0.5 * np.abs(p - pairs['held-out repeats']).sum():.4f}",
            flush=True,
        )
    if figure_dir:
        counts = {"held-out repeats": test.sum(1), **spikes}
        draw(observed[0], predicted, counts, pairs, Path(figure_dir))


def common_words(test, repeats):
    """Return words seen often, and how often each in each repeat."""
    keys = np.packbits(test, axis=1)
    _, first, which, seen = np.unique(
        keys, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    kept = np.flatnonzero(seen >= min(LEAST_SEEN, seen.max()))
    table = np.zeros((repeats.max() + 1, len(seen)), np.int64)
    np.add.at(table, (repeats, which.ravel()), 1)
    return test[first[kept]], table[:, kept]


def overlaps(X, rng, n_pairs=400_000):
    """Return the distribution of (1/N) sum_i s_i s'_i over pairs of words drawn."""
    one, other = rng.integers(len(X), size=(2, n_pairs))
    equal = (X[one] == X[other]).sum(1)
    return np.bincount(equal, minlength=X.shape[1] + 1) / n_pairs


def total_variation(one, other):
    """Return that of the distributions of the number of spikes in a word."""
    size = one.shape[1] + 1
    p, q = (np.bincount(X.sum(1), minlength=size) / len(X) for X in (one, other))
    return 0.5 * np.abs(p - q).sum()


def interval(values):
    """Return the first value, and the central 95 % of the others, as text."""
    low, high = np.quantile(values[1:], [0.025, 0.975])
    return f"{values[0]:.4f} [{low:.4f}, {high:.4f}]"


def draw(observed, predicted, counts, pairs, folder):
    """Save word rates, spike counts and overlaps as one figure."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(13, 4), layout="constrained"
    )
    for name, rate in predicted.items():
        left.loglog(observed, rate, ".", label=name)
    left.axline((1e-3, 1e-3), (1e-2, 1e-2), color="gray", lw=1)
    left.set(xlabel="rate of a word, held-out repeats", ylabel="predicted rate")
    left.legend()
    for name, number in counts.items():
        p = np.bincount(number) / len(number)
        middle.semilogy(p, ".-", label=name)
    middle.set(xlabel="spikes in a word", ylabel="P(K)", ylim=(1e-6, 1))
    for name, p in pairs.items():
        right.semilogy(np.linspace(-1, 1, len(p)), p, ".-", label=name)
    right.set(xlabel="overlap of two words", ylabel="probability", ylim=(1e-6, 1))
    right.legend()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "retina_words.png", dpi=120)
    plt.close(figure)
    print(f"  figure: {folder / 'retina_words.png'}")
