"""Baselines for binary words: independent, pairwise maximum entropy, Boltzmann machine.

Everything is for words in {0, 1} and in nats a word.
"""

import itertools

import numpy as np
from sklearn.neural_network import BernoulliRBM

from skident.datasets import make_spin_glass

# Nats a step may gain to second order: farther the expansion does not hold.
LARGEST_GAIN = 0.1
N_AVERAGED = 8


def independent(train, test):
    """Return the log-likelihood of each test word under independent columns."""
    p = (train.sum(0) + 0.5) / (len(train) + 1.0)
    return test @ np.log(p) + (1 - test) @ np.log1p(-p)


class PairwiseMaxEnt:
    r"""Maximum entropy with given means and pair correlations.

    :math:`p(x) \propto \exp(h \cdot x + x' J x / 2)`, fitted by Newton steps whose
    moments and covariances come from fresh draws by parallel tempering. The normaliser
    follows from the silent word: ln Z = -ln p(0).
    """

    def fit(self, X, *, n_draws=8000, n_steps=25, seed=0):
        X = X.astype(float)
        n = X.shape[1]
        self.pairs = np.triu_indices(n, 1)
        data = self.features(X)
        target, seen = data.mean(0), np.cov(data.T)
        p = np.clip(X.mean(0), 1e-4, 1 - 1e-4)
        self.theta = np.zeros(len(target))
        self.theta[:n] = np.log(p) - np.log1p(-p)
        self.gaps = []
        last = []
        for step in range(n_steps):
            size = n_draws * (1 if step < n_steps - N_AVERAGED else 5)
            drawn = self.features(self.sample(size, seed=(seed, step)))
            gap = target - drawn.mean(0)
            move = np.linalg.solve(0.5 * (seen + np.cov(drawn.T)), gap)
            gain = 0.5 * move @ gap
            self.gaps.append(float(gain))
            self.theta = self.theta + min(1.0, np.sqrt(LARGEST_GAIN / gain)) * move
            last.append(self.theta)
        # Averages the noise of the draws away.
        self.theta = np.mean(last[-N_AVERAGED:], axis=0)
        silent = (self.sample(50 * n_draws, seed=(seed, n_steps)) == 0).all(1)
        rate = silent.mean()
        self.log_z = -np.log(rate)
        self.log_z_error = np.sqrt((1 - rate) / (rate * len(silent)))
        return self

    def features(self, X):
        X = np.asarray(X, float)
        return np.hstack([X, X[:, self.pairs[0]] * X[:, self.pairs[1]]])

    def sample(self, n_draws, seed):
        n = int(self.pairs[1].max()) + 1
        J = np.zeros((n, n))
        J[self.pairs] = self.theta[n:]
        J = J + J.T
        # x = (1 + s) / 2
        X, _ = make_spin_glass(
            n_draws,
            J / 4,
            temperature=1.0,
            field=self.theta[:n] / 2 + J.sum(1) / 4,
            draws_per_chain=max(1, n_draws // 2000),
            spin_values=(0, 1),
            random_state=np.random.RandomState(abs(hash(seed)) % 2**32),
        )
        return X

    def score_samples(self, X):
        """Return the log-likelihood of each word."""
        blocks = np.array_split(np.asarray(X, float), max(1, len(X) // 20_000))
        return (
            np.concatenate([self.features(b) @ self.theta for b in blocks]) - self.log_z
        )


def boltzmann_machine(train, test, *, n_hidden=32, n_iter=30, seed=0):
    """Return the log-likelihood of each test word under a restricted Boltzmann machine.

    Its normaliser is found by annealed importance sampling from its own biases.
    """
    rbm = BernoulliRBM(
        n_hidden, learning_rate=0.02, batch_size=128, n_iter=n_iter, random_state=seed
    ).fit(train)
    W, b, c = rbm.components_, rbm.intercept_visible_, rbm.intercept_hidden_

    def log_weight(X, beta):
        return X @ b + np.logaddexp(0.0, beta * (X @ W.T + c)).sum(1)

    rng, n_chains = np.random.default_rng(seed), 2000
    X = (rng.random((n_chains, len(b))) < 1 / (1 + np.exp(-b))).astype(float)
    log_ratio = np.zeros(n_chains)
    betas = np.linspace(0.0, 1.0, 1001)
    for low, high in itertools.pairwise(betas):
        log_ratio += log_weight(X, high) - log_weight(X, low)
        hidden = rng.random((n_chains, len(c))) < _logistic(high * (X @ W.T + c))
        X = (rng.random(X.shape) < _logistic(b + high * (hidden @ W))).astype(float)
    start = np.logaddexp(0.0, b).sum() + len(c) * np.log(2.0)
    top = log_ratio.max()
    log_z = start + top + np.log(np.exp(log_ratio - top).mean())
    return log_weight(test.astype(float), 1.0) - log_z


def _logistic(t):
    return 0.5 * (1.0 + np.tanh(0.5 * t))
