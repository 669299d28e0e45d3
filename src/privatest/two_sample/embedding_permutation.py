"""Permutation tests of the straightened correlation of embedding features and group labels.

One pass over the rows, then sums over bins: labels are permuted, or signs of pairs flipped.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency, Amount, PermutationSensitivity
from privatest.core.results import Decision, Outcome
from privatest.core.secret_order import secret_bins
from privatest.core.validation import Rng, integer_at_least, one_of, public_generator
from privatest.data.samples import beside
from privatest.engines.summaries import summarise
from privatest.kernels.embedding import Embedding
from privatest.kernels.kernels import KernelFamily
from privatest.mechanisms.permutation import RELEASES, Release, permutation_result
from privatest.statistics.binned_moments import BinnedMoments, binned_rounding
from privatest.statistics.bins import BinLayout, rows_per_bin
from privatest.statistics.correlation import (
    Scale,
    correlation,
    correlation_rounding,
    straightened,
)
from privatest.statistics.moments import Moments
from privatest.two_sample.embedding_locations import characteristic_features, location_features
from privatest.two_sample.embedding_moments import (
    Inputs,
    embedding_facts,
    feature_differences,
    read_inputs,
)
from privatest.two_sample.embedding_statistic import embedding_scale

__all__ = ["me_permutation_test", "relabelled", "scf_permutation_test"]

_CONDITION = 2.0  # K: small for less noise; only a null law would need a larger one
_PAIR_BINS = 256
_MAX_BINS = 16_384


class EmbeddingOptions(TypedDict, total=False):
    """What the embedding permutation tests share besides data, budget and ``release``."""

    delta: Amount
    alpha: float
    adjacency: Adjacency
    paired: bool
    bandwidth: float | None
    condition: float | None
    n_permutations: int
    rng: Rng
    noise: NoiseSource | None


@overload
def me_permutation_test(
    x: Any,
    y: Any,
    *,
    locations: Any,
    epsilon: Amount,
    bounds: Any = ...,
    kernel: KernelFamily = ...,
    release: Literal["pvalue"] = ...,
    **options: Unpack[EmbeddingOptions],
) -> Outcome: ...
@overload
def me_permutation_test(
    x: Any,
    y: Any,
    *,
    locations: Any,
    epsilon: Amount,
    bounds: Any = ...,
    kernel: KernelFamily = ...,
    release: Release,
    **options: Unpack[EmbeddingOptions],
) -> Decision: ...
@declare_level("valid")
def me_permutation_test(
    x: Any,
    y: Any,
    *,
    locations: Any,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Release = "pvalue",
    bounds: Any = None,
    kernel: KernelFamily = "gaussian",
    bandwidth: float | None = None,
    adjacency: Adjacency = "one",
    paired: bool = False,
    condition: float | None = None,
    n_permutations: int = 999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Decision:
    """Test privately whether two samples differ, by a permutation test at public locations.

    Parameters
    ----------
    x, y, locations, bounds, kernel, bandwidth, adjacency, paired
        As in :func:`me_test`. With ``paired`` the signs of differences are flipped instead.
    epsilon, delta : float, int, str or Decimal
        The privacy budget; delta may be 0.
    alpha : float
        Level of the decision.
    release : {"pvalue", "decision"}
        A p-value with its decision, or the decision alone with less noise.
    condition : float, optional
        K, a public constant: a large one weighs all directions of the features alike, a small
        one needs less noise; 2 by default.
    n_permutations : int
        Number of random permutations.
    rng : None, int or Generator
        Public randomness, for permutations.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome or Decision
        An Outcome without a statistic for ``release="pvalue"``, else a Decision.

    Notes
    -----
    **Sensitivity** c U²/(N - M) with U² = K/2 and c as in :func:`me_test`, under every
    permutation of the labels; paired: K/(n - K/2) under all flips. Proof:
    docs/proofs/embedding-tests.md.

    **Privacy** Only the p-value (a multiple of 1/10,000) or the decision is released, at
    (epsilon, delta). Proof: docs/proofs/smoothed-permutation-test.md.

    Examples
    --------
    >>> import numpy as np, privatest as pt
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(size=5000), rng.beta(2, 1, size=5000)
    >>> me_permutation_test(x, y, locations=[0.25, 0.75], bounds=(0, 1), epsilon=1).reject
    True
    """
    inputs = read_inputs(
        x,
        y,
        bounds=bounds,
        budget=(epsilon, delta),
        alpha=alpha,
        adjacency=adjacency,
        paired=paired,
        noise=noise,
    )
    embedding = location_features(locations, inputs.samples.x, kernel, bandwidth)
    name = "mean embedding permutation test"
    return _permuted_result(inputs, embedding, name, release, condition, n_permutations, rng)


@overload
def scf_permutation_test(
    x: Any,
    y: Any,
    *,
    frequencies: Any,
    bounds: Any,
    epsilon: Amount,
    release: Literal["pvalue"] = ...,
    **options: Unpack[EmbeddingOptions],
) -> Outcome: ...
@overload
def scf_permutation_test(
    x: Any,
    y: Any,
    *,
    frequencies: Any,
    bounds: Any,
    epsilon: Amount,
    release: Release,
    **options: Unpack[EmbeddingOptions],
) -> Decision: ...
@declare_level("valid")
def scf_permutation_test(
    x: Any,
    y: Any,
    *,
    frequencies: Any,
    bounds: Any,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Release = "pvalue",
    bandwidth: float | None = None,
    adjacency: Adjacency = "one",
    paired: bool = False,
    condition: float | None = None,
    n_permutations: int = 999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Decision:
    """Test privately whether two samples differ, by permuting characteristic functions.

    Parameters
    ----------
    x, y, frequencies, bounds, bandwidth
        As in :func:`scf_test`.
    epsilon, delta, alpha, release, adjacency, paired, condition, n_permutations, rng, noise
        As in :func:`me_permutation_test`.

    Returns
    -------
    Outcome or Decision
        An Outcome without a statistic for ``release="pvalue"``, else a Decision.

    Notes
    -----
    **Sensitivity** As in :func:`me_permutation_test`, with the spread of :func:`scf_test` for c.

    **Privacy** As in :func:`me_permutation_test`.

    Examples
    --------
    >>> import numpy as np, privatest as pt
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(size=5000), rng.beta(2, 1, size=5000)
    >>> scf_permutation_test(x, y, frequencies=[2.0, 4.0], bounds=(0, 1), epsilon=1).reject
    True
    """
    inputs = read_inputs(
        x,
        y,
        bounds=bounds,
        budget=(epsilon, delta),
        alpha=alpha,
        adjacency=adjacency,
        paired=paired,
        noise=noise,
    )
    embedding = characteristic_features(frequencies, inputs.samples.x, bandwidth)
    name = "smooth characteristic function permutation test"
    return _permuted_result(inputs, embedding, name, release, condition, n_permutations, rng)


def _permuted_result(
    inputs: Inputs,
    embedding: Embedding,
    test: str,
    release: Release,
    condition: float | None,
    n_permutations: int,
    rng: Rng,
) -> Decision:
    """Release a p-value or a decision; see :func:`me_permutation_test`."""
    one_of("release", release, RELEASES)
    n_permutations = integer_at_least("n_permutations", n_permutations, 1)
    scale = embedding_scale(inputs, embedding, condition, _CONDITION)
    generator = public_generator(rng)
    if inputs.paired:
        statistics, error = _flipped(inputs, embedding, scale, n_permutations, generator)
    else:
        statistics, error = relabelled(inputs, embedding, scale, n_permutations, generator)
    moved = inputs.steps * scale.sensitivity
    facts = embedding_facts(inputs, embedding, test)
    facts["parameters"] |= {"ridge": scale.ridge, "n_permutations": n_permutations}
    return permutation_result(
        statistics,
        sensitivity=PermutationSensitivity(moved, moved).widened(error),
        budget=inputs.budget,
        alpha=inputs.alpha,
        release=release,
        noise=inputs.noise,
        facts=facts,
    )


def relabelled(
    inputs: Inputs,
    embedding: Embedding,
    scale: Scale,
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], float]:
    """S for the observed labels and for permuted ones: one pass, then sums over bins."""
    n, m = map(len, inputs.samples)
    layout = BinLayout(n, m, rows_per_bin(n, m, None, _MAX_BINS))
    asked = []
    for sample, count in zip(inputs.samples, layout.counts, strict=True):
        left = len(sample) - count * layout.size
        bins = secret_bins([layout.size] * count + [left], inputs.noise)
        sizes = len(sample), layout.size
        made = partial(BinnedMoments, embedding, embedding.dimension, bins, sizes, embedding.radius)
        asked.append((sample, made))
    x, y = summarise(*asked)
    own, others, total = x.sums.value, y.sums.value, n + m
    sums = np.vstack([own[:-1], others[:-1], own[-1:], others[-1:]])
    pooled = Moments(total, sums.sum(axis=0) / total, (x.second.value + y.second.value) / total)
    # labels are sqrt(m/n) and -sqrt(n/m): sqrt(nm) times the weights 1/n and -1/m
    weights = layout.weights(layout.membership(n_permutations, rng))
    products = math.sqrt(n * m) / total * (weights @ sums)
    rounding = binned_rounding(
        total,
        min(n, m),
        len(sums),
        layout.size,
        embedding.radius,
        embedding.rounding,
        embedding.dimension,
    )
    return _straight(products, pooled, scale, embedding.radius, rounding)


def _flipped(
    inputs: Inputs,
    embedding: Embedding,
    scale: Scale,
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], float]:
    """S for the observed differences and for bins of them with flipped signs."""
    n, size, reach = len(inputs.samples.x), embedding.dimension, embedding.spread
    edges = np.linspace(0, n, min(n, _PAIR_BINS) + 1).astype(np.intp)
    in_bins = np.diff(edges).tolist()
    psi = partial(feature_differences, embedding)
    bins = secret_bins(in_bins, inputs.noise)
    made = partial(BinnedMoments, psi, size, bins, (n, max(in_bins)), reach)
    (found,) = summarise((beside(*inputs.samples), made))
    sums = found.sums.value
    pooled = Moments(n, sums.sum(axis=0) / n, found.second.value / n)
    signs = np.ones((n_permutations + 1, len(sums)))
    signs[1:] = rng.choice([-1.0, 1.0], size=(n_permutations, len(sums)))
    products = signs @ sums / n
    error = 2 * embedding.rounding
    rounding = binned_rounding(n, n, len(sums), max(in_bins), reach, error, size)
    return _straight(products, pooled, scale, reach, rounding)


def _straight(
    products: NDArray[np.float64],
    pooled: Moments,
    scale: Scale,
    reach: float,
    rounding: tuple[float, float],
) -> tuple[NDArray[np.float64], float]:
    mean, second = rounding
    errors = 2 * mean, mean, second
    error = correlation_rounding(products.shape[1], scale, reach, errors)
    return straightened(correlation(products, pooled, scale), scale), error
