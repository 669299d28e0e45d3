"""The straightened correlation of features and labels: one number to release, or to choose by.

Pure epsilon: Laplace noise, and a null law that needs no data (Raj et al.'s TCS, corrected).
A private choice of locations uses it too: one part of the rows chooses among public candidates,
the other tests. Proofs: docs/proofs/embedding-tests.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError, PrivacyError
from privatest.core.privacy import Sensitivity
from privatest.core.validation import number
from privatest.data.samples import TwoSamples
from privatest.kernels.embedding import Embedding
from privatest.mechanisms.additive import laplace, noisy_argmax
from privatest.statistics.correlation import (
    Scale,
    correlation,
    correlation_rounding,
    paired_scale,
    straightened,
    two_sample_scale,
)
from privatest.statistics.moments import Moments, moments_rounding
from privatest.two_sample.embedding_moments import Inputs, pair_moments, sample_moments

__all__ = [
    "embedding_scale",
    "embedding_statistic",
    "released_statistic",
    "select_privately",
    "statistic_pvalue",
]

_CONDITION = 100.0  # K of a released statistic; benchmarks/power/embedding.py
_CHOICE_CONDITION = 2.0  # K of a choice, which needs no null law
_CHOOSING = 5  # one row in five chooses
_GRID = 4096
_BAKIROV = 1.5365  # above it no weights of sum 1 have a larger tail than a single chi²


def embedding_scale(
    inputs: Inputs, embedding: Embedding, condition: float | None, default: float
) -> Scale:
    """Return the public constants of S; by default K is small enough for the sizes."""
    n, m = len(inputs.samples.x), len(inputs.samples.y)
    total = n if inputs.paired else n + m
    if condition is None:
        chosen = min(default, total / 4)
    else:
        chosen = number("condition", condition, above=0)
        if chosen > total / 2:
            raise ParameterError("condition must be at most half the number of rows.")
    if inputs.paired:
        return paired_scale(n, reach=embedding.spread, condition=chosen)
    return two_sample_scale(
        n, m, radius=embedding.radius, spread=embedding.spread, condition=chosen
    )


def embedding_statistic(
    inputs: Inputs, embedding: Embedding, scale: Scale
) -> tuple[float, int, float, float]:
    """Return S, the number of labelled rows, S's rounding error and the largest variance."""
    if inputs.paired:
        pairs = pair_moments(inputs, embedding)
        products, pooled, reach = pairs.mean, pairs, embedding.spread
        variance, feature_error = reach**2, 2 * embedding.rounding
    else:
        x, y = sample_moments(inputs, embedding)
        total = x.n + y.n
        pooled = Moments(
            total,
            (x.n * x.mean + y.n * y.mean) / total,
            (x.n * x.second + y.n * y.second) / total,
        )
        products = math.sqrt(x.n * y.n) / total * (x.mean - y.mean)
        reach, feature_error = embedding.radius, embedding.rounding
        # the variance of vectors in a ball is E|psi - psi'|²/2, and at most E|psi|²
        variance = min(embedding.radius**2, embedding.spread**2 / 2)
    mean, second = moments_rounding(pooled.n, reach, embedding.dimension, feature_error)
    errors = 2 * mean, mean, second
    error = correlation_rounding(embedding.dimension, scale, reach, errors)
    value = straightened(correlation(products[None], pooled, scale), scale)[0]
    return float(value), pooled.n, error, variance


def released_statistic(
    inputs: Inputs, embedding: Embedding, condition: float | None
) -> tuple[float, float, float]:
    """Release S with Laplace noise; return it with its p-value and the ridge."""
    scale = embedding_scale(inputs, embedding, condition, _CONDITION)
    value, total, error, variance = embedding_statistic(inputs, embedding, scale)
    bound = Sensitivity(
        (inputs.steps * scale.sensitivity + 2 * error) * (1 + 1e-12),
        adjacency=inputs.adjacency,
    )
    noisy = laplace(value, sensitivity=bound, budget=inputs.budget, noise=inputs.noise)
    pvalue = statistic_pvalue(
        noisy,
        size=total,
        dimension=embedding.dimension,
        variance=variance,
        scale=scale,
        noise_scale=bound.value / inputs.budget.pure_epsilon,
    )
    return noisy, pvalue, scale.ridge


