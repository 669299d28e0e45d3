"""From feature moments to an Outcome: both releases of the embedding tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.privacy import Sensitivity
from privatest.core.results import Outcome
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.kernels.embedding import Embedding, MeanEmbedding, SmoothCharacteristic
from privatest.mechanisms.additive import laplace
from privatest.mechanisms.moments import nearest_psd, release_moments
from privatest.statistics.correlation import (
    Scale,
    correlation,
    correlation_rounding,
    paired_scale,
    straightened,
    two_sample_scale,
)
from privatest.statistics.moment_test import (
    NULLS,
    Null,
    PooledMoments,
    moment_pvalue,
    pooled_covariance,
)
from privatest.statistics.moments import Moments, moments_rounding
from privatest.two_sample.common import NULL_HYPOTHESIS
from privatest.two_sample.embedding_locations import decoded
from privatest.two_sample.embedding_moments import release_difference
from privatest.two_sample.embedding_samples import Question, pair_moments, sample_moments
from privatest.two_sample.embedding_statistic import statistic_pvalue, variance_bound

__all__ = ["embedding_facts", "embedding_outcome", "resolved_scale", "straight_statistic"]

_PAIRED_NULL = "the two members of a pair can be exchanged"
_CONDITION = 100.0  # K of the statistic; benchmarks/power/embedding.py


def embedding_outcome(
    question: Question,
    embedding: Embedding,
    *,
    release: str,
    null: Null,
    condition: float | None,
    n_bootstrap: int,
    rng: Rng,
) -> Outcome:
    """Release what was asked for; see :func:`privatest.two_sample.embedding.me_test`."""
    one_of("release", release, ("moments", "statistic"))
    one_of("null", null, NULLS)
    integer_at_least("n_bootstrap", n_bootstrap, 1)
    generator = public_generator(rng)
    facts = embedding_facts(question, embedding)
    if release == "statistic":
        if null != "corrected":
            raise ParameterError("null='asymptotic' goes with release='moments' only.")
        return _statistic(question, embedding, condition, facts)
    if condition is not None:
        raise ParameterError("condition goes with release='statistic' only.")
    pooled = _released(question, embedding)
    statistic, pvalue = moment_pvalue(pooled, null=null, n_bootstrap=n_bootstrap, rng=generator)
    facts["parameters"] |= {"release": release, "null": null, "n_bootstrap": n_bootstrap}
    return Outcome(
        reject=pvalue <= question.alpha,
        pvalue=pvalue,
        statistic=statistic,
        estimates=_estimates(pooled, embedding),
        **facts,
    )


def _released(question: Question, embedding: Embedding) -> PooledMoments:
    if not question.paired:
        x, y = sample_moments(question, embedding)
        return release_difference(
            x,
            y,
            radius=embedding.radius,
            spread=embedding.spread,
            budget=question.budget,
            noise=question.noise,
            adjacency=question.adjacency,
            rows_per_person=question.samples.rows_per_person,
            feature_error=embedding.rounding,
        )
    # a difference of features is at most the spread long, and two are at most twice that apart
    released = release_moments(
        pair_moments(question, embedding),
        radius=embedding.spread,
        budget=question.budget,
        noise=question.noise,
        rows_per_person=question.samples.rows_per_person,
        feature_error=2 * embedding.rounding,
    )
    # Two samples of 2n rows have H = n; the mean difference is that of means +w/2 and -w/2.
    return PooledMoments(
        n_x=2 * released.n,
        n_y=2 * released.n,
        difference=released.mean,
        centre=np.zeros_like(released.mean),
        second=released.second,
        sigma_difference=released.sigma,
        sigma_centre=0.0,
        sigma_second=released.sigma_second,
        share=0.5,
    )


def _statistic(
    question: Question, embedding: Embedding, condition: float | None, facts: dict[str, Any]
) -> Outcome:
    scale = resolved_scale(question, embedding, condition, _CONDITION)
    value, total, error, variance = straight_statistic(question, embedding, scale)
    bound = Sensitivity(
        (question.steps * scale.sensitivity + 2 * error) * (1 + 1e-12),
        adjacency=question.adjacency,
    )
    noisy = laplace(value, sensitivity=bound, budget=question.budget, noise=question.noise)
    pvalue = statistic_pvalue(
        noisy,
        size=total,
        dimension=embedding.dimension,
        variance=variance,
        scale=scale,
        noise_scale=bound.value / question.budget.pure_epsilon,
    )
    facts["parameters"] |= {"release": "statistic", "ridge": scale.ridge}
    return Outcome(reject=pvalue <= question.alpha, pvalue=pvalue, statistic=noisy, **facts)


def straight_statistic(
    question: Question, embedding: Embedding, scale: Scale
) -> tuple[float, int, float, float]:
    """Return S, the number of labelled rows, S's rounding error and the largest variance."""
    if question.paired:
        pairs = pair_moments(question, embedding)
        products, pooled, reach = pairs.mean, pairs, embedding.spread
        variance, feature_error = reach**2, 2 * embedding.rounding
    else:
        x, y = sample_moments(question, embedding)
        total = x.n + y.n
        pooled = Moments(
            total,
            (x.n * x.mean + y.n * y.mean) / total,
            (x.n * x.second + y.n * y.second) / total,
        )
        products = math.sqrt(x.n * y.n) / total * (x.mean - y.mean)
        reach, feature_error = embedding.radius, embedding.rounding
        variance = variance_bound(embedding.radius, embedding.spread)
    mean, second = moments_rounding(pooled.n, reach, feature_error)
    errors = 2 * mean, mean, second
    error = correlation_rounding(embedding.dimension, scale, reach, errors)
    value = straightened(correlation(products[None], pooled, scale), scale)[0]
    return float(value), pooled.n, error, variance


