"""Straightened correlations under permuted labels or flipped signs: one pass, then bins."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privatest.core.privacy import PermutationSensitivity
from privatest.core.results import Decision
from privatest.core.validation import Rng, integer_at_least, one_of, public_generator
from privatest.kernels.embedding import Embedding
from privatest.mechanisms.permutation import RELEASES, Release, permutation_result
from privatest.statistics.bins import parallel, sum_rows, tiles, two_sample_bins
from privatest.statistics.correlation import (
    Scale,
    correlation,
    correlation_rounding,
    straightened,
)
from privatest.statistics.moments import Moments, moments_rounding
from privatest.two_sample.embedding_outcome import embedding_facts, resolved_scale
from privatest.two_sample.embedding_samples import Question

__all__ = ["permuted_result", "relabelled"]

_CONDITION = 2.0  # K: less noise; a permutation test needs no law that K would have to serve
_PAIR_BINS = 256
_MAX_BINS = 16_384


def permuted_result(
    question: Question,
    embedding: Embedding,
    release: Release,
    condition: float | None,
    n_permutations: int,
    rng: Rng,
) -> Decision:
    """Release a p-value or a decision; see me_permutation_test."""
    one_of("release", release, RELEASES)
    n_permutations = integer_at_least("n_permutations", n_permutations, 1)
    scale = resolved_scale(question, embedding, condition, _CONDITION)
    generator = public_generator(rng)
    if question.paired:
        statistics, error = _flipped(question, embedding, scale, n_permutations, generator)
    else:
        statistics, error = relabelled(question, embedding, scale, n_permutations, generator)
    moved = question.steps * scale.sensitivity
    facts = embedding_facts(question, embedding)
    facts["parameters"] |= {"ridge": scale.ridge, "n_permutations": n_permutations}
    facts["method"] = facts["method"].replace(" test", " permutation test")
    for name in ("alpha", "spent", "simulated"):  # permutation_result has them
        del facts[name]
    return permutation_result(
        statistics,
        sensitivity=PermutationSensitivity(moved, moved).widened(error),
        budget=question.budget,
        alpha=question.alpha,
        release=release,
        noise=question.noise,
        facts=facts,
    )


def relabelled(
    question: Question,
    embedding: Embedding,
    scale: Scale,
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], float]:
    """S for the observed labels and for permuted ones: one pass, then sums over bins."""
    x, y = question.samples.x, question.samples.y
    orders = question.noise.permutation(len(x)), question.noise.permutation(len(y))
    bins = two_sample_bins(x, y, *orders, size=None, max_bins=_MAX_BINS)
    edges, total = bins.edges, bins.n + bins.m

    def part(
        tile: tuple[int, NDArray[np.intp]],
    ) -> tuple[int, NDArray[np.float64], NDArray[np.float64]]:
        first, inner = tile
        features = embedding(bins.rows(inner[0], inner[-1]))
        return first, sum_rows(features, inner - inner[0]), features.T @ features

    size = embedding.dimension
    sums, second = np.zeros((len(edges) - 1, size)), np.zeros((size, size))
    for first, sums_part, second_part in parallel(part, tiles(edges), total * size):
        sums[first : first + len(sums_part)] += sums_part
        second += second_part
    pooled = Moments(total, sums.sum(axis=0) / total, second / total)
    # labels are sqrt(m/n) and -sqrt(n/m): sqrt(nm) times the weights 1/n and -1/m
    weights = bins.weights(bins.membership(n_permutations, rng))
    products = math.sqrt(bins.n * bins.m) / total * (weights @ sums)
    # each sum is over at most size + bins terms in some order, as in one pass over blocks
    return _straight(products, pooled, scale, embedding.radius, embedding.rounding, len(edges))


def _flipped(
    question: Question,
    embedding: Embedding,
    scale: Scale,
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], float]:
    """S for the observed differences and for bins of them with flipped signs."""
    x, y = question.samples.x, question.samples.y
    order = question.noise.permutation(len(x))
    edges = np.linspace(0, len(x), min(len(x), _PAIR_BINS) + 1).astype(np.intp)
    size = embedding.dimension
    sums, second = np.zeros((len(edges) - 1, size)), np.zeros((size, size))
    for first, inner in tiles(edges):
        rows = order[inner[0] : inner[-1]]
        differences = embedding(x[rows]) - embedding(y[rows])
        part = sum_rows(differences, inner - inner[0])
        sums[first : first + len(part)] += part
        second += differences.T @ differences
    pooled = Moments(len(x), sums.sum(axis=0) / len(x), second / len(x))
    signs = np.ones((n_permutations + 1, len(sums)))
    signs[1:] = rng.choice([-1.0, 1.0], size=(n_permutations, len(sums)))
    products = signs @ sums / len(x)
    reach, error = embedding.spread, 2 * embedding.rounding
    return _straight(products, pooled, scale, reach, error, len(edges))


def _straight(
    products: NDArray[np.float64],
    pooled: Moments,
    scale: Scale,
    reach: float,
    feature_error: float,
    n_bins: int,
) -> tuple[NDArray[np.float64], float]:
    mean, second = moments_rounding(pooled.n, reach, feature_error)
    # tiles are smaller than the blocks of that bound, but there are more sums of sums
    extra = (n_bins + pooled.n / 1024) * 2.0**-52 * reach
    errors = 2 * (mean + extra), mean + extra, second + extra * reach
    error = correlation_rounding(products.shape[1], scale, reach, errors)
    return straightened(correlation(products, pooled, scale), scale), error
