"""Spins in layers, one after the other: the transfer matrix, site by site.

A lattice of n layers of w sites is a Markov chain of its layers. Walking through it
site by site, what the rest must know is a word of w bits: the new layer at sites
before the current one, the old layer from it on; bit i is set where site i points up.
From the last site backwards the kernels find the chance that a site points up given
its word, and from these chances the mean of whatever depends on the rest.

A weight is kept as (bonds, spins, log): it is exp(beta (J bonds + h spins) + log),
where the two integers are those of its largest term. So nothing overflows, nothing is
lost however cold it is, and states of equal energy weigh exactly the same.
"""

import math

import numpy as np

from skident._kernels.jit import kernel
from skident._kernels.streams import first_above, next_uniform, seed_stream

# Chances of a number of spins below this are set to zero.
_NOTHING = 1e-100
# Of a chance that is 1, what is missing: so that its sign shows.
_LEAST = 1e-300


@kernel
def log_odds(d_bonds, d_spins, d_log, beta_coupling, beta_field):
    """Log of the ratio of two weights, from the differences of their parts."""
    by_bonds, by_spins = beta_coupling * d_bonds, beta_field * d_spins
    total = by_bonds + by_spins
    # Energies that differ by rounding alone are equal.
    if abs(total) <= 1e-15 * (abs(by_bonds) + abs(by_spins)):
        total = 0.0
    return total + d_log


@kernel
def earlier_sum(word, earlier):
    """Sum of the spins of a word at the given sites; -1 stands for no site."""
    total = 0
    for j in earlier:
        if j >= 0:
            total += 2 * ((word >> j) & 1) - 1
    return total


@kernel
def layer_chances(earlier, beta_coupling, beta_field, bonds, spins, logs, chances):
    """Go back through some layers, each bonded once to the layer before it.

    Parameters
    ----------
    earlier : int64 ndarray of shape (w, n_earlier)
        For each site of a layer the sites before it to which it is bonded, once for
        each bond, then -1.
    beta_coupling, beta_field : float
        J / T and h / T.
    bonds, spins : int64 ndarrays of shape (2**w,)
    logs : ndarray of shape (2**w,)
        Weight of all that comes after a layer, by its word; changed to that of what
        comes after the layer before these.
    chances : ndarray of shape (n_layers, w, 2**w)
        Filled, the last layer first, with the chance that a site points up; where
        that is above 1/2 with minus the chance that it points down, so that the
        smaller of the two has all its digits. In its word the bit of the site itself
        is that of the old layer.
    """
    n_layers, w, n_words = chances.shape
    for k in range(n_layers):
        for i in range(w - 1, -1, -1):
            bit = 1 << i
            for block in range(0, n_words, 2 * bit):
                for low in range(block, block + bit):
                    high = low + bit
                    inner = earlier_sum(low, earlier[i])
                    b_up, m_up, l_up = bonds[high] + inner, spins[high] + 1, logs[high]
                    b_down, m_down, l_down = (
                        bonds[low] - inner, spins[low] - 1, logs[low],
                    )  # fmt: skip
                    for word, old in ((low, -1), (high, 1)):
                        odds = log_odds(
                            b_up - b_down + 2 * old, m_up - m_down, l_up - l_down,
                            beta_coupling, beta_field,
                        )  # fmt: skip
                        rest = math.exp(-abs(odds))
                        if odds > 0:
                            chances[k, i, word] = -max(rest / (1.0 + rest), _LEAST)
                            bonds[word], spins[word] = b_up + old, m_up
                            logs[word] = l_up + math.log1p(rest)
                        else:
                            chances[k, i, word] = rest / (1.0 + rest)
                            bonds[word], spins[word] = b_down - old, m_down
                            logs[word] = l_down + math.log1p(rest)


@kernel
def both_chances(chance):
    """Chances of down and of up from an entry of :func:`layer_chances`."""
    if chance < 0.0:
        return -chance, 1.0 + chance
    return 1.0 - chance, chance


