"""The mean embedding of data in a kernel's RKHS: what a release by a kernel measures and computes.

Algorithm 1 of Balog et al. (2018): public points, noisy coordinates in their span, weights, and
means of functions from the coordinates. Proof: docs/proofs/synthetic.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget, Sensitivity, gaussian_scale
from privatest.core.results import read_only
from privatest.data.encoding import Sample
from privatest.data.engines import within_block
from privatest.data.schema import Domain, NumericColumn, Schema
from privatest.data.sources import Held
from privatest.data.summaries import summarise
from privatest.mechanisms.additive import gaussian, gaussian_part, gaussian_part_scale
from privatest.numerics.features import angles, cos_sin
from privatest.numerics.kernels import UNIT_ROUNDOFF, Kernel, gram, gram_roundings
from privatest.numerics.permutation import parallel
from privatest.synthetic.answers import (
    Columns,
    Estimate,
    Floats,
    Function,
    Jumps,
    MeanEstimates,
    MeanSource,
    Progress,
    Weighting,
    honest_error,
    is_noise,
    row_count,
    unexplained,
)

_MOST_TRIED = 8  # times the number wanted, where integer rows repeat


def box_points(schema: Schema, count: int) -> Floats:
    """Return at most ``count`` different rows of the schema, spread evenly over its box.

    A low-discrepancy sequence; integers are integers and categories categories. Where the
    schema has fewer rows there are fewer points.
    """
    domain, tried = schema.domain, count
    while True:
        points = domain.points(tried)
        for index, width in _integer_widths(schema).items():  # each integer with its share
            points[:, index] = np.floor(points[:, index] * (width + 1)).clip(0, width) / width
        _, first = np.unique(points, axis=0, return_index=True)
        if len(first) >= count or tried >= _MOST_TRIED * count:
            return points[np.sort(first)[:count]]
        tried *= 2


def _integer_widths(schema: Schema | None) -> dict[int, float]:
    """Return the ranges of integer columns, by their positions."""
    if schema is None:
        return {}
    box, numeric = schema.box, schema.domain.numeric
    return {index: float(box.width[index]) for index in numeric if box.whole[index]}


def snapping(schema: Schema | None) -> Callable[[Floats], Floats] | None:
    """Return what moves encoded points to the nearest rows of the schema; None for nothing."""
    widths = _integer_widths(schema)

    def snap(points: Floats) -> Floats:
        points = points.copy()
        for index, width in widths.items():
            points[:, index] = np.rint(points[:, index] * width) / width
        return points

    return snap if widths else None


def check_points(points: Floats, n: int) -> None:
    """Refuse unusable public points."""
    if len(points) < 1:
        raise ParameterError("public_points must have at least one row.")
    check_size(len(points), n)
    if len(np.unique(points, axis=0)) < len(points):
        raise ParameterError(
            "public_points must be distinct; some rows are equal after clipping to the bounds. "
            "Remove the duplicates."
        )


def check_size(count: int, n: int) -> None:
    """Refuse more points than rows."""
    if count > n:
        raise ParameterError(
            "n_points",
            f"must be at most the number of rows of x, {n}: each public point costs noise, and "
            "more points than rows carry no more information",
        )


# --- noise ----------------------------------------------------------------------------------------


def noisy_share(
    values: Floats,
    *,
    sensitivity: Sensitivity,
    budget: Budget,
    share: Fraction | None,
    noise: NoiseSource,
) -> tuple[Floats, float]:
    """Add Gaussian noise for the share that atoms left, and return its standard deviation too.

    Notes
    -----
    **Sensitivity** As declared, in l2.

    **Privacy** Without a share (None), (epsilon, delta)-private by itself; with one, together
    with the counts of atoms.
    """
    if share is None:
        noisy = gaussian(values, sensitivity=sensitivity, budget=budget, noise=noise)
        return noisy, gaussian_scale(sensitivity.value, budget)
    scale = gaussian_part_scale(values.size, sensitivity, budget, share)
    noisy = gaussian_part(values, sensitivity=sensitivity, budget=budget, share=share, noise=noise)
    return noisy, scale


# --- the span of public points --------------------------------------------------------------------


_TOLERANCES = (1e-6, 1e-5)  # up to _MANY_POINTS, and above: many directions hold only noise
_MANY_POINTS = 1000
"""Squared RKHS distance to the span below which a public point adds no direction."""

SUM_BITS = 36  # kernel values are rounded to multiples of 2^-36, whose sums are exact
_MOST_ROWS = 1 << 26  # keeps sums below 2^62
_TILE_ENTRIES = 1 << 17  # fits in the processor's cache
_EXTENDED_ROUNDOFF = float(np.finfo(np.longdouble).eps) / 2


@dataclass(frozen=True, slots=True, eq=False)
class Subspace:
    """Public points, their coordinates in an orthonormal basis of their span, and the basis.

    Attributes
    ----------
    points : ndarray
        Encoded public points, one per row.
    coordinates : ndarray
        M × F: row m holds the coordinates of phi(z_m), up to the tolerance.
    pivots : ndarray
        The F points that generate the basis; their coordinates are a triangular matrix.
    """

    points: Floats
    coordinates: Floats
    pivots: NDArray[np.intp]
    kernel: Kernel
    domain: Domain

    @property
    def rank(self) -> int:
        """Number of coordinates."""
        return len(self.pivots)

    @property
    def triangle(self) -> Floats:
        """T with T T' = the pivots' Gram matrix."""
        triangle: Floats = self.coordinates[self.pivots]
        return triangle


def usual_tolerance(count: int) -> float:
    """Return the default tolerance for a number of public points."""
    return _TOLERANCES[count > _MANY_POINTS]


def span(
    points: Floats, kernel: Kernel, domain: Domain, tolerance: float | None = None
) -> Subspace:
    """Find a basis by pivoted Cholesky: the point furthest from the span comes next.

    Everything here is public, including the default tolerance, which depends on the number of
    points. Columns of the Gram matrix are computed one at a time.
    """
    count = len(points)
    if tolerance is None:
        tolerance = usual_tolerance(count)
    left = np.ones(count)  # squared distances to the span; k(z, z) = 1
    factor = np.zeros((count, min(count, 128)), order="F")
    pivots: list[int] = []
    while len(pivots) < count:
        pivot, size = int(np.argmax(left)), len(pivots)
        if left[pivot] <= tolerance:
            break
        if size == factor.shape[1]:
            factor = np.hstack([factor, np.zeros((count, min(size, count - size)))])
            factor = np.asfortranarray(factor)
        column = gram(kernel, points, points[pivot : pivot + 1], domain)[:, 0]
        column -= factor[:, :size] @ factor[pivot, :size]
        column /= math.sqrt(left[pivot])
        column[pivots] = 0.0
        column[pivot] = math.sqrt(left[pivot])
        factor[:, size] = column
        left -= column * column
        pivots.append(pivot)
        left[pivots] = 0.0
    chosen = np.ascontiguousarray(factor[:, : len(pivots)])
    return Subspace(points, chosen, np.array(pivots, dtype=np.intp), kernel, domain)


class KernelSums:
    """Sums of 2^36 k(pivot, row), each rounded to an integer."""

    __slots__ = ("space", "sums", "total")

    def __init__(self, space: Subspace, total: int) -> None:
        self.space, self.total = space, total
        self.sums = np.zeros(space.rank, dtype=np.int64)

    def update(self, rows: Floats, start: int) -> None:
        """Add a block."""
        del start
        space = self.space
        pivots = space.points[space.pivots]
        size = max(16, min(4096, _TILE_ENTRIES // max(len(pivots), 1)))

        def tile(first: int) -> NDArray[np.int64]:
            matrix = gram(space.kernel, rows[first : first + size], pivots, space.domain)
            np.multiply(matrix, 2.0**SUM_BITS, out=matrix)
            np.rint(matrix, out=matrix)
            total: Floats = np.ones(len(matrix)) @ matrix
            return total.astype(np.int64)

        work = len(rows) * len(pivots)
        for part in within_block(tile, range(0, len(rows), size), self.total, work):
            self.sums += part

    def merge(self, other: KernelSums) -> None:
        """Add other blocks."""
        self.sums += other.sums


def kernel_sums(space: Subspace, rows: Held) -> NDArray[np.int64]:
    """Sum 2^36 k(pivot, row) over the rows, each rounded to an integer; one blocked pass.

    Integers below 2^53 add up exactly in any order: the rounding error of a row affects only its
    own term, which is divided by N, and sums over parts of the data can be merged. Rows have to
    be in a secret order: the last bit of a kernel value may depend on a row's place in its block.
    """
    if len(rows) > _MOST_ROWS:
        raise ParameterError(f"x must have at most {_MOST_ROWS:,} rows.")
    (result,) = summarise((Sample(rows, None), partial(KernelSums, space, len(rows))))
    return result.sums


def coefficients(space: Subspace, sums: NDArray[np.int64], n: int) -> Floats:
    """Return the coordinates T^-1 (sums/n) of the projected mean embedding (line 6).

    Forward substitution in extended precision: a basis may magnify rounding errors beyond the
    contribution of one row.
    """
    triangle = space.triangle.astype(np.longdouble)
    solved = np.zeros(len(sums), dtype=np.longdouble)
    for index, total in enumerate(sums.astype(np.longdouble)):
        done = triangle[index, :index] @ solved[:index]
        solved[index] = (total - done) / triangle[index, index]
    solved /= np.longdouble(n)
    return np.ldexp(solved, -SUM_BITS).astype(np.float64)


def coefficient_sensitivity(space: Subspace, n: int, rows_per_person: int = 1) -> Sensitivity:
    """Bound how far :func:`coefficients` moves in l2 when one person's rows are replaced.

    Notes
    -----
    **Sensitivity** c/n with c the kernel's spread, times the rows per person: the embedding
    of the data moves by that much, and a projection is a contraction. Widened for rounding.
    Proof: docs/proofs/synthetic.md.
    """
    rank = space.rank
    inverse = _inverse_norm(space.triangle)
    entry = gram_roundings((space.kernel,), space.domain)[0]
    # T T' is the pivots' Gram matrix up to the rounding of entries and of the factorization
    distance = rank * (1.01 * (rank + 4) * UNIT_ROUNDOFF + entry)
    stretch = math.sqrt(1 + inverse**2 * distance)
    row = inverse * math.sqrt(rank) * (entry + 2.0 ** -(SUM_BITS + 1))
    solving = 2.1 * (rank + 6) * _EXTENDED_ROUNDOFF * inverse * math.sqrt(rank)
    moved = rows_per_person / n * (space.kernel.spread(space.domain) * stretch + 2 * row)
    return Sensitivity((moved + 2 * (solving + 2 * UNIT_ROUNDOFF)) * (1 + 1e-12), "l2")


def _inverse_norm(triangle: Floats) -> float:
    """Bound the Frobenius norm of the inverse of a triangular matrix."""
    from scipy.linalg import solve_triangular  # noqa: PLC0415

    rank = len(triangle)
    inverse = float(np.linalg.norm(solve_triangular(triangle, np.eye(rank), lower=True)))
    # computed W has |W T - I| <= rank u |W||T|, and |T| <= sqrt(rank)
    lost = 1.01 * rank * UNIT_ROUNDOFF * inverse * math.sqrt(rank)
    if lost > 0.01:
        raise ParameterError("tolerance is too small for these public points: raise it.")
    return inverse / (1 - lost)


# --- shrinkage of noisy coefficients: post-processing ---------------------------------------------


_NO_DIRECTION = 1e-13  # eigenvalues below this fraction of the largest are rounding errors
_FEWEST = 500  # points of a nested prior
_SCALES = np.logspace(-9, 9, 55)  # of the prior; infinity (no shrinkage) is added


@dataclass(frozen=True, slots=True, eq=False)
class PointMoments:
    """Mean and eigendecomposed second moment S = L'L/M of the public points' coordinates."""

    mean: Floats
    eigenvalues: Floats
    eigenvectors: Floats


def moments(coordinates: Floats) -> PointMoments:
    """Return the moments of the rows of L."""
    values, vectors = np.linalg.eigh(coordinates.T @ coordinates / len(coordinates))
    return PointMoments(coordinates.mean(axis=0), np.maximum(values, 0.0), vectors)


@dataclass(frozen=True, slots=True, eq=False)
class Denoised:
    """Coefficients after shrinkage, and how uncertain they are.

    Attributes
    ----------
    values : ndarray
        The estimate, in the coordinates of the subspace.
    sigma : float
        Standard deviation of the noise in each coordinate.
    scale : float
        The chosen scale of the prior; infinity for no shrinkage.
    widest : float
        The largest scale that noise makes indistinguishable from it; used for error bars.
    points : PointMoments
        PointMoments of the public points.
    """

    values: Floats
    sigma: float
    scale: float
    widest: float
    points: PointMoments

    def draws(self, count: int, rng: np.random.Generator) -> Floats:
        """Return ``count`` draws around the estimate (columns), with public randomness.

        Their covariance sigma² A is the posterior one of the coefficients under the prior that
        the shrinkage corresponds to; without shrinkage it is that of the noise.
        """
        normal = rng.normal(size=(len(self.values), count))
        factors = _shrinkage(self.points.eigenvalues, self.widest, self.sigma)
        normal *= (self.sigma * np.sqrt(factors))[:, None]
        return self.values[:, None] + self.points.eigenvectors @ normal


def nested_moments(coordinates: Floats) -> list[PointMoments]:
    """Return the moments of all public points, then of the first quarter, sixteenth, ...

    Many points span directions that hold more noise than signal. Shrinkage by fewer of them may
    do better, so that more points do not hurt.
    """
    count = len(coordinates)
    nested = [moments(coordinates)]
    while count // 4 >= _FEWEST:
        count //= 4
        nested.append(moments(coordinates[:count]))
    return nested


def denoise(
    noisy: Floats, points: PointMoments, sigma: float, fewer: Sequence[PointMoments] = ()
) -> Denoised:
    """Shrink noisy coefficients towards the public points' mean by the best of several rules.

    Parameters
    ----------
    noisy : ndarray
        Coefficients plus Gaussian noise.
    points : PointMoments
        PointMoments of the public points' coordinates.
    sigma : float
        Standard deviation of the noise.
    fewer : sequence of PointMoments
        PointMoments of some of the points, as further rules (:func:`nested_moments`). Error bars
        use all points.

    Notes
    -----
    The rules are a + A (noisy - a), A = tS (tS + sigma²)^-1, a the points' mean and S = L'L/M
    their second moments: Bayes estimates under independent weights of variance t/M. Stein's
    unbiased estimate of the squared error, |(I - A)(noisy - a)|² + 2 sigma² tr A - F sigma²,
    picks t from a public grid that ends with infinity, which keeps everything.
    """
    scales, risks = _risks(noisy, points, sigma)
    smallest, chosen, best = min(risks), points, scales[risks.index(min(risks))]
    # the estimated risks are off by about sigma² sqrt(2F)
    alike = smallest + sigma**2 * math.sqrt(2 * len(noisy))
    widest = max(scale for scale, risk in zip(scales, risks, strict=True) if risk <= alike)
    for some in fewer:
        scales, risks = _risks(noisy, some, sigma)
        if min(risks) < smallest:
            smallest, chosen, best = min(risks), some, scales[risks.index(min(risks))]
    rotated = chosen.eigenvectors.T @ (noisy - chosen.mean)
    factors = _shrinkage(chosen.eigenvalues, best, sigma)
    shrunk = chosen.mean + chosen.eigenvectors @ (factors * rotated)
    return Denoised(shrunk, sigma, best, widest, points)


def _risks(noisy: Floats, points: PointMoments, sigma: float) -> tuple[list[float], list[float]]:
    """Return the scales of the prior, and Stein's unbiased estimate of the risk of each."""
    values = points.eigenvalues
    rotated = points.eigenvectors.T @ (noisy - points.mean)
    scales = [*(_SCALES * sigma**2 / max(float(values.mean()), 1e-300)).tolist(), math.inf]
    risks = []
    for scale in scales:
        factors = _shrinkage(values, scale, sigma)
        lost = (1 - factors) * rotated
        risks.append(float(lost @ lost) + sigma**2 * (2 * float(factors.sum()) - len(rotated)))
    return scales, risks


