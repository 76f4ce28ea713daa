"""WhitenICA beside its peers on the same planted sources.

Prints one row a data set and peer: the median time of three fits, its ratio to
WhitenICA's in the same run, and the Amari distance to the planted mixing (0 is
perfect). Times are of a busy or idle machine as it happens to be: quote the ratios.

    pip install -e ".[benchmark]" && python examples/benchmarks/bench_ica.py
"""

import time
import warnings

import numpy as np
from picard import Picard
from sklearn.decomposition import FastICA

from skident import WhitenICA
from skident.metrics import amari_distance

SHAPES = [(2_000, 8), (50_000, 16), (200_000, 32)]
PEERS = {
    "WhitenICA": lambda: WhitenICA(),
    "FastICA": lambda: FastICA(whiten="unit-variance", max_iter=500, random_state=0),
    "FastICA, eigh": lambda: FastICA(
        whiten="unit-variance", whiten_solver="eigh", max_iter=500, random_state=0
    ),
    "Picard-O": lambda: Picard(ortho=True, max_iter=500, random_state=0),
}


def planted(n_samples, n_sources, seed=0):
    """Return mixed Laplace sources and the mixing."""
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((n_sources, n_sources))
    return rng.laplace(size=(n_samples, n_sources)) @ mixing.T, mixing


def measure(make, X, mixing, repeats=3):
    """Return the median seconds of a fit and the Amari distance of the last."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        ica = make().fit(X)
        seconds.append(time.perf_counter() - start)
    return np.median(seconds), amari_distance(ica.mixing_, mixing)


def main():
    print(
        f"{'rows':>8} {'columns':>7}  {'':14}{'seconds':>8} {'ratio':>6} {'Amari':>7}"
    )
    warnings.simplefilter("ignore")
    for shape in SHAPES:
        X, mixing = planted(*shape)
        reference = None
        for name, make in PEERS.items():
            seconds, distance = measure(make, X, mixing)
            reference = reference or seconds
            print(
                f"{shape[0]:8} {shape[1]:7}  {name:14}{seconds:8.3f} "
                f"{seconds / reference:6.2f} {distance:7.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
