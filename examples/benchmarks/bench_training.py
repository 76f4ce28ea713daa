"""Seconds of a fit beside a hand-written loop of torch, and of transform.

The peer has the same network, the same number of batches of the same size, fused Adam,
and indexes one tensor. Prints one row a case: the least time of some fits of each, in
turn, and their ratio. Then the time of ``isometry`` beside training without it, and of
``transform`` beside plain forward passes of the encoder: one over the same batches, as
``transform`` takes them, and one over all rows at once. Times are of a machine as busy
as it happens to be: quote the ratios.

Peak memory is that of processes of their own, which make the rows, fit and end. The
last column is what the fit may take beyond the rows that it is given: its peak less the
size of these, beside the peak of the loop.

    python examples/benchmarks/bench_training.py
    python examples/benchmarks/bench_training.py --repeats 5 --threads 2
"""

import argparse
import resource
import subprocess
import sys
import time

import numpy as np
import torch

from skident import AutoencoderEmbedder
from skident._nn.modules import Autoencoder

CASES = [(60_000, 64, 128, 3), (60_000, 64, 512, 6), (2_000, 8, 128, 20)]
HIDDEN = (256, 256)
# Rows a batch of transform.
BLOCK = 1024
# Rows, columns, batch size and epochs of the fits whose memory is measured.
LARGE = 1_000_000, 64, 512, 1


def rows(n, width):
    return np.random.default_rng(0).standard_normal((n, width), dtype=np.float32)


def hand_loop(X, batch_size, n_epochs):
    torch.manual_seed(0)
    data = torch.from_numpy(X)
    module = Autoencoder(X.shape[1], 2, HIDDEN, 0.2)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, fused=True)
    for _ in range(n_epochs):
        total = 0.0
        for index in torch.randperm(len(data)).split(batch_size):
            batch = data[index]
            optimizer.zero_grad()
            loss = (module(batch) - batch).square().sum(-1).mean()
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(batch)
        float(total)


def fit(X, batch_size, n_epochs, **options):
    return AutoencoderEmbedder(
        2,
        hidden_layer_sizes=HIDDEN,
        batch_size=batch_size,
        max_epochs=n_epochs,
        random_state=0,
        device="cpu",
        **options,
    ).fit(X)


def plain_transform(module, X, block):
    data = torch.from_numpy(X)
    with torch.inference_mode():
        return torch.cat([module.encode(part) for part in data.split(block)]).numpy()


MEASURED = {"skident": fit, "peer": hand_loop}


def peak(who):
    """Return the most MiB that a process of its own holds when it fits."""
    command = [sys.executable, __file__, "--memory-of", who]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


def print_peak(who):
    """Fit in this process, and print the most MiB that it has held."""
    n, width, batch_size, n_epochs = LARGE
    MEASURED[who](rows(n, width), batch_size, n_epochs)
    # kilobytes, but bytes on a Mac
    unit = 2**20 if sys.platform == "darwin" else 2**10
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)


def show_memory():
    # before anything large is here: a child counts its parent's memory as its own
    ours, peer = peak("skident"), peak("peer")
    size = 4 * LARGE[0] * LARGE[1] / 2**20
    print(f"{'MiB at the peak':<34} {'skident':>8} {'peer':>8} {'beyond X':>8}")
    name = f"fit {LARGE[0]} x {LARGE[1]}, X {size:.0f}"
    print(f"{name:<34} {ours:8.0f} {peer:8.0f} {(ours - size) / peer:8.2f}", flush=True)


def seconds(functions, repeats):
    """Return the least processor time of each, called in turn."""
    best = [np.inf] * len(functions)
    for _ in range(repeats):
        for k, function in enumerate(functions):
            start = time.process_time(), time.perf_counter()
            function()
            best[k] = min(best[k], time.process_time() - start[0])
    return best


def show(name, ours, peer):
    print(f"{name:<34} {ours:8.2f} {peer:8.2f} {ours / peer:7.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--transform-rows", type=int, default=1_000_000)
    parser.add_argument("--memory-of", choices=MEASURED, help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.memory_of:
        print_peak(args.memory_of)
        return
    show_memory()
    print(f"{'processor seconds':<34} {'skident':>8} {'peer':>8} {'ratio':>7}")
    for n, width, batch_size, n_epochs in CASES:
        X = rows(n, width)
        times = seconds(
            [
                lambda X=X, b=batch_size, e=n_epochs: fit(X, b, e),
                lambda X=X, b=batch_size, e=n_epochs: hand_loop(X, b, e),
            ],
            args.repeats,
        )
        show(f"fit {n} x {width}, batch {batch_size}", *times)
    X = rows(20_000, 64)
    model = fit(X, 512, 1)
    times = seconds(
        [lambda: fit(X, 128, 2, isometry=0.5), lambda: fit(X, 128, 2)], args.repeats
    )
    show("isometry beside none", *times)
    X = rows(args.transform_rows, 64)
    module = model.net_.module_
    ours, *peers = seconds(
        [
            lambda: model.transform(X),
            lambda: plain_transform(module, X, BLOCK),
            lambda: plain_transform(module, X, len(X)),
        ],
        args.repeats,
    )
    for peer, batches in zip(peers, ("same batches", "one batch"), strict=True):
        show(f"transform {len(X)} x 64, {batches}", ours, peer)


if __name__ == "__main__":
    main()
