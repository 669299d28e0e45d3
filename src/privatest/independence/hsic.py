"""Are two sides of the same rows independent?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget, PermutationSensitivity
from privatest.core.results import Decision, Outcome
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.domain import Domain
from privatest.data.samples import TwoSamples, encode_pairs
from privatest.kernels.features import nystrom, resolved
from privatest.kernels.kernels import Kernel, KernelFamily, kernel_grid
from privatest.kernels.shared import SharedFeatures, stacked, tabulated
from privatest.mechanisms.permutation import RELEASES, Release, permutation_result, strongest
from privatest.statistics.hsic import (
    hsic_sensitivity,
    hsic_u_sensitivity,
    permuted_hsic_exact,
)
from privatest.statistics.hsic_features import permuted_hsic_features
from privatest.statistics.kernel_moments import null_moments

__all__ = ["hsic_test"]

Method = Literal["auto", "exact", "nystrom"]
_METHODS = ("auto", "exact", "nystrom")
_MAX_RANK = 24  # per kernel; more did not change power (benchmarks/power/hsic.py)


class HsicOptions(TypedDict, total=False):
    """What :func:`hsic_test` takes besides data, budget and ``release``."""

    delta: Amount
    alpha: float
    bounds_x: Any
    bounds_y: Any
    kernel_x: KernelFamily
    kernel_y: KernelFamily
    bandwidths_x: float | Sequence[float] | None
    bandwidths_y: float | Sequence[float] | None
    estimator: Literal["v", "u"]
    method: Method
    n_permutations: int
    rng: Rng
    noise: NoiseSource | None


@overload
def hsic_test(
    x: Any,
    y: Any,
    *,
    epsilon: Amount,
    release: Literal["pvalue"] = ...,
    **options: Unpack[HsicOptions],
) -> Outcome: ...
@overload
def hsic_test(
    x: Any, y: Any, *, epsilon: Amount, release: Release, **options: Unpack[HsicOptions]
) -> Decision: ...
def hsic_test(
    x: Any,
    y: Any,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Release = "pvalue",
    bounds_x: Any = None,
    bounds_y: Any = None,
    kernel_x: KernelFamily = "gaussian",
    kernel_y: KernelFamily = "gaussian",
    bandwidths_x: float | Sequence[float] | None = None,
    bandwidths_y: float | Sequence[float] | None = None,
    estimator: Literal["v", "u"] = "v",
    method: Method = "auto",
    n_permutations: int = 999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Decision:
    """Test privately whether x and y are independent (dpHSIC).

    The Hilbert-Schmidt independence criterion, adaptive over pairs of public bandwidths, with a
    smoothed permutation test: the p-value is exactly uniform under the null hypothesis.

    Parameters
    ----------
    x, y : array, data frame or Arrow table
        Row i of ``x`` and row i of ``y`` belong to one record.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision.
    release : {"pvalue", "decision"}
        A p-value with its decision, or the decision alone with less noise.
    bounds_x, bounds_y : pair, (d, 2) array, mapping of names to pairs, or Schema
        Public bounds of the columns of each side. Data outside is clipped. Without bounds the
        side's bandwidths must be given, in the data's own units.
    kernel_x, kernel_y : {"gaussian", "laplace", "imq"}
        Kernel of the numeric columns of each side.
    bandwidths_x, bandwidths_y : float or sequence of float, optional
        Public bandwidths, as a share of each column's bounds; by default a grid from 4 to 1/16
        of the box.
    estimator : {"v", "u"}
        HSIC, or the unbiased estimate of its square (more noise; exact kernels only).
    method : {"auto", "exact", "nystrom"}
        Exact kernels, or features on public points. "auto" takes features where both sides
        have bounds.
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
    **Sensitivity** With c² = 2 (sup k - inf k) of each side's kernel over its public box and
    C = c_x c_y (n-1)/n², replacing one pair moves HSIC by at most sqrt(3/2) C and permuted
    statistics by at most 2 C, times the rows a person may have. Proof:
    docs/proofs/hsic-sensitivity.md.

    **Privacy** Only the p-value (a multiple of 1/10,000) or the decision is released, at
    (epsilon, delta). Proof: docs/proofs/smoothed-permutation-test.md.

    References
    ----------
    Kim and Schrab (2023), Differentially private permutation tests: applications to kernel
    methods.

    Examples
    --------
    >>> import numpy as np, privatest as pt
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=2000)
    >>> y = (x + rng.uniform(size=2000)) / 2
    >>> pt.hsic_test(x, y, epsilon=1, bounds_x=(0, 1), bounds_y=(0, 1)).reject
    True
    """
    budget = Budget(epsilon, delta)
    alpha = number("alpha", alpha, above=0, below=1)
    one_of("release", release, RELEASES)
    one_of("estimator", estimator, ("v", "u"))
    one_of("method", method, _METHODS)
    n_permutations = integer_at_least("n_permutations", n_permutations, 1)
    generator, source = public_generator(rng), noise_source(noise)
    sides = encode_pairs(x, y, bounds_x, bounds_y)
    if len(sides[0].rows) < 4:
        raise DataError("x and y must have at least 4 rows.")
    kernels = (
        kernel_grid(kernel_x, bandwidths_x, sides[0].domain),
        kernel_grid(kernel_y, bandwidths_y, sides[1].domain),
    )
    plan = _plan(sides, kernels, estimator, method, n_permutations)
    values, sensitivities = _statistics(plan, generator, source)
    statistics, sensitivity = strongest(
        values,
        sensitivities,
        _null(plan),
        rows=len(sides[0].rows),
        epsilon=budget.pure_epsilon,
        release=release,
    )
    return permutation_result(
        statistics,
        sensitivity=sensitivity,
        budget=budget,
        alpha=alpha,
        release=release,
        noise=source,
        facts=_facts(plan),
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is decided before looking at the data, and the data."""

    sides: TwoSamples
    kernels: tuple[tuple[Kernel, ...], tuple[Kernel, ...]]
    features: tuple[SharedFeatures, SharedFeatures] | None
    estimator: Literal["v", "u"]
    n_permutations: int