@kernel
def expect_layer(chances, values, surprise):
    """Mean of values of a layer's word, given the layer before, in place.

    Parameters
    ----------
    chances : ndarray of shape (w, 2**w)
        Of one layer, as :func:`layer_chances` gives them.
    values : ndarray of shape (2**w, n_values)
    surprise : ndarray of shape (n_values,)
        1 to add the entropy, in nats, of the layer given the layer before; else 0.
    """
    w, n_words = chances.shape
    any_surprise = surprise.max() > 0.0
    for i in range(w - 1, -1, -1):
        bit = 1 << i
        for block in range(0, n_words, 2 * bit):
            for low in range(block, block + bit):
                high = low + bit
                a, b = both_chances(chances[i, low])
                c, d = both_chances(chances[i, high])
                h_low, h_high = 0.0, 0.0
                if any_surprise:
                    h_low, h_high = binary_entropy(a, b), binary_entropy(c, d)
                for j in range(values.shape[1]):
                    down, up = values[low, j], values[high, j]
                    values[low, j] = a * down + b * up + surprise[j] * h_low
                    values[high, j] = c * down + d * up + surprise[j] * h_high


@kernel
def binary_entropy(p, q):
    """Entropy, in nats, of an alternative of chances p and q."""
    rare = min(p, q)
    if rare <= 0.0:
        return 0.0
    return -rare * math.log(rare) - (1.0 - rare) * math.log1p(-rare)


@kernel
def count_layer(chances, counted_up, counts, spare, low, high):
    """Go back through one layer with the distribution of a number of spins.

    Parameters
    ----------
    chances : ndarray of shape (w, 2**w)
        Of one layer, as :func:`layer_chances` gives them.
    counted_up : bool ndarray of shape (w,)
        Whether a site counts where it points up, or where it points down.
    counts : ndarray of shape (2**w, n_sites + 2)
        A column of zeros, then the probabilities that 0, 1, ... sites of the rest
        count, given the word; changed.
    spare : ndarray of the same shape
        Work space; its first column is zero too.
    low, high : int
        The number of sites that count is at least ``low`` and below ``high``.

    Returns
    -------
    low, high : int
        The same after this layer.
    """
    w, n_words = chances.shape
    set_column(spare, low, 0.0)
    for i in range(w - 1, -1, -1):
        if high + 1 < counts.shape[1]:
            high += 1
            set_column(counts, high, 0.0)
        bit = 1 << i
        skip_up = 0 if counted_up[i] else 1
        skip_down = 1 - skip_up
        for block in range(0, n_words, 2 * bit):
            for word in range(block, block + bit):
                down = counts[word, low + skip_down : high + skip_down]
                up = counts[word + bit, low + skip_up : high + skip_up]
                for target in (word, word + bit):
                    p, q = both_chances(chances[i, target])
                    _mix(down, up, p, q, spare[target, low + 1 : high + 1])
        counts, spare = spare, counts
    if w % 2:
        # The result lies in what was handed over as work space.
        copy_columns(counts, spare, low + 1, high + 1)
        counts, spare = spare, counts
    while high - low > 1 and is_zero(counts, low + 1):
        low += 1
    while high - low > 1 and is_zero(counts, high):
        high -= 1
    return low, high


@kernel
def copy_columns(source, target, start, stop):
    """Copy some columns of a table to another one."""
    for row in range(source.shape[0]):
        for k in range(start, stop):
            target[row, k] = source[row, k]


@kernel
def set_column(table, k, value):
    """Set a column of a table."""
    for row in range(table.shape[0]):
        table[row, k] = value


@kernel
def is_zero(table, k):
    """Whether a column of a table is zero."""
    for row in range(table.shape[0]):
        if table[row, k] != 0.0:
            return False
    return True


@kernel
def _mix(down, up, p, q, out):
    """Mixture of two distributions; what is nothing is set to zero."""
    for k in range(out.shape[0]):
        value = p * down[k] + q * up[k]
        out[k] = value if value > _NOTHING else 0.0