def resolved_scale(
    question: Question, embedding: Embedding, condition: float | None, default: float
) -> Scale:
    """Return the public constants of S; by default K is small enough for the sizes."""
    n, m = len(question.samples.x), len(question.samples.y)
    total = n if question.paired else n + m
    if condition is None:
        chosen = min(default, total / 4)
    else:
        chosen = number("condition", condition, above=0)
        if chosen > total / 2:
            raise ParameterError("condition must be at most half the number of rows.")
    if question.paired:
        return paired_scale(n, reach=embedding.spread, condition=chosen)
    return two_sample_scale(
        n, m, radius=embedding.radius, spread=embedding.spread, condition=chosen
    )


def embedding_facts(question: Question, embedding: Embedding) -> dict[str, Any]:
    """Public fields of a result."""
    parameters: dict[str, Any] = {"paired": question.paired}
    if isinstance(embedding, MeanEmbedding):
        name = f"mean embedding test ({embedding.kernel.family} kernel)"
        parameters |= {
            "kernel": embedding.kernel.family,
            "bandwidth": embedding.kernel.bandwidth,
            "locations": decoded(embedding.locations, question.bounds, question.domain),
        }
    else:
        name = "smooth characteristic function test"
        if isinstance(embedding, SmoothCharacteristic):
            parameters |= {
                "bandwidth": embedding.bandwidth,
                "frequencies": embedding.frequencies.T.tolist(),  # per unit of the box
            }
    return {
        "alpha": question.alpha,
        "spent": question.budget,
        "simulated": question.noise.simulated,
        "adjacency": question.adjacency,
        "method": ("paired " if question.paired else "two-sample ") + name,
        "null_hypothesis": _PAIRED_NULL if question.paired else NULL_HYPOTHESIS,
        "sizes": question.sizes,
        "parameters": parameters,
        "unit": question.samples.unit,
    }


def _estimates(pooled: PooledMoments, embedding: Embedding) -> dict[str, Any]:
    """Write the released moments as kernel values, or as cosines and sines."""
    back = _unscaling(embedding)
    covariance = back @ nearest_psd(pooled_covariance(pooled)) @ back.T
    noise = pooled.sigma_difference * np.linalg.norm(back, axis=1)
    return {
        "difference": back @ pooled.difference,
        "noise": noise,
        "error": np.sqrt(noise**2 + np.diag(covariance) / pooled.harmonic),
        "covariance": covariance,
    }


def _unscaling(embedding: Embedding) -> NDArray[np.float64]:
    """Return the linear map from features to what a reader knows."""
    if isinstance(embedding, MeanEmbedding):
        return embedding.unwhitening
    size = embedding.dimension
    return math.sqrt(size / 2) * np.eye(size)
