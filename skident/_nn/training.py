"""The one training loop, through skorch.

skorch keeps module, criterion, optimiser, history and callbacks; the data stays in one
tensor that is indexed by batch, since a loader that collects rows one by one takes
longer than the small networks of this package.
"""

import contextlib
import itertools
import math
from typing import NamedTuple

import torch
from skorch import NeuralNet
from skorch.callbacks import Callback

from skident._nn.precision import ReducedModule, loss_scaler
from skident._nn.rows import MappedRows
from skident._nn.threads import fitting_threads, seeded
from skident._progress import progress_bar


class Schedule(NamedTuple):
    """How long and how a network is trained.

    Attributes
    ----------
    learning_rate : float
        Step size of AdamW at the start; it falls to zero along half a cosine.
    weight_decay : float
        Decoupled weight decay.
    batch_size : int
        Rows a step.
    max_epochs : int
        Passes over the rows.
    patience : int or None
        Epochs without a better validation loss after which training stops.
    kl_warmup : float
        Fraction of the epochs, below 1, in which the criterion's ``beta`` rises to 1.
    max_grad_norm : float or None
        Length that the gradient of all weights together is cut to.
    constant : bool
        Whether the step size stays as it is instead of falling.
    precision : str
        What layers compute in while training, a key of ``PRECISIONS``.
    """

    learning_rate: float
    weight_decay: float
    batch_size: int
    max_epochs: int
    patience: int | None = None
    kl_warmup: float = 0.0
    max_grad_norm: float | None = None
    constant: bool = False
    precision: str = "float32"


def resolve_epochs(max_epochs, n_rows, batch_size, *, n_steps, least=20, most=500):
    """Return ``max_epochs``, or for "auto" as many as make about ``n_steps`` steps."""
    if max_epochs != "auto":
        return max_epochs
    return min(max(least, math.ceil(n_steps * batch_size / n_rows)), most)


