import numpy as np
import pytest

from skident._kernels import streams, vectors
from skident._kernels.jit import kernel

N = vectors.WIDTH


@kernel
def formula(a, b, out):
    x, y = vectors.load(a, 2), vectors.load(b, vectors.WIDTH)
    mixed = ((x & y) ^ (~x | vectors.load_splat(b, 3))) + (x << 3)
    vectors.store(out, 0, mixed ^ (y >> 61) ^ vectors.splat(a[0]))
    vectors.store(out, vectors.WIDTH, vectors.popcount(mixed) + vectors.zeros())


@kernel
def draw(states, out):
    s0, s1, s2, s3 = vectors.load_streams(states)
    for i in range(out.shape[0]):
        word, s0, s1, s2, s3 = vectors.next_words(s0, s1, s2, s3)
        vectors.store(out, i * vectors.WIDTH, word)
    vectors.store_streams(states, s0, s1, s2, s3)


@pytest.mark.parametrize("seed", range(5))
def test_operators_act_word_by_word(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2**64, (2, 3, N), dtype=np.uint64)
    out = np.zeros((3, N), np.uint64)
    formula(a, b, out)
    x, y = a.ravel()[2 : 2 + N], b[1]
    mixed = ((x & y) ^ (~x | b.ravel()[3])) + (x << np.uint64(3))
    assert (out[0] == mixed ^ (y >> np.uint64(61)) ^ a.ravel()[0]).all()
    assert (out[1] == np.bitwise_count(mixed)).all()
    assert (out[2] == 0).all()


def test_words_are_those_of_the_single_streams():
    states = np.empty((4, N), np.uint64)
    for w in range(N):
        streams.seed_stream(np.uint64(11), w, states[:, w])
    single = states.T.copy()
    out = np.empty((50, N), np.uint64)
    draw(states, out)
    for w in range(N):
        words = [streams.next_uint64(single[w]) for _ in range(50)]
        assert out[:, w].tolist() == words
    assert (states == single.T).all()