def _shrinkage(values: Floats, scale: float, sigma: float) -> Floats:
    """Return by which factors a prior of some scale shrinks, in each direction."""
    if math.isinf(scale):
        return np.ones_like(values)
    return np.asarray(scale * values / (scale * values + sigma**2))


def signed_weights(
    coordinates: Floats, targets: Floats, points: PointMoments | None = None
) -> Floats:
    """Return the weights w nearest to 1/M with L'w = each target (columns).

    If the points cannot reach a target, L'w is the nearest point that they can. ``points`` are
    the moments of ``coordinates``, if known already.
    """
    count, rank = coordinates.shape
    missing = targets - coordinates.mean(axis=0)[:, None]
    if count < rank:  # L L' is smaller than L'L and has the same eigenvalues
        values, vectors = np.linalg.eigh(coordinates @ coordinates.T)
        weights = _pseudo_solve(values, vectors, coordinates @ missing)
    else:
        points = moments(coordinates) if points is None else points
        solved = _pseudo_solve(points.eigenvalues, points.eigenvectors, missing)
        weights = coordinates @ (solved / count)
    weights += 1 / count
    return weights


def _pseudo_solve(values: Floats, vectors: Floats, targets: Floats) -> Floats:
    used = values > _NO_DIRECTION * values[-1]
    rotated = vectors[:, used].T @ targets
    return np.asarray(vectors[:, used] @ (rotated / values[used][:, None]))


