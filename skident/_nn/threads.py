"""Threads and workers: how many a step takes, whose turn it is, who shares a card."""

import contextlib
import os
import threading
import warnings

import torch
from joblib.parallel import get_active_backend

# Multiplications a step below which a second thread costs more than it does: measured
# with fully connected layers.
_SMALL_STEP = 2**25


class _OneThread:
    """Limit torch to one thread while anything is inside, from however many threads.

    A small step is over sooner than threads can share it, and where cores are busy
    they wait for each other a hundred times longer than they work.
    """

    def __init__(self):
        self.lock, self.inside, self.before = threading.Lock(), 0, 1

    def __enter__(self):
        with self.lock:
            if self.inside == 0:
                self.before = torch.get_num_threads()
                torch.set_num_threads(1)
            self.inside += 1

    def __exit__(self, *exception):
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                torch.set_num_threads(self.before)


_one_thread = _OneThread()


def fitting_threads(net, n_rows):
    """Return the context for steps of so many rows: one thread, or as many as set.

    Warns
    -----
    UserWarning
        As :func:`warn_of_sharing`.
    """
    warn_of_sharing(net.device)
    n_weights = sum(p.numel() for p in net.module_.parameters())
    # convolutions use each weight at many places
    work = getattr(net.module_, "multiplications", n_weights)
    small = work * n_rows < _SMALL_STEP and net.device.type == "cpu"
    return _one_thread if small else contextlib.nullcontext()


# Taken by the first warning, and never given back.
_not_warned = threading.Lock()


def warn_of_sharing(device):
    """Warn, once a process, where a worker of joblib computes on a card.

    Parameters
    ----------
    device : torch.device
        Where the work is done.

    Warns
    -----
    UserWarning
        In a process or thread of ``joblib.Parallel`` with several jobs, unless the
        device is the CPU: the others are on the same card, for all that it knows.
    """
    if device.type == "cpu":
        return
    # joblib counts how deep in workers, of any kind, a call is
    nested = getattr(get_active_backend()[0], "nesting_level", None)
    if nested and _not_warned.acquire(blocking=False):
        warnings.warn(
            f"A worker of joblib computes on {device}. Workers that share a card slow "
            "each other down and can exhaust its memory: set n_jobs=1 or device='cpu', "
            "or give each worker a card of its own through CUDA_VISIBLE_DEVICES.",
            UserWarning,
        )


# torch has one default generator a process, which modules draw their weights from: fits
# in several threads take turns, or they would change each other's numbers.
_turn = threading.RLock()


def _start_child():
    """Leave behind what threads of the parent held: they are not in the child.

    That goes for torch's pool as well, for which a child would wait for ever: it works
    in one thread.
    """
    global _turn, _one_thread, _not_warned
    _turn, _one_thread = threading.RLock(), _OneThread()
    _not_warned = threading.Lock()
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_child)


@contextlib.contextmanager
def seeded(seed):
    """Run torch with a seed and leave its global generators as they were.

    Threads wait for each other here; processes do not. CUDA is not started for it,
    which costs memory of a card and keeps forked children from using one: its
    generators count where it runs already.
    """
    cards = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with _turn, torch.random.fork_rng(cards, device_type="cuda"), _mps_put_back():
        torch.default_generator.manual_seed(seed)
        if cards:
            torch.cuda.manual_seed_all(seed)
        if torch.backends.mps.is_available():
            torch.mps.manual_seed(seed)
        yield


@contextlib.contextmanager
def _mps_put_back():
    """Leave the generator of a Mac's GPU as it was, where there is one."""
    if not torch.backends.mps.is_available():
        yield
        return
    before = torch.mps.get_rng_state()
    try:
        yield
    finally:
        torch.mps.set_rng_state(before)
