"""InfoMEC as its definition reads, pair by pair, on scikit-learn: slow and plain.

A second opinion for the tests of ``infomec_score`` and the peer of its benchmark.
Sources are integers, latents real or integers; see Hsu et al. (2023).
"""

import numpy as np
from scipy.special import digamma
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, mutual_info_score
from sklearn.neighbors import KDTree, NearestNeighbors
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def ross(source, latent, k=10):
    """Mutual information of a discrete and a continuous column (Ross 2014)."""
    radius = np.empty(len(latent))
    neighbours, counts = np.empty(len(latent)), np.empty(len(latent))
    for label in np.unique(source):
        rows = source == label
        counts[rows] = rows.sum()
        if counts[rows][0] > 1:
            k_class = min(k, rows.sum() - 1)
            # The Chebyshev distance of single numbers is not squared and rooted.
            near = NearestNeighbors(n_neighbors=k_class, metric="chebyshev")
            near.fit(latent[rows, None])
            radius[rows] = np.nextafter(near.kneighbors()[0][:, -1], 0)
            neighbours[rows] = k_class
    kept = counts > 1
    tree = KDTree(latent[kept, None], metric="chebyshev")
    m = tree.query_radius(latent[kept, None], radius[kept], count_only=True)
    information = (
        digamma(kept.sum())
        + digamma(neighbours[kept]).mean()
        - digamma(counts[kept]).mean()
        - digamma(m).mean()
    )
    return max(0.0, information)


def nmi_matrix(sources, latents, discrete=False):
    """Mutual information over the entropy of the source, shape (S, D)."""
    nmi = np.empty((sources.shape[1], latents.shape[1]))
    for i, source in enumerate(sources.T):
        entropy = mutual_info_score(source, source)
        for j, latent in enumerate(latents.T):
            value = mutual_info_score(source, latent) if discrete else None
            nmi[i, j] = (ross(source, latent) if value is None else value) / entropy
    return nmi


def explicitness(sources, features, **options):
    """Share of the log-loss of a uniform guess that a logistic probe saves."""
    total = 0.0
    for source in sources.T:
        probe = LogisticRegression(C=np.inf, class_weight="balanced", **options)
        probe.fit(features, source)
        loss = log_loss(source, probe.predict_proba(features))
        null = np.log(len(np.unique(source)))
        total += (null - loss) / null
    return total / sources.shape[1]


def active_latents(latents, discrete=False):
    ranges = np.ptp(latents, axis=0)
    return ranges > (0 if discrete else ranges.max() / 20)


def concentration(nmi):
    """Mean over rows of (largest entry / sum), rescaled to [0, 1]."""
    width, total = nmi.shape[1], 0.0
    for row in nmi:
        total += row.max() / row.sum() if row.sum() > 0 else 1 / width
    return (total / len(nmi) - 1 / width) / (1 - 1 / width)


def modularity_and_compactness(sources, latents, discrete=False):
    """InfoM, InfoC, the matrix of NMI, and which latents are active."""
    standard = latents if discrete else StandardScaler().fit_transform(latents)
    nmi = nmi_matrix(sources, standard, discrete)
    active = active_latents(latents, discrete)
    pruned = nmi[:, active]
    return concentration(pruned.T), concentration(pruned), nmi, active


def infomec(sources, latents, discrete=False):
    """InfoM, InfoE (by newton-cg) and InfoC."""
    infom, infoc, *_ = modularity_and_compactness(sources, latents, discrete)
    scale = OneHotEncoder(sparse_output=False) if discrete else StandardScaler()
    options = {"solver": "newton-cg", "tol": 1e-8, "max_iter": 10_000}
    return infom, explicitness(sources, scale.fit_transform(latents), **options), infoc