# --- weights of points: post-processing -----------------------------------------------------------


Weights = Literal["signed", "bounded", "nonnegative", "equal"]

_DRAWS = 100  # for error bars, which are then accurate to about 7%
_CONSTRAINED_DRAWS = 32  # each takes an optimisation

_STEPS = 500
_CONVERGED = 1e-6
Projection = Callable[[Floats], Floats]


def weighted(
    coordinates: Floats,
    denoised: Denoised,
    points: PointMoments | None = None,
    *,
    kind: Weights,
    bound: float,
    count: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.intp], Weighting, Weighting | None]:
    """Return which points to release (with repeats), and their weights with draws.

    Constrained weights are returned with the signed weights of the same points.

    Parameters
    ----------
    coordinates : ndarray
        Coordinates of the points that may be released.
    denoised : Denoised
        The coefficients to match.
    points : PointMoments, optional
        PointMoments of ``coordinates``, if known already.
    kind, bound, count
        The kind of weights, the bound for "bounded" and the number of rows for "equal".
    rng : Generator
        Public randomness for the draws.
    """
    draws = denoised.draws(_DRAWS if kind in ("signed", "equal") else _CONSTRAINED_DRAWS, rng)
    targets = np.column_stack([denoised.values, draws])
    chosen = np.arange(len(coordinates))
    if kind == "equal":
        chosen = equal_weights(coordinates, denoised.values, count)
        coordinates, points = coordinates[chosen], None
    free = signed_weights(coordinates, targets, points)
    if kind == "signed":
        return chosen, Weighting.from_columns(free), None
    if kind == "equal":
        # equal weights cannot show the noise: the draws are signed ones around them
        moved = free - free[:, :1] + 1 / count
        return chosen, Weighting.from_columns(moved), Weighting.from_columns(free)
    if kind == "nonnegative":
        matrix = nonnegative_weights(coordinates, targets)
    else:
        matrix = bounded_weights(coordinates, targets, free, bound)
    return chosen, Weighting.from_columns(matrix), Weighting.from_columns(free)


