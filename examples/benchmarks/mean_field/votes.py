"""Votes with gaps: how many latents divide a court and a senate?

Absent votes drop out of the likelihood. The court's nine judges are columns and its
cases rows; the senate's roll calls are columns, and its model, with a linear decoder,
is an ideal-point model.
"""

import numpy as np
from mean_field.files import find
from mean_field.latents import describe, how_many

from skident import MeanFieldVAE

FILE = "votes_scotus_senate.npz"
CLAIM = "Votes with missing entries: runs, says how many latents are needed"
# Share of the smaller side below which a roll call says little.
LEAST_MINORITY = 0.05


def run(args):
    """Print a search and a description for each body."""
    path = find(args.data, FILE)
    if path is None:
        return
    print(CLAIM)
    data, quick = np.load(path), args.size == "quick"
    numbers, epochs = ((1, 2), 20) if quick else ((1, 2, 3, 4), 300)

    X = data["scotus"]
    print(
        f"court: {X.shape[0]} cases, {X.shape[1]} judges, {(X < 0).mean():.1%} absent"
    )
    model = MeanFieldVAE(
        missing_values=-1,
        hidden_layer_sizes=(32,),
        max_epochs=epochs,
        random_state=args.seed,
    )
    best = how_many(model, X, numbers, cv=5)
    describe(best, X, data["scotus_justices"], {"term": data["scotus_term"]}, n_named=9)

    X = data["senate"]
    share = np.where(X < 0, np.nan, X)
    share = np.nanmean(share, axis=0)
    X = X[:, np.minimum(share, 1 - share) > LEAST_MINORITY]
    print(
        f"senate: {X.shape[0]} senators, {X.shape[1]} divided roll calls, "
        f"{(X < 0).mean():.1%} absent"
    )
    linear = MeanFieldVAE(
        missing_values=-1,
        hidden_layer_sizes=(),
        max_epochs=epochs,
        batch_size=32,
        random_state=args.seed,
    )
    best = how_many(linear, X, numbers, cv=5)
    names = [f"call {j}" for j in range(X.shape[1])]
    describe(best, X, names, {"party": data["senate_party"]})
