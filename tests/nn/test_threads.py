"""Forked children, workers that share a card, and generators."""

import os
import subprocess
import sys
import threading
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from joblib import Parallel, delayed
from torch import nn

from skident import AutoencoderEmbedder, LayerEmbedder, _layer_embedder
from skident._nn import threads
from skident._nn.threads import fitting_threads, seeded
from skident._nn.training import resolve_device

CODE = """
import os
import numpy as np
import torch
from skident import AutoencoderEmbedder

X = np.random.default_rng(0).standard_normal((2000, 200))
model = AutoencoderEmbedder(
    2, hidden_layer_sizes=(500,), batch_size=1000, max_epochs=2, random_state=0
)
torch.set_num_threads(2)
model.fit(X)
child = os.fork()
if child == 0:
    assert torch.get_num_threads() == 1
    Z = model.fit(X).transform(X)
    os._exit(0 if np.isfinite(Z).all() else 3)
status = os.waitpid(child, 0)[1]
assert torch.get_num_threads() == 2
raise SystemExit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forked_child_of_a_process_that_trained_does_not_hang():
    environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CODE], env=environment, timeout=60
    )
    assert done.returncode == 0


# Workers that share a card


@pytest.fixture
def step_on():
    # A local function: worker processes get it by value, as they cannot import tests.
    def step_on(name):
        """Make one step's preparations on a device that need not be there."""
        net = SimpleNamespace(device=torch.device(name), module_=nn.Linear(2, 2))
        with fitting_threads(net, 10):
            pass

    return step_on


@pytest.fixture
def fresh(monkeypatch):
    monkeypatch.setattr(threads, "_not_warned", threading.Lock())


def check_message(message):
    assert "computes on cuda:0" in message
    for remedy in ("n_jobs=1", "device='cpu'", "CUDA_VISIBLE_DEVICES"):
        assert remedy in message


def test_worker_threads_on_a_card_warn_once(fresh, step_on):
    with pytest.warns(UserWarning) as caught:
        Parallel(2, backend="threading")(delayed(step_on)("cuda:0") for _ in range(9))
    assert len(caught) == 1
    check_message(str(caught[0].message))


@pytest.mark.slow
def test_worker_processes_on_a_card_warn_once_each(fresh, step_on):
    def twice():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            step_on("cuda:0"), step_on("cuda:0")
        return os.getpid(), [str(w.message) for w in caught]

    found = Parallel(2)(delayed(twice)() for _ in range(6))
    for process in {process for process, _ in found}:
        messages = [m for other, some in found if other == process for m in some]
        assert len(messages) == 1
        check_message(messages[0])


def test_nobody_warns_on_the_cpu_or_alone(fresh, step_on):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Parallel(2, backend="threading")(delayed(step_on)("cpu") for _ in range(2))
        Parallel(1)(delayed(step_on)("cuda:0") for _ in range(2))
        step_on("cuda:0")


def test_training_and_transforming_ask_whether_a_card_is_shared(monkeypatch):
    devices = []
    monkeypatch.setattr(threads, "warn_of_sharing", devices.append)
    monkeypatch.setattr(_layer_embedder, "warn_of_sharing", devices.append)
    X = np.random.default_rng(0).standard_normal((20, 4))
    embedder = AutoencoderEmbedder(2, max_epochs=1, device="cpu").fit(X)
    assert devices == [torch.device("cpu")]
    embedder.transform(X)
    assert len(devices) == 2
    LayerEmbedder(nn.Linear(4, 2), "", device="cpu").fit(X)
    assert len(devices) > 2 and len(set(devices)) == 1


# Generators


def test_cuda_is_not_started_for_its_generator(monkeypatch):
    """Its state would come with memory of the card, and a fork could not use it."""

    def never(*args):
        raise AssertionError("CUDA was asked")

    for name in ("manual_seed_all", "get_rng_state", "device_count", "init"):
        monkeypatch.setattr(torch.cuda, name, never)
    with seeded(5):
        first = torch.rand(3)
    assert torch.equal(first, torch.rand(3, generator=torch.Generator().manual_seed(5)))


def test_generators_of_cards_in_use_are_seeded_and_put_back(monkeypatch):
    states = [torch.tensor([1]), torch.tensor([2])]

    def put(state, card):
        states[card] = state

    def seed(number):
        states[:] = [torch.tensor([number])] * 2

    for name, function in {
        "is_initialized": lambda: True, "device_count": lambda: 2,
        "get_rng_state": lambda card: states[card], "set_rng_state": put,
        "manual_seed_all": seed,
    }.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with seeded(7):
            assert states == [7, 7]
    assert states == [1, 2]


def test_generator_of_a_mac_is_seeded_and_put_back(monkeypatch):
    state = [1]
    for name, function in {
        "get_rng_state": lambda: state[0],
        "set_rng_state": lambda before: state.__setitem__(0, before),
        "manual_seed": lambda number: state.__setitem__(0, number),
    }.items():
        monkeypatch.setattr(torch.mps, name, function)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    with pytest.raises(KeyboardInterrupt), seeded(7):
        assert state == [7]
        raise KeyboardInterrupt
    assert state == [1]


def test_child_of_a_process_that_used_cuda_is_told_what_to_do(monkeypatch):
    def empty(*size, device):
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess.")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "empty", empty)
    with pytest.raises(ValueError, match=r"device='cuda' cannot .* set device='cpu'"):
        resolve_device("auto")