def nonnegative_weights(coordinates: Floats, targets: Floats) -> Floats:
    """Return the weights w >= 0, sum w = 1, whose L'w is nearest to each target (columns)."""
    return _nearest(coordinates, targets, to_simplex)


def bounded_weights(coordinates: Floats, targets: Floats, start: Floats, bound: float) -> Floats:
    """Return weights with sum |w| <= bound, nearest to each target (Theorem 11).

    ``start`` are unconstrained weights: columns within the bound are the solution already.
    """
    weights = start.copy()
    over = np.abs(start).sum(axis=0) > bound
    if over.any():
        weights[:, over] = _nearest(
            coordinates, targets[:, over], lambda matrix: _to_l1_ball(matrix, bound)
        )
    return weights


def equal_weights(coordinates: Floats, target: Floats, count: int) -> NDArray[np.intp]:
    """Choose ``count`` points, with repeats, whose plain mean is near the target.

    Kernel herding: each new point brings the mean of those chosen so far closest to the target.
    """
    gain = coordinates @ target
    half_norms = 0.5 * np.einsum("ij,ij->i", coordinates, coordinates)
    total, chosen = np.zeros(coordinates.shape[1]), []
    for step in range(1, count + 1):
        # |(total + L_m)/step - target|² up to what does not depend on m
        score = (coordinates @ total + half_norms) / step - gain
        best = int(np.argmin(score))
        chosen.append(best)
        total += coordinates[best]
    return np.sort(np.array(chosen, dtype=np.intp))