@kernel
def moments_layer(chances, counted_up, moments):
    """Go back through one layer with the moments of a sum of spins, in place.

    Parameters
    ----------
    chances : ndarray of shape (w, 2**w)
        Of one layer, as :func:`layer_chances` gives them.
    counted_up : bool ndarray of shape (w,)
        Whether the sign of a site in the sum is 1, or -1.
    moments : ndarray of shape (2**w, 5)
        Means of the powers 0 to 4 of the sum over the rest, given the word.
    """
    w, n_words = chances.shape
    low_moments, high_moments = np.empty(5), np.empty(5)
    for i in range(w - 1, -1, -1):
        bit = 1 << i
        step = 1.0 if counted_up[i] else -1.0
        for block in range(0, n_words, 2 * bit):
            for low in range(block, block + bit):
                high = low + bit
                shift_moments(moments[low], -step, low_moments)
                shift_moments(moments[high], step, high_moments)
                a, b = both_chances(chances[i, low])
                c, d = both_chances(chances[i, high])
                for j in range(5):
                    down, up = low_moments[j], high_moments[j]
                    moments[low, j] = a * down + b * up
                    moments[high, j] = c * down + d * up


@kernel
def shift_moments(moments, step, out):
    """Moments 0 to 4 of a sum to which a number is added."""
    m0, m1, m2, m3, m4 = moments[0], moments[1], moments[2], moments[3], moments[4]
    out[0] = m0
    out[1] = m1 + step * m0
    out[2] = m2 + step * (2 * m1 + step * m0)
    out[3] = m3 + step * (3 * m2 + step * (3 * m1 + step * m0))
    out[4] = m4 + step * (4 * m3 + step * (6 * m2 + step * (4 * m1 + step * m0)))


@kernel
def draw_layers(
    key, start, chances, cdf, orbit, frame, element, elements, earlier, sites,
    staggering, closed, rows, totals,
):  # fmt: skip
    """Draw independent rows, layer after layer, site after site.

    Parameters
    ----------
    key : uint64
        Names the streams; row k of a call draws from stream ``start + k``.
    start : int
        Number of the first row.
    chances : ndarray of shape (n_orbits, n_layers - 1, w, 2**w)
        As :func:`layer_chances` gives them, last layer first.
    cdf : ndarray of shape (2**w,)
        Distribution function of the first layer.
    orbit, frame, element : int64 ndarrays of shape (2**w,)
        For each first layer the entry of ``chances`` to use, the word in whose place
        it stands there, and the symmetry that makes it of that word.
    elements : int64 ndarray of shape (n_elements, w + 1)
        Symmetries: site i goes to site ``elements[g, i]``, all spins are multiplied
        by the last column.
    earlier : int64 ndarray of shape (w, n_earlier)
        As for :func:`layer_chances`.
    sites : int64 ndarray of shape (n_layers, w)
        Column of each site in a row.
    staggering : int8 ndarray of shape (n_sites,)
        Sign of each column in the order parameter.
    closed : bool
        Whether the last layer is bonded to the first.
    rows : int8 ndarray of shape (n_rows, n_sites)
        Filled with -1 and 1.
    totals : int64 ndarray of shape (n_rows, 3)
        Filled with the sums over bonds of s_i s_j, over sites of s_i, and over sites
        of s_i times its sign.
    """
    n_layers, w = sites.shape
    state = np.empty(4, np.uint64)
    for k in range(rows.shape[0]):
        seed_stream(key, start + k, state)
        first = first_above(cdf, next_uniform(state))
        table, symmetry = chances[orbit[first]], elements[element[first]]
        head = frame[first]
        word = head
        bonds, spins, order = 0, 0, 0
        for t in range(n_layers):
            for i in range(w):
                bit = 1 << i
                if t > 0:
                    old = 2 * ((word >> i) & 1) - 1
                    chance = table[n_layers - 1 - t, i, word]
                    # Without a branch, which would be taken at random.
                    up = next_uniform(state) < chance + (chance < 0.0)
                    word = (word & ~bit) | (up << i)
                    bonds += old * (2 * up - 1)
                spin = 2 * ((word >> i) & 1) - 1
                bonds += spin * earlier_sum(word, earlier[i])
                spin *= symmetry[w]
                site = sites[t, symmetry[i]]
                rows[k, site] = spin
                spins += spin
                order += staggering[site] * spin
        if closed:
            for i in range(w):
                bonds += 1 - 2 * (((word ^ head) >> i) & 1)
        totals[k, 0], totals[k, 1], totals[k, 2] = bonds, spins, order
