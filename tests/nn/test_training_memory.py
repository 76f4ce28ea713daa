"""What training takes beyond its rows, measured by the system in a process of its own.

The allocator of Python does not see the memory of tensors.
"""

import subprocess
import sys

import pytest

pytest.importorskip("resource")

CODE = """
import resource
import sys
import torch
from skident._nn.losses import Reconstruction, SquaredError
from skident._nn.modules import Autoencoder
from skident._nn.training import Schedule, build_net, train

def peak():
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit

def grown(n_rows):
    rows = torch.randn(n_rows, 512)
    schedule = Schedule(1e-3, 0.0, 64, 1)
    objective = Reconstruction(SquaredError(torch.zeros(512), 1.0))
    module = Autoencoder(512, 2, (8,), 0.2)
    net = build_net(module, objective, schedule, torch.device("cpu"))
    before = peak()
    train(net, rows, None, schedule, verbose=0, description="")
    return peak() - before

grown(128)
print(grown(20_000))
"""


def test_memory_does_not_grow_with_the_number_of_steps():
    """Batches of 39 MiB in all pass through the memory of a few."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CODE],
        check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert float(done.stdout) < 10