def best_points(
    coordinates: Floats, target: Floats, count: int, sigma: float = 0.0
) -> NDArray[np.intp]:
    """Choose at most ``count`` points whose span captures most of the target, best first.

    Each new point captures as much as possible of the rest of the target; the first ones are
    those that a smaller ``count`` would choose. The search stops when the best of M points
    captures no more than sigma² log M, as it would of noise alone.
    """
    least = sigma**2 * math.log(max(len(coordinates), 2))
    norms = np.einsum("ij,ij->i", coordinates, coordinates)  # of what is outside the span
    smallest = 1e-8 * norms.max()
    heights = coordinates @ target  # inner products with the rest of the target
    basis = np.zeros((min(count, len(coordinates)), coordinates.shape[1]))
    chosen: list[int] = []
    for step in range(len(basis)):
        useful = norms > smallest
        if not useful.any():
            break
        gains = np.where(useful, heights**2 / np.maximum(norms, smallest), -1.0)
        best = int(np.argmax(gains))
        if chosen and gains[best] < least:
            break
        direction = coordinates[best].copy()
        for _ in range(2):  # twice is enough for rounding errors
            direction -= basis[:step].T @ (basis[:step] @ direction)
        direction /= math.sqrt(float(direction @ direction))
        shares = coordinates @ direction
        heights -= heights[best] / shares[best] * shares
        norms -= shares**2
        norms[best] = 0.0
        basis[step] = direction
        chosen.append(best)
    return np.array(chosen, dtype=np.intp)


def _nearest(coordinates: Floats, targets: Floats, projection: Projection) -> Floats:
    """Minimise |L'w - target|² over a convex set: accelerated projected gradients, restarted."""
    count = len(coordinates)
    step = 1 / max(float(np.linalg.norm(coordinates, 2)) ** 2, 1e-300)
    goal = step * (coordinates @ targets)
    scaled = coordinates * step
    weights = projection(np.full((count, targets.shape[1]), 1 / count))
    ahead, momentum = weights.copy(), np.ones(targets.shape[1])
    for _ in range(_STEPS):
        following = projection(ahead - scaled @ (coordinates.T @ ahead) + goal)
        change = following - weights
        # restart the momentum where it points uphill
        uphill = np.einsum("ij,ij->j", ahead - following, change) > 0
        larger = np.where(uphill, 1.0, (1 + np.sqrt(1 + 4 * momentum**2)) / 2)
        ahead = following + np.where(uphill, 0.0, (momentum - 1) / larger) * change
        weights, momentum = following, larger
        if float(np.abs(change).sum(axis=0).max()) < _CONVERGED:
            break
    return weights


def to_simplex(values: Floats, total: float = 1.0) -> Floats:
    """Return the nearest non-negative numbers with a given sum, in each column."""
    ordered = -np.sort(-values, axis=0)
    excess = np.cumsum(ordered, axis=0) - total
    ranks = np.arange(1, len(values) + 1).reshape(-1, *[1] * (values.ndim - 1))
    size = np.count_nonzero(ordered * ranks > excess, axis=0)
    last = np.expand_dims(np.maximum(size - 1, 0), 0)
    shift = np.take_along_axis(excess, last, axis=0) / (last + 1)
    return np.asarray(np.maximum(values - shift, 0.0))


def _to_l1_ball(matrix: Floats, bound: float) -> Floats:
    sizes = np.abs(matrix)
    outside = sizes.sum(axis=0) > bound
    result = matrix.copy()
    if outside.any():
        shrunk = bound * to_simplex(sizes[:, outside] / bound)
        result[:, outside] = np.sign(matrix[:, outside]) * shrunk
    return result


# --- distances: post-processing -------------------------------------------------------------------


_TILE = 512
_STRIP = 8192  # rows per progress report


def distance(
    rows: Floats,
    points: Floats,
    used: Weighting,
    before: Weighting | None,
    kernel: Kernel,
    domain: Domain,
    progress: Progress | None = None,
) -> Estimate:
    """Estimate the distance of encoded public rows to weighted points."""
    row_mean = mean_kernel(rows, kernel, domain, progress)
    means = point_means(points, rows, kernel, domain)
    value = embedding_distance(used.weights, points, means, row_mean, kernel, domain)
    matrix = gram(kernel, points, points, domain)
    weights = used.weights[:, None]
    noise, misfit = _size(matrix, used.draws - weights), 0.0
    if before is not None:
        free = before.weights[:, None]
        free_noise = _size(matrix, before.draws - free)
        misfit = unexplained(_size(matrix, free - weights), free_noise)
    return Estimate(value, math.hypot(noise, misfit), misfit)


def _size(matrix: Floats, moved: Floats) -> float:
    """Root mean square RKHS norm of columns of weights."""
    squares = np.einsum("ij,ij->j", moved, matrix @ moved)
    return math.sqrt(max(float(squares.mean()), 0.0)) if squares.size else math.nan


def mean_kernel(
    rows: Floats, kernel: Kernel, domain: Domain, progress: Progress | None = None
) -> float:
    """Return the mean of k over all pairs of rows, including a row with itself.

    Every pair is computed once, in tiles: time grows with N², memory does not.
    """
    count, total = len(rows), 0.0
    for first in range(0, count, _STRIP):
        strip = rows[first : first + _STRIP]
        work = len(strip) * (count - first)
        tiles = range(first, count, _TILE)

        def tile(start: int, strip: Floats = strip, first: int = first) -> float:
            block = rows[start : start + _TILE]
            # within the strip tiles cover both orders of a pair; later rows are counted twice
            factor = 1.0 if start < first + len(strip) else 2.0
            parts = [
                float(gram(kernel, block, strip[part : part + _TILE], domain).sum())
                for part in range(0, len(strip), _TILE)
            ]
            return factor * math.fsum(parts)

        total += math.fsum(parallel(tile, tiles, work))
        if progress is not None:
            progress(1 - (1 - min(first + _STRIP, count) / count) ** 2)
    return total / count**2


