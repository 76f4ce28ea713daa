"""Two patterns and a field of a retina: are they stable, and do they make its words?"""

import numpy as np
from mean_field.retina_words import total_variation
from scipy.optimize import linear_sum_assignment
from sklearn.frozen import FrozenEstimator

from skident import HopfieldPatternDecoder, MeanFieldVAE

CLAIM = (
    "  two patterns and a field, stable between two halves of the training repeats;\n"
    "  sampled, the generalised Hopfield model reproduces P(K) and pair correlations"
)


def run(model, words, quick, seed):
    """Print the patterns, their stability and what the decoded model reproduces."""
    print(CLAIM)
    whole = decode(FrozenEstimator(model), words.train, seed)
    halves = []
    for half in range(2):
        estimator = MeanFieldVAE(
            2, max_epochs=2 if quick else "auto", random_state=seed + half + 1
        )
        rows = words.train[words.train_repeats % 2 == half]
        halves.append(decode(estimator, rows, seed))

    print("  pattern  confidence  entries of -1   least sure entry  tail ratio")
    for k, pattern in enumerate(whole.patterns_):
        print(
            f"{k:9}{whole.confidence_[k]:12.3f}{(pattern < 0).sum():15}"
            f"{whole.entry_confidence_[k].min():19.3f}{whole.tail_ratio_[k]:12.3f}"
        )
    if whole.n_patterns_ == 2:
        q = np.mean(whole.patterns_.astype(int).prod(0))
        print(f"  overlap of the two patterns {q:+.3f}")
    auto = decode(FrozenEstimator(model), words.train, seed, n_patterns="auto")
    print(f"  patterns that the decoder would claim by itself: {auto.n_patterns_}")
    stability(whole, *halves)
    reproduced(whole, model, words, seed)


def decode(estimator, X, seed, n_patterns=2):
    decoder = HopfieldPatternDecoder(
        estimator, n_patterns=n_patterns, random_state=seed
    )
    return decoder.fit(X)


def stability(whole, one, other):
    """Print how alike what two halves of the repeats gave is."""
    n = whole.n_features_in_
    rng = np.random.default_rng(0)
    random = [matched(*rng.choice([-1, 1], (2, 2, n))).mean() for _ in range(2000)]
    print(
        f"  random patterns have {np.mean(random):.2f}, 99 % of them below "
        f"{np.quantile(random, 0.99):.2f}; |overlap| of matched patterns:"
    )
    pairs = {
        "halves": (one, other),
        "all and first half": (whole, one),
        "all and second half": (whole, other),
    }
    for name, (a, b) in pairs.items():
        same = matched(a.patterns_, b.patterns_).round(3).tolist()
        print(f"    {name:20}{same}   confidence {b.confidence_.round(3).tolist()}")
    fields = one.expansion_.field, other.expansion_.field
    gap = np.abs(fields[0] - fields[1]).max()
    upper = np.triu_indices(n, 1)
    J = one.couplings_[upper], other.couplings_[upper]
    spans = [np.linalg.qr(d.patterns_.T.astype(float))[0] for d in (one, other)]
    cosines = np.linalg.svd(spans[0].T @ spans[1], compute_uv=False)
    print(
        f"  field: r = {np.corrcoef(*fields)[0, 1]:.4f}, largest difference {gap:.3f} "
        f"of {np.abs(fields).max():.2f} k_B T"
    )
    print(
        f"  couplings: r = {np.corrcoef(*J)[0, 1]:.4f}; cosines of the patterns' spans "
        f"{cosines.round(3).tolist()}",
        flush=True,
    )


def matched(one, other):
    """Return the absolute overlaps of patterns with their matches, best order."""
    overlaps = np.abs(one.astype(int) @ other.T.astype(int)) / one.shape[1]
    rows, columns = linear_sum_assignment(-overlaps)
    return overlaps[rows, columns]


def reproduced(decoder, model, words, seed):
    """Print P(K) and pair correlations of the decoded model, beside its rivals."""
    n = len(words.test)
    drawn = {
        "generalised Hopfield": decoder.sample(n, random_state=seed),
        "VAE, 2 latents": model.sample(n, random_state=seed),
        "training repeats": words.train,
    }
    target = np.corrcoef(words.test.T)
    upper = np.triu_indices(len(target), 1)
    print(
        "  drawn from            TV of P(K)   correlations: r, rms error (rms "
        f"{np.sqrt(np.mean(target[upper] ** 2)):.4f})   means: largest error"
    )
    means = words.test.mean(0)
    for name, X in drawn.items():
        got = np.corrcoef(X.T)[upper]
        print(
            f"  {name:22}{total_variation(X, words.test):10.4f}"
            f"{np.corrcoef(got, target[upper])[0, 1]:20.4f}"
            f"{np.sqrt(np.mean((got - target[upper]) ** 2)):9.4f}"
            f"{np.abs(X.mean(0) - means).max():32.4f}",
            flush=True,
        )
    print(
        f"  nats a word on held-out repeats: decoded {-decoder.score(words.test):.4f}, "
        f"VAE {-model.score(words.test):.4f}"
    )
