r"""Seconds and memory of alignment_errors, for large arrays and for wide ones.

Each case runs in a process of its own on two memory maps of float32: latents with a
decaying spectrum, the second side turned and with noise. Memory is the peak of the
process less what it had before the call: "private" without the pages of the maps,
which the system may drop at any time, "resident" with them. Times are of a busy or
idle machine as it happens to be.

    python examples/benchmarks/bench_alignment.py
    python examples/benchmarks/bench_alignment.py --rows 1000000 --columns 384 --jobs 2
    python examples/benchmarks/bench_alignment.py --rows 5000 --columns 1000 \
        --transformations permutation rigid linear
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np

CASES = [(20_000, 64), (100_000, 64), (100_000, 384)]
GROUPS = ("permutation", "rigid", "linear", "ica")
BLOCK = 20_000


def write_maps(folder, n_rows, n_columns, noise, seed=0):
    """Write two paired representations, block by block; return their paths."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((n_columns, n_columns)))[0]
    turn = turn.astype(np.float32)
    sizes = np.float32(1 + np.arange(n_columns)) ** np.float32(-0.5)
    paths = [Path(folder) / name for name in ("Z1.dat", "Z2.dat")]
    with open(paths[0], "wb") as first, open(paths[1], "wb") as second:
        for start in range(0, n_rows, BLOCK):
            shape = min(BLOCK, n_rows - start), n_columns
            latents = rng.standard_exponential(shape, dtype=np.float32) - 1
            Z1 = latents * sizes
            error = rng.standard_normal(shape, dtype=np.float32)
            first.write(Z1.tobytes())
            second.write((Z1 @ turn + np.float32(noise) * sizes * error).tobytes())
    return paths


def status():
    """Return the private and the resident megabytes of this process (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    values = dict(line.split(":", 1) for line in lines)
    return tuple(int(values[key].split()[0]) / 1024 for key in ("RssAnon", "VmRSS"))


class Peak(threading.Thread):
    """Samples the memory of the process until stopped."""

    def __init__(self):
        super().__init__(daemon=True)
        self.start_value = self.value = status()
        self.running = True

    def run(self):
        while self.running:
            self.value = tuple(map(max, self.value, status()))
            time.sleep(0.02)

    def stop(self):
        """Return the growth of private and resident memory, in megabytes."""
        self.running = False
        self.join()
        return tuple(b - a for a, b in zip(self.start_value, self.value, strict=True))


def measure(paths, shape, options):
    """Print a row of the table for two maps."""
    from skident.metrics import alignment_errors

    warnings.simplefilter("ignore")
    Z1, Z2 = (np.memmap(path, np.float32, "r", shape=shape) for path in paths)
    small = slice(0, 200)
    alignment_errors(Z1[small, :4], Z2[small, :4], random_state=0)  # imports
    peak = Peak()
    peak.start()
    start = time.perf_counter()
    errors = alignment_errors(
        Z1,
        Z2,
        transformations=options.transformations,
        max_samples=options.max_samples,
        n_jobs=options.jobs,
        random_state=0,
    )
    seconds = time.perf_counter() - start
    private, resident = peak.stop()
    found = " ".join(f"{error:.4f}" for error in errors.error)
    print(
        f"{shape[0]:9} {shape[1]:7} {seconds:8.1f} {private:8.0f} {resident:9.0f}  "
        f"{found}",
        flush=True,
    )


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, help="default: a table of cases")
    parser.add_argument("--columns", type=int, default=384)
    parser.add_argument("--jobs", type=int, default=None, help="threads")
    parser.add_argument("--noise", type=float, default=0.3)
    parser.add_argument("--max-samples", type=int, default=30_000)
    parser.add_argument("--transformations", nargs="+", default=GROUPS)
    parser.add_argument("--folder", help="where the maps are written for the time")
    parser.add_argument("--maps", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = parse()
    if options.maps:
        measure(options.maps, (options.rows, options.columns), options)
        return
    cases = [(options.rows, options.columns)] if options.rows else CASES
    names = " ".join(options.transformations)
    print(f"     rows columns  seconds  private  resident  {names}")
    print("                                MB        MB")
    for rows, columns in cases:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            paths = write_maps(folder, rows, columns, options.noise)
            command = [sys.executable, __file__, *sys.argv[1:], "--rows", str(rows)]
            command += ["--columns", str(columns), "--maps", *map(str, paths)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
