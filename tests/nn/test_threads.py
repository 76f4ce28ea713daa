"""Training in a forked child of a process that trained in several threads."""

import os
import subprocess
import sys

import pytest

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
