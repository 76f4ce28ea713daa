"""One door for randomness: ``random_state`` in, seeds and generators out.

Below the public functions only seeds travel. A seed plus a tuple of integers (the
*stream*) names one independent generator, so that the parts of an algorithm never
share, or depend on the order of, random numbers.
"""

import numbers

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

_SEED_BOUND = 2**63 - 1


def draw_seed(random_state):
    """Turn a scikit-learn ``random_state`` into one integer seed.

    Parameters
    ----------
    random_state : None, int or numpy.random.RandomState
        ``None`` takes fresh entropy from the operating system and leaves numpy's
        global generator alone; an int is used as it is (0 is a seed); a
        ``RandomState`` gives one draw and so advances.

    Returns
    -------
    int
        A seed in [0, 2**63).
    """
    if random_state is None:
        return int(np.random.SeedSequence().entropy % _SEED_BOUND)
    if isinstance(random_state, numbers.Integral):
        if random_state < 0:
            raise ValueError(f"random_state must be >= 0, got {random_state}.")
        return int(random_state)
    return int(check_random_state(random_state).randint(_SEED_BOUND, dtype=np.int64))


def generator(seed, *stream):
    """Return the numpy ``Generator`` named by a seed and a stream of integers."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=stream))


def stream_key(seed, *stream):
    """Return the uint64 key, for a kernel, named by a seed and a stream."""
    sequence = np.random.SeedSequence(seed, spawn_key=stream)
    return sequence.generate_state(1, np.uint64)[0]


def new_seed(rng):
    """Draw a seed for something that takes a ``random_state``."""
    return int(rng.integers(2**31))


def seeded_clone(estimator, rng):
    """Clone an estimator; where its ``random_state`` is None it gets a seed."""
    model = clone(estimator)
    if model.get_params().get("random_state", 0) is None:
        model.set_params(random_state=new_seed(rng))
    return model


def torch_seed(seed, *stream):
    """Return the seed, for ``torch.manual_seed``, named by a seed and a stream."""
    return int(stream_key(seed, *stream) >> np.uint64(1))