def point_means(points: Floats, rows: Floats, kernel: Kernel, domain: Domain) -> Floats:
    """Return the mean over rows of k(point, row), for each point."""

    def tile(start: int) -> Floats:
        sums: Floats = gram(kernel, points, rows[start : start + _TILE], domain).sum(axis=1)
        return sums

    total = np.zeros(len(points))
    for part in parallel(tile, range(0, len(rows), _TILE), len(rows) * len(points)):
        total += part
    return total / len(rows)


def embedding_distance(
    weights: Floats, points: Floats, means: Floats, row_mean: float, kernel: Kernel, domain: Domain
) -> float:
    """Return |sum_m w_m phi(z_m) - mean phi(x)|, given mean k(z_m, x) and mean k(x, x')."""
    square = 0.0
    for start in range(0, len(points), _TILE):
        block = gram(kernel, points[start : start + _TILE], points, domain)
        square += float(weights[start : start + _TILE] @ (block @ weights))
    return math.sqrt(max(square - 2 * float(weights @ means) + row_mean, 0.0))


# --- what was measured ----------------------------------------------------------------------------


_MOST = 400  # pivots that are kept, the first ones
_JITTER = 1e-13  # a pivot's squared distance to the span of others is at least 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """Means of public functions of a row, with Gaussian noise.

    Attributes
    ----------
    kind : {"kernel", "fourier"}
        The functions: an orthonormal basis of the span of k(p, .) at the places p, in their
        order; or a_j (cos, sin)(w_j . x) for the places w_j.
    places : ndarray
        Encoded public points, or frequencies; one per row.
    amplitudes : ndarray
        The a_j; empty for a kernel.
    values : ndarray
        The noisy means.
    sigma : float
        Standard deviation of the noise of each.
    """

    kind: Literal["kernel", "fourier"]
    places: Floats
    amplitudes: Floats
    values: Floats
    sigma: float
    _inverses: dict[tuple[Kernel, Domain], Floats] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Refuse parts that do not fit, and freeze them."""
        for name in ("places", "amplitudes", "values"):
            array = np.asarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, read_only(array))
        each = 1 if self.kind == "kernel" else 2
        if self.kind not in ("kernel", "fourier") or self.values.shape != (
            each * len(self.places),
        ):
            raise DataError("coefficients do not fit their places.")

    def functions(self, rows: Floats, kernel: Kernel, domain: Domain) -> Floats:
        """Return the functions at encoded rows: rows × coefficients."""
        if self.kind == "fourier":
            cosine, sine = cos_sin(angles(rows, self.places.T))
            return np.hstack([cosine * self.amplitudes, sine * self.amplitudes])
        values: Floats = gram(kernel, rows, self.places, domain) @ self._inverse(kernel, domain).T
        return values

    def _inverse(self, kernel: Kernel, domain: Domain) -> Floats:
        """Return the inverse of the triangle T with T T' = the places' Gram matrix; once."""
        key = (kernel, domain)
        if key not in self._inverses:
            square = gram(kernel, self.places, self.places, domain)
            triangle = np.linalg.cholesky(square + _JITTER * np.eye(len(square)))
            # not scipy's solver for triangles: its import takes longer than this
            self._inverses[key] = np.linalg.inv(triangle)
        return self._inverses[key]


def of_subspace(space: Subspace, noisy: Floats, sigma: float) -> Coefficients:
    """Keep what Algorithm 1 measured; coordinates of the first pivots do not need the others."""
    places = space.points[space.pivots[:_MOST]]
    return Coefficients("kernel", places, np.empty(0), noisy[:_MOST], sigma)


# --- where rows may be that a synthetic row stands for --------------------------------------------


_EVEN = 1024  # places spread over the box
_AROUND = 5  # places around each synthetic row
_ALONG = 128  # even places that are moved to a number of the question
_STEP = 1e-6  # just beside such a number, in units of the box
_APART = 10.0  # distance of two categories: further than any numbers are
_BLOCK = 512
_MOST_NEIGHBOURS = 8
_ALL_CORNERS = 6  # numeric columns; of more some corners are looked at
_KINDS = 32  # combinations of categories


def probe_places(
    rows: Floats, domain: Domain, schema: Schema | None, bandwidth: float, jumps: Jumps
) -> Floats:
    """Return places around the rows, over the box, at its bounds and at the jumps."""
    rng = np.random.default_rng(0)  # public, and the same at every question
    numeric = domain.numeric
    around = np.repeat(rows, _AROUND, axis=0)
    shape = (len(around), len(numeric))
    around[:, numeric] += rng.uniform(-bandwidth / 3, bandwidth / 3, size=shape)
    blocks = [rows, around]
    if domain.bounded:
        even = domain.points(_EVEN)
        blocks.append(even)
        base = np.vstack([rows, even[:_ALONG]])
        for index in numeric:
            for number in _numbers(index, schema, jumps):
                moved = base.copy()
                moved[:, index] = number
                blocks.append(moved)
        blocks.append(_corners(rows, domain, rng))
    places = np.vstack(blocks)
    if domain.bounded:
        places[:, numeric] = np.clip(places[:, numeric], 0.0, 1.0)
    if schema is not None:
        box = schema.box
        for index in numeric:
            if box.whole[index]:
                places[:, index] = np.rint(places[:, index] * box.width[index]) / box.width[index]
    return np.unique(places, axis=0)


