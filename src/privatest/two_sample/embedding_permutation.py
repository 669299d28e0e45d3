"""Permutation tests of the straightened correlation of embedding features and group labels."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Unpack, overload

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency, Amount
from privatest.core.results import Decision, Outcome
from privatest.core.validation import Rng
from privatest.kernels.kernels import KernelFamily
from privatest.mechanisms.permutation import Release
from privatest.two_sample.embedding_locations import characteristic_features, location_features
from privatest.two_sample.embedding_relabelling import permuted_result
from privatest.two_sample.embedding_samples import read_question

__all__ = ["me_permutation_test", "scf_permutation_test"]


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
    """Test privately whether two samples are alike, by a permutation test at public locations.

    Parameters
    ----------
    x, y, locations, bounds, kernel, bandwidth, adjacency, paired
        As in :func:`me_test`. With ``paired`` signs of differences are flipped in place of labels.
    epsilon, delta : float, int, str or Decimal
        The privacy budget; delta may be 0.
    alpha : float
        Level of the decision.
    release : {"pvalue", "decision"}
        A p-value with its decision, or the decision alone with less noise.
    condition : float, optional
        K, a public constant: large looks at all directions of the features alike, small needs
        less noise; 2 by default.
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
    question = read_question(
        x,
        y,
        bounds=bounds,
        budget=(epsilon, delta),
        alpha=alpha,
        adjacency=adjacency,
        paired=paired,
        noise=noise,
    )
    embedding = location_features(locations, question.bounds, question.domain, kernel, bandwidth)
    return permuted_result(question, embedding, release, condition, n_permutations, rng)


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
    """Test privately whether two samples are alike, by permuting labels of waves.

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
    question = read_question(
        x,
        y,
        bounds=bounds,
        budget=(epsilon, delta),
        alpha=alpha,
        adjacency=adjacency,
        paired=paired,
        noise=noise,
    )
    embedding = characteristic_features(frequencies, question.bounds, question.domain, bandwidth)
    return permuted_result(question, embedding, release, condition, n_permutations, rng)
