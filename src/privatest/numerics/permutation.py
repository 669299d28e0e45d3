"""Bins of rows, so that a permutation moves a few hundred bins and not a million rows.

Rows are put into a secret random order first. A stored order may depend on values, and what
is cut by position would then move by more than the sensitivity (docs/proofs/row-order.md).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Literal, Protocol, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency, PermutationSensitivity
from privatest.core.secret_order import (
    SecretBins,
    SecretFew,
    secret_bins,
    secret_few,
    secret_pair_bins,
)
from privatest.data.encoding import TwoSamples
from privatest.data.engines import BLOCK_ROWS, one_blas_thread
from privatest.data.schema import Domain, equal_cuts
from privatest.data.summaries import (
    PIECE,
    FixedPoint,
    Terms,
    fixed_rounding,
    pieces,
    square_sums,
    summarise,
)
from privatest.numerics.cells import (
    FINE_STEPS,
    LineKind,
    PlacedLine,
    area_cells,
    bin_sums,
    cut_cells,
    from_extremes,
    permuted_tables,
)
from privatest.numerics.coded import CodedMaps, CodedSums, Room
from privatest.numerics.features import FeatureMaps, Unprojected
from privatest.numerics.kernels import (
    ROWS_PER_TILE,
    UNIT_ROUNDOFF,
    Kernel,
    gram,
    gram_roundings,
    grams,
    paired_kernels,
    quadratic_forms,
    sum_rows,
    tiles,
)
from privatest.numerics.moments import moments_rounding

_BINS_PER_SAMPLE = 128  # power as with row permutations; see benchmarks/power
_PARALLEL_WORK = 1 << 22  # matrix entries below which threads cost more than they save

Item = TypeVar("Item")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class BinLayout:
    """Bins of x, bins of y, leftovers of x, leftovers of y.

    One bin size for both samples makes permuting bins a subgroup of permuting rows; leftover
    rows keep their place.
    """

    n: int
    m: int
    size: int

    @property
    def counts(self) -> tuple[int, int]:
        """Number of bins of each sample."""
        return self.n // self.size, self.m // self.size

    @property
    def edges(self) -> NDArray[np.intp]:
        """Where each bin starts, then each block of leftovers, then the end."""
        bins_x, bins_y = self.counts
        whole = np.arange(bins_x + bins_y + 1) * self.size
        return np.concatenate([whole, [whole[-1] + self.n % self.size, self.n + self.m]])

    def membership(self, n_permutations: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Which bins count as x: first as observed, then for random permutations of bins."""
        bins_x, bins_y = self.counts
        labels = np.zeros((n_permutations + 1, bins_x + bins_y), dtype=np.bool_)
        labels[:, :bins_x] = True
        rng.permuted(labels[1:], axis=1, out=labels[1:])
        return labels

    def weights(self, membership: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Weight of a row in each bin and block of leftovers: 1/n in x, -1/m in y."""
        weights = np.empty((len(membership), membership.shape[1] + 2))
        weights[:, :-2] = np.where(membership, 1 / self.n, -1 / self.m)
        weights[:, -2:] = 1 / self.n, -1 / self.m
        return weights


@dataclass(frozen=True, slots=True)
class TwoSampleBins(BinLayout):
    """Pooled rows, and their order by bins."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    order: NDArray[np.intp]

    def rows(self, start: int, stop: int) -> NDArray[np.float64]:
        """Rows ``start`` to ``stop`` of the bin order."""
        index = self.order[start:stop]
        in_x = index < self.n
        if in_x.all():
            return self.x[index]
        if not in_x.any():
            return self.y[index - self.n]
        rows = np.empty((len(index), self.x.shape[1]))
        rows[in_x], rows[~in_x] = self.x[index[in_x]], self.y[index[~in_x] - self.n]
        return rows


def two_sample_bins(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    order_x: NDArray[np.intp],
    order_y: NDArray[np.intp],
    *,
    size: int | None,
    max_bins: int,
) -> TwoSampleBins:
    """Cut two samples into bins of one size, in the given (secret) orders; overwrites them."""
    n, m = len(x), len(y)
    size = rows_per_bin(n, m, size, max_bins)
    whole_x, whole_y = n - n % size, m - m % size
    # Only which rows share a bin matters; in stored order they are much quicker to fetch.
    order_x[:whole_x].reshape(-1, size).sort(axis=1)
    order_y[:whole_y].reshape(-1, size).sort(axis=1)
    bins_and_rest = (
        order_x[:whole_x],
        n + order_y[:whole_y],
        order_x[whole_x:],
        n + order_y[whole_y:],
    )
    return TwoSampleBins(n, m, size, x, y, np.concatenate(bins_and_rest))


def rows_per_bin(n: int, m: int, size: int | None, max_bins: int) -> int:
    """Return how many rows share a bin, by sizes only; ``size`` if it is not None."""
    if size is None:
        size = max(1, min(n, m) // _BINS_PER_SAMPLE, -(-(n + m) // max_bins))
    return min(size, n, m)


def bin_order(bins: NDArray[np.intp], count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows in the order of their bins, and where each of ``count`` bins starts and ends."""
    # short integers are sorted digit by digit
    short = bins.astype(np.uint16, copy=False) if count <= 1 << 16 else bins
    order = np.argsort(short, kind="stable")
    return order, np.concatenate([[0], np.cumsum(np.bincount(bins, minlength=count))])


def feature_sums(bins: TwoSampleBins, maps: FeatureMaps) -> list[NDArray[np.float64]]:
    """Sum each block's raw features over each bin: bins × features."""

    def tile_sums(tile: tuple[int, NDArray[np.intp]]) -> tuple[int, list[NDArray[np.float64]]]:
        first, inner = tile
        block = bins.rows(inner[0], inner[-1])
        return first, list(maps.binned(block, inner - inner[0]))

    edges = bins.edges
    work = (bins.n + bins.m) * maps.blocks * 64

    sums: list[NDArray[np.float64]] = []
    for first, parts in parallel(tile_sums, tiles(edges), work):
        if not sums:
            sums = [np.zeros((len(edges) - 1, part.shape[1])) for part in parts]
        for total, part in zip(sums, parts, strict=True):
            total[first : first + len(part)] += part
    return sums


def summation_depth(size: int) -> float:
    """Longest chain of additions in the sum over a bin: within a tile, then over tiles."""
    return min(size, ROWS_PER_TILE) + (size / 512) ** 2


def feature_rounding(maps: FeatureMaps, additions: float) -> NDArray[np.float64]:
    """Bound, for each member, the rounding error of a weighted mean of features."""
    # the projection is a product too, with a sum over all raw features
    raw = np.array(maps.roundings) + (additions + maps.raw_width) * UNIT_ROUNDOFF
    return np.array(maps.amplifications) * raw


def one_below_other(
    *found: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Stack the statistics of several families, and the bounds on their rounding errors."""
    return np.vstack([values for values, _ in found]), np.concatenate([own for _, own in found])


def parallel(
    function: Callable[[Item], Value], items: Iterable[Item], work: int
) -> Iterator[Value]:
    """Map over items in order, with threads if it is worth it (NumPy releases the GIL)."""
    workers = 1 if work < _PARALLEL_WORK else os.cpu_count() or 1  # counting takes a while
    if workers == 1:
        yield from map(function, items)
        return
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        yield from pool.map(function, items)


# How widely rows vary in the features of each statistic of a family, whatever their group.
#
# A statistic's values under permutations are large where the pooled rows vary widely. That is the
# same for every permutation, moves little when a row is replaced, and says where a statistic alone
# would reject: a family weighs its members by it. Proof: docs/proofs/portfolio.md.


MOST_PAIRS = 1 << 15  # more would take time, and sharpen nothing that decides power
# Errors of computed features, products and means over pairs are below 2^-32 in each of two
# neighbours; no feature has a norm above 1.
_ROUNDING = 2.0**-30


class Varying(Protocol):
    """A map whose members know how widely rows vary in their features."""

    @property
    def spreads(self) -> tuple[float, ...]:
        """Largest distance between the features of two rows, for each member."""

    @property
    def varies(self) -> bool:
        """Whether :meth:`variances` depends on the rows."""

    def variances(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Half the mean squared distance between features of a's rows and b's, for each member."""


@dataclass(frozen=True, slots=True)
class PooledVariances:
    """For each statistic: the variance of its features over pooled rows, which is private.

    ``moves`` bounds how far it moves between neighbours, ``most`` how large it can be; both are
    public.
    """

    values: NDArray[np.float64]
    moves: NDArray[np.float64]
    most: NDArray[np.float64]


def secret_pairs(
    x: NDArray[np.float64], y: NDArray[np.float64], noise: NoiseSource
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Pair rows of both samples at random, whatever their sample; each is in one pair at most.

    The pairs must not depend on the order in which rows are put into bins: then permuting rows
    and pairs together changes nothing, and the permutation test stays exact.
    """
    total = len(x) + len(y)
    count = min(total // 2, MOST_PAIRS)
    chosen = noise.permutation(total)[: 2 * count]
    rows = np.empty((len(chosen), x.shape[1]))
    in_x = chosen < len(x)
    rows[in_x], rows[~in_x] = x[chosen[in_x]], y[chosen[~in_x] - len(x)]
    return rows[:count], rows[count:]


def pooled_variances(
    pairs: tuple[NDArray[np.float64], NDArray[np.float64]],
    kernels: Sequence[Kernel],
    maps: Sequence[Varying],
    domain: Domain,
    *,
    replaced: int,
) -> PooledVariances:
    """Estimate each member's variance from pairs of rows.

    Notes
    -----
    **Sensitivity** A row is in one pair at most, and half the squared distance of a pair is
    between 0 and c²/2: each of the ``replaced`` rows moves the mean by at most c²/(2 pairs).
    """
    a, b = pairs
    parts = [1 - paired_kernels(kernels, a, b, domain).mean(axis=1)] if kernels else []
    values = np.concatenate([*parts, *(part.variances(a, b) for part in maps)])
    spreads = [kernel.spread(domain) for kernel in kernels]
    spreads += [spread for part in maps for spread in part.spreads]
    varies = [True] * len(kernels) + [part.varies for part in maps for _ in part.spreads]
    most = np.square(spreads) / 2
    moves = np.minimum(replaced * most / len(a), most) + _ROUNDING
    return PooledVariances(np.clip(values, 0.0, most), np.where(varies, moves, 0.0), most)


# Sums of features over secret bins of rows, in one pass: what a permutation test keeps of them.
#
# In a second job of the same pass a secret few rows are kept as they are, in pairs.


_BLOCKS_AT_ONCE = 8  # of which codes are held: many rows of a bin fill its slots better

Floats = NDArray[np.float64]
Pairs = tuple[Floats, Floats]
"""Row i of the first makes a pair with row i of the second."""


class _Waiting:
    """Codes of a few blocks, and the sums of those that were added."""

    def __init__(self, maps: CodedMaps, bins: int) -> None:
        self.maps, self.count, self.filled = maps, bins, 0
        self.sums, self.room = CodedSums(maps, bins), Room()

    def update(self, rows: Floats, bins: NDArray[np.intp]) -> None:
        """Keep the codes of a block, and add them if they are many."""
        most, width = _BLOCKS_AT_ONCE * BLOCK_ROWS, rows.shape[1]
        codes = self.room.of("codes", (most + 1, width), np.uint16)
        own = slice(self.filled, self.filled + len(rows))
        self.maps.write_codes(rows, codes[own], self.room)
        self.room.of("bins", (most,), np.uint16 if self.count <= 1 << 16 else np.intp)[own] = bins
        self.filled += len(rows)
        if self.filled + BLOCK_ROWS > most:
            self.flush()

    def flush(self) -> None:
        """Add what waits."""
        if not self.filled:
            return
        codes, bins = self.room.held["codes"], self.room.held["bins"][: self.filled]
        rows = codes.reshape(-1, self.sums.nothing.shape[1])[: self.filled + 1]
        rows[self.filled] = 0
        self.sums.add(rows, *bin_order(bins, self.count))
        self.filled = 0

    def finish(self) -> Iterator[Floats]:
        """Yield the sums of each block of features."""
        self.flush()
        return self.sums.finish()


@dataclass(slots=True, repr=False)  # a repr would show rows
class BinSums:
    """Sums of raw features over the rows of each bin; exact, but for one rounding a block."""

    maps: FeatureMaps
    bins: SecretBins
    total: int  # rows of the sample
    sums: list[FixedPoint] = field(default_factory=list)
    waiting: _Waiting | None = None

    def update(self, rows: Floats, start: int) -> None:
        """Put a block of rows in the order of their bins, and add it; codes wait to the end."""
        bins = self.bins.of_rows(start, start + len(rows))
        if isinstance(self.maps, CodedMaps):
            if self.waiting is None:
                self.waiting = _Waiting(self.maps, self.bins.count)
            self.waiting.update(rows, bins)
            return
        order, edges = bin_order(bins, self.bins.count)
        ordered = np.empty((rows.shape[1], len(rows)))
        for column, values in zip(ordered, rows.T, strict=True):
            np.take(values, order, out=column)
        self._add(self.maps.binned(ordered.T, edges))

    def close(self) -> None:
        """Add what waits."""
        if self.waiting is not None:
            self._add(self.waiting.finish())
            self.waiting = None

    def _add(self, found: Iterable[Floats]) -> None:
        for index, part in enumerate(found):
            if index == len(self.sums):
                self.sums.append(FixedPoint(part.shape, self.total))
            self.sums[index].add(part)

    def merge(self, other: BinSums) -> None:
        """Add the sums of other rows."""
        if not self.sums:
            self.sums = other.sums
            return
        for own, more in zip(self.sums, other.sums, strict=bool(other.sums)):
            own.merge(more)


@dataclass(slots=True, repr=False)
class ChosenRows:
    """A secret few rows, and their places in a random order."""

    chosen: SecretFew
    first: int  # number of the sample's first row among the rows of all samples
    places: list[NDArray[np.intp]] = field(default_factory=list)
    rows: list[Floats] = field(default_factory=list)

    def update(self, rows: Floats, start: int) -> None:
        """Keep what was chosen of a block."""
        begin = self.first + start
        mine, places = self.chosen.of_rows(begin, begin + len(rows))
        self.places.append(places)
        self.rows.append(rows[mine])

    def merge(self, other: ChosenRows) -> None:
        """Add what was chosen of other rows."""
        self.places += other.places
        self.rows += other.rows


@dataclass(slots=True, repr=False)
class _Both:
    """Both of them, in one pass."""

    sums: BinSums
    chosen: ChosenRows | None

    def update(self, rows: Floats, start: int) -> None:
        """Add a block."""
        self.sums.update(rows, start)
        if self.chosen is not None:
            self.chosen.update(rows, start)

    def close(self) -> None:
        """Add what waits."""
        self.sums.close()

    def merge(self, other: _Both) -> None:
        """Add other blocks."""
        self.sums.merge(other.sums)
        if self.chosen is not None and other.chosen is not None:
            self.chosen.merge(other.chosen)


def binned_samples(
    samples: TwoSamples, layout: BinLayout, maps: FeatureMaps, noise: NoiseSource, *, pairs: bool
) -> tuple[list[Floats], Pairs | None]:
    """Go once through both samples, each in secret bins of its own.

    Returns
    -------
    list of array
        For each block of features, bins × features: bins of x, of y, leftovers of x, of y.
    tuple of array, or None
        Secret pairs of rows of both samples together, if ``pairs`` are asked for.
    """
    bins = [
        secret_bins([layout.size] * count + [len(sample) - count * layout.size], noise)
        for sample, count in zip(samples, layout.counts, strict=True)
    ]
    x, y, kept = in_secret_bins(samples, (bins[0], bins[1]), maps, noise, pairs=pairs)
    sums = [np.vstack([a[:-1], b[:-1], a[-1:], b[-1:]]) for a, b in zip(x, y, strict=True)]
    return sums, kept


def in_secret_bins(
    samples: TwoSamples,
    bins: tuple[SecretBins, SecretBins],
    maps: FeatureMaps,
    noise: NoiseSource,
    *,
    pairs: bool,
) -> tuple[list[Floats], list[Floats], Pairs | None]:
    """Go once through both samples; return the sums of each, and secret pairs.

    The pairs are drawn apart from the bins, so that permuting rows and pairs together changes
    nothing (:func:`privatest.numerics.permutation.secret_pairs`).
    """
    n, m = map(len, samples)
    count = min((n + m) // 2, MOST_PAIRS)
    chosen = secret_few(2 * count, n + m, noise) if pairs else None
    x, y = summarise(
        *(
            (sample, partial(_empty, maps, own, len(sample), chosen, first))
            for sample, own, first in zip(samples, bins, (0, n), strict=True)
        )
    )
    sums = [[each.value for each in side.sums.sums] for side in (x, y)]
    for side, other in ((0, 1), (1, 0)):
        if not sums[side]:  # a private group may be empty
            sums[side] = [np.zeros_like(each) for each in sums[other]]
    if x.chosen is None or y.chosen is None:
        return sums[0], sums[1], None
    x.chosen.merge(y.chosen)
    rows = np.concatenate(x.chosen.rows)[np.argsort(np.concatenate(x.chosen.places))]
    return sums[0], sums[1], (rows[:count], rows[count:])


def _empty(
    maps: FeatureMaps, bins: SecretBins, rows: int, chosen: SecretFew | None, first: int
) -> _Both:
    return _Both(BinSums(maps, bins, rows), None if chosen is None else ChosenRows(chosen, first))


def block_additions(maps: FeatureMaps, rows: int, weight: float, bins: int) -> float:
    """Bound the rounding of sums over blocks, as so many units of roundoff of a weighted mean.

    Features that are exact have none. Else there are the additions within a block, and each bin
    of each block is rounded to fixed point by half a step, where a row counts 1/``weight``.
    """
    if maps.exact:
        return 0.0
    blocks = -(-rows // BLOCK_ROWS) + 1
    step = FixedPoint((), rows).step
    return summation_depth(BLOCK_ROWS) + blocks * bins * step / (2 * weight * UNIT_ROUNDOFF)


# Maximum mean discrepancy: the statistic, its sensitivity, and its permuted values.
#
# T = |sum_i v_i phi(z_i)| in the kernel's RKHS, v = 1/n on the first sample and -1/m on the
# second. Kim and Schrab (2023), section 4.1, with the sharper constants of
# docs/proofs/mmd-sensitivity.md.


_GRAM_TILE = 512


def mmd(x: NDArray[np.float64], y: NDArray[np.float64], kernel: Kernel, domain: Domain) -> float:
    """Return the MMD (V-statistic) of two encoded samples; not private."""
    rows = np.vstack([x, y])
    weights = np.concatenate([np.full(len(x), 1 / len(x)), np.full(len(y), -1 / len(y))])
    return math.sqrt(max(float(weights @ (gram(kernel, rows, rows, domain) @ weights)), 0.0))


def mmd_u(x: NDArray[np.float64], y: NDArray[np.float64], kernel: Kernel, domain: Domain) -> float:
    """Return the unbiased estimate of MMD² (U-statistic) of two encoded samples; not private."""
    n, m = len(x), len(y)
    within_x = (gram(kernel, x, x, domain).sum() - n) / (n * (n - 1))
    within_y = (gram(kernel, y, y, domain).sum() - m) / (m * (m - 1))
    return float(within_x + within_y - 2 * gram(kernel, x, y, domain).mean())


def mmd_sensitivity(
    spread: float, n: int, m: int, adjacency: Adjacency = "one"
) -> PermutationSensitivity:
    """How far MMD moves, ``spread`` being c = sqrt(2 (sup k - inf k)).

    Notes
    -----
    **Sensitivity** "one": c/min(n, m), attained. "both": c (1/n + 1/m) for the observed
    statistic, but 2c/min(n, m) for permuted ones, where both replaced records may land in the
    smaller sample (attained). Proof: docs/proofs/mmd-sensitivity.md.

    Examples
    --------
    Without bounds it is sqrt(2)/min(n, m), lemma 5 of Kim and Schrab (2023); less on [0, 1].

    >>> kernel = Kernel("gaussian", 1.0)
    >>> round(mmd_sensitivity(kernel.spread(Domain((0,), bounded=False)), 3, 2).observed, 6)
    0.707107
    >>> round(mmd_sensitivity(kernel.spread(Domain((0,))), 3, 2).observed, 6)
    0.562192
    """
    smaller = min(n, m)
    if adjacency == "both":
        observed = spread * (1 / n + 1 / m)
        return PermutationSensitivity(observed, max(2 * spread / smaller, observed))
    return PermutationSensitivity(spread / smaller, spread / smaller)


def mmd_u_sensitivity(
    spread: float, n: int, m: int, adjacency: Adjacency = "one"
) -> PermutationSensitivity:
    """How far the U-statistic of MMD² moves.

    Notes
    -----
    **Sensitivity** A record of the first sample appears in terms of total weight 4/n, each of
    which moves by at most sup k - inf k = c²/2: 2c²/n, or 2c²/min(n, m) wherever a permutation
    puts it. "both" adds two of them.
    """
    step = 2 * spread**2 / min(n, m)
    if adjacency == "both":
        observed = 2 * spread**2 * (1 / n + 1 / m)
        return PermutationSensitivity(observed, max(2 * step, observed))
    return PermutationSensitivity(step, step)


def permuted_mmd_features(
    bins: TwoSampleBins,
    membership: NDArray[np.bool_],
    maps: FeatureMaps,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return norms of features (members × permutations) and a bound on their rounding errors.

    One pass over the rows sums features per bin; a permutation then adds up bins.
    """
    return permuted_mmd_sums(feature_sums(bins, maps), bins, membership, maps)


def permuted_mmd_sums(
    sums: Sequence[NDArray[np.float64]],
    layout: BinLayout,
    membership: NDArray[np.bool_],
    maps: FeatureMaps,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the same from sums of raw features, bins × features for each block of the maps."""
    weights = layout.weights(membership)
    values = np.vstack(
        [maps.measure(index, weights @ maps.project(index, raw)) for index, raw in enumerate(sums)]
    )
    rows, smaller = layout.n + layout.m, min(layout.n, layout.m)
    additions = weights.shape[1] + block_additions(maps, rows, smaller, weights.shape[1])
    return values, 2 * feature_rounding(maps, additions)  # weights have total mass 2


def permuted_mmd_exact(
    bins: TwoSampleBins,
    membership: NDArray[np.bool_],
    kernels: Sequence[Kernel],
    domain: Domain,
    *,
    unbiased: bool = False,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return MMD (kernels × permutations), or MMD² unbiased, and a bound on its rounding error.

    One pass over the Gram matrix in tiles sums it into bins × bins; no N×N matrix is kept.
    """
    blocks = _binned_grams(bins, kernels, domain)
    weights = bins.weights(membership)
    # |error of v'Kv| <= (sum |v|)² times the error of an entry, and its sum over a tile
    additions = 2 * summation_depth(bins.size) + 2 * weights.shape[1]
    errors = 4 * (np.array(gram_roundings(kernels, domain)) + additions * UNIT_ROUNDOFF)
    if unbiased:
        return np.array([_unbiased(block, weights, bins) for block in blocks]), 2 * errors
    squares = np.array([quadratic_forms(block, weights) for block in blocks])
    return np.sqrt(np.maximum(squares, 0.0)), np.sqrt(errors)


def _unbiased(
    block: NDArray[np.float64], weights: NDArray[np.float64], bins: TwoSampleBins
) -> NDArray[np.float64]:
    """MMD² without the diagonal, where k = 1, from sums of the Gram matrix over bins."""
    n, m = bins.n, bins.m
    in_x = (weights > 0).astype(np.float64)
    within_x = quadratic_forms(block, in_x)
    across = in_x @ block.sum(axis=1) - within_x
    within_y = block.sum() - within_x - 2 * across
    result: NDArray[np.float64] = (
        (within_x - n) / (n * (n - 1)) + (within_y - m) / (m * (m - 1)) - 2 * across / (n * m)
    )
    return result


def _binned_grams(
    bins: TwoSampleBins, kernels: Sequence[Kernel], domain: Domain
) -> list[NDArray[np.float64]]:
    """Sum each kernel's Gram matrix over pairs of bins."""
    cuts = list(tiles(bins.edges, _GRAM_TILE))
    pairs = [(left, right) for left in range(len(cuts)) for right in range(left, len(cuts))]
    count = len(bins.edges) - 1
    blocks = [np.zeros((count, count)) for _ in kernels]

    def tile_sums(pair: tuple[int, int]) -> list[NDArray[np.float64]]:
        edges_left, edges_right = cuts[pair[0]][1], cuts[pair[1]][1]
        left = bins.rows(edges_left[0], edges_left[-1])
        right = bins.rows(edges_right[0], edges_right[-1])
        return [
            sum_rows(sum_rows(matrix, edges_left - edges_left[0]).T, edges_right - edges_right[0])
            for matrix in grams(kernels, left, right, domain)
        ]

    work = (bins.n + bins.m) ** 2 * len(kernels)
    for pair, sums in zip(pairs, parallel(tile_sums, pairs, work), strict=True):
        first_left, first_right = cuts[pair[0]][0], cuts[pair[1]][0]
        for block, part in zip(blocks, sums, strict=True):  # part is right × left
            rows = slice(first_right, first_right + part.shape[0])
            columns = slice(first_left, first_left + part.shape[1])
            block[rows, columns] += part
            if pair[0] != pair[1]:
                block[columns, rows] += part.T
    return blocks


# Integral probability metrics: sup over functions f of |mean of f over x - mean over y|.
#
# Kim and Schrab (2023), example 1: replacing a record moves the metric by at most the diameter
# of the domain, as the functions see it, over min(n, m). Two forms cover all of them:
#
# - a few features and a norm (means, total variation, Kolmogorov on public thresholds);
# - distribution functions on a line (Kolmogorov, Kuiper, Wasserstein), exact, from the sorted
#   values.
#
# Proof: docs/proofs/integral-probability-metrics.md.


Distance = Literal["mean", "wasserstein", "total-variation", "kolmogorov"]
DISTANCES: tuple[str, ...] = get_args(Distance)
MeanNorm = Literal["l1", "l2", "linf"]
MEAN_NORMS: tuple[str, ...] = get_args(MeanNorm)

_MOST_CELLS = 4096
_THRESHOLDS = 512  # public thresholds of Kolmogorov's distance in several dimensions
_DIRECTIONS = 32  # public directions of the sliced Wasserstein distance
_ENUMERATED = 16  # columns up to which all corners of the box are tried
_CORNERS_HELD = 1 << 14  # corners tried at a time
_WEIGHTS_HELD = 1 << 22  # row weights expanded at a time

WeightsInOrder = Callable[[NDArray[np.intp]], Callable[[slice], Floats]]
"""Given an order of rows, a function that gives the row weights of a slice of weightings."""


@dataclass(frozen=True, slots=True)
class LinearMetric(Unprojected):
    """A norm of the difference of mean features; it serves as its own feature map."""

    features: Callable[[Floats], Floats]
    width: int
    norm: Callable[[Floats], Floats]
    diameter: float

    @property
    def spreads(self) -> tuple[float, ...]:
        """Largest distance, in the norm, between the features of two rows."""
        return (self.diameter,)

    @property
    def roundings(self) -> tuple[float, ...]:
        """Features are exact or rounded once."""
        return (2 * UNIT_ROUNDOFF,)

    @property
    def amplifications(self) -> tuple[float, ...]:
        """An error in each of the features, in the largest of the norms."""
        return (float(self.width),)

    @property
    def raw_width(self) -> int:
        """Number of features."""
        return self.width

    def raw(self, x: Floats) -> Iterator[Floats]:
        """Yield the features."""
        yield self.features(x)

    @property
    def blocks(self) -> int:
        """One."""
        return 1

    def measure(self, index: int, sums: Floats) -> Floats:
        """Return the norm."""
        del index
        return self.norm(sums)[None, :]


@dataclass(frozen=True, slots=True)
class LineMetric:
    """A distance of distribution functions on one or several lines."""

    directions: Floats  # columns; rows are projected on each
    kind: LineKind
    diameter: float

    def values(
        self, rows: Floats, weights: WeightsInOrder, count: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the metric for ``count`` weightings of the rows, and a bound on its error.

        Row weights are positive and negative and sum to 0. Time grows with rows times
        weightings, memory does not.
        """
        total = np.zeros(count)
        step = max(1, _WEIGHTS_HELD // len(rows))
        slices = [slice(start, min(start + step, count)) for start in range(0, count, step)]
        for column in self.directions.T:
            line = rows @ column
            order = np.argsort(line, kind="stable")
            gaps = np.diff(line[order])

            in_order = weights(order)

            def part(
                chosen: slice,
                in_order: Callable[[slice], Floats] = in_order,
                gaps: Floats = gaps,
            ) -> Floats:
                sums = np.cumsum(in_order(chosen), axis=1)[:, :-1]
                if self.kind == "wasserstein":
                    return np.asarray(np.abs(sums, out=sums) @ gaps)
                sums *= gaps > 0  # within ties there is no step
                top, bottom = sums.max(axis=1, initial=0), -sums.min(axis=1, initial=0)
                return from_extremes(self.kind, top, bottom)

            total += np.concatenate(list(parallel(part, slices, count * len(rows))))
        # of sums of weights over the line, of the area, and of the rows' places on the line, which
        # are as long as the box along a direction: longer than the diameter
        reach = float(np.abs(self.directions).sum(axis=0).mean())
        additions = 4.0 * (len(rows) + len(self.directions)) * UNIT_ROUNDOFF * (1 + reach)
        return total[None, :] / self.directions.shape[1], np.array([additions])


def metric(distance: Distance, domain: Domain, norm: MeanNorm = "l2") -> LinearMetric | LineMetric:
    """Build a metric on a public domain, with its diameter.

    Parameters
    ----------
    distance : {"mean", "wasserstein", "total-variation", "kolmogorov"}
        Which one.
    domain : Domain
        Public; bounded.
    norm : {"l1", "l2", "linf"}
        Of the difference of means.
    """
    if not domain.bounded:
        raise ParameterError("bounds must be given: the distance's sensitivity depends on them.")
    if distance == "total-variation":
        return _total_variation(domain)
    if domain.categorical:
        raise ParameterError(
            f"distance={distance!r} needs numeric columns only; use 'total-variation' for "
            "categories or mmd_test for mixed rows."
        )
    if distance == "mean":
        return _mean(domain.dimension, norm)
    if distance == "kolmogorov" and domain.dimension > 1:
        return _kolmogorov_thresholds(domain)
    if domain.dimension == 1:
        return LineMetric(np.ones((1, 1)), distance, 1.0)
    return _sliced_wasserstein(domain.dimension)


@lru_cache(maxsize=16)
def _sliced_wasserstein(dimension: int) -> LineMetric:
    directions = np.random.default_rng(0).normal(size=(dimension, _DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    directions.setflags(write=False)
    return LineMetric(directions, "wasserstein", sliced_diameter(directions))


def sliced_diameter(directions: Floats) -> float:
    """Bound mean |direction · (z - z')| over rows z, z' of the unit box; directions are columns.

    It is convex in z - z', so it is largest where every entry is 1 or -1. All such corners are
    tried for up to 16 columns; beyond, the root mean square along the leading eigenvector
    bounds it.
    """
    dimension, count = directions.shape
    if dimension > _ENUMERATED:
        largest = float(np.linalg.eigvalsh(directions @ directions.T / count)[-1])
        reach = float(np.abs(directions).sum(axis=0).mean())
        return min(math.sqrt(dimension * largest), reach) * (1 + 1e-12)
    longest, columns = 0.0, np.arange(dimension)
    corners = 1 << (dimension - 1)  # the first entry may be 1: opposite corners are equally far
    for start in range(0, corners, _CORNERS_HELD):
        codes = 2 * np.arange(start, min(start + _CORNERS_HELD, corners))
        signs = 1.0 - 2.0 * ((codes[:, None] >> columns) & 1)
        longest = max(longest, float(np.abs(signs @ directions).mean(axis=1).max()))
    return longest * (1 + 1e-12)


def _mean(dimension: int, norm: MeanNorm) -> LinearMetric:
    orders = {"l1": 1.0, "l2": 2.0, "linf": math.inf}
    order = orders[norm]
    diameter = 1.0 if norm == "linf" else dimension ** (1 / order)
    return LinearMetric(
        features=_centred,
        width=dimension,
        norm=partial(_norm, order),
        diameter=diameter * (1 + 1e-15),
    )


def _norm(order: float, sums: Floats) -> Floats:
    return np.asarray(np.linalg.norm(sums, ord=order, axis=1))


def _centred(rows: Floats) -> Floats:
    return rows - 0.5


def _total_variation(domain: Domain) -> LinearMetric:
    if domain.numeric:
        raise ParameterError("distance='total-variation' needs categorical columns only.")
    cells = math.prod(domain.levels)
    if cells > _MOST_CELLS:
        raise ParameterError(
            f"distance='total-variation' needs at most {_MOST_CELLS} combinations of categories; "
            f"these columns have {cells}."
        )
    return LinearMetric(partial(_one_hot, domain.levels), cells, _half_l1, 1.0)


def _one_hot(levels: tuple[int, ...], rows: Floats) -> Floats:
    codes = np.ravel_multi_index(tuple(rows.T.astype(np.intp)), levels)
    found = np.zeros((len(rows), math.prod(levels)))
    found[np.arange(len(rows)), codes] = 1.0
    return found


def _half_l1(sums: Floats) -> Floats:
    halves: Floats = 0.5 * np.abs(sums).sum(axis=1)
    return halves


def _kolmogorov_thresholds(domain: Domain) -> LinearMetric:
    features = partial(_below, domain.points(_THRESHOLDS))
    return LinearMetric(features, _THRESHOLDS, _largest, 1.0)


def _below(thresholds: Floats, rows: Floats) -> Floats:
    below = np.ones((len(rows), len(thresholds)), dtype=np.bool_)
    for own, column in zip(thresholds.T, rows.T, strict=True):
        below &= np.less_equal.outer(column, own)
    return below.astype(np.float64)


def _largest(sums: Floats) -> Floats:
    found: Floats = np.abs(sums).max(axis=1)
    return found


def ipm(x: Floats, y: Floats, distance: LinearMetric | LineMetric) -> float:
    """Return the metric between two encoded samples; not private."""
    if isinstance(distance, LinearMetric):
        difference = distance.features(x).mean(axis=0) - distance.features(y).mean(axis=0)
        return float(distance.norm(difference[None, :])[0])
    weights = np.repeat([1 / len(x), -1 / len(y)], [len(x), len(y)])
    values, _ = distance.values(np.vstack([x, y]), lambda order: lambda _: weights[None, order], 1)
    return float(values[0, 0])


# Private groups by swapping labels within pairs: less sensitive than permuting all labels.
#
# Rows come in a secret order, and rows 0 and 1, 2 and 3, ... make pairs (a, b). With labels g in
# {0, 1}, T = |(1/N) sum over pairs of (g_a - g_b)(f(x_a) - f(x_b))|, and the null is made by
# swapping the two labels of a pair, which turns the sign of its term. Only pairs with two labels
# speak, so under the null hypothesis T is sqrt 2 larger than (n m/N²) MMD; but a permutation never
# parts a row from its pair, so that permuted statistics move no further than the observed one.
# Proof: docs/proofs/private-groups.md.


SWAP_BINS = 512  # bins of pairs, which are swapped together
_STEPS_HELD = 64  # of a walk, at a time: sums fit into a byte
_DOUBLING = (1, 2, 4, 8, 16, 32)
_MOST = np.int8(127)  # of a byte
_WEIGHTINGS = 512  # that walk at a time: they stay in the cache
_ROUNDED = np.array([4 * UNIT_ROUNDOFF])  # quotients of whole numbers


def pair_swaps_sensitivity(diameter: float, total: int) -> PermutationSensitivity:
    """How far T moves, observed or permuted: diameter/N, ``diameter`` being that of f.

    Notes
    -----
    **Sensitivity** A replaced row (x, g) is in one pair. Next to the other row's label, its own
    makes the term 0 or gives it one sign, whatever it is replaced by; so the term moves by at
    most the diameter (attained). Proof: docs/proofs/private-groups.md.
    """
    return PermutationSensitivity(diameter / total, diameter / total)


@dataclass(frozen=True, slots=True)
class _Swaps:
    """Row weights g_a - g_b and its negative, bins of pairs, and the sign of each bin."""

    weights: NDArray[np.float64]  # one for each row, -1, 0 or 1; a leftover row has 0
    edges: NDArray[np.intp]  # where each bin starts, and the end
    signs: NDArray[np.float64]  # permutations × bins; the first row is as observed

    @classmethod
    def draw(
        cls, labels: NDArray[np.float64], n_permutations: int, rng: np.random.Generator
    ) -> _Swaps:
        """Cut the pairs into bins and draw their signs."""
        total = len(labels)
        edges = np.concatenate([[0], np.cumsum(pair_bin_sizes(total))])
        last = int(edges[-1])
        weights = np.zeros(total)
        weights[0:last:2] = labels[0:last:2] - labels[1:last:2]
        weights[1:last:2] = -weights[0:last:2]
        return cls(weights, edges, swap_signs(len(edges) - 1, n_permutations, rng))

    @property
    def depth(self) -> float:
        """Longest chain of additions: within a bin, and over bins."""
        return summation_depth(int(self.edges[1])) + float(self.signs.shape[1]) + 4.0

    def sums(self, matrix: NDArray[np.float64], edges: NDArray[np.intp]) -> NDArray[np.float64]:
        """Sum weighted rows of ``matrix``, which starts at edges[0], between edges."""
        return sum_rows(matrix, edges - edges[0], self.weights[edges[0] : edges[-1]])


def pair_bin_sizes(total: int) -> list[int]:
    """Return how many rows each bin of pairs has; a leftover row is in none."""
    pairs = total // 2
    size = -(-pairs // SWAP_BINS)
    ends = 2 * np.minimum(np.arange(0, pairs + size, size), pairs)
    return [int(rows) for rows in np.diff(ends)]


def swap_signs(bins: int, n_permutations: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a sign for each bin: first as observed, then at random."""
    signs = np.ones((n_permutations + 1, bins))
    signs[1:] = 2.0 * rng.integers(2, size=signs[1:].shape) - 1.0
    return signs


def permuted_swaps_streamed(
    samples: TwoSamples,
    maps: FeatureMaps,
    n_permutations: int,
    rng: np.random.Generator,
    noise: NoiseSource,
    *,
    pairs: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64], Pairs | None]:
    """Return T of features (members × permutations), a bound on its error, and secret pairs.

    One pass over the rows, which may be anywhere; ``pairs`` as in :func:`binned_samples`. All rows
    are computed: how many have weight is private, and time would tell.
    """
    total = len(samples.x) + len(samples.y)
    sizes = pair_bin_sizes(total)
    bins = secret_pair_bins(len(samples.x), len(samples.y), [*sizes, total % 2], noise)
    x, y, kept = in_secret_bins(samples, bins, maps, noise, pairs=pairs)
    signs = swap_signs(len(sizes), n_permutations, rng)
    values = []
    for index, (ours, theirs) in enumerate(zip(x, y, strict=True)):
        differences = ours[: 2 * len(sizes) : 2] - theirs[: 2 * len(sizes) : 2]  # mixed pairs
        features = maps.project(index, differences / total)
        values.append(maps.measure(index, signs @ features))
    additions = len(sizes) + 4 + block_additions(maps, total, total, bins[0].count)
    return np.vstack(values), feature_rounding(maps, additions), kept


def permuted_swaps_features(
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    maps: FeatureMaps,
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return T of features (members × permutations) and a bound on its rounding error.

    Rows come in a secret order. One pass sums weighted features per bin of pairs; a permutation
    then adds up bins with their signs. Rows without weight are computed too: how many there are
    is private, and time would tell.
    """
    return _features(rows, maps, _Swaps.draw(labels, n_permutations, rng))


def _features(
    rows: NDArray[np.float64], maps: FeatureMaps, swaps: _Swaps
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    def tile_sums(tile: tuple[int, NDArray[np.intp]]) -> tuple[int, list[NDArray[np.float64]]]:
        first, edges = tile
        part = slice(edges[0], edges[-1])
        return first, list(maps.binned(rows[part], edges - edges[0], swaps.weights[part]))

    sums: list[NDArray[np.float64]] = []
    work = len(rows) * maps.blocks * 64
    for first, parts in parallel(tile_sums, tiles(swaps.edges), work):
        if not sums:
            sums = [np.zeros((len(swaps.edges) - 1, part.shape[1])) for part in parts]
        for total, part in zip(sums, parts, strict=True):
            total[first : first + len(part)] += part
    values = [
        maps.measure(index, swaps.signs @ maps.project(index, found / len(rows)))
        for index, found in enumerate(sums)
    ]
    return np.vstack(values), feature_rounding(maps, swaps.depth)  # weights have mass <= 1


def permuted_swaps_line(
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    metric: LineMetric,
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return T of a distance on a line (1 × permutations) and a bound on its rounding error."""
    swaps = _Swaps.draw(labels, n_permutations, rng)
    bin_of_row = np.searchsorted(swaps.edges[1:-1], np.arange(len(rows)), side="right")
    if metric.kind != "wasserstein":  # one line
        order = np.argsort(rows[:, 0], kind="stable")
        ends = np.append(np.diff(rows[order, 0]) > 0, False)  # within ties there is no step
        top, bottom = _walks(swaps, order, bin_of_row[order], ends)
        values = from_extremes(metric.kind, top / len(rows), bottom / len(rows))
        return values[None, :], _ROUNDED

    def weights(order: NDArray[np.intp]) -> Callable[[slice], NDArray[np.float64]]:
        bins, own = bin_of_row[order], swaps.weights[order] / len(rows)
        return lambda chosen: np.take(swaps.signs[chosen], bins, axis=1) * own

    return metric.values(rows, weights, n_permutations + 1)


def _walks(
    swaps: _Swaps, order: NDArray[np.intp], bins: NDArray[np.intp], ends: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how far up and down each weighting's sum over sorted rows gets, at ``ends``.

    Steps are -1, 0 or 1, so that sums over few rows fit into a byte.
    """
    own = swaps.weights[order].astype(np.int8)
    count = len(swaps.signs)

    def part(chosen: slice) -> NDArray[np.int64]:
        signs = np.ascontiguousarray(swaps.signs[chosen].T.astype(np.int8))  # bins × weightings
        base, top, bottom = np.zeros((3, signs.shape[1]), dtype=np.int64)
        for start in range(0, len(order), _STEPS_HELD):
            rows = slice(start, start + _STEPS_HELD)
            sums = signs[bins[rows]] * own[rows, None]
            for width in _DOUBLING:
                sums[width:] += sums[:-width].copy()
            # as much work whatever is tied: rows within ties are put below, or above, all others
            here = ends[rows]
            out_of_play = (len(order) + 128) * (not here.any())  # where all are within ties
            peaks = np.minimum(sums, np.where(here, _MOST, -_MOST)[:, None]).max(axis=0)
            dips = np.maximum(sums, np.where(here, -_MOST, _MOST)[:, None]).min(axis=0)
            np.maximum(top, base + peaks - out_of_play, out=top)
            np.minimum(bottom, base + dips + out_of_play, out=bottom)
            base += sums[-1]
        return np.stack([top, bottom])

    slices = [slice(start, start + _WEIGHTINGS) for start in range(0, count, _WEIGHTINGS)]
    found = np.concatenate(list(parallel(part, slices, count * len(order))), axis=1)
    return found[0], -found[1]


def permuted_swaps_cells(
    lines: Iterable[PlacedLine],
    labels: NDArray[np.float64],
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean over lines of T from cells (1 × permutations), and a bound on its error."""
    swaps, total = _Swaps.draw(labels, n_permutations, rng), len(labels)
    found, errors = [], []
    for line in lines:
        heights = line.heights(swaps.signs @ bin_sums(line, swaps.edges, swaps.weights))
        found.append(line.distance(heights / total))
        errors.append(line.rounding)
    return np.mean(found, axis=0)[None, :], np.array([max(errors)])


def permuted_swaps_exact(
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    kernels: Sequence[Kernel],
    domain: Domain,
    n_permutations: int,
    rng: np.random.Generator,
    maps: FeatureMaps | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return T (kernels, then members of ``maps``, × permutations) and a bound on its error.

    One pass over the weighted Gram matrix sums it into bins × bins; no N×N matrix is kept.
    """
    swaps = _Swaps.draw(labels, n_permutations, rng)
    cuts = list(tiles(swaps.edges, _GRAM_TILE))
    count = len(swaps.edges) - 1
    blocks = [np.zeros((count, count)) for _ in kernels]
    pairs = [(left, right) for left in cuts for right in cuts if right[1][0] <= left[1][0]]

    def tile_sums(
        pair: tuple[tuple[int, NDArray[np.intp]], tuple[int, NDArray[np.intp]]],
    ) -> list[NDArray[np.float64]]:
        (_, left), (_, right) = pair
        matrices = grams(kernels, rows[left[0] : left[-1]], rows[right[0] : right[-1]], domain)
        return [swaps.sums(swaps.sums(matrix, left).T, right).T for matrix in matrices]

    work = len(rows) ** 2 * len(kernels)
    for (left, right), sums in zip(pairs, parallel(tile_sums, pairs, work), strict=True):
        for block, part in zip(blocks, sums, strict=True):  # left × right
            across = slice(left[0], left[0] + part.shape[0])
            down = slice(right[0], right[0] + part.shape[1])
            block[across, down] += part
            if left[1][0] != right[1][0]:
                block[down, across] += part.T
    squares = np.array([quadratic_forms(block, swaps.signs) for block in blocks])
    squares /= len(rows) ** 2
    # |error of w'Kw| <= (sum |w|)² times the error of an entry and of its sum; sum |w| <= N
    errors = np.array(gram_roundings(kernels, domain)) + 2 * swaps.depth * UNIT_ROUNDOFF
    exact = np.sqrt(np.maximum(squares, 0.0)), np.sqrt(errors)
    return exact if maps is None else one_below_other(exact, _features(rows, maps, swaps))


# Two-sample statistics where a person's group is part of the row and group sizes are private.
#
# T = |(1/N) sum_i (g_i - mean g) phi(x_i)| = (n m / N²) MMD with g_i in {0, 1}: only the total N
# is public, and an empty group gives T = 0. The null is made by permuting labels.


LABEL_BLOCKS = 64  # most label blocks that are permuted
_ROWS_PER_PIECE = 1024
_SUMS_HELD = 1 << 18  # sums of permutations that are added up at a time: they stay in the cache


def private_groups_sensitivity(diameter: float, total: int) -> PermutationSensitivity:
    """How far |(1/N) sum (g_i - mean g) f(x_i)| moves, ``diameter`` being that of f.

    Notes
    -----
    **Sensitivity** Replacing (x, g) by any (x', g') moves the observed statistic by at most
    diameter (N-1)/N². A permutation separates the replaced value from the replaced label, so that
    two rows change, and a permuted statistic can move by twice that (nearly attained).
    Proof: docs/proofs/private-groups.md.
    """
    step = diameter * (total - 1) / total**2
    return PermutationSensitivity(step, 2 * step)


def permuted_groups_features(
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    maps: FeatureMaps,
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return T of features (members × permutations) and a bound on its rounding error.

    Rows come in a secret order. Labels are cut into blocks; a permutation pairs block a of
    labels with block pi(a) of rows, position by position: a subgroup of all permutations.
    Leftover rows keep their labels.
    """
    total = len(rows)
    centred, table = _label_blocks(labels)
    blocks, size = table.shape
    cross, rest = _cross_sums(rows, centred, table, maps)
    shuffles = _shuffles(blocks, n_permutations, rng)
    values = []
    for index, (pairs, left) in enumerate(zip(cross, rest, strict=True)):
        features = maps.project(index, pairs)  # rows' block × labels' block × features
        sums = np.broadcast_to(maps.project(index, left), (len(shuffles), features.shape[2])).copy()
        for block in range(blocks):
            sums += features[block, shuffles[:, block]]
        values.append(maps.measure(index, sums))
    additions = 1024 + size / 1024 + 2 * blocks + np.log2(total)
    return np.vstack(values), feature_rounding(maps, additions)


def permuted_groups_line(
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    metric: LineMetric,
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return T of a distance on a line (1 × permutations) and a bound on its rounding error."""
    centred, table = _label_blocks(labels)
    shuffles = _shuffles(len(table), n_permutations, rng)

    def weights(order: NDArray[np.intp]) -> Callable[[slice], NDArray[np.float64]]:
        def in_order(chosen: slice) -> NDArray[np.float64]:
            shuffled = table[shuffles[chosen]].reshape(len(shuffles[chosen]), -1)
            rest = np.broadcast_to(centred[table.size :], (len(shuffled), len(rows) - table.size))
            return np.take(np.hstack([shuffled, rest]), order, axis=1)

        return in_order

    return metric.values(rows, weights, n_permutations + 1)


def permuted_groups_cells(
    lines: Iterable[PlacedLine],
    labels: NDArray[np.float64],
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean over lines of T from cells (1 × permutations), and a bound on its error.

    Rows come in a secret order; blocks of labels are permuted as for features. One pass counts
    the rows of label 1 by cell for each pair of blocks; the rest does not grow with N.
    """
    total, share = len(labels), float(labels.mean())
    _, table = _label_blocks(labels)
    blocks, size = table.shape
    shuffles = _shuffles(blocks, n_permutations, rng)
    paired = np.ascontiguousarray(labels[: blocks * size].reshape(blocks, size).T)
    found, errors = [], []
    for line in lines:
        cross = _cross_cells(line, paired)
        fixed = bin_sums(line, np.array([blocks * size, total]), labels)[0]
        rows = line.heights(bin_sums(line, np.array([0, total]))[0])
        sums = np.empty((len(shuffles), line.width))
        for part in _slices(line.width, _SUMS_HELD // len(shuffles)):
            own = cross[0, shuffles[:, 0], part]
            for block in range(1, blocks):
                own += cross[block, shuffles[:, block], part]
            sums[:, part] = own + fixed[part]
        heights = line.heights(sums)
        heights -= share * rows
        found.append(line.distance(heights / total))
        errors.append(line.rounding)
    return np.mean(found, axis=0)[None, :], np.array([max(errors)])


def _cross_cells(line: PlacedLine, labels: NDArray[np.float64]) -> NDArray[np.integer[Any]]:
    """Sum labels by cell: rows' block × labels' block × ``line.width``."""
    from scipy.sparse import csc_array  # noqa: PLC0415 -- slow to import

    size, blocks = labels.shape
    whole: Any = np.int32 if line.inside is None else np.int64  # short ones are twice as fast
    cross = np.empty((blocks, blocks, line.width), dtype=whole)
    labels = labels.astype(whole)
    starts, ones = np.arange(size + 1, dtype=np.int32), np.ones(size, dtype=whole)
    for block in range(blocks):
        part = slice(block * size, (block + 1) * size)
        codes = line.codes[part]
        for offset, entries in ((0, ones), (line.count, line.inside)):
            if entries is not None:
                own = entries if offset == 0 else entries[part]
                cells = csc_array((own, codes, starts), shape=(line.count, size))
                cross[block, :, offset : offset + line.count] = (cells @ labels).T
    return cross


def _slices(length: int, step: int) -> list[slice]:
    step = max(1, step)
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


def _label_blocks(
    labels: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centred labels over N, and the same cut into blocks (leftovers are not in it)."""
    centred = (labels - labels.mean()) / len(labels)
    size = -(-len(labels) // LABEL_BLOCKS)  # so that fewer rows are left over than a block has
    blocks = len(labels) // size
    return centred, centred[: blocks * size].reshape(blocks, size)


def _shuffles(blocks: int, n_permutations: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the identity, then random permutations of blocks."""
    shuffles = np.tile(np.arange(blocks), (n_permutations + 1, 1))
    rng.permuted(shuffles[1:], axis=1, out=shuffles[1:])
    return shuffles


def _cross_sums(
    rows: NDArray[np.float64],
    centred: NDArray[np.float64],
    table: NDArray[np.float64],
    maps: FeatureMaps,
) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
    """Sum label × raw feature for every pair of blocks, and over the leftover rows."""
    blocks, size = table.shape
    edges = [*range(0, blocks * size + 1, size), len(rows)]
    pieces = [
        (block, start, min(start + _ROWS_PER_PIECE, edges[block + 1]))
        for block in range(blocks + 1)
        for start in range(edges[block], edges[block + 1], _ROWS_PER_PIECE)
    ]

    def piece_sums(piece: tuple[int, int, int]) -> list[NDArray[np.float64]]:
        block, start, stop = piece
        offset = block * size
        leftover = block == blocks
        weights = (
            centred[None, start:stop] if leftover else table[:, start - offset : stop - offset]
        )
        return [weights @ raw for raw in maps.raw(rows[start:stop])]

    cross: list[NDArray[np.float64]] = []
    rest: list[NDArray[np.float64]] = []
    work = len(rows) * len(maps.spreads) * blocks
    for (block, _, _), sums in zip(pieces, parallel(piece_sums, pieces, work), strict=True):
        if not cross:
            cross = [np.zeros((blocks, blocks, part.shape[1])) for part in sums]
            rest = [np.zeros(part.shape[1]) for part in sums]
        for index, part in enumerate(sums):
            if block == blocks:
                rest[index] += part[0]
            else:
                cross[index][block] += part
    return cross, rest


def permuted_groups_exact(
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    kernels: Sequence[Kernel],
    domain: Domain,
    n_permutations: int,
    rng: np.random.Generator,
    maps: FeatureMaps | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return T (kernels, then members of ``maps``, × permutations) and a bound on its error.

    Single labels are permuted. Time grows with N² times permutations; the Gram matrix is made in
    slices.
    """
    total = len(rows)
    weights = np.tile((labels - labels.mean()) / total, (n_permutations + 1, 1))
    rng.permuted(weights[1:], axis=1, out=weights[1:])
    squares = np.zeros((len(kernels), n_permutations + 1))
    for start in range(0, total, _ROWS_PER_PIECE):
        piece = slice(start, start + _ROWS_PER_PIECE)
        for index, matrix in enumerate(grams(kernels, rows[piece], rows, domain)):
            squares[index] += np.einsum("ij,ij->i", weights[:, piece], weights @ matrix.T)
    # sum |v| <= 1/2, as at most N²/4 pairs of rows differ in label
    errors = np.array(gram_roundings(kernels, domain)) + 2 * total * UNIT_ROUNDOFF
    exact = np.sqrt(np.maximum(squares, 0.0)), np.sqrt(errors / 4)
    if maps is None:
        return exact
    members = [
        maps.measure(index, weights @ maps.project(index, raw))
        for index, raw in enumerate(maps.raw(rows))
    ]
    return one_below_other(exact, (np.vstack(members), feature_rounding(maps, 2.0 * total)))


# Distances on a line from cells, in one pass: rows by secret bin and cell, wherever they are.
#
# Bins of a sample, or of pairs with two labels, come from a secret order that nobody holds; counts
# by bin and cell are whole numbers, and all that is kept.
# Proofs: docs/proofs/line-cells.md and docs/proofs/secret-order.md.


Place = Callable[[Floats], PlacedLine]
"""Rows to their cells on a line, each row by itself; it travels to other processes."""


class BinnedCells:
    """How many rows of each bin are in each cell of a line, and the sums of areas if it has them.

    Parameters
    ----------
    place : function
        Rows to cells.
    bins : SecretBins
        The bin of each row.
    """

    __slots__ = ("bins", "place", "table")

    def __init__(self, place: Place, bins: SecretBins) -> None:
        self.place, self.bins = place, bins
        self.table = np.zeros((bins.count, place(np.empty((0, 1))).width), dtype=np.int64)

    def update(self, rows: Floats, start: int) -> None:
        """Count a block."""
        line, counts = self.place(rows), self.table.reshape(-1)
        first = self.bins.of_rows(start, start + len(rows)) * line.width + line.codes
        np.add.at(counts, first, 1)
        if line.inside is not None:
            np.add.at(counts, first + line.count, line.inside)

    def merge(self, other: BinnedCells) -> None:
        """Add other blocks."""
        self.table += other.table


def _tables(samples: TwoSamples, bins: tuple[SecretBins, SecretBins], place: Place) -> list[Floats]:
    """Go once through both samples; return bins × cells of each."""
    made = (partial(BinnedCells, place, own) for own in bins)
    found = summarise(*zip(samples, made, strict=True))
    return [each.table.astype(np.float64) for each in found]  # exact up to 2^53


def permuted_bins_pass(
    samples: TwoSamples,
    place: Place,
    max_bins: int,
    n_permutations: int,
    rng: np.random.Generator,
    noise: NoiseSource,
) -> tuple[Floats, Floats]:
    """Return the distance of public groups (1 × permutations), and a bound on its error."""
    n, m = map(len, samples)
    layout = BinLayout(n, m, rows_per_bin(n, m, None, max_bins))
    bins = [
        secret_bins([layout.size] * count + [len(sample) - count * layout.size], noise)
        for sample, count in zip(samples, layout.counts, strict=True)
    ]
    x, y = _tables(samples, (bins[0], bins[1]), place)
    table = np.vstack([x[:-1], y[:-1], x[-1:], y[-1:]])
    line = place(np.empty((0, 1)))
    found = permuted_tables(line, table, layout.membership(n_permutations, rng), n, m)
    return found[None, :], np.array([line.rounding])


def permuted_swaps_pass(
    samples: TwoSamples,
    place: Place,
    n_permutations: int,
    rng: np.random.Generator,
    noise: NoiseSource,
) -> tuple[Floats, Floats]:
    """Return T of private groups whose labels are swapped in pairs, and a bound on its error.

    All rows are counted: how many have weight is private, and time would tell.
    """
    total = len(samples.x) + len(samples.y)
    sizes = pair_bin_sizes(total)
    bins = secret_pair_bins(len(samples.x), len(samples.y), [*sizes, total % 2], noise)
    x, y = _tables(samples, bins, place)
    mixed = slice(0, 2 * len(sizes), 2)  # bins of rows whose partner has the other label
    line = place(np.empty((0, 1)))
    signs = swap_signs(len(sizes), n_permutations, rng)
    heights = line.heights(signs @ (x[mixed] - y[mixed]))
    return line.distance(heights / total)[None, :], np.array([line.rounding])


# Sums of features over secret bins of rows, and their second moment, in one pass.
#
# Proof of the rounding bound: docs/proofs/exact-sums.md.


class BinnedMoments:
    """Sums of psi over the rows of each bin, and of psi · psi' over all rows.

    Parameters
    ----------
    psi : function
        Rows to rows × dimension, each row by itself; it travels to other processes.
    dimension : int
        Number of features.
    bins : SecretBins
        Which bin each row is in.
    sizes : tuple of int
        Rows of the sample, and the most in a bin.
    radius : float
        No psi is longer than this.
    """

    __slots__ = ("bins", "psi", "second", "sums")

    def __init__(
        self, psi: Terms, dimension: int, bins: SecretBins, sizes: tuple[int, int], radius: float
    ) -> None:
        self.psi, self.bins = psi, bins
        n, largest = sizes
        self.sums = FixedPoint((bins.count, dimension), largest * radius)
        self.second = FixedPoint((dimension, dimension), n * radius**2)

    def update(self, rows: Floats, start: int) -> None:
        """Put a block in the order of its bins, and add it."""
        bins = self.bins.of_rows(start, start + len(rows))
        order, edges = bin_order(bins, self.bins.count)
        sums, second = np.zeros(self.sums.units.shape), np.zeros(self.second.units.shape)
        first = 0
        for piece in pieces(rows[order]):
            features = self.psi(piece)
            within = np.clip(edges - first, 0, len(piece))
            sums += sum_rows(features, within)
            second += square_sums(features)
            first += len(piece)
        self.sums.add(sums)
        self.second.add(second)

    def merge(self, other: BinnedMoments) -> None:
        """Add other blocks."""
        self.sums.merge(other.sums)
        self.second.merge(other.second)


def binned_rounding(
    n: int, least: int, count: int, largest: int, radius: float, feature_error: float, width: int
) -> tuple[float, float]:
    """Bound the rounding, in l2, of means by way of ``count`` bins, and of the second moment.

    Parameters
    ----------
    n, least : int
        Rows of all samples, and of the smallest: a row counts 1/least at most.
    count, largest : int
        Number of bins, and the most rows in one.
    radius, feature_error, width
        Largest norm of the features of a row, the l2 error in them, and how many they are.
    """
    _, second = moments_rounding(n, radius, width, feature_error)
    # within a piece a bin is summed one after the other, then over pieces and over bins
    chain = 1.01 * (min(PIECE, largest) + 32 + count) * UNIT_ROUNDOFF
    fixed = math.sqrt(width) * count * fixed_rounding(n, largest * radius) / least
    return feature_error + chain * (radius + feature_error) + fixed, second


# Distances on a line for many rows: cells in place of sorted values.
#
# A permutation then costs a sum over cells and not over rows. Which of the two is used follows from
# public numbers. Proofs: docs/proofs/line-cells.md.


EXACT_ROWS = 1 << 14  # up to so many rows sorted values are summed for each permutation
RANK_CELLS = 1024
MOST_CELLS_CHOSEN = 4096
_CELLS = {"kolmogorov": MOST_CELLS_CHOSEN, "wasserstein": 1024}
_SLICED_CELLS = 256  # for each direction


def rank_cells_sensitivity(kind: LineKind, total: int) -> PermutationSensitivity:
    """How far T of private groups moves if it is measured at ranks; labels are permuted.

    Notes
    -----
    **Sensitivity** A replaced value exchanges at most one row of those below a cut point for
    another, and moves the sum of centred labels there by at most 1; a replaced label by less than
    1. Observed together still 1, but 2 between two cut points ("kuiper"). Permuted 2.
    Proof: docs/proofs/line-cells.md.
    """
    return PermutationSensitivity((2 if kind == "kuiper" else 1) / total, 2 / total)


@dataclass(frozen=True, slots=True, eq=False)
class CellMetric:
    """A distance on lines, from public cells.

    Attributes
    ----------
    metric : LineMetric
        The distance from sorted values that it stands for; not above it.
    cuts : ndarray or None
        Cut points of the unit interval; for "wasserstein" None.
    cells : int
        Number of cells of each line.
    """

    metric: LineMetric
    cuts: Floats | None
    cells: int

    @property
    def diameter(self) -> float:
        """That of the distance, and two of the steps in which several columns are rounded."""
        if self.metric.directions.shape[0] == 1:
            return self.metric.diameter
        reach = float(np.abs(self.metric.directions).sum(axis=0).mean())
        return self.metric.diameter + 2 * reach / (self.cells * FINE_STEPS)

    @property
    def is_line(self) -> bool:
        """Whether there is one line."""
        return len(self.metric.directions.T) == 1

    def line(self, rows: Floats) -> PlacedLine:
        """Place rows on the first line."""
        return next(self.lines(rows))

    def lines(self, rows: Floats) -> Iterator[PlacedLine]:
        """Place rows of the unit box on each line, one line at a time."""
        for direction in self.metric.directions.T:
            line = rows[:, 0] * direction[0]
            for column, weight in enumerate(direction[1:], 1):
                line += rows[:, column] * weight  # not a matrix product: each row on its own
            if self.cuts is not None:
                yield cut_cells(line, self.cuts, self.metric.kind)
            else:
                lower, upper = direction[direction < 0].sum(), direction[direction > 0].sum()
                yield area_cells(line, float(lower), float(upper), self.cells)


def cell_metric(metric: LineMetric, cuts: Floats | None, cells: int | None) -> CellMetric:
    """Choose cells for a distance on the unit box: the given ones, or a public number of them."""
    if metric.kind == "wasserstein":
        usual = _CELLS["wasserstein"] if metric.directions.shape[0] == 1 else _SLICED_CELLS
        return CellMetric(metric, None, cells or usual)
    if cuts is None:
        cuts = equal_cuts(0.0, 1.0, cells or _CELLS["kolmogorov"])
    return CellMetric(metric, cuts, len(cuts) + 1)