def _corners(rows: Floats, domain: Domain, rng: np.random.Generator) -> Floats:
    """Return corners of the box, where a linear function is furthest from all rows."""
    numeric, categorical = domain.numeric, domain.categorical
    if len(numeric) <= _ALL_CORNERS:
        patterns = np.array([*product((0.0, 1.0), repeat=len(numeric))])
    else:
        patterns = rng.integers(2, size=(1 << _ALL_CORNERS, len(numeric))).astype(np.float64)
        patterns[:2] = [[0.0], [1.0]]
    kinds = np.unique(rows[:, categorical], axis=0)[:_KINDS] if categorical else np.zeros((1, 0))
    corners = np.zeros((len(kinds), len(patterns), domain.dimension))
    corners[:, :, numeric] = patterns
    corners[:, :, categorical] = kinds[:, None, :]
    return corners.reshape(-1, domain.dimension)


def _numbers(index: int, schema: Schema | None, jumps: Jumps) -> list[float]:
    """Return the bounds of a column and its jumps, encoded, each with both its sides."""
    numbers = [0.0, 1.0]
    if schema is None:
        return numbers
    name = list(schema.columns)[index]
    column = schema.columns[name]
    assert isinstance(column, NumericColumn)
    width = column.upper - column.lower
    for mark in jumps.get(name, ()):
        place = (mark - column.lower) / width
        step = 1 / width if column.integer else _STEP
        numbers += [place - step, place, place + step]
    return [place for place in numbers if 0 <= place <= 1]


def leaders(rows: Floats, domain: Domain, spacing: float) -> tuple[Floats, NDArray[np.intp]]:
    """Return rows that are ``spacing`` apart, and for each row its leader.

    Rows that are closer stand for the same people: the release cannot tell them apart.
    """
    scaled = _scaled(rows, domain)
    chosen: list[int] = []
    left = np.full(len(rows), np.inf)
    owner = np.zeros(len(rows), dtype=np.intp)
    while left.max() >= spacing:
        new = 0 if not chosen else int(np.argmax(left))  # the furthest from all others
        distance = np.sqrt(((scaled - scaled[new]) ** 2).sum(axis=1))
        owner[distance < left] = len(chosen)
        left = np.minimum(left, distance)
        chosen.append(new)
    return rows[chosen], owner


def nearest(places: Floats, rows: Floats, domain: Domain) -> NDArray[np.intp]:
    """Find for each place the rows around it: one more than there are numeric columns."""
    count = min(len(domain.numeric) + 1, _MOST_NEIGHBOURS, len(rows))
    scaled, goals = _scaled(places, domain), _scaled(rows, domain)
    squares = np.einsum("ij,ij->i", goals, goals)
    owners = np.empty((len(places), count), dtype=np.intp)
    for start in range(0, len(places), _BLOCK):
        block = scaled[start : start + _BLOCK]
        distances = squares - 2 * block @ goals.T
        owners[start : start + _BLOCK] = np.argpartition(distances, count - 1, axis=1)[:, :count]
    return owners


def _scaled(rows: Floats, domain: Domain) -> Floats:
    scale = np.where(np.array(domain.levels) > 0, _APART, 1.0)
    scaled: Floats = rows * scale
    return scaled


# --- means of functions ---------------------------------------------------------------------------


_WEIGHTS = (0.0, 0.1, 0.5, 2.0, 10.0, 100.0, 1e3, 1e4)  # of the rest, in choosing a split
_RESOLVED = 0.25  # of a bandwidth: closer rows are not told apart
_LEAST = 1e-7  # weight of a synthetic row that counts
_EVEN_MASS = 0.1  # of the law by which functions are approximated
_LONGER = 1.1  # a bar that holds may be this much longer than a bound


