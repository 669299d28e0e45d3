"""Value + Sensitivity + Budget -> noisy value: Laplace, Gaussian and l-infinity noise.

Proofs: docs/proofs/noise.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource, record, released
from privatest.core.privacy import SMALLEST_SENSITIVITY, Budget, Sensitivity, gaussian_scale
from privatest.core.validation import reject

__all__ = [
    "gaussian",
    "gaussian_noise_scale",
    "gaussian_part",
    "gaussian_part_scale",
    "geometric",
    "laplace",
    "linf_mean",
    "linf_scale",
    "noisy_argmax",
]

_GAUSSIAN_GRID_BITS = 80  # the Gaussian's grid is at most 2^-80 of its sensitivity
_LINF_GRID_BITS = 30  # the l-infinity mechanism's grid is at most 2^-30 of its sensitivity


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    # OpenDP takes NaN for 0 and clamps infinities in silence.
    if not np.all(np.isfinite(values)):
        raise ParameterError("value must be finite: noise was not drawn.")
    return values


def laplace(value: float, *, sensitivity: Sensitivity, budget: Budget, noise: NoiseSource) -> float:
    """Add Laplace noise to one number.

    Parameters
    ----------
    value : float
        The private number.
    sensitivity : Sensitivity
        How far it moves between neighbours.
    budget : Budget
        With delta > 0 the noise is a little smaller (:attr:`Budget.pure_epsilon`).
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** As declared, in absolute value.

    **Privacy** The noisy number is (epsilon, delta)-private: exact discrete Laplace noise of
    scale sensitivity / xi on the grid of the smallest float.
    """
    _require_norm(sensitivity, "absolute", "l1")
    _finite(np.asarray(value, dtype=np.float64))
    scale = math.nextafter(sensitivity.value / budget.pure_epsilon, math.inf)
    repeat = partial(laplace, value=value, sensitivity=sensitivity, budget=budget)
    record(noise, "laplace", value, "absolute", (sensitivity.value,), scale, repeat)
    return released(noise, noise.laplace(float(value), scale))


def noisy_argmax(
    values: Sequence[float], *, sensitivity: Sensitivity, budget: Budget, noise: NoiseSource
) -> int:
    """Return the index of a large value: of the largest, after noise (report-noisy-max).

    Notes
    -----
    **Sensitivity** As declared, of each value; all of them may move at once, in either direction.

    **Privacy** Each value gets Laplace noise of scale 2 · sensitivity/xi. The index, and nothing
    else, is (epsilon, delta)-private: docs/proofs/embedding-tests.md.
    """
    twice = replace(sensitivity, value=2 * sensitivity.value)
    noisy = [laplace(value, sensitivity=twice, budget=budget, noise=noise) for value in values]
    return noisy.index(max(noisy))


def gaussian(
    values: NDArray[np.float64],
    *,
    sensitivity: Sensitivity,
    budget: Budget,
    noise: NoiseSource,
) -> NDArray[np.float64]:
    """Add Gaussian noise to a vector.

    Parameters
    ----------
    values : ndarray
        The private vector, any shape.
    sensitivity : Sensitivity
        How far it moves between neighbours, in "l2" (or "absolute" for one number).
    budget : Budget
        Needs delta > 0.
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** As declared, plus the rounding to the noise's grid, 2^k sqrt(size).

    **Privacy** The noisy vector is (epsilon, delta)-private by the analytic Gaussian
    mechanism on a grid so fine that its delta differs by less than 1e-29.
    """
    values = _finite(np.asarray(values, dtype=np.float64))
    _require_norm(sensitivity, "l2", *(["absolute"] if values.size == 1 else []))
    scale = gaussian_noise_scale(values.size, sensitivity, budget)
    repeat = partial(gaussian, values=values, sensitivity=sensitivity, budget=budget)
    record(noise, "gaussian", values, "l2", (sensitivity.value,), scale, repeat)
    return released(noise, noise.gaussian(values, scale, _gaussian_grid(sensitivity)))


def gaussian_noise_scale(size: int, sensitivity: Sensitivity, budget: Budget) -> float:
    """Return the standard deviation that :func:`gaussian` uses for ``size`` numbers; public."""
    widened = sensitivity.value + math.ldexp(math.sqrt(size), _gaussian_grid(sensitivity))
    return gaussian_scale(widened, budget)


def gaussian_part(
    values: NDArray[np.float64],
    *,
    sensitivity: Sensitivity,
    budget: Budget,
    share: Fraction,
    noise: NoiseSource,
) -> NDArray[np.float64]:
    """Add Gaussian noise to a vector for a share of a budget: one of several rounds.

    Parameters
    ----------
    values, sensitivity, budget, noise
        As in :func:`gaussian`; the budget is that of all rounds together.
    share : Fraction
        What this round takes, above 0 and at most 1; those of all rounds add up to 1 at most.

    Notes
    -----
    **Sensitivity** As declared, plus the rounding to the noise's grid.

    **Privacy** A round with share s is Gaussian noise of 1/sqrt(s) times the scale for all of
    the budget: the squares of sensitivity over scale add up to that of one Gaussian mechanism,
    so all rounds together are (epsilon, delta)-private, also where a later round is chosen by
    what earlier ones released: docs/proofs/tables.md.
    """
    values = _finite(np.asarray(values, dtype=np.float64))
    _require_norm(sensitivity, "l2")
    scale = gaussian_part_scale(values.size, sensitivity, budget, share)
    repeat = partial(
        gaussian_part, values=values, sensitivity=sensitivity, budget=budget, share=share
    )
    record(noise, "gaussian part", values, "l2", (sensitivity.value,), scale, repeat)
    return released(noise, noise.gaussian(values, scale, _gaussian_grid(sensitivity)))


def gaussian_part_scale(
    size: int, sensitivity: Sensitivity, budget: Budget, share: Fraction
) -> float:
    """Return the standard deviation that :func:`gaussian_part` uses; public, rounded up."""
    if not 0 < share <= 1:
        reject("share", "above 0 and at most 1", float(share))
    whole = gaussian_noise_scale(size, sensitivity, budget)
    return whole / math.sqrt(share) * (1 + 1e-14)


def _gaussian_grid(sensitivity: Sensitivity) -> int:
    return math.floor(math.log2(sensitivity.value)) - _GAUSSIAN_GRID_BITS


def linf_mean(
    mean: NDArray[np.float64], *, sensitivity: float, epsilon: float, noise: NoiseSource
) -> NDArray[np.float64]:
    """Add noise to a vector whose entries may all move at once, each by a little.

    Parameters
    ----------
    mean : ndarray
        The private vector, of one dimension.
    sensitivity : float
        How far its largest change is from 0 between neighbours (the l-infinity norm).
    epsilon : float
        What is spent, a part of a budget.
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** As declared, plus the rounding to the noise's grid g: an integer S with
    S g >= sensitivity + g.

    **Privacy** Integer noise z with P(z) proportional to exp(-epsilon |z|∞/S), drawn exactly:
    epsilon-private by the triangle inequality. Its radius is drawn with weight (2k+1)^d
    exp(-epsilon k/S), then z is uniform on the cube of that radius: docs/proofs/means.md.
    """
    values = _finite(np.asarray(mean, dtype=np.float64))
    steps, grid = _linf_grid(sensitivity)
    scale = math.nextafter(steps / epsilon, math.inf)
    repeat = partial(linf_mean, mean=mean, sensitivity=sensitivity, epsilon=epsilon)
    record(noise, "l-infinity", values, "linf", (sensitivity,), scale * grid, repeat)
    radius = _linf_radius(len(values), scale, noise)
    drawn = [noise.below(2 * radius + 1) - radius for _ in range(len(values))]
    # a quotient by a power of two is exact; so is the sum of integers
    noisy = [round(float(value) / grid) + z for value, z in zip(values, drawn, strict=True)]
    return released(noise, np.array([float(integer) * grid for integer in noisy]))


def linf_scale(sensitivity: float, epsilon: float) -> float:
    """Return the s of the density exp(-|z|∞/s) of :func:`linf_mean`'s noise; public.

    The noise of each of d entries has variance (d + 1)(d + 2)/3 · s².
    """
    steps, grid = _linf_grid(sensitivity)
    return math.nextafter(steps / epsilon, math.inf) * grid


def _linf_grid(sensitivity: float) -> tuple[int, float]:
    """Return the sensitivity in steps of the grid, and the grid, a power of two."""
    sensitivity = max(sensitivity, SMALLEST_SENSITIVITY)
    grid = math.ldexp(1.0, math.floor(math.log2(sensitivity)) - _LINF_GRID_BITS)
    return math.floor(sensitivity / grid) + 1, grid


def _linf_radius(dimension: int, scale: float, noise: NoiseSource) -> int:
    """Draw k with weight (2k + 1)^dimension exp(-k/scale), exactly."""
    while True:
        # a sum of d + 1 geometric numbers has weight binomial(k + d, d) exp(-k/scale); the two
        # weights differ by the product of (2k + 1)/(2k + 2i), up to a constant
        radius = sum(geometric(scale, noise) for _ in range(dimension + 1))
        tries = range(1, dimension + 1)
        if all(noise.below(2 * radius + 2 * i) <= 2 * radius for i in tries):
            return radius


def geometric(scale: float, noise: NoiseSource) -> int:
    """Draw k >= 0 with weight exp(-k/scale): either half of a discrete Laplace law is one."""
    drawn = noise.discrete_laplace(scale)
    return drawn if drawn >= 0 else -drawn - 1


def _require_norm(sensitivity: Sensitivity, *norms: str) -> None:
    if sensitivity.norm not in norms:
        reject("sensitivity.norm", " or ".join(norms), sensitivity.norm)
