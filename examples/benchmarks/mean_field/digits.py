"""Binarised digits: how many latents do pictures need, and what does each do?

scikit-learn's digits always, MNIST's test images where they are in the data. Searches
are over shortened trainings: longer ones and more rows take more latents.
"""

import numpy as np
from mean_field.files import find
from mean_field.latents import describe, how_many
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold

from skident import MeanFieldVAE

FILE = "mnist_t10k.npz"
CLAIM = "Binarised digits: runs, says how many latents are needed and what each does"


def run(args):
    """Print a search and a description for each set of pictures."""
    print(CLAIM)
    quick = args.size == "quick"
    images, labels = load_digits(return_X_y=True)
    show("digits, 8 x 8", images.reshape(-1, 8, 8) > 7, labels, quick, args.seed)
    path = find(args.data, FILE)
    if path is None:
        return
    data, n_rows = np.load(path), 10_000 if args.size == "full" else 3_000
    images, labels = data["images"][:n_rows] > 127, data["labels"][:n_rows]
    show("MNIST", images, labels, quick, args.seed)


def show(name, images, labels, quick, seed):
    numbers, n_rows, epochs = (1, 2, 4, 8, 16), len(images), 100
    if quick:
        numbers, n_rows, epochs = (2, 4), 300, 3
    side = images.shape[1]
    X, labels = images[:n_rows].reshape(n_rows, -1).astype(np.int8), labels[:n_rows]
    print(f"{name}: {n_rows} rows of {X.shape[1]} pixels")
    model = MeanFieldVAE(max_epochs=epochs, random_state=seed)
    # the same share of each digit in each fold
    folds = StratifiedKFold(3, shuffle=True, random_state=seed).split(X, labels)
    best = how_many(model, X, numbers, cv=list(folds))
    columns = [f"({j // side}, {j % side})" for j in range(X.shape[1])]
    describe(best, X, columns, {"digit": labels, "ink > median": dark(X)})


def dark(X):
    ink = X.sum(1)
    return ink > np.median(ink)
