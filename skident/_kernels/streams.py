"""Random streams inside kernels: xoshiro256++ states named by (key, index).

A state is a uint64 array of shape (4,). Stream ``k`` of a key is a function of the
two numbers alone, so chain ``k`` is the same however many chains are run, in whatever
order and on however many threads.

Blackman and Vigna, "Scrambled linear pseudorandom number generators", ACM Trans.
Math. Softw. 47 (2021); seeded by SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
"""

import math

import numpy as np

from skident._kernels.jit import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_INDEX = np.uint64(0xD1342543DE82EF95)
_TO_UNIT = 1.0 / 9007199254740992.0  # 2**-53


@kernel
def splitmix64(x):
    """Hash one uint64 to another (a bijection)."""
    x = x + _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _MIX1
    x = (x ^ (x >> np.uint64(27))) * _MIX2
    return x ^ (x >> np.uint64(31))


@kernel
def seed_stream(key, index, state):
    """Fill ``state`` (4,) uint64 with the start of stream ``index`` of ``key``."""
    x = splitmix64(np.uint64(key) ^ splitmix64(np.uint64(index) * _INDEX))
    for i in range(4):
        x = x + _GOLDEN
        state[i] = splitmix64(x)


@kernel
def next_uint64(state):
    """Return 64 random bits and advance ``state``."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    total = s0 + s3
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3
    return result


@kernel
def next_uniform(state):
    """Return a float64 uniform on [0, 1), a multiple of 2**-53."""
    return (next_uint64(state) >> np.uint64(11)) * _TO_UNIT


@kernel
def fill_words(state, words):
    """Fill a uint64 array with random bits, as by :func:`next_uint64` in turn."""
    # The state in local variables stays in registers.
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    for i in range(words.shape[0]):
        total = s0 + s3
        words[i] = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
        shifted = s1 << np.uint64(17)
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= shifted
        s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3


@kernel
def fill_normals(state, out):
    """Fill a float64 array with standard normals (Marsaglia's polar method)."""
    n = out.shape[0]
    for i in range(0, n, 2):
        while True:
            u = 2.0 * next_uniform(state) - 1.0
            v = 2.0 * next_uniform(state) - 1.0
            s = u * u + v * v
            if 0.0 < s < 1.0:
                break
        scale = math.sqrt(-2.0 * math.log(s) / s)
        out[i] = u * scale
        if i + 1 < n:
            out[i + 1] = v * scale


@kernel
def first_above(cdf, u):
    """Return the first index with ``cdf[index] > u``; ``cdf[-1]`` must exceed ``u``."""
    low = 0
    high = cdf.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if cdf[middle] > u:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def threshold(p):
    """Return t such that a uniform uint32 is below t with probability p, to 2**-33."""
    return np.int64(p * 4294967296.0 + 0.5)
