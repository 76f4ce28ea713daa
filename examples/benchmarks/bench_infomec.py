r"""Seconds of infomec_score beside a straightforward implementation of its definition.

Reference mode, 10,000 rows of 12 latents and 6 factors. The peer goes pair by pair with
scikit-learn (tests/metrics/straightforward_infomec.py); its probe runs once with
newton-cg until it has converged, as that of infomec_score has, and once with lbfgs at
the defaults of the published implementation, which is quicker and stops short. Each is
the best of ``--repeats`` runs, taken in turn; times are of a busy or idle machine as it
happens to be.

    python examples/benchmarks/bench_infomec.py
    python examples/benchmarks/bench_infomec.py --rows 2000 --repeats 3
"""

import argparse
import importlib.util
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from skident.metrics import infomec_score

CARDINALITIES = np.array([10, 10, 10, 8, 4, 15])
PEER = Path(__file__).parents[2] / "tests" / "metrics" / "straightforward_infomec.py"


def load_peer():
    """Return the straightforward implementation, which lives with the tests."""
    spec = importlib.util.spec_from_file_location("straightforward_infomec", PEER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_latents(n_rows, seed=7):
    """Return six factors and twelve latents: one a factor, and six noisy mixtures."""
    rng = np.random.default_rng(seed)
    factors = np.stack([rng.integers(c, size=n_rows) for c in CARDINALITIES], axis=1)
    scaled = (factors / (CARDINALITIES - 1.0) - 0.5) * np.sqrt(12)
    single = scaled + 0.1 * rng.standard_normal(scaled.shape)
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    return factors, np.c_[
        single, single @ turn + 0.3 * rng.standard_normal(single.shape)
    ]


def seconds_of(function):
    """Return the seconds that a call takes and what it returns."""
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


def lbfgs_explicitness(peer, factors, features):
    """Return InfoE as the published implementation solves for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return peer.explicitness(factors, features)


def compare(n_rows=10_000, repeats=1):
    """Measure both in turn; return seconds and values by name."""
    peer = load_peer()
    factors, latents = make_latents(n_rows)
    features = StandardScaler().fit_transform(latents)
    tasks = {
        "skident": lambda: infomec_score(
            factors, latents, reference=True, random_state=0
        ),
        "peer, information": lambda: peer.modularity_and_compactness(factors, latents),
        "peer, newton-cg probe": lambda: peer.explicitness(
            factors, features, solver="newton-cg", tol=1e-8, max_iter=10_000
        ),
        "peer, lbfgs probe": lambda: lbfgs_explicitness(peer, factors, features),
    }
    seconds, values = dict.fromkeys(tasks, np.inf), {}
    for _ in range(repeats):
        for name, task in tasks.items():
            elapsed, values[name] = seconds_of(task)
            seconds[name] = min(seconds[name], elapsed)
    return seconds, values


def main():
    """Print times, values and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    seconds, values = compare(options.rows, options.repeats)
    for name, elapsed in seconds.items():
        print(f"{name:24}{elapsed:8.2f} s")
    found = values["skident"]
    infom, infoc, nmi, _ = values["peer, information"]
    print(f"largest difference of NMI {np.abs(found.nmi - nmi).max():.1e}")
    print(f"InfoM {found.infom:.5f}  difference {found.infom - infom:.1e}")
    print(f"InfoC {found.infoc:.5f}  difference {found.infoc - infoc:.1e}")
    for probe in ("newton-cg", "lbfgs"):
        infoe = values[f"peer, {probe} probe"]
        print(f"InfoE {found.infoe:.5f}  difference {found.infoe - infoe:.1e}, {probe}")
    for probe in ("newton-cg", "lbfgs"):
        whole = seconds["peer, information"] + seconds[f"peer, {probe} probe"]
        print(f"time over that of the peer ({probe}): {seconds['skident'] / whole:.3f}")


if __name__ == "__main__":
    main()