def _plan(
    sides: TwoSamples,
    kernels: tuple[tuple[Kernel, ...], tuple[Kernel, ...]],
    estimator: Literal["v", "u"],
    method: Method,
    n_permutations: int,
) -> _Plan:
    bounded = all(side.domain.bounded for side in sides)
    if method == "nystrom" and not bounded:
        raise ParameterError("method='nystrom' needs bounds on both sides for its public points.")
    if method == "nystrom" and estimator == "u":
        raise ParameterError("estimator='u' needs method='exact': features have no diagonal.")
    if method == "exact" or estimator == "u" or not bounded:
        return _Plan(sides, kernels, None, estimator, n_permutations)
    (kernels_x, features_x), (kernels_y, features_y) = (
        _side_features(grid, side.domain) for side, grid in zip(sides, kernels, strict=True)
    )
    features = (features_x, features_y)
    return _Plan(sides, (kernels_x, kernels_y), features, estimator, n_permutations)


@lru_cache(maxsize=32)
def _side_features(
    kernels: tuple[Kernel, ...], domain: Domain
) -> tuple[tuple[Kernel, ...], SharedFeatures]:
    """Return the kernels that public points resolve, and their features."""
    landmarks = domain.landmarks()
    kept = resolved(kernels, landmarks, domain)
    table = tabulated(kept, domain, max_rank=_MAX_RANK)
    return kept, table or stacked(nystrom(kept, landmarks, domain, max_rank=_MAX_RANK))


def _statistics(
    plan: _Plan, rng: np.random.Generator, noise: NoiseSource
) -> tuple[NDArray[np.float64], list[PermutationSensitivity]]:
    """Return the statistics (pairs of kernels × permutations) and how far each pair's move."""
    left, right = plan.sides
    n = len(left.rows)
    order = noise.permutation(n)  # secret; partners stay together
    x, y = left.rows[order], right.rows[order]
    if plan.features is not None:
        spreads = [side.spreads for side in plan.features]
        values, errors = permuted_hsic_features(x, y, plan.features, plan.n_permutations, rng)
    else:
        spreads = [
            tuple(kernel.spread(side.domain) for kernel in grid)
            for side, grid in zip(plan.sides, plan.kernels, strict=True)
        ]
        shuffles = np.tile(np.arange(n), (plan.n_permutations + 1, 1))
        rng.permuted(shuffles[1:], axis=1, out=shuffles[1:])
        values, errors = permuted_hsic_exact(
            x,
            y,
            plan.kernels,
            (left.domain, right.domain),
            shuffles,
            unbiased=plan.estimator == "u",
        )
    bound = hsic_u_sensitivity if plan.estimator == "u" else hsic_sensitivity
    bounds = [bound(a, b, n) * left.rows_per_person for a in spreads[0] for b in spreads[1]]
    return values, [
        sensitivity.widened(float(error)) for sensitivity, error in zip(bounds, errors, strict=True)
    ]


def _null(plan: _Plan) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Mean and standard deviation of each pair's statistic if both sides were uniform."""
    if not all(side.domain.bounded for side in plan.sides):
        return None
    n = len(plan.sides[0].rows)
    first, second = (
        np.array(null_moments(grid, side.domain))
        for side, grid in zip(plan.sides, plan.kernels, strict=True)
    )
    squares = np.outer(first[:, 1], second[:, 1]).ravel()
    if plan.estimator == "u":
        return np.zeros(len(squares)), np.sqrt(2 * squares) / n
    means = np.sqrt(np.outer(first[:, 0], second[:, 0]).ravel() / n)
    # a kernel that rounds to 1 everywhere has neither
    return means, np.sqrt(squares / 2) / (n * np.where(means > 0, means, np.inf))


def _facts(plan: _Plan) -> dict[str, Any]:
    return {
        "adjacency": "one",
        "method": "HSIC independence test",
        "null_hypothesis": "the two sides are independent",
        "sizes": {"n": len(plan.sides[0].rows)},
        "parameters": {
            "kernel_x": plan.kernels[0][0].family,
            "kernel_y": plan.kernels[1][0].family,
            "bandwidths_x": tuple(kernel.bandwidth for kernel in plan.kernels[0]),
            "bandwidths_y": tuple(kernel.bandwidth for kernel in plan.kernels[1]),
            "estimator": plan.estimator,
            "computation": "exact" if plan.features is None else "nystrom",
            "n_permutations": plan.n_permutations,
        },
        "unit": plan.sides[0].unit,
    }
