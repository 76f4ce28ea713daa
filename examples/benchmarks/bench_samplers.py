"""The samplers beside peapods (a compiled sampler of spin models) on one machine.

Prints a table: rates of both in the same run and their ratio. Rates "per core" are of
one thread; "all cores" uses every core on both sides. Times are of a busy or idle
machine as it happens to be: quote the ratios. The targets are those of the project.

    pip install -e ".[benchmark]" && python examples/benchmarks/bench_samplers.py
"""

import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from peapods import Ising

from skident.datasets import (
    make_curie_weiss,
    make_hopfield,
    make_ising,
    make_maier_saupe,
    make_patterns,
)
from skident.datasets._ising_chains import (
    HeatBathChains,
    SwendsenWangChains,
    WolffChains,
)
from skident.datasets._lattice import lattice
from skident.datasets._multispin import MultispinChains

SIDE, CRITICAL = 64, 2 / np.log(1 + np.sqrt(2))
N_SITES = SIDE * SIDE
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2


def seconds(call, repeats=5):
    """Return the least seconds of a call; it has run once before."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def sweep_seconds(kind, n_chains, n_sweeps, threads=1, temperature=CRITICAL):
    """Return seconds a sweep of one chain with some threads, each its own chains."""
    model = lattice((SIDE, SIDE), True, 1.0), 1 / temperature, 1.0, 0.0
    chains = kind(*model)
    states = [chains.start(1, i * n_chains, n_chains, False) for i in range(threads)]
    for state in states:
        chains.advance(state, 200)

    def run():
        workers = [
            threading.Thread(target=chains.advance, args=(state, n_sweeps))
            for state in states
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    return seconds(run) / (n_sweeps * n_chains * threads)


def peer(n_replicas, n_sweeps, *, cluster, sequential, temperature=CRITICAL):
    """Return seconds a sweep of one replica of peapods, and its tau of m^2."""
    model = Ising((SIDE, SIDE), temperatures=np.array([temperature]),
                  n_replicas=n_replicas)  # fmt: skip
    options = {"cluster_update_interval": 1} if cluster else {}
    options |= {"sequential": sequential}
    model.sample(300, **options)
    per_call = seconds(lambda: model.sample(n_sweeps, **options), 3)
    tau = np.nan
    if cluster:
        model.sample(20_000 // n_replicas * 8, autocorrelation_max_lag=60, **options)
        # peapods reports 1/2 + sum rho, skident 1 + 2 sum rho.
        tau = 2 * float(np.mean(model.mags2_tau))
    return per_call / (n_sweeps * n_replicas), tau


def own_tau(n_samples=64):
    """Return tau of m^2 of Swendsen-Wang at the critical point, as peapods' m^2."""
    model = lattice((SIDE, SIDE), True, 1.0), 1 / CRITICAL, 1.0, 0.0
    chains = SwendsenWangChains(*model)
    state = chains.start(2, 0, n_samples, False)
    chains.advance(state, 100)
    trace = []
    for _ in range(400):
        chains.advance(state, 1)
        trace.append(chains.observe(state)[:, 1] ** 2)
    x = np.array(trace) - np.mean(trace)
    rho = [(x[: len(x) - t] * x[t:]).mean() / (x * x).mean() for t in range(60)]
    tau = 1.0
    for lag, r in enumerate(rho[1:], 1):
        tau += 2 * r
        if lag >= 5 * tau:
            break
    return tau


def line(what, ours, theirs, unit, target, less=False):
    ratio = "" if theirs is None else f"{theirs / ours if less else ours / theirs:8.1f}"
    peers = "" if theirs is None else f"{theirs:12.4g}"
    print(f"{what:46}{ours:12.4g}{peers:>12}{ratio:>8}  {unit:22} {target}", flush=True)


def single_spins():
    ours = sweep_seconds(MultispinChains, 2048, 200) / N_SITES
    theirs, _ = peer(16, 400, cluster=False, sequential=True)
    theirs /= N_SITES
    line("Metropolis, a core", 1e-9 / ours, 1e-9 / theirs, "updates/ns",
         ">= 4, 100 x peapods")  # fmt: skip
    plain = sweep_seconds(HeatBathChains, 4, 50) / N_SITES
    line("one chain at a time (heat bath), a core", 1e-9 / plain, 1e-9 / theirs,
         "updates/ns", "")  # fmt: skip


def clusters():
    ours = sweep_seconds(SwendsenWangChains, 4, 50)
    theirs, _ = peer(8, 200, cluster=True, sequential=True)
    line("Swendsen-Wang, a core", 1e9 * ours / N_SITES, 1e9 * theirs / N_SITES,
         "ns/site", "<= 18", less=True)  # fmt: skip
    wolff = sweep_seconds(WolffChains, 4, 50)
    line("Wolff, a core", 1e9 * wolff / N_SITES, None, "ns/site and sweep", "")
    every = sweep_seconds(SwendsenWangChains, 4, 50, threads=CORES)
    theirs, their_tau = peer(4 * CORES, 200, cluster=True, sequential=False)
    tau = own_tau()
    line(f"independent samples, {CORES} cores", 1 / (every * tau),
         1 / (theirs * their_tau), "1/s, by tau of m^2", ">= 5 x peapods")  # fmt: skip
    print(f"{'':46}tau of m^2 in sweeps: {tau:.2f}, peapods {their_tau:.2f}")


