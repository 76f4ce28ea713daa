"""What every estimator that holds a network has in common."""

import numbers

import numpy as np
import torch

from skident._nn.rows import MappedRows
from skident._nn.states import (
    as_array,
    history_arrays,
    load_optimizer,
    optimizer_arrays,
)
from skident._nn.threads import fitting_threads, seeded
from skident._nn.training import (
    Schedule,
    hold_out,
    resolve_device,
    to_rows,
    train,
    usable_device,
)


def check_layer_sizes(sizes):
    """Raise a ``ValueError`` unless every hidden layer has a positive int width."""
    for size in np.atleast_1d(np.asarray(sizes, dtype=object)):
        whole = isinstance(size, numbers.Integral) and not isinstance(size, bool)
        if np.ndim(sizes) != 1 or not whole or size < 1:
            raise ValueError(
                "hidden_layer_sizes must be a tuple of positive integers, got "
                f"{sizes!r}."
            )


class HeldNet:
    """Mixin of estimators that hold a network.

    The fitted truth is ``weights_``, a dict of numpy arrays; ``net_`` is built from
    it on demand and never pickled. So a fitted estimator loads on any device and
    hashes by its numbers. The estimator gives ``_schedule(n_rows)`` and
    ``_new_net(schedule, device)``, an untrained net of the ``_architecture`` that
    ``fit`` fixed: later changes of parameters do not reach what was fitted. With
    ``_continues`` the optimiser's state is kept as arrays too, ``optimizer_state_``, so
    that training goes on after a round trip as it would have without.
    """

    _FORMAT = 1
    _continues = False

    @property
    def net_(self):
        """The skorch net with the fitted weights, on the device of ``device``."""
        # in a place of its own, as what is fitted may not change by being used
        built = self.__dict__.setdefault("_built", {})
        if built.get("device") != self.device:
            unused = Schedule(1e-3, 0.0, 1, 1)  # it will not be trained
            device = usable_device(self.device)
            with seeded(0):
                net = self._new_net(unused, device)
            self._load_weights(net)
            built.update(net=net, device=self.device)
        return built["net"]

    def _train(
        self,
        rows,
        seed,
        *,
        held_fraction,
        description,
        prepare=None,
        finish=None,
        schedule=None,
        resume=False,
    ):
        """Train a net and keep its numbers; the net itself is let go.

        Parameters
        ----------
        rows : ndarray, tensor or MappedRows of shape (n_samples, n_features)
            Rows in network units.
        seed : int
            Seed of weights, split, batches and noise.
        held_fraction : float
            Fraction of rows to hold out; 0 holds out none.
        description : str
            Text before the progress bar.
        prepare : callable, optional
            ``prepare(module, rows)`` sets start values that depend on the rows.
        finish : callable, optional
            ``finish(module, rows)`` looks at the trained module.
        schedule : Schedule, optional
            How to train; None is that of ``_schedule``.
        resume : bool
            Whether to train the fitted net on instead of a new one.

        Returns
        -------
        rows, held_out : tensor or MappedRows
            The rows trained on, and those not, or None.
        outcome : bool or KeyboardInterrupt
            Whether early stopping ended the training, or what interrupted it: to be
            raised once the estimator is complete.
        """
        schedule = schedule or self._schedule(rows.shape[0])
        device = resolve_device(self.device)
        if not isinstance(rows, MappedRows):
            rows = to_rows(rows, device)
        with seeded(seed):
            rows, held_out = hold_out(rows, held_fraction)
            net = self._new_net(schedule, device)
            if resume:
                self._load_weights(net)
                load_optimizer(net, self.optimizer_state_)
                net.epochs_before = self.n_iter_
            if prepare is not None:
                prepare(net.module_, rows)
            try:
                outcome = train(
                    net,
                    rows,
                    held_out,
                    schedule,
                    verbose=self.verbose,
                    description=description,
                )
            except KeyboardInterrupt as interrupt:
                outcome = interrupt
        self._keep(net, self.history_ if resume else {})
        if finish is not None:
            finish(net.module_, rows)
        return rows, held_out, outcome

    def _keep(self, net, earlier):
        """Store weights and history of a trained net, and the optimiser's state.

        All as arrays, so that after training a card holds nothing.
        """
        self._keep_weights(net)
        later = history_arrays(net)
        self.history_ = {
            name: np.concatenate([earlier.get(name, []), later.get(name, [])])
            for name in {**earlier, **later}
        }
        self.n_iter_ = len(self.history_.get("train_loss", ()))
        if self._continues:
            self.optimizer_state_ = optimizer_arrays(net)

    def _keep_weights(self, net):
        """Let the weights of a net be the fitted ones."""
        self._built = {}
        self.weights_ = {
            k: as_array(v).copy() for k, v in net.module_.state_dict().items()
        }

    def _load_weights(self, net):
        """Put the fitted weights into a net."""
        net.module_.load_state_dict(
            {k: torch.from_numpy(v.copy()) for k, v in self.weights_.items()}
        )

    def _module(self):
        """Return the fitted module, ready for inference."""
        return self.net_.module_.eval()

    def _to_device(self, array):
        """Return a copy of an array as a float32 tensor on the device of the net."""
        return torch.tensor(
            np.ascontiguousarray(array), dtype=torch.float32, device=self.net_.device
        )

    def _in_blocks(self, function, array, rows, convert=None):
        """Apply a function of tensors to blocks of rows and return one numpy array.

        ``convert`` makes the tensor of a block of the array, which may be the same one
        again and again; None is ``_to_device``. What a block takes is so given back
        before the next: the system's zeroed pages cost more than they seem.
        """
        convert, result = convert or self._to_device, None
        with torch.inference_mode(), fitting_threads(self.net_, rows):
            for start in range(0, array.shape[0], rows):
                block = array[start : start + rows]
                part = as_array(function(convert(block)))
                if result is None:
                    result = np.empty((array.shape[0], *part.shape[1:]), part.dtype)
                result[start : start + rows] = part
        return result

    def __getstate__(self):
        state = dict(super().__getstate__())
        state.pop("_built", None)
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
