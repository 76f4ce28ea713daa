import numpy as np
import pytest
from scipy import stats

from skident._kernels import streams

KEY = np.uint64(0x1234567890ABCDEF)
LEVEL = 1e-7


def started(index=0, key=KEY):
    state = np.empty(4, np.uint64)
    streams.seed_stream(key, index, state)
    return state


def python_words(state, n):
    """xoshiro256++ in Python integers, by the published recurrence."""
    mask = 2**64 - 1
    s = [int(x) for x in state]

    def rotl(x, k):
        return ((x << k) | (x >> (64 - k))) & mask

    words = []
    for _ in range(n):
        words.append((rotl((s[0] + s[3]) & mask, 23) + s[0]) & mask)
        t = (s[1] << 17) & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
    return words


def test_words_follow_the_published_recurrence():
    # First outputs from the state 1, 2, 3, 4 as in the reference implementation.
    state = np.array([1, 2, 3, 4], np.uint64)
    words = np.empty(6, np.uint64)
    streams.fill_words(state, words)
    assert words[:3].tolist() == [41943041, 58720359, 3588806011781223]
    assert words.tolist() == python_words([1, 2, 3, 4], 6)


def test_splitmix_follows_the_published_values():
    # Outputs of SplitMix64 started at 1234567.
    golden = np.uint64(0x9E3779B97F4A7C15)
    x = np.uint64(1234567)
    with np.errstate(over="ignore"):
        outputs = [int(streams.splitmix64(x + np.uint64(k) * golden)) for k in range(3)]
    assert outputs == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


@pytest.mark.parametrize("index", [0, 1, 12345, 2**40])
def test_twins_agree(index):
    state = started(index)
    twin = np.empty(4, np.uint64)
    with np.errstate(over="ignore"):
        assert streams.splitmix64(KEY) == streams.splitmix64.py_func(KEY)
        streams.seed_stream.py_func(KEY, index, twin)
        np.testing.assert_array_equal(state, twin)
        for name in ("next_uint64", "next_uniform"):
            function = getattr(streams, name)
            for _ in range(20):
                assert function(state) == function.py_func(twin), name
        for name, out in (
            ("fill_words", np.empty(7, np.uint64)),
            ("fill_normals", np.empty(7)),
        ):
            function, other = getattr(streams, name), out.copy()
            function(state, out)
            function.py_func(twin, other)
            np.testing.assert_array_equal(out, other)
    np.testing.assert_array_equal(state, twin)


def test_bulk_words_are_those_drawn_one_by_one():
    one, many = started(3), started(3)
    words = np.empty(50, np.uint64)
    streams.fill_words(many, words)
    assert words.tolist() == [int(streams.next_uint64(one)) for _ in range(50)]
    np.testing.assert_array_equal(one, many)


def test_streams_differ_and_do_not_depend_on_each_other():
    starts = np.array([started(k) for k in range(2000)])
    assert len(np.unique(starts)) == starts.size
    first = np.array([streams.next_uniform(started(k)) for k in range(20_000)])
    assert stats.kstest(first, "uniform").pvalue > LEVEL
    # Neighbouring streams are not correlated.
    r = np.corrcoef(first[:-1], first[1:])[0, 1]
    assert abs(r) < 6 / np.sqrt(20_000)


def test_uniforms_and_normals_have_their_distributions():
    state = started(9)
    uniforms = np.array([streams.next_uniform(state) for _ in range(20_000)])
    assert uniforms.min() >= 0
    assert uniforms.max() < 1
    assert stats.kstest(uniforms, "uniform").pvalue > LEVEL
    normals = np.empty(20_001)
    streams.fill_normals(state, normals)
    assert stats.kstest(normals, "norm").pvalue > LEVEL
    # The two of a pair are independent, and so are their squares.
    pairs = normals[:20_000].reshape(-1, 2)
    for power in (1, 2):
        r = np.corrcoef(*(pairs**power).T)[0, 1]
        assert abs(r) < 6 / np.sqrt(10_000)


def test_threshold_is_the_probability_of_a_word_below():
    for p in (0.0, 0.25, 0.3, 1 - 2**-20, 1.0):
        limit = streams.threshold(p)
        assert limit == streams.threshold.py_func(p)
        assert abs(limit / 2**32 - p) <= 2**-33


def test_first_above_is_a_search_from_the_right():
    cdf = np.array([0.0, 0.1, 0.1, 0.6, 1.0])
    for u in (0.0, 0.05, 0.1, 0.59, 0.6, 0.999):
        expected = np.searchsorted(cdf, u, side="right")
        assert (
            streams.first_above(cdf, u)
            == streams.first_above.py_func(cdf, u)
            == expected
        )
