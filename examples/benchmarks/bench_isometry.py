"""Does the isometry penalty recover the factors of make_moving_square?

For each seed an autoencoder with two latents is trained on 20,000 images of 32 x 32
pixels, plain and with ``isometry``, and its latents are resolved by WhitenICA. Prints
one row a training: the mean correlation with the true places under the best matching
(MCC), before and after ICA, the ratio of the largest to the smallest singular value of
the decoder, and the error of reconstruction as a fraction of the variance, all on 2,000
images that were not trained on; and the processor seconds.

    python examples/benchmarks/bench_isometry.py --seeds 5
    python examples/benchmarks/bench_isometry.py --weights 0 0.1 0.2 --epochs 20
"""

import argparse
import time

import numpy as np
from scipy.optimize import linear_sum_assignment

from skident import AutoencoderEmbedder, WhitenICA
from skident.datasets import make_moving_square

N_TEST = 2_000


def mean_correlation(S, y):
    correlations = np.abs(np.corrcoef(S.T, y.T)[: S.shape[1], S.shape[1] :])
    return correlations[linear_sum_assignment(-correlations)].mean()


def measure(X, y, weight, seed, epochs):
    start = time.process_time()
    train, test = X[:-N_TEST], X[-N_TEST:]
    model = AutoencoderEmbedder(
        2, isometry=weight, max_epochs=epochs, random_state=seed
    ).fit(train)
    seconds = time.process_time() - start
    ica = WhitenICA(random_state=0).fit(model.transform(train))
    latents, places = model.transform(test), y[-N_TEST:]
    decoder = model.bi_lipschitz(test)
    return (
        mean_correlation(latents, places),
        mean_correlation(ica.transform(latents), places),
        decoder.largest / decoder.smallest,
        -model.score(test) / model.scale_**2,
        seconds,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--weights", type=float, nargs="+", default=[0.0, 0.1])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--rows", type=int, default=20_000)
    args = parser.parse_args()
    X, y = make_moving_square(args.rows + N_TEST, dtype=np.float32, random_state=0)
    print("isometry seed latents      ICA   spread     error      s")
    for seed in range(args.seeds):
        for weight in args.weights:
            plain, mcc, spread, error, seconds = measure(
                X, y, weight, seed, args.epochs
            )
            print(
                f"{weight:8.2f} {seed:4d} {plain:7.4f} {mcc:8.4f} {spread:8.3f} "
                f"{error:9.6f} {seconds:6.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
