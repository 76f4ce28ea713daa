"""Samplers among threads and processes: any threading layer, after a fork."""

import os
import subprocess
import sys
import textwrap

import pytest

SETUP = """
from functools import partial

import numpy as np
from skident.datasets import (
    make_curie_weiss, make_hopfield, make_ising, make_maier_saupe, make_patterns,
    make_spin_glass,
)

LINKS = np.diag(np.ones(11), 1)
MAKERS = [
    partial(make_curie_weiss, 300, 24, temperature=1.0),
    partial(make_hopfield, 100, make_patterns(3, 24, random_state=0),
            temperature=0.5, method="tempering"),
    *(
        partial(make_ising, 100, (4, 6), temperature=2.3, method=method)
        for method in ("exact", "swendsen-wang", "wolff", "multispin", "heat-bath")
    ),
    partial(make_spin_glass, 50, LINKS + LINKS.T, temperature=1.0),
    partial(make_maier_saupe, 50, 8, temperature=0.3),
]

def draw(seed):
    return [make(random_state=seed)[0].tobytes() for make in MAKERS]
"""


def run(script, **environment):
    return subprocess.run(
        [sys.executable, "-c", SETUP + textwrap.dedent(script)],
        capture_output=True, text=True, timeout=300, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["workqueue", "omp"])
def test_four_threads_draw_at_once(layer):
    done = run(
        """
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(draw, range(4)))
        assert together == [draw(seed) for seed in range(4)]
        print("same")
        """,
        NUMBA_THREADING_LAYER=layer,
    )
    assert done.stdout.strip() == "same", done.stderr


@pytest.mark.slow
def test_a_parallel_kernel_would_abort_there():
    # Without this the test above would prove nothing.
    done = run(
        """
        import numba
        from concurrent.futures import ThreadPoolExecutor

        @numba.njit(parallel=True, nogil=True)
        def total(x):
            s = 0.0
            for i in numba.prange(x.size):
                s += np.sin(x[i])
            return s

        x = np.ones(10_000_000)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(total, [x] * 8))
        print("same")
        """,
        NUMBA_THREADING_LAYER="workqueue",
    )
    assert done.returncode != 0
    assert "same" not in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_children_draw_the_same_after_a_fork():
    done = run("""
        import multiprocessing, warnings
        import joblib
        from sklearn.model_selection import GridSearchCV
        from skident import WhitenICA

        expected = [draw(0), draw(1)]
        # Python warns of every fork of a process that has threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(draw, [0, 1]) == expected
        assert draw(1) == expected[1]
        X = np.random.default_rng(0).laplace(size=(200, 3))
        with joblib.parallel_config(backend="multiprocessing", n_jobs=2):
            search = GridSearchCV(WhitenICA(random_state=0), {"n_components": [1, 2]})
            assert np.isfinite(search.fit(X).best_score_)
        print("same")
    """)
    assert done.stdout.strip() == "same", done.stderr
