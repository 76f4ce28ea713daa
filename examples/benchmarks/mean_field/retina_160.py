"""All 160 cells of the retina: how many collective variables, and what does each do?

On every so many words, as a search over the numbers of latents takes twenty fits. Folds
keep repeats of the movie whole.
"""

import numpy as np
from mean_field.files import find
from mean_field.latents import describe, how_many
from mean_field.retina import FILE
from sklearn.model_selection import GroupKFold

from skident import MeanFieldVAE

CLAIM = "Retina, all 160 cells: runs, says how many latents are needed, what each does"
# Words, most latents and epochs by size.
SIZES = {
    "quick": (1_000, (1, 2), 3),
    "default": (12_000, (1, 2, 3, 4, 8), 40),
    "full": (100_000, (1, 2, 3, 4, 6, 8, 12, 16), "auto"),
}


def run(args):
    """Print a search and a description."""
    path = find(args.data, FILE)
    if path is None:
        return
    print(CLAIM)
    n_rows, numbers, epochs = SIZES[args.size]
    words = np.load(path)["bint"].transpose(0, 2, 1)
    n_repeats, n_bins, n_cells = words.shape
    order = np.random.default_rng(args.seed).permutation(n_repeats * n_bins)
    rows = np.sort(order[:n_rows])
    X, repeats, bins = words.reshape(-1, n_cells)[rows], rows // n_bins, rows % n_bins
    print(f"{len(X)} of {n_repeats * n_bins} words")
    model = MeanFieldVAE(max_epochs=epochs, random_state=args.seed)
    best = how_many(model, X, numbers, cv=GroupKFold(3), groups=repeats)
    labels = {"movie": bins // 10, "spikes": np.minimum(X.sum(1), 12)}
    describe(best, X, [f"cell {i}" for i in range(n_cells)], labels)
