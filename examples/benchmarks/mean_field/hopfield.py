"""Stored patterns off a decoder: how far does exact recovery hold?

The claims are over 20 and 10 draws of patterns, which take an hour and more on one
core: that is the size "full". By default there are few draws a case.
"""

import time
import warnings

import numpy as np

from skident import (
    CondTotalCorrelation,
    HopfieldPatternDecoder,
    MeanFieldVAE,
    WhitenICA,
)
from skident._math.binary_span import decode_span
from skident.datasets import make_hopfield, make_patterns

CLAIM = (
    "Hopfield N = 64: P = 4 (20,000 rows) all entries exact over 20 pattern draws at "
    "T = 0.7 and 1.1; P = 8 (T = 0.9) and P = 16 (T = 1.1), 100,000 rows: 97 % of "
    "patterns exact over 10 draws"
)


# Sites, patterns, temperature, rows; and how many draws of patterns by size.
CASES = (
    (64, 4, 0.7, 2_000, {"quick": 1}),
    (64, 4, 0.7, 20_000, {"default": 4, "full": 20}),
    (64, 4, 1.1, 20_000, {"default": 4, "full": 20}),
    (64, 8, 0.9, 100_000, {"default": 1, "full": 10}),
    (64, 16, 1.1, 100_000, {"default": 1, "full": 10}),
    (64, 20, 1.1, 100_000, {"default": 1, "full": 2}),
    (64, 24, 1.1, 100_000, {"full": 2}),
    (128, 16, 1.1, 100_000, {"default": 1, "full": 2}),
    (256, 16, 1.1, 100_000, {"full": 2}),
)
TEMPERATURES = (0.5, 0.7, 0.9, 1.0, 1.1, 1.3)


def run(args):
    """Print verdicts, then recovery."""
    print(CLAIM)
    if args.size == "quick":
        verdicts(TEMPERATURES[4:5], 2_000, 30, args.seed)
    else:
        verdicts(TEMPERATURES, 20_000, "auto", args.seed)
    print(
        "  N   P     T     rows draws   decoder     PCA   PCA span     CMS     ICA    s"
    )
    for *case, draws in CASES:
        if args.size in draws:
            recover(*case, draws[args.size], args.seed)


def verdicts(temperatures, n_rows, epochs, seed):
    patterns = make_patterns(4, 64, random_state=seed)
    print(
        "    T  verdict         u [interval]           overlap matrix, largest z score"
    )
    for temperature in temperatures:
        X, _ = make_hopfield(
            n_rows, patterns, temperature=temperature, random_state=seed
        )
        model = MeanFieldVAE(4, max_epochs=epochs)
        test = CondTotalCorrelation(model, random_state=seed).fit(X)
        u = test.unexplained_fraction_
        drawn = test.estimators_[0].sample(n_rows, random_state=seed)
        print(
            f"{temperature:5.2f}  {test.verdict_:14}{u.value:7.4f} "
            f"[{u.low:.4f}, {u.high:.4f}]{overlap_gap(X, drawn, patterns):12.1f}",
            flush=True,
        )


def overlap_gap(X, drawn, patterns):
    """Return the largest difference of <m m'> in its standard errors."""
    moments = []
    for rows in (X, drawn):
        m = rows @ patterns.T / patterns.shape[1]
        products = m[:, :, None] * m[:, None, :]
        moments.append((products.mean(0), products.var(0) / len(rows)))
    (one, v1), (other, v2) = moments
    return np.abs((one - other) / np.sqrt(v1 + v2)).max()


def recover(n_sites, n_patterns, temperature, n_rows, n_draws, seed):
    exact = np.zeros(5)
    start = time.perf_counter()
    for draw in range(seed, seed + n_draws):
        patterns = make_patterns(n_patterns, n_sites, random_state=draw)
        X, _ = make_hopfield(
            n_rows, patterns, temperature=temperature, random_state=draw
        )
        exact += [count(found, patterns) for found in estimates(X, n_patterns, draw)]
    seconds = (time.perf_counter() - start) / n_draws
    share = exact / (n_draws * n_patterns)
    print(
        f"{n_sites:3}{n_patterns:4}{temperature:6.1f}{n_rows:9}{n_draws:6}"
        + "".join(f"{value:9.1%}" for value in share)
        + f"{seconds:8.0f}",
        flush=True,
    )


def estimates(X, n_patterns, seed):
    """Yield the patterns of the decoder, of PCA, of its span, of CMS and of ICA."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        decoder = HopfieldPatternDecoder(n_patterns=n_patterns, random_state=seed)
        yield decoder.fit(X).patterns_
        X = X.astype(np.float32)
        covariance = np.cov(X.T)
        axes = np.linalg.eigh(covariance)[1][:, ::-1][:, :n_patterns]
        yield np.where(axes.T < 0, -1, 1)
        yield decode_span(axes, seed=seed).patterns
        yield cocco_monasson_sessak(covariance, n_patterns, seed)
        ica = WhitenICA(n_patterns, contrast="cube").fit(X)
        yield np.where(ica.mixing_.T < 0, -1, 1)


def cocco_monasson_sessak(covariance, n_patterns, seed):
    r"""Return patterns of the generalised Hopfield model, to lowest order.

    With :math:`\lambda, v` the largest eigenvalues of the correlation matrix and their
    vectors, patterns are :math:`\sqrt{1 - 1/\lambda} \, v_i / \sigma_i` (Cocco,
    Monasson and Sessak, Phys. Rev. E 83, 051123, 2011), up to a rotation, which the
    search for vectors of signs in their span fixes.
    """
    deviation = np.sqrt(np.diag(covariance))
    values, axes = np.linalg.eigh(covariance / np.outer(deviation, deviation))
    values, axes = values[::-1][:n_patterns], axes[:, ::-1][:, :n_patterns]
    scaled = np.sqrt(np.maximum(1 - 1 / values, 0)) * axes / deviation[:, None]
    basis = np.linalg.qr(scaled)[0]
    return decode_span(basis, seed=seed).patterns


def count(found, patterns):
    """Return how many patterns are among those found, up to sign."""
    overlaps = np.abs(found.astype(int) @ patterns.T.astype(int))
    return (overlaps == patterns.shape[1]).any(axis=0).sum() if len(found) else 0
