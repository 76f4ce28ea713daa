"""Threads of torch: how many a step takes, and whose turn the generator is."""

import contextlib
import os
import threading

import torch

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
    """Return the context for steps of so many rows: one thread, or as many as set."""
    n_weights = sum(p.numel() for p in net.module_.parameters())
    # convolutions use each weight at many places
    work = getattr(net.module_, "multiplications", n_weights)
    small = work * n_rows < _SMALL_STEP and net.device.type == "cpu"
    return _one_thread if small else contextlib.nullcontext()


# torch has one default generator a process, which modules draw their weights from: fits
# in several threads take turns, or they would change each other's numbers.
_turn = threading.RLock()


def _start_child():
    """Leave behind what threads of the parent held: they are not in the child.

    That goes for torch's pool as well, for which a child would wait for ever: it works
    in one thread.
    """
    global _turn, _one_thread
    _turn, _one_thread = threading.RLock(), _OneThread()
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_child)


@contextlib.contextmanager
def seeded(seed):
    """Run torch with a seed and leave its global generators as they were.

    Threads wait for each other here; processes do not.
    """
    with _turn, torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
