"""The Ising sheet is no mean-field system near its transition: by how much?

The size "full" is some hours on one core. By default there are fewer rows, fewer
temperatures and one model of the larger sheet.
"""

import numpy as np

from skident import CondTotalCorrelation, MeanFieldVAE, exact
from skident.datasets import make_ising

TEMPERATURES = (1.5, 1.8, 2.0, 2.2, 2.269, 2.5, 3.0, 4.0)
CLAIM = (
    "2-D Ising: one-point functions right, two-point wrong; TC|z peaks near T_c = "
    '2.269; "not mean-field" for 2.2 <= T <= 3, "mean-field" below 2; '
    "I_bip(checkerboard) > R"
)


# Rows; length, latents and temperatures; lengths and latents that are tried on them.
SIZES = {
    "quick": (1_000, [(4, 1, (2.269,))], (), ()),
    "default": (
        8_000,
        [(8, 1, (1.5, 2.0, 2.269, 3.0, 4.0)), (8, 4, (2.269,)), (16, 1, (2.269,))],
        (4, 8),
        (1, 2, 4, 8),
    ),
    "full": (
        20_000,
        [(8, n, TEMPERATURES) for n in (1, 2, 4)]
        + [(16, n, TEMPERATURES) for n in (1, 4)],
        (4, 6, 8, 12),
        (1, 2, 4, 8, 16),
    ),
}


def run(args):
    """Print one row a lattice, temperature and number of latents."""
    n_rows, cases, lengths, numbers = SIZES[args.size]
    print(CLAIM)
    print(
        "   L     T  latents  verdict          TC|z   u [interval]            p      R"
        "  I_bip   means   pairs"
    )
    for length, latents, temperatures in cases:
        for temperature in temperatures:
            show(length, temperature, latents, n_rows, args.seed)
    if lengths:
        grow(n_rows, lengths, numbers, args.seed)


def show(length, temperature, latents, n_rows, seed):
    X, _ = make_ising(
        n_rows, (length, length), temperature=temperature, random_state=seed
    )
    test = litmus(X, latents, seed)
    cut = checkerboard(length, temperature)
    model = test.estimators_[0]
    drawn = model.sample(n_rows, random_state=seed).astype(float)
    means = np.abs(drawn.mean(0) - X.mean(0)).max()
    pairs = np.sqrt(np.mean((drawn.T @ drawn - X.T.astype(float) @ X) ** 2)) / n_rows
    u, tc = test.unexplained_fraction_, test.total_correlation_
    print(
        f"{length:4}{temperature:6.2f}{latents:7}    {test.verdict_:15}{tc.value:7.3f}"
        f"{u.value:8.3f} [{u.low:.3f}, {u.high:.3f}]{test.pvalue_:9.4f}"
        f"{test.rate_:7.2f}{cut:>7}{means:8.3f}{pairs:8.4f}",
        flush=True,
    )


def litmus(X, latents, seed):
    return CondTotalCorrelation(MeanFieldVAE(latents), random_state=seed).fit(X)


def checkerboard(length, temperature):
    """Return I of the two sublattices as text: exact where it is known."""
    if length > 10:
        return "-"
    return f"{exact.ising((length,) * 2, temperature).checkerboard_information:.2f}"


def grow(n_rows, lengths, numbers, seed):
    """Print how many latents make a sheet "mean-field", by its length."""
    print("   L  latents needed at T = 2.269 (u below 5 %)")
    for length in lengths:
        X, _ = make_ising(
            n_rows, (length, length), temperature=2.269, random_state=seed
        )
        for latents in numbers:
            u = litmus(X, latents, seed).unexplained_fraction_.value
            print(f"{length:4}{latents:8}: u = {u:.3f}", flush=True)
            if u < 0.05:
                break