def statistic_pvalue(
    noisy: float, *, size: int, dimension: int, variance: float, scale: Scale, noise_scale: float
) -> float:
    """Probability that S with its noise is as large under the null hypothesis; public.

    ``size`` is the number of labelled rows. The law of S is taken from above on a grid, so the
    p-value is never too small but for the normal approximation of a mean.
    """
    masses, values = _null_law(size, dimension, variance, scale)
    distance = (noisy - values) / noise_scale
    small = 0.5 * np.exp(-np.abs(distance))
    above = np.where(distance > 0, small, 1 - small)
    return min(1.0, float(masses @ above))


@lru_cache(maxsize=16)
def _null_law(
    size: int, dimension: int, variance: float, scale: Scale
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return masses and values of a discrete law that is nowhere below that of S."""
    tail = _correlation_tail(dimension, variance, scale.ridge)
    grid = np.linspace(0.0, 1.0, _GRID + 1) ** 2  # finer near 0, where the law has its mass
    survival = tail(size * grid**2)
    masses = survival - np.append(survival[1:], 0.0)
    return masses, straightened(np.append(grid[1:], 1.0), scale)  # each mass at its right end


def _correlation_tail(
    dimension: int, variance: float, ridge: float
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Upper bound on P(N r² >= q), whatever the covariance of the features.

    N r² tends to sum t_i z_i², t_i = l_i/(l_i + ridge) with l_i the eigenvalues of the features'
    covariance, at most ``variance`` together. So t_i <= v/(v + ridge) gives a scaled chi²_J, and
    sum t_i <= J v/(v + J ridge) gives, above 1.5365 times it, a scaled chi²_1 (Bakirov 1987).
    """
    from scipy.special import chdtrc  # noqa: PLC0415 -- not needed to import privatest

    largest = variance / (variance + ridge)
    total = dimension * variance / (variance + dimension * ridge)

    def tail(q: NDArray[np.float64]) -> NDArray[np.float64]:
        every: NDArray[np.float64] = chdtrc(dimension, q / largest)
        single = np.where(q >= _BAKIROV * total, chdtrc(1, q / total), 1.0)
        return np.minimum(every, single)

    return tail


def select_privately(inputs: Inputs, candidates: Sequence[Embedding]) -> tuple[int, Inputs]:
    """Return the chosen candidate's index and the rows that did not choose.

    Notes
    -----
    **Sensitivity** S of each candidate moves by at most its scale's sensitivity.

    **Privacy** Report-noisy-max on the S: the index, and nothing else, is epsilon-private. Rows
    are first put into a secret random order, so which part a row is in does not depend on the
    data. A row is seen by the choice or by the test, never by both: together they cost the larger
    of the two budgets, not the sum. That needs one row per person; a pair is one row.
    """
    if inputs.steps > 1:
        raise PrivacyError(
            "PrivateChoice needs one row per person and adjacency='one': a person with rows in "
            "both parts would be used twice."
        )
    choosing, testing = _split(inputs)
    scales = [
        embedding_scale(choosing, embedding, None, _CHOICE_CONDITION) for embedding in candidates
    ]
    values, widest = [], 0.0
    for embedding, scale in zip(candidates, scales, strict=True):
        value, _, error, _ = embedding_statistic(choosing, embedding, scale)
        values.append(value)
        widest = max(widest, (scale.sensitivity + 2 * error) * (1 + 1e-12))
    chosen = noisy_argmax(
        values, sensitivity=Sensitivity(widest), budget=inputs.budget, noise=inputs.noise
    )
    return chosen, testing


def _split(inputs: Inputs) -> tuple[Inputs, Inputs]:
    """Cut rows in a secret order; pairs stay together."""
    x, y = inputs.samples
    first_x, first_y = len(x) // _CHOOSING, len(y) // _CHOOSING
    if min(first_x, first_y) < 2:
        raise DataError(f"PrivateChoice needs at least {2 * _CHOOSING} rows in each sample.")
    order_x, order_y = inputs.samples.secret_orders(inputs.noise, paired=inputs.paired)

    def part(rows_x: slice, rows_y: slice) -> Inputs:
        samples = TwoSamples(x.part(order_x[rows_x]), y.part(order_y[rows_y]))
        return replace(inputs, samples=samples)

    return (
        part(slice(first_x), slice(first_y)),
        part(slice(first_x, None), slice(first_y, None)),
    )
