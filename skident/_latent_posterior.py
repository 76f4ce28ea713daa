"""What a fitted latent variable model says of rows: latents and log-likelihoods."""

import warnings

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from skident._nn import losses
from skident._nn.quadrature import NODES, GridPosterior, last_steps
from skident._nn.threads import seeded
from skident._nn.training import train
from skident._random import draw_seed, generator
from skident._validation import check_count

_BLOCK = 8192
# Numbers a block may hold: float32 of the importance sampler, float64 of a lattice.
_DRAWN_NUMBERS, _GRID_NUMBERS = 2**24, 2**21
# Rows that measure convergence of the lattice, and what the latents carry.
_GRID_ROWS, _KL_ROWS = 4096, 2**15
# Change of the mean log-likelihood below which a lattice is fine enough, nats.
_GRID_TOLERANCE = 1e-3
_ACTIVE_KL = 0.05


class LatentPosterior:
    """Mixin of estimators with a latent variable model.

    Under ``objective_ == "quadrature"`` the posterior is that on a lattice, else the
    encoder's Gaussian. Needs ``HeldNet``, ``LikelihoodInput`` and ``_n_features_out``.
    """

    def posterior(self, X):
        """Return mean and standard deviation of the latents given the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the convention of the fit.

        Returns
        -------
        mean : ndarray of shape (n_samples, n_components)
            As of :meth:`transform`, float32.
        deviation : ndarray of shape (n_samples, n_components)
            Standard deviations, float32. Under quadrature those of p(z | x), and at
            least the spacing of the lattice over the square root of 12; else those of
            the Gaussian q(z | x).
        """
        return self._moments(self._inputs(X))

    def sample_posterior(self, X, *, random_state=None):
        """Draw one latent for each row from its posterior.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the convention of the fit.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws; None takes fresh entropy.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Latents, float32: under quadrature points of the lattice, from p(z | x);
            else from the Gaussian q(z | x).
        """
        inputs, rng = self._inputs(X), generator(draw_seed(random_state))
        if self.objective_ == "quadrature":
            grid, uniform = self._grid(), rng.random((len(inputs), 1))
            return self._on_grid(
                lambda x: grid.draw(x[:, :-1], x[:, -1]),
                grid,
                np.concatenate([inputs, uniform], axis=1),
            ).astype(np.float32)
        mean, deviation = self._moments(inputs)
        noise = rng.standard_normal(mean.shape)
        return (mean + deviation * noise).astype(np.float32)

    def elbo(self, X, *, n_draws=64):
        """Return the evidence lower bound of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the convention of the fit.
        n_draws : int, default=64
            Draws of the latents a row, with the same noise for every row and call.
            Quadrature draws none.

        Returns
        -------
        ndarray of shape (n_samples,)
            ELBO in nats: in expectation at most ln p(x). Under quadrature the posterior
            is p(z | x) itself, and the bound is ln p(x).
        """
        check_count(n_draws, "n_draws")
        return self._bound(self._inputs(X), n_draws)

    def score_samples(self, X, *, n_draws=256, return_std=False):
        """Return the log-likelihood of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the convention of the fit. What is missing is integrated out.
        n_draws : int, default=256
            Draws of the latents a row, with the same noise for every row and call.
            Quadrature draws none.
        return_std : bool, default=False
            Whether to return the error too.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            ln p(x) in nats. Under quadrature the sum over the lattice; else by
            importance sampling, approached from below in expectation as ``n_draws``
            grows.
        std : ndarray of shape (n_samples,)
            Only if ``return_std``. Of importance sampling the standard error from the
            variance of the weights, infinite for one draw; rows share their noise, so
            the error of a mean over rows is about the mean error. Under quadrature the
            change from a lattice with two thirds of the points along each axis.
        """
        check_count(n_draws, "n_draws")
        inputs = self._inputs(X)
        if self.objective_ == "quadrature":
            value = self._grid_log_likelihood(inputs, self.quadrature_nodes_)
            if not return_std:
                return value
            coarse = max(1, 2 * self.quadrature_nodes_ // 3)
            return value, np.abs(value - self._grid_log_likelihood(inputs, coarse))
        both = self._noisy(losses.importance_estimate, inputs, n_draws)
        return (both[:, 0], both[:, 1]) if return_std else both[:, 0]

    def score(self, X, y=None):
        """Return the mean log-likelihood of the rows, in nats.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the convention of the fit.
        y : None
            Ignored.

        Returns
        -------
        float
            Mean of :meth:`score_samples`.
        """
        return float(self.score_samples(X).mean())

    def _measure(self, inputs, rows, held_out):
        """Store what the latents carry, and warn where they carry nothing."""
        held = held_out.cpu().numpy()
        if self.objective_ == "quadrature":
            self._refine_grid(held[:_GRID_ROWS])
        # evenly spaced, as rows may have an order
        some = inputs[:: -(-len(inputs) // _KL_ROWS)]
        self.rate_, self.kl_per_dim_ = self._divergences(some)
        self.active_units_ = self.kl_per_dim_ > _ACTIVE_KL
        family = self._family()
        independent = family.log_prob(family.independent(rows), held_out)
        gain = self._bound(held, 64) - independent.cpu().numpy()
        self.gain_over_independent_ = float(gain.mean())
        error = float(gain.std() / np.sqrt(len(gain)))
        if self.gain_over_independent_ <= 2.0 * error:
            warnings.warn(
                f"On {len(held)} held-out rows the model is no better than "
                "independent columns (gain_over_independent_ = "
                f"{self.gain_over_independent_:.3g} nats a row, with a standard error "
                f"of {error:.2g}): the columns are independent, or the latents "
                "collapsed. Try more rows or epochs.",
                UserWarning,
            )

    def _polish(self, rows, held_out, seed):
        """Reach the maximum of the likelihood that small batches wander around.

        Unless held-out rows lose more by it than a standard error, or 0.001 nats.
        """
        n_nodes, held = NODES[self._n_features_out][0], held_out.cpu().numpy()
        before = self._grid_log_likelihood(held, n_nodes)
        schedule = last_steps(self._schedule(len(rows) + len(held)), len(rows))
        with seeded(seed):
            net = self._new_net(schedule, rows.device)
            self._load_weights(net)
            options = {"verbose": self.verbose, "description": "polish"}
            try:
                train(net, rows, None, schedule, **options)
            except FloatingPointError:  # what was trained before is kept
                return
        grid = self._grid(n_nodes, net.module_.eval())
        gain = self._on_grid(grid.log_likelihood, grid, held) - before
        if gain.mean() >= -max(gain.std() / np.sqrt(len(gain)), _GRID_TOLERANCE):
            self._keep_weights(net)

    def _refine_grid(self, held):
        """Take more points until the log-likelihood of held-out rows stands still."""
        n_nodes, most = NODES[self._n_features_out]
        value = self._grid_log_likelihood(held, n_nodes).mean()
        change = np.inf
        while change > _GRID_TOLERANCE and n_nodes < most:
            n_nodes = min(n_nodes + n_nodes // 2, most)
            before, value = value, self._grid_log_likelihood(held, n_nodes).mean()
            change = abs(value - before)
        self.quadrature_nodes_, self.quadrature_error_ = n_nodes, float(change)
        if change > _GRID_TOLERANCE:
            warnings.warn(
                f"The quadrature has not converged: at most, {most} points along each "
                f"latent, the mean log-likelihood still changes by {change:.2g} nats "
                "a row. The posteriors are narrow: objective='importance' adapts to "
                "them.",
                UserWarning,
            )

    def _divergences(self, inputs):
        """Return the mean of KL(posterior || prior), and of each latent."""
        if self.objective_ == "quadrature":
            grid = self._grid()
            rate, *each = self._on_grid(grid.divergences, grid, inputs).mean(0)
            return float(rate), np.array(each)
        mean, deviation = self._moments(inputs)
        kl = 0.5 * (mean**2 + deviation**2 - 1.0) - np.log(deviation)
        each = kl.mean(0, dtype=np.float64)
        return float(each.sum()), each

    def _moments(self, inputs):
        """Return means and standard deviations of the posteriors."""
        if self.objective_ == "quadrature":
            grid = self._grid()
            both = self._on_grid(grid.moments, grid, inputs).astype(np.float32)
        else:
            encode = self._module().encode
            both = self._in_blocks(lambda x: torch.cat(encode(x), -1), inputs, _BLOCK)
            both[:, self._n_features_out :] = np.exp(
                0.5 * both[:, self._n_features_out :]
            )
        return both[:, : self._n_features_out], both[:, self._n_features_out :]

    def _bound(self, inputs, n_draws):
        """Return the ELBO of rows in network units."""
        if self.objective_ == "quadrature":
            return self._grid_log_likelihood(inputs, self.quadrature_nodes_)
        return self._noisy(losses.elbo, inputs, n_draws)

    def _grid(self, n_nodes=None, module=None):
        return GridPosterior(
            module or self._module(),
            n_nodes or self.quadrature_nodes_,
            self._n_features_out,
            self.net_.device,
        )

    def _grid_log_likelihood(self, inputs, n_nodes):
        grid = self._grid(n_nodes)
        return self._on_grid(grid.log_likelihood, grid, inputs)

    def _on_grid(self, function, grid, inputs):
        """Apply a function of blocks of rows at all points of a lattice."""
        return self._in_blocks(function, inputs, max(1, _GRID_NUMBERS // grid.n_points))

    def _noisy(self, objective, inputs, n_draws):
        """Apply an objective with ``n_draws`` points of noise, always the same."""
        noise = generator(0).standard_normal((n_draws, self._n_features_out))
        noise, module, family = self._to_device(noise), self._module(), self._family()
        width = max(family.n_inputs, *self._architecture["hidden_layer_sizes"], 1)
        block = max(1, _DRAWN_NUMBERS // (n_draws * width))
        return self._in_blocks(
            lambda x: objective(module, family.log_prob, x, noise), inputs, block
        ).astype(np.float64)

    def _inputs(self, X):
        check_is_fitted(self)
        return self._rows(X)

    @property
    def _n_features_out(self):
        return self._architecture["n_components"]
