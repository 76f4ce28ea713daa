"""What theory says of autoencoders, at small size."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.stats import spearmanr
from sklearn.datasets import load_digits

from skident import AutoencoderEmbedder, WhitenICA
from skident.datasets import make_moving_square
from skident.metrics import alignment_errors

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Constant in X:UserWarning"),
]


def mean_correlation(S, y):
    correlations = np.abs(np.corrcoef(S.T, y.T)[: S.shape[1], S.shape[1] :])
    return correlations[linear_sum_assignment(-correlations)].mean()


def test_isometry_recovers_the_places_of_a_square():
    X, y = make_moving_square(6000, dtype=np.float32, random_state=0)
    train, test = X[:5000], X[5000:]

    def figures(weight, seed):
        model = AutoencoderEmbedder(
            2, isometry=weight, max_epochs=40, random_state=seed
        ).fit(train)
        ica = WhitenICA(random_state=0).fit(model.transform(train))
        mcc = mean_correlation(ica.transform(model.transform(test)), y[5000:])
        decoder = model.bi_lipschitz(test)
        return mcc, decoder.largest / decoder.smallest, model.score(test)

    isometric = np.array([figures(0.1, seed) for seed in range(5)])
    plain = np.array([figures(0.0, seed) for seed in range(2)])
    assert isometric[:, 0].min() > 0.999 > 0.998 > plain[:, 0].max()
    assert isometric[:, 1].max() < 1.3 and plain[:, 1].min() > 2.0
    # 1,600 steps are few: at the full length they are within a tenth
    assert (isometric[:2, 2] > 1.25 * plain[:, 2]).all()


def runs_and_error(X, test, slope, isometry=0.0):
    models = [
        AutoencoderEmbedder(
            4,
            hidden_layer_sizes=(64, 64),
            negative_slope=slope,
            isometry=isometry,
            learning_rate=3e-3,
            max_epochs=200,  # fewer leave linear decoders far from balanced
            random_state=seed,
        ).fit(X)
        for seed in range(5)
    ]
    bounds, errors = [], []
    for first, second in itertools.combinations(models, 2):
        constants = [m.bi_lipschitz(test, quantile=0.05).L for m in (first, second)]
        bounds.append(np.sqrt((1 + np.array(constants)).prod() ** 2 - 1))
        result = alignment_errors(
            first.transform(test),
            second.transform(test),
            transformations=("rigid",),
            n_resamples=2,
            random_state=0,
        )
        errors.append(result.error[0])
    return np.mean(bounds), np.mean(errors)


def test_alignment_error_follows_the_bi_lipschitz_constant():
    """Theorem 1 of Nelson et al. (2026), on digits."""
    X = load_digits().data
    X = X[np.random.default_rng(0).permutation(len(X))]
    X, test = X[:1348], X[1348:]
    slopes = np.arange(1, 11) / 10
    bounds, errors = np.array([runs_and_error(X, test, s) for s in slopes]).T
    assert spearmanr(bounds, errors)[0] > 0.8
    assert spearmanr(slopes, errors)[0] < -0.8
    # digits fill no flat surface: the penalty lowers the bound, hardly the error
    bound, error = runs_and_error(X, test, 0.2, isometry=0.1)
    assert bound < 0.5 * bounds[1] and error < 1.2 * errors[1]
