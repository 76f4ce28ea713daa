"""Does a GPU give what the CPU gives, and how many rows a second?

Autoencoders (fully connected and convolutional, plain and with the isometry penalty)
with WhitenICA behind them, a mean-field VAE and a layer of a trained module. For each:

- applied: what was fitted on the CPU is applied on the device. The root mean square of
  the difference, in units of that of the result, is at most 1e-3, and at most 1e-2
  where convolutions are, as those of a GPU may round to 10 bits (TF32);
- trained: fitted on the device, in each precision, the loss of the last epoch is that
  of the CPU within 10 %. Both start from the same weights and take the same batches,
  and then part by rounding, and the VAE by its noise;
- memory: of a CUDA card, no more than 64 MiB stay taken after a fit.

Prints rows a second of fit (times epochs) and transform, and ends with status 1 if a
tolerance is broken, or if there is no such device.

    python examples/benchmarks/bench_gpu.py
    python examples/benchmarks/bench_gpu.py --device cpu --quick
"""

import argparse
import copy
import sys
import time

import numpy as np
import torch
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skident import AutoencoderEmbedder, LayerEmbedder, MeanFieldVAE, WhitenICA
from skident.datasets import make_curie_weiss, make_moving_square

APPLIED, APPLIED_CONVOLUTIONS, TRAINED, KEPT_MIB = 1e-3, 1e-2, 0.1, 64
PRECISIONS = ("float32", "bfloat16", "float16")
LINE = "{:<16} {:<10} {:<9} {:>10} {:>12} {:>9} {:>9} {:>6}"


def autoencoder(X, **options):
    embedder = AutoencoderEmbedder(2, random_state=0, **options)
    return make_pipeline(embedder, WhitenICA(random_state=0)), X


def cases(quick):
    """Return {name: (estimator, rows)}; the first step is what is trained."""
    n, epochs, batch, side = (1_000, 8, 64, 16) if quick else (50_000, 20, 512, 32)
    shape = (side, side)
    images, _ = make_moving_square(
        n, image_shape=shape, side=0.4 * side, dtype=np.float32, random_state=0
    )
    spins, _ = make_curie_weiss(n, 128, temperature=0.8, random_state=0)
    plain = {"max_epochs": epochs, "batch_size": batch}
    vae = MeanFieldVAE(1, random_state=0, **plain)
    conv = {**plain, "architecture": "conv", "image_shape": shape}
    if quick:
        conv["n_filters"] = 4
    return {
        "mlp": autoencoder(images, **plain),
        "mlp, isometry": autoencoder(images, isometry=0.2, **plain),
        "conv": autoencoder(images, **conv),
        "conv, isometry": autoencoder(images, isometry=0.2, **conv),
        "vae": (make_pipeline(vae), spins),
    }


def on(model, device, **options):
    """Return a copy of a pipeline that computes on a device."""
    model = copy.deepcopy(model)
    model[0].set_params(device=device, **options)
    return model


def timed(function, *arguments):
    """Return a result and the seconds it took; results are on the CPU, so complete."""
    start = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - start


def fitted(model, X):
    """Return a fitted clone, and rows a second of its training."""
    warm = clone(model).set_params(**{f"{model.steps[0][0]}__max_epochs": 1})
    warm[0].fit(X[:2000])
    model = clone(model)
    net, seconds = timed(model[0].fit, X)
    if len(model) > 1:
        model[1].fit(net.transform(X))
    return model, len(X) * net.n_iter_ / seconds


def distance(Z, expected):
    return np.sqrt(np.square(Z - expected).mean() / np.square(expected).mean())


def kept_mib(device):
    on_card = torch.device(device).type == "cuda"
    return torch.cuda.memory_allocated(device) / 2**20 if on_card else 0.0


class Report:
    """Prints a line a measurement and remembers what broke a tolerance."""

    def __init__(self):
        self.broken = []
        print(LINE.format(
            "", "device", "precision", "fit rows/s", "apply rows/s", "applied",
            "loss", "MiB",
        ))  # fmt: skip

    def line(self, *cells):
        print(LINE.format(*(_text(cell) for cell in cells)), flush=True)

    def check(self, name, what, value, tolerance):
        if not value <= tolerance:
            self.broken.append(f"{name}: {what} {value:.3g} is above {tolerance:g}")


def _text(cell):
    if isinstance(cell, str):
        return cell
    return f"{cell:,.0f}" if cell >= 1000 else f"{cell:.3g}"


def compare(report, name, model, X, device):
    """Fit on the CPU, apply on the device, fit there in each precision."""
    reference, speed = fitted(on(model, "cpu"), X)
    expected, seconds = timed(reference.transform, X)
    loss = reference[0].history_["train_loss"][-1]
    report.line(name, "cpu", "float32", speed, len(X) / seconds, "", loss, "")
    moved = on(reference, device)
    moved.transform(X[:10])
    Z, seconds = timed(moved.transform, X)
    apart, apply_speed = distance(Z, expected), len(X) / seconds
    tolerance = APPLIED_CONVOLUTIONS if name.startswith("conv") else APPLIED
    report.check(name, "difference when applied", apart, tolerance)
    del moved
    for precision in PRECISIONS:
        before = kept_mib(device)
        trained, speed = fitted(on(model, device, precision=precision), X)
        kept = kept_mib(device) - before
        there = trained[0].history_["train_loss"][-1]
        report.line(name, device, precision, speed, apply_speed, apart, there, kept)
        title = f"{name}, {precision}"
        report.check(title, "difference of losses", abs(there / loss - 1), TRAINED)
        report.check(title, "MiB after fit", kept, KEPT_MIB)
    return reference


def compare_layer(report, module, X, device):
    """Take a layer of a trained module on both devices."""
    results = []
    for place in ("cpu", device):
        embedder = LayerEmbedder(module, "encoder", device=place).fit(X[:10])
        Z, seconds = timed(embedder.transform, X)
        results.append(Z)
        apart = distance(Z, results[0])
        report.line("layer", place, "float32", "", len(X) / seconds, apart, "", "")
    report.check("layer", "difference when applied", apart, APPLIED)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="small data, few epochs")
    args = parser.parse_args()
    try:
        torch.empty(0, device=args.device)
    except (RuntimeError, AssertionError) as error:
        sys.exit(f"No device {args.device!r}: {error}. Nothing was measured.")
    if torch.device(args.device).type == "cuda":
        print(torch.cuda.get_device_name(args.device))
    report, fits = Report(), {}
    table = cases(args.quick)
    for name, (model, X) in table.items():
        fits[name] = compare(report, name, model, X, args.device)
    module = fits["mlp"][0].net_.module_
    compare_layer(report, module, table["mlp"][1], args.device)
    sys.exit("\n".join(["", *report.broken]) if report.broken else 0)


if __name__ == "__main__":
    main()
