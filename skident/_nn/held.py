"""What every estimator that holds a network has in common."""

import numbers

import numpy as np
import torch

from skident._nn.training import history_arrays, hold_out, seeded, to_rows, train


def check_layer_sizes(sizes):
    """Raise a ``ValueError`` unless every hidden layer has a positive int width."""
    for size in sizes:
        if not isinstance(size, numbers.Integral) or size < 1:
            raise ValueError(
                "hidden_layer_sizes must be a tuple of positive integers, got "
                f"{sizes!r}."
            )


class HeldNet:
    """Mixin of estimators that hold a network.

    The fitted truth is ``weights_``, a dict of numpy arrays; ``net_`` is built from
    it on demand and never pickled. So a fitted estimator loads on any device and
    hashes by its numbers. The estimator gives ``_schedule(n_rows)`` and
    ``_new_net(schedule=None)``, an untrained net.
    """

    _FORMAT = 1

    @property
    def net_(self):
        """The skorch net with the fitted weights, on the device of ``device``."""
        net = self.__dict__.get("_net")
        if net is None:
            weights = {k: torch.from_numpy(v.copy()) for k, v in self.weights_.items()}
            with seeded(0):
                net = self._new_net()
            net.module_.load_state_dict(weights)
            self._net = net
        return net

    def _train(self, array, seed, *, held_fraction, description, prepare=None):
        """Train a new net on an array and keep it.

        Parameters
        ----------
        array : ndarray of shape (n_samples, n_features)
            Rows in network units.
        seed : int
            Seed of weights, split, batches and noise.
        held_fraction : float
            Fraction of rows to hold out; 0 holds out none.
        description : str
            Text before the progress bar.
        prepare : callable, optional
            ``prepare(module, rows)`` sets start values that depend on the rows.

        Returns
        -------
        rows, held_out : tensor
            The rows trained on, and those not, or None.
        converged : bool
            Whether early stopping ended the training.
        """
        schedule = self._schedule(array.shape[0])
        rows = to_rows(array, self.device)
        with seeded(seed):
            rows, held_out = hold_out(rows, held_fraction)
            net = self._new_net(schedule)
            if prepare is not None:
                prepare(net.module_, rows)
            try:
                converged = train(
                    net,
                    rows,
                    held_out,
                    schedule,
                    verbose=self.verbose,
                    description=description,
                )
            except KeyboardInterrupt:
                self._keep(net)
                raise
        self._keep(net)
        return rows, held_out, converged

    def _keep(self, net):
        """Store the weights and the history of a trained net."""
        net.module_.eval()
        self._net = net
        self.history_ = history_arrays(net)
        self.n_iter_ = (
            max(len(v) for v in self.history_.values()) if self.history_ else 0
        )
        self.weights_ = {
            k: v.detach().cpu().numpy().copy()
            for k, v in net.module_.state_dict().items()
        }

    def _module(self):
        """Return the fitted module, ready for inference."""
        return self.net_.module_.eval()

    def _to_device(self, array):
        """Return an array as a float32 tensor on the device of the net."""
        return torch.as_tensor(array, dtype=torch.float32, device=self.net_.device)

    def _in_blocks(self, function, array, rows):
        """Apply a function of tensors to blocks of rows and return one numpy array."""
        with torch.inference_mode():
            parts = [
                function(self._to_device(array[start : start + rows])).cpu().numpy()
                for start in range(0, array.shape[0], rows)
            ]
        return np.concatenate(parts)

    def __getstate__(self):
        state = dict(super().__getstate__())
        state.pop("_net", None)
        state["_skident_format"] = self._FORMAT
        return state

    def __setstate__(self, state):
        state = dict(state)
        saved = state.pop("_skident_format", self._FORMAT)
        if saved > self._FORMAT:
            raise ValueError(
                f"This {type(self).__name__} was saved in format {saved}, and this "
                f"version of skident reads formats up to {self._FORMAT}: upgrade it."
            )
        super().__setstate__(state)
