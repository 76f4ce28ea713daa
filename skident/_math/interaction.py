r"""The generalised Hopfield model of a decoder: its interaction is an integral over z.

With logits ``2 f_i + sum_a xi_ia phi_a(z)`` of conditionally independent spins,

    P(s) = int dz p(z) prod_i exp(s_i logit_i / 2) / 2cosh(logit_i / 2)
         = exp(f . s + L(xi' s / 2)),
    L(t) = ln int dz p(z) exp(t . phi(z) - V(z)),  V(z) = sum_i ln 2cosh(logit_i / 2).

``K(t) = L(t) - L(0)`` is the cumulant generating function of phi under the weights
``w(z) ~ p(z) exp(-V(z))``. All of it follows from points z with weights: a grid for few
latents, else points that are drawn at many temperatures between p and w.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

# Distance of grid points for each number of latents, in standard deviations of the
# prior: about 1e3, 3e4 and 9e4 points. A grid is exact to 1e-7 for posteriors no
# narrower than that, to a few per cent for those half as wide.
GRID_SPACING = {1: 0.01, 2: 0.06, 3: 0.2}
_RADIUS = 5.5
_MOST_TERMS = 2**19  # of float64: a block of 4 MiB stays near the processor
_BLOCK = 8192
_N_PARTICLES = 2000
_N_MOVES = 8
_MOST_LEVELS = 200


class Interaction(NamedTuple):
    """Points of the latents with weights.

    Attributes
    ----------
    fields : ndarray of shape (n_points, n_patterns)
        phi(z) of each point.
    log_weights : ndarray of shape (n_points,)
        ln p(z) dz - V(z): their sum of exponentials is exp(L(0)).
    """

    fields: np.ndarray
    log_weights: np.ndarray


class Cumulants(NamedTuple):
    """Cumulants of the fields phi under w.

    Attributes
    ----------
    mean : ndarray of shape (n_patterns,)
    covariance : ndarray of shape (n_patterns, n_patterns)
    third, fourth : ndarray of shape (n_patterns,)
        Of each field alone.
    """

    mean: np.ndarray
    covariance: np.ndarray
    third: np.ndarray
    fourth: np.ndarray


def find_interaction(logits, n_latents, field, patterns, rng):
    """Choose points of the latents and weigh them.

    Parameters
    ----------
    logits : callable
        Logits (n, n_sites) of a decoder at latents (n, n_latents).
    n_latents : int
        Their number; the prior is standard normal.
    field : ndarray of shape (n_sites,)
        Half the logits outside the span of the patterns.
    patterns : ndarray of shape (n_patterns, n_sites)
        Entries in {-1, 1}: phi are the coordinates of the logits in them.
    rng : Generator
        Draws the points where there are too many latents for a grid.

    Returns
    -------
    Interaction
    """
    unmix = np.linalg.pinv(patterns.astype(np.float64))

    def evaluate(points):
        fields, potential = (
            np.empty((len(points), len(patterns))),
            np.empty(len(points)),
        )
        for start in range(0, len(points), _BLOCK):
            part = slice(start, start + _BLOCK)
            fields[part] = logits(points[part]) @ unmix
            half = field + 0.5 * fields[part] @ patterns
            potential[part] = np.logaddexp(half, -half).sum(axis=1)
        return fields, potential

    if n_latents not in GRID_SPACING:
        return _tempered(evaluate, n_latents, rng)
    spacing = GRID_SPACING[n_latents]
    axis = spacing * np.arange(-int(_RADIUS / spacing), int(_RADIUS / spacing) + 1)
    grid = np.stack(np.meshgrid(*[axis] * n_latents, indexing="ij"), axis=-1)
    points = grid.reshape(-1, n_latents)
    points = points[(points**2).sum(axis=1) <= _RADIUS**2]
    fields, potential = evaluate(points)
    log_prior = -0.5 * (points**2).sum(axis=1)
    return Interaction(fields, log_prior - logsumexp(log_prior) - potential)


def log_integral(interaction, sources):
    """Return L(t) for each row t of ``sources`` (n, n_patterns), shape (n,)."""
    fields, log_weights = interaction
    result = np.empty(len(sources))
    block = max(1, _MOST_TERMS // len(log_weights))
    for start in range(0, len(sources), block):
        part = slice(start, start + block)
        terms = sources[part] @ fields.T
        terms += log_weights
        largest = terms.max(axis=1)
        terms -= largest[:, None]
        result[part] = largest + np.log(np.exp(terms, out=terms).sum(axis=1))
    return result


def cumulant_function(interaction, sources):
    """Return K(t) for each row t of ``sources`` (n, n_patterns), shape (n,)."""
    return log_integral(interaction, sources) - logsumexp(interaction.log_weights)


def cumulants(interaction):
    """Return the first four cumulants of the fields under w."""
    fields, log_weights = interaction
    weights = np.exp(log_weights - logsumexp(log_weights))
    mean = weights @ fields
    centred = fields - mean
    covariance = (centred * weights[:, None]).T @ centred
    third = weights @ centred**3
    fourth = weights @ centred**4 - 3.0 * np.diagonal(covariance) ** 2
    return Cumulants(mean, covariance, third, fourth)


def tail_ratio(interaction, sources):
    r"""Compare the even part of K with its quadratic part along each axis.

    Parameters
    ----------
    interaction : Interaction
        Points and weights.
    sources : ndarray of shape (n_patterns,)
        How far to go, t > 0.

    Returns
    -------
    ndarray of shape (n_patterns,)
        :math:`[K(t) + K(-t)] / (\kappa_2 t^2)` with t on one axis: 1 for a quadratic
        interaction, more for one that is heavier in the tails. NaN at t = 0.
    """
    axes = np.diag(sources)
    even = cumulant_function(interaction, axes) + cumulant_function(interaction, -axes)
    quadratic = np.diagonal(cumulants(interaction).covariance) * sources**2
    return np.divide(even, quadratic, out=np.full(len(sources), np.nan),
                     where=quadratic > 0)  # fmt: skip


def _tempered(evaluate, n_latents, rng):
    """Draw points at all temperatures between the prior and w.

    Particles move from p(z) to p(z) exp(-V(z)) through levels p(z) exp(-b V(z)) (Del
    Moral, Doucet, Jasra 2006); the points of all levels are then weighted by the
    mixture that they come from (Shirts and Chodera 2008), so that they serve for w and
    for the wells far from it, where p is.
    """
    points = rng.standard_normal((_N_PARTICLES, n_latents))
    fields, potential = evaluate(points)
    levels, all_fields, all_potentials = [(0.0, 0.0)], [fields], [potential]
    step = 0.5
    while levels[-1][0] < 1.0 and len(levels) < _MOST_LEVELS:
        power, log_z = levels[-1]
        rise = _next_rise(potential, 1.0 - power)
        weights = -rise * potential
        log_z += logsumexp(weights) - np.log(_N_PARTICLES)
        chosen = _resample(np.exp(weights - logsumexp(weights)), rng)
        state = points[chosen], fields[chosen], potential[chosen]
        power = min(power + rise, 1.0)
        (points, fields, potential), step = _move(evaluate, state, power, step, rng)
        levels.append((power, log_z))
        all_fields.append(fields)
        all_potentials.append(potential)
    return _mixture(
        np.array(levels), np.concatenate(all_fields), np.concatenate(all_potentials)
    )


def _next_rise(potential, most):
    """Return the rise of the power that leaves half of the particles effective."""
    centred = potential - potential.min()

    def is_small(rise):
        weights = np.exp(-rise * centred)
        return weights.sum() ** 2 >= 0.5 * len(weights) * (weights**2).sum()

    if is_small(most):
        return most
    low, high = 0.0, most
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_small(middle) else (low, middle)
    return low


def _resample(weights, rng):
    """Draw as many indices as there are weights, systematically."""
    places = (np.arange(len(weights)) + rng.random()) / len(weights)
    return np.minimum(np.searchsorted(np.cumsum(weights), places), len(weights) - 1)


def _move(evaluate, state, power, step, rng):
    """Move particles by steps that leave p(z) exp(-power V(z)) as it is.

    A proposal sqrt(1 - step^2) z + step * noise keeps the prior, so that V alone
    decides; ``step`` is steered towards accepting three of ten.
    """
    points, fields, potential = (part.copy() for part in state)
    for _ in range(_N_MOVES):
        noise = rng.standard_normal(points.shape)
        proposed = np.sqrt(1.0 - step**2) * points + step * noise
        new_fields, new_potential = evaluate(proposed)
        log_ratio = -power * (new_potential - potential)
        accepted = np.log(rng.random(len(points))) < log_ratio
        points[accepted] = proposed[accepted]
        fields[accepted] = new_fields[accepted]
        potential[accepted] = new_potential[accepted]
        step = min(step * np.exp(accepted.mean() - 0.3), 1.0)
    return (points, fields, potential), step


def _mixture(levels, fields, potential):
    """Weigh points of all levels by the mixture of the levels."""
    powers, log_z = levels.T
    shares = np.full(len(powers), 1.0 / len(powers))
    for _ in range(20):
        mixture = logsumexp(-powers * potential[:, None] - log_z, axis=1, b=shares)
        log_z = logsumexp(-powers * potential[:, None] - mixture[:, None], axis=0)
        log_z -= log_z[0]
    return Interaction(fields, -potential - mixture - np.log(len(potential)))