def whole_calls():
    """Rates of the public functions, everything included."""

    def curie_weiss():
        make_curie_weiss(2_000_000, 64, temperature=1.0, random_state=0, n_jobs=-1)

    line(f"make_curie_weiss, N = 64, {CORES} cores", 2e6 / seconds(curie_weiss, 3),
         None, "draws/s", ">= 2e6")  # fmt: skip
    patterns = make_patterns(4, 64, random_state=0)
    for method, target in (("exact", "<= 3 s"), ("tempering", "")):

        def hopfield(method=method):
            make_hopfield(100_000, patterns, temperature=0.7, random_state=0,
                          n_jobs=-1, method=method)  # fmt: skip

        line(f"make_hopfield ({method}), 100,000 draws", seconds(hopfield, 1), None,
             "s (N 64, P 4, T 0.7)", target)  # fmt: skip

    def director():
        make_maier_saupe(20_000, 64, temperature=0.2202, random_state=0, n_jobs=-1)

    line(f"make_maier_saupe, N = 64, {CORES} cores", 20_000 / seconds(director, 1),
         None, "draws/s", "")  # fmt: skip
    for temperature in (CRITICAL, 3.0):

        def ising(temperature=temperature):
            make_ising(4096, (SIDE, SIDE), temperature=temperature, random_state=0,
                       n_jobs=-1)  # fmt: skip

        line(f"make_ising (auto), L = 64, T = {temperature:.3f}",
             4096 / seconds(ising, 1), None, "independent draws/s", "")  # fmt: skip


MEMORY = """
import resource, sys
import numpy as np
from skident.datasets import make_curie_weiss

out = None
if sys.argv[1] == "map":
    out = np.lib.format.open_memmap(sys.argv[2], "w+", np.int8, (10_000_000, 64))
make_curie_weiss(10_000_000, 64, temperature=1.0, random_state=0, out=out)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def memory():
    with tempfile.TemporaryDirectory() as folder:
        for how, what in (("array", "in memory"), ("map", "to a memory map")):
            place = str(Path(folder) / "spins.npy")
            done = subprocess.run(
                [sys.executable, "-c", MEMORY, how, place],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            line(f"peak of 1e7 draws of 64 spins {what}", float(done.stdout), None,
                 "GiB, Python included", "<= 1")  # fmt: skip


COMPILE = """
import sys, time
import numpy as np
from numba.core import event
from skident import datasets as d

seconds, depth, start = [], 0, 0.0


class Watch(event.Listener):
    def on_start(self, what):
        global depth, start
        if depth == 0:
            start = time.process_time()
        depth += 1

    def on_end(self, what):
        global depth
        depth -= 1
        if depth == 0:
            name = what.data["dispatcher"].py_func.__name__
            seconds.append((time.process_time() - start, name))


event.register("numba:compile", Watch())
links = np.diag(np.ones(11), 1)
patterns = d.make_patterns(8, 64, random_state=0)
{
    "swendsen-wang": lambda: d.make_ising(
        9, (9, 9), temperature=2.3, field=0.1, method="swendsen-wang"),
    "wolff": lambda: d.make_ising(9, (9, 9), temperature=2.3, method="wolff"),
    "multispin": lambda: d.make_ising(
        9, (5, 5, 5), temperature=6.0, field=0.1, method="multispin"),
    "heat-bath": lambda: d.make_ising(9, (9, 9), temperature=2.3, method="heat-bath"),
    "exact": lambda: d.make_ising(9, (4, 4), temperature=2.3, method="exact"),
    "hopfield": lambda: d.make_hopfield(
        9, patterns, temperature=1.5, method="tempering"),
    "hopfield exact": lambda: d.make_hopfield(9, patterns[:3], temperature=1.5),
    "curie-weiss": lambda: d.make_curie_weiss(9, 64, temperature=1.0),
    "spin glass": lambda: d.make_spin_glass(9, links + links.T, temperature=1.0),
    "maier-saupe": lambda: d.make_maier_saupe(9, 8, temperature=0.3),
    "block-gibbs": lambda: d.make_maier_saupe(
        9, 8, temperature=0.3, method="block-gibbs"),
}[sys.argv[1]]()
print(*max(seconds))
"""
FIRST_CALLS = (
    "swendsen-wang", "wolff", "multispin", "heat-bath", "exact", "hopfield",
    "hopfield exact", "curie-weiss", "spin glass", "maier-saupe", "block-gibbs",
)  # fmt: skip


def compiling():
    """CPU time to compile the slowest kernel of a first call, nothing cached."""
    for name in FIRST_CALLS:
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", COMPILE, name],
                capture_output=True, text=True, check=True,
                env={**os.environ, "NUMBA_CACHE_DIR": cache},
            )  # fmt: skip
        took, kernel = done.stdout.split()
        line(f"first compile, {name}: {kernel}", float(took), None, "s a kernel", "< 3")


def main():
    print(f"{platform.processor() or platform.machine()}, {CORES} cores, square "
          f"lattice L = {SIDE} at T_c unless said")  # fmt: skip
    print(f"{'':46}{'skident':>12}{'peapods':>12}{'ratio':>8}  {'unit':22} target")
    single_spins()
    clusters()
    whole_calls()
    memory()
    compiling()


if __name__ == "__main__":
    main()