def resolve_device(device):
    """Return the torch device for "auto" or a device name, ready for use.

    Raises
    ------
    ValueError
        If the name is none, or the device is not there, or not for a forked child.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        place = torch.empty(0, device=device)
        place.cpu()  # "meta" holds no numbers
    except (RuntimeError, AssertionError) as error:
        message = f"device={device!r} cannot be used: {error}"
        if "forked" in str(error):  # CUDA was used before, and its state is not here
            message += " Or set device='cpu' here, or use no GPU before the fork."
        raise ValueError(message) from error
    return place.device


def usable_device(device):
    """Return the device, or the CPU where it is not there: what a GPU fitted loads.

    A name that is none raises a ``ValueError``.
    """
    try:
        torch.device("cpu" if device == "auto" else device)
    except RuntimeError as error:
        raise ValueError(f"device={device!r} cannot be used: {error}") from error
    try:
        return resolve_device(device)
    except ValueError:
        return torch.device("cpu")


def to_rows(array, device):
    """Return an array as one float32 tensor on a device."""
    return torch.as_tensor(
        array, dtype=torch.float32, device=resolve_device(device)
    ).contiguous()


def hold_out(rows, fraction):
    """Split off a random fraction of the rows, at least one, by torch's generator.

    Returns the remaining rows and the held-out ones, or all rows and None if the
    fraction is 0. Rows mapped from a file are not read.
    """
    if not fraction:
        return rows, None
    n_held = min(max(1, round(fraction * rows.shape[0])), rows.shape[0] - 1)
    order = torch.randperm(rows.shape[0]).to(rows.device)
    take = rows.take if isinstance(rows, MappedRows) else rows.__getitem__
    return take(order[n_held:]), take(order[:n_held])


class TensorNet(NeuralNet):
    """A skorch net that trains on rows of one tensor, or mapped from a file."""

    # Set from outside: epochs of earlier calls, where gradients are cut, the module of
    # mixed precision and the scale of its loss.
    epochs_before, max_grad_norm = 0, None
    reduced, scaler = None, loss_scaler("float32", torch.device("cpu"))

    @property
    def _default_callbacks(self):
        return []

    def get_split_datasets(self, X, y=None, **fit_params):
        """Take the pair (training rows, validation rows or None) as it is."""
        return X

    def get_iterator(self, dataset, training=False):
        """Return batches of rows, shuffled for training."""
        return _Batches(dataset, self.batch_size, shuffle=training)

    def run_single_epoch(self, iterator, training, prefix, step_fn, **fit_params):
        """Run one pass and record its mean loss a row."""
        if iterator is None:
            return
        loss = self.mean_loss(iterator, training)
        if not math.isfinite(loss):
            part = "training" if training else "validation"
            raise FloatingPointError(
                f"The {part} loss became {loss} in epoch "
                f"{self.epochs_before + len(self.history)}: lower learning_rate (or "
                "weight_decay), or bring the columns of X to a smaller scale."
            )
        self.history.record(f"{prefix}_loss", loss)

    def mean_loss(self, batches, training=False):
        """Return the mean loss a row of one pass, in training with a step a batch."""
        self._set_training(training)
        step = self._descend if training else self._evaluate
        # in one place: numbers kept here and there would scatter the memory of batches
        losses = torch.empty(len(batches.sizes), device=self.device)
        with contextlib.nullcontext() if training else _frozen_noise():
            for k, batch in enumerate(batches):
                losses[k] = step(batch).detach()
        sizes = torch.tensor(batches.sizes, dtype=torch.float64)
        return float(losses.cpu().double() @ sizes) / batches.n_rows

    def _descend(self, batch):
        self.optimizer_.zero_grad(set_to_none=True)
        loss = self.criterion_(self.reduced or self.module_, batch)
        self.scaler.scale(loss).backward()
        if self.max_grad_norm is not None:
            self.scaler.unscale_(self.optimizer_)
            torch.nn.utils.clip_grad_norm_(
                self.module_.parameters(), self.max_grad_norm
            )
        self.scaler.step(self.optimizer_)
        self.scaler.update()
        return loss

    def _evaluate(self, batch):
        return self.criterion_(self.module_, batch)


class _Batches:
    """Batches of rows, indexed as they are asked for.

    In training a last batch of one row joins the one before: a module that normalises
    over a batch could not take it.
    """

    def __init__(self, rows, batch_size, *, shuffle):
        self.rows, self.shuffle = rows, shuffle
        self.n_rows = rows.shape[0]
        full, rest = divmod(self.n_rows, batch_size)
        self.sizes = [batch_size] * full + [rest] * (rest > 0)
        if shuffle and rest == 1 and full:
            self.sizes[-2:] = [batch_size + 1]

    def __iter__(self):
        if not self.shuffle:
            stops = list(itertools.accumulate(self.sizes))
            for start, stop in zip([0, *stops], stops, strict=False):
                yield self.rows[start:stop]
            return
        order = torch.randperm(self.n_rows).to(self.rows.device)
        for index in order.split(self.sizes):
            yield self.rows[index]


@contextlib.contextmanager
def _frozen_noise():
    """Evaluate without gradients and with the same noise every time."""
    # not inference mode, in which a penalty could not differentiate the decoder
    with seeded(0), torch.no_grad():
        yield


class _Cosine(Callback):
    """Let the step size fall to zero along half a cosine."""

    def __init__(self, schedule):
        self.schedule = schedule

    def on_epoch_begin(self, net, **kwargs):
        done = (len(net.history) - 1) / self.schedule.max_epochs
        done = 0.0 if self.schedule.constant else done
        rate = 0.5 * self.schedule.learning_rate * (1.0 + math.cos(math.pi * done))
        for group in net.optimizer_.param_groups:
            group["lr"] = rate


class _WarmUp(Callback):
    """Let the criterion's ``beta`` rise to 1 over a fraction of the training."""

    def __init__(self, schedule):
        self.n_epochs = _warm_epochs(schedule)

    def on_epoch_begin(self, net, **kwargs):
        done = len(net.history) - 1
        net.criterion_.beta = min(1.0, done / self.n_epochs) if self.n_epochs else 1.0


def _warm_epochs(schedule):
    """Epochs with ``beta`` below 1; the last epoch is never one of them."""
    return math.floor(schedule.kl_warmup * schedule.max_epochs)