class EmbeddingMeans(MeanSource):
    """Estimates means from measured coefficients and non-negative weights of synthetic rows."""

    def __init__(
        self,
        rows: Floats,
        fitted: Weighting,
        measured: Coefficients,
        kernel: Kernel,
        domain: Domain,
        schema: Schema | None,
        names: Sequence[str],
    ) -> None:
        used = fitted.weights > _LEAST
        total = float(fitted.weights[used].sum())
        self._rows, self.weights = rows[used], fitted.weights[used] / total
        self._draws = fitted.draws[used] / total
        self._measured, self._kernel, self._domain, self._schema = measured, kernel, domain, schema
        self._names = tuple(names)
        self.columns = self._decoded(self._rows)
        spacing = _RESOLVED * kernel.bandwidth
        self._leaders, self._leader = leaders(self._rows, domain, spacing)
        self._at_rows = self._functions(self._rows)
        self._gap = measured.values / measured.sigma - self.weights @ self._at_rows
        self._cache: dict[str, _Probes] = {}

    finest = "this release says nothing about conditions finer than its points"

    def means(
        self, function: Function | Sequence[Function], jumps: Jumps | None = None
    ) -> MeanEstimates:
        """Estimate the means of functions, each by the split with the shortest bar.

        A function is a combination u of those that were measured and a rest. The mean of u has
        noise of known size; that of the rest is taken from the synthetic rows, and can be wrong
        by how far the rest varies around each row.
        """
        around = self._probes(jumps or {})
        at_rows, at_places = (_matrix(function, each.columns) for each in (self, around))
        spread = np.sqrt(np.maximum(self.weights @ (at_rows - self.weights @ at_rows) ** 2, 0.0))
        centred = at_places - around.law @ at_places
        pull = around.turned.T @ (around.law[:, None] * centred)
        candidates = [self._split(around, at_rows, at_places, pull, w) for w in _WEIGHTS]
        turned, noise, unseen = (np.array(each) for each in zip(*candidates, strict=True))
        errors = honest_error(noise, unseen)
        bars = np.where(is_noise(noise, unseen), errors, np.inf)
        short = bars.min(axis=0) <= _LONGER * errors.min(axis=0)
        chosen = np.where(short, bars.argmin(axis=0), errors.argmin(axis=0))
        chosen = chosen, np.arange(at_rows.shape[1])
        directions = around.vectors @ turned[chosen[0], :, chosen[1]].T
        plain = self.weights @ at_rows
        values = plain + self._gap @ directions
        errors, noise, unseen = errors[chosen], noise[chosen], unseen[chosen]
        return MeanEstimates(values, errors, noise, unseen, directions, spread, plain)

    def _split(
        self, around: _Probes, at_rows: Floats, at_places: Floats, pull: Floats, weight: float
    ) -> tuple[Floats, Floats, Floats]:
        """Split functions by ridge regression: |u|² + weight · variance of the rest.

        Returns u in the eigenbasis, the noise of its mean, and a bound on the rest.
        """
        turned = pull * (weight / (weight * around.spectrum + 1))[:, None]
        rest_rows = at_rows - around.at_rows @ turned
        rest_places = (at_places - around.turned @ turned)[around.place]
        high, low = (
            end.reduceat(rest_places, around.starts, axis=0)[self._leader]
            for end in (np.maximum, np.minimum)
        )
        most = np.maximum(high - rest_rows, rest_rows - low).clip(0)
        moved = (rest_rows - self.weights @ rest_rows).T @ self._draws
        left = (moved**2).mean(axis=1) if moved.size else np.zeros(len(moved))
        size = np.einsum("ij,ij->j", turned, turned)
        return turned, np.sqrt(size + left), around.strain * (self.weights @ most)

    def _probes(self, jumps: Jumps) -> _Probes:
        key = repr(sorted((name, sorted(set(numbers))) for name, numbers in jumps.items()))
        if key not in self._cache:
            self._cache[key] = self._new_probes(jumps)
        return self._cache[key]

    def _new_probes(self, jumps: Jumps) -> _Probes:
        places = probe_places(self._rows, self._domain, self._schema, self._kernel.bandwidth, jumps)
        owners = nearest(places, self._leaders, self._domain)
        counts = np.bincount(owners.ravel(), minlength=len(self._leaders))
        masses = np.bincount(self._leader, self.weights, minlength=len(counts))
        law = (masses / np.maximum(counts, 1))[owners].sum(axis=1)
        law = (1 - _EVEN_MASS) * law / law.sum() + _EVEN_MASS / len(places)
        functions = self._functions(places)
        centre = law @ functions
        centred = functions - centre
        spectrum, vectors = np.linalg.eigh(centred.T @ (law[:, None] * centred))
        order = np.argsort(owners.ravel(), kind="stable")
        starts = np.searchsorted(owners.ravel()[order], np.arange(len(counts)))
        return _Probes(
            columns=self._decoded(places),
            law=law,
            turned=centred @ vectors,
            at_rows=(self._at_rows - centre) @ vectors,
            spectrum=np.maximum(spectrum, 0.0),
            vectors=vectors,
            place=order // owners.shape[1],
            starts=starts,
            strain=self._strain(functions, owners),
        )

    def _strain(self, functions: Floats, owners: NDArray[np.intp]) -> float:
        """Return by how much the rows' surroundings are too small for what was measured.

        If everybody is near a row that stands for them, the measured means are no further from
        the rows' own than functions vary there, apart from noise.
        """
        furthest = np.zeros(len(self._leaders))
        centres = self._functions(self._leaders)
        # squares of distances from products: differences would be a copy of all for each owner
        sizes, centre_sizes = (np.einsum("ij,ij->i", each, each) for each in (functions, centres))
        products = functions @ centres.T
        for owner in owners.T:
            squares = sizes + centre_sizes[owner] - 2 * products[np.arange(len(owner)), owner]
            np.maximum.at(furthest, owner, np.maximum(squares, 0.0))
        possible = float(self.weights @ np.sqrt(furthest[self._leader]))
        beyond_noise = float(self._gap @ self._gap) - 2 * len(self._gap)
        return max(1.0, math.sqrt(max(beyond_noise, 0.0)) / max(possible, 1e-12))

    def _functions(self, rows: Floats) -> Floats:
        values = self._measured.functions(rows, self._kernel, self._domain)
        return values / self._measured.sigma

    def _decoded(self, rows: Floats) -> Columns:
        if self._schema is None:
            return dict(zip(self._names, rows.T, strict=True))
        return self._schema.decode(rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Probes:
    """Probes of a question, and what does not depend on its function."""

    columns: Columns
    law: Floats  # by which functions are approximated
    turned: Floats  # the measured functions at the probes, centred, in their eigenbasis
    at_rows: Floats  # the same at the synthetic rows
    spectrum: Floats
    vectors: Floats
    place: NDArray[np.intp]  # probes that a leader may stand for, leader after leader
    starts: NDArray[np.intp]
    strain: float


def _matrix(function: Function | Sequence[Function], columns: Columns) -> Floats:
    if not callable(function):
        return np.hstack([_matrix(each, columns) for each in function])
    length = row_count(columns)
    values = np.asarray(function(columns), dtype=np.float64)
    if values.ndim < 2:
        values = np.broadcast_to(values, (length,))[:, None]
    if len(values) != length or not np.isfinite(values).all():
        raise ValueError("a function must give finite numbers for each row.")
    return values
