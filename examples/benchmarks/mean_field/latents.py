"""How many latents does data need, and what does each of them do?"""

import numpy as np
from sklearn.model_selection import GridSearchCV

from skident.metrics import one_standard_error


def how_many(model, X, numbers, *, cv, groups=None):
    """Print held-out log-likelihoods by the number of latents; return the chosen model.

    The fewest latents within one standard error over folds of the best are chosen, and
    refitted to all rows. Up to three latents the likelihood itself is maximised, for
    more a bound of it: a fall from 3 to 4 is that of the objective, not of the data.
    """
    search = GridSearchCV(
        model, {"n_components": list(numbers)}, cv=cv, refit=one_standard_error
    ).fit(X, groups=groups)
    result = search.cv_results_
    errors = result["std_test_score"] / np.sqrt(search.n_splits_ - 1)
    print("  latents    held-out nats a row +- se over folds    s a fit")
    for k, number in enumerate(numbers):
        chosen = "   <- needed" if k == search.best_index_ else ""
        print(
            f"{number:9}{result['mean_test_score'][k]:21.3f} +- {errors[k]:.3f}"
            f"{result['mean_fit_time'][k]:21.1f}{chosen}",
            flush=True,
        )
    best = search.best_estimator_
    print(f"  the refit gains {best.gain_over_independent_:.3f} nats over independence")
    return best


def describe(model, X, columns, labels, *, n_named=4):
    """Print what each latent carries, explains and moves, the strongest first.

    Parameters
    ----------
    model : MeanFieldVAE
        Fitted.
    X : ndarray of shape (n_samples, n_features)
        Rows.
    columns : sequence of str
        Names of the columns.
    labels : dict of ndarray of shape (n_samples,)
        Whole numbers or names, by what they are of. Of each label the share of a
        latent's variance that lies between its values is printed, corrected for their
        number.
    n_named : int
        Columns named: those that the latent moves most from -1 to 1, at the posterior
        means of the others; the sign is the direction.
    """
    Z = model.transform(X)
    print(f"  latent   nats  {'  '.join(labels)}   moves (change of the mean)")
    for a in np.argsort(-model.kl_per_dim_):
        shares = "  ".join(
            f"{explained(Z[:, a], label):{len(name)}.2f}"
            for name, label in labels.items()
        )
        move = effect(model, Z, a)
        named = ", ".join(
            f"{columns[i]} {move[i]:+.2f}" for i in np.argsort(-np.abs(move))[:n_named]
        )
        print(f"{a:8}{model.kl_per_dim_[a]:7.2f}  {shares}   {named}", flush=True)


def effect(model, Z, a):
    """Return the change of the columns' means as one latent goes from -1 to 1."""
    low, high = Z[:2000].copy(), Z[:2000].copy()
    low[:, a], high[:, a] = -1, 1
    moved = model.inverse_transform(high) - model.inverse_transform(low)
    return moved.mean(0)


def explained(z, label):
    """Return the share of the variance between groups, adjusted for their number."""
    groups = np.unique(label, return_inverse=True)[1]
    counts = np.bincount(groups)
    within = z - (np.bincount(groups, z) / counts)[groups]
    return 1 - within.var() / z.var() * (len(z) - 1) / (len(z) - len(counts))