class _Best(Callback):
    """Keep the weights of the epoch with the least validation loss.

    And the optimiser's state, as training goes on from there.
    """

    def __init__(self, schedule):
        self.patience = schedule.patience
        # Epochs with beta < 1 are measured by another loss and cannot be the best.
        self.first = _warm_epochs(schedule)
        self.loss, self.epoch, self.kept = math.inf, 0, None

    def start(self, net, held_out):
        """Let what an earlier fit reached stand until an epoch is better."""
        self.kept = _state(net)
        if held_out is not None:
            self.loss = net.mean_loss(net.get_iterator(held_out))

    def on_epoch_end(self, net, **kwargs):
        record, epoch = net.history[-1], len(net.history)
        loss = record.get("valid_loss", -epoch)
        counts = epoch > self.first
        better = counts and (loss < self.loss or self.kept is None)
        if better:
            self.kept, self.loss, self.epoch = _state(net), loss, epoch
        # what an interrupt finds unfinished is not in the history either
        net.history.record("finished", True)
        patient = self.patience is None or epoch - self.epoch < self.patience
        if counts and not better and not patient:
            raise _Converged

    def restore(self, net):
        if self.kept is None:
            return
        weights, moments, scale = self.kept
        net.module_.load_state_dict(weights)
        net.optimizer_.state.clear()
        net.optimizer_.state.update(moments)
        net.scaler.load_state_dict(scale)


def _state(net):
    """Return copies of weights and optimiser's state, and the scale of the loss."""
    weights = _clones(net.module_.state_dict())
    moments = {w: _clones(state) for w, state in net.optimizer_.state.items()}
    return weights, moments, net.scaler.state_dict()


def _clones(tensors):
    return {name: tensor.clone() for name, tensor in tensors.items()}


class _Bar(Callback):
    """Move the progress bar."""

    def __init__(self, advance):
        self.advance = advance

    def on_epoch_end(self, net, **kwargs):
        losses = {k: v for k, v in net.history[-1].items() if k.endswith("loss")}
        self.advance(**losses)


class _Converged(Exception):
    """The validation loss has stopped falling."""


def build_net(module, criterion, schedule, device):
    """Put a module and a criterion into a skorch net, ready to train or to use."""
    net = TensorNet(
        module,
        criterion=criterion,
        optimizer=torch.optim.AdamW,
        optimizer__fused=True,
        optimizer__weight_decay=schedule.weight_decay,
        lr=schedule.learning_rate,
        batch_size=schedule.batch_size,
        max_epochs=schedule.max_epochs,
        train_split=None,
        verbose=0,
        device=device,
    ).initialize()
    if schedule.precision != "float32":
        net.reduced = ReducedModule(net.module_, schedule.precision, device)
        net.scaler = loss_scaler(schedule.precision, device)
    return net


def train(net, rows, held_out, schedule, *, verbose, description):
    """Train a net in place; its best epoch is in it at the end, whatever ends it.

    Parameters
    ----------
    net : TensorNet
        From :func:`build_net`.
    rows, held_out : tensor or MappedRows of shape (n, n_features)
        Training rows, and validation rows or None.
    schedule : Schedule
        How to train.
    verbose : int
        0 is silent, 1 shows a progress bar.
    description : str
        Text before the bar.

    Returns
    -------
    converged : bool
        Whether early stopping ended the training.

    Raises
    ------
    FloatingPointError
        If the loss is not finite, naming the epoch.
    KeyboardInterrupt
        As raised, after the best weights so far were restored.
    """
    best = _Best(schedule)
    batch_size = min(schedule.batch_size, rows.shape[0])
    net.max_grad_norm = schedule.max_grad_norm
    with (
        fitting_threads(net, batch_size),
        progress_bar(schedule.max_epochs, description, verbose=verbose) as advance,
    ):
        net.callbacks_ = [
            (type(callback).__name__, callback)
            for callback in (_Cosine(schedule), _WarmUp(schedule), best, _Bar(advance))
        ]
        try:
            if net.epochs_before:
                best.start(net, held_out)
            net.fit_loop((rows, held_out), epochs=schedule.max_epochs)
        except _Converged:
            return True
        finally:
            net.callbacks_ = []
            best.restore(net)
    return False
