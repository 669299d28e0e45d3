"""Permuted statistics of two groups: how labels are permuted, and what is summed for it.

A relabelling is public and holds no data: bins of two samples that are permuted, labels that are
swapped within pairs of rows, blocks of labels that are matched with blocks of rows, or single
labels. One pass sums the rows by bin; every permutation then costs a few hundred additions.
Features, cells of a line and Gram matrices are the three things that are summed; distances from
sorted values are in :mod:`privatest.numerics.distances`.

Rows come in a secret random order. A stored order may depend on values, and bins cut from it would
move by more than the sensitivity (docs/proofs/row-order.md).
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

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
from privatest.data.schema import Domain
from privatest.data.summaries import (
    PIECE,
    FixedPoint,
    Terms,
    fixed_rounding,
    pieces,
    square_sums,
    summarise,
)
from privatest.numerics.cells import PlacedLine, bin_sums
from privatest.numerics.coded import CodedMaps, CodedSums, Room
from privatest.numerics.features import FeatureMaps
from privatest.numerics.kernels import (
    ROWS_PER_TILE,
    UNIT_ROUNDOFF,
    Kernel,
    gram,
    gram_roundings,
    grams,
    quadratic_forms,
    sum_rows,
    tiles,
)
from privatest.numerics.moments import moments_rounding
from privatest.numerics.portfolio import MOST_PAIRS

_BINS_PER_SAMPLE = 128  # power as with row permutations; see benchmarks/power
SWAP_BINS = 512  # bins of pairs, which are swapped together
LABEL_BLOCKS = 64  # most label blocks that are permuted
_PARALLEL_WORK = 1 << 22  # matrix entries below which threads cost more than they save
_BLOCKS_AT_ONCE = 8  # of which codes are held: many rows of a bin fill its slots better
_GRAM_TILE = 512
_ROWS_PER_PIECE = 1024
_SUMS_HELD = 1 << 18  # sums of permutations that are added up at a time: they stay in the cache

Item = TypeVar("Item")
Value = TypeVar("Value")
Floats = NDArray[np.float64]
Pairs = tuple[Floats, Floats]
"""Row i of the first makes a pair with row i of the second."""
Statistics = tuple[Floats, Floats]
"""Values (statistics × permutations), and a bound on the rounding error of each statistic."""
Place = Callable[[Floats], PlacedLine]
"""Rows to their cells on a line, each row by itself; it travels to other processes."""


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


def stack_statistics(*families: Statistics) -> Statistics:
    """Stack the statistics of several families, and the bounds on their rounding errors."""
    values, errors = zip(*families, strict=True)
    return np.vstack(values), np.concatenate(errors)


# Bins of rows.


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

    def arrange(
        self, x: Floats, y: Floats, order_x: NDArray[np.intp], order_y: NDArray[np.intp]
    ) -> Floats:
        """Return the rows of both samples by bin, from (secret) orders, which are overwritten."""
        whole_x, whole_y = self.n - self.n % self.size, self.m - self.m % self.size
        # Only which rows share a bin matters; in stored order they are much quicker to fetch.
        order_x[:whole_x].reshape(-1, self.size).sort(axis=1)
        order_y[:whole_y].reshape(-1, self.size).sort(axis=1)
        parts = x[order_x[:whole_x]], y[order_y[:whole_y]], x[order_x[whole_x:]]
        return np.concatenate([*parts, y[order_y[whole_y:]]])

    def permute(self, n_permutations: int, rng: np.random.Generator) -> BinPermutation:
        """Draw which bins count as x: first as observed, then for random permutations."""
        bins_x, bins_y = self.counts
        in_x = np.zeros((n_permutations + 1, bins_x + bins_y), dtype=np.bool_)
        in_x[:, :bins_x] = True
        rng.permuted(in_x[1:], axis=1, out=in_x[1:])
        return BinPermutation(
            total=self.n + self.m,
            count=len(in_x),
            edges=self.edges,
            smallest=min(self.n, self.m),
            divisor=1.0,
            mass=2.0,
            additions=float(bins_x + bins_y + 2),
            secret=bins_x + bins_y + 2,
            layout=self,
            in_x=in_x,
        )


def bin_layout(n: int, m: int, size: int | None, max_bins: int) -> BinLayout:
    """Choose how many rows share a bin, by sizes only; ``size`` if it is not None."""
    if size is None:
        size = max(1, min(n, m) // _BINS_PER_SAMPLE, -(-(n + m) // max_bins))
    return BinLayout(n, m, min(size, n, m))


def pair_bin_sizes(total: int) -> list[int]:
    """Return how many rows each bin of pairs has; a leftover row is in none."""
    pairs = total // 2
    size = -(-pairs // SWAP_BINS)
    ends = 2 * np.minimum(np.arange(0, pairs + size, size), pairs)
    return [int(rows) for rows in np.diff(ends)]


def bin_order(bins: NDArray[np.intp], count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows in the order of their bins, and where each of ``count`` bins starts and ends."""
    # short integers are sorted digit by digit
    short = bins.astype(np.uint16, copy=False) if count <= 1 << 16 else bins
    order = np.argsort(short, kind="stable")
    return order, np.concatenate([[0], np.cumsum(np.bincount(bins, minlength=count))])


# Rounding: units of roundoff of a weighted mean.


def summation_depth(size: int) -> float:
    """Longest chain of additions in the sum over a bin: within a tile, then over tiles."""
    return min(size, ROWS_PER_TILE) + (size / 512) ** 2


def block_additions(maps: FeatureMaps, rows: int, smallest: float, bins: int) -> float:
    """Bound the rounding of sums over blocks, as so many units of roundoff of a weighted mean.

    Features that are exact have none. Else there are the additions within a block, and each bin
    of each block is rounded to fixed point by half a step, where a row counts 1/``smallest``.
    """
    if maps.exact:
        return 0.0
    blocks = -(-rows // BLOCK_ROWS) + 1
    step = FixedPoint((), rows).step
    return summation_depth(BLOCK_ROWS) + blocks * bins * step / (2 * smallest * UNIT_ROUNDOFF)


def feature_rounding(maps: FeatureMaps, additions: float) -> Floats:
    """Bound, for each member, the rounding error of a weighted mean of features."""
    # the projection is a product too, with a sum over all raw features
    raw = np.array(maps.roundings) + (additions + maps.raw_width) * UNIT_ROUNDOFF
    return np.array(maps.amplifications) * raw


# Relabellings. Rows of private groups have labels, 1 and 0; those of public groups have none, as
# their bins are of one group each.


@dataclass(frozen=True, eq=False)
class BinRelabelling(ABC):
    """Permutations that weigh sums over bins of rows, which are held or read in one pass.

    Attributes
    ----------
    total, count : int
        Number of rows, and of permutations with the identity.
    edges : ndarray
        Where each bin of held rows starts, and the end.
    smallest : int
        A row counts 1/smallest at most.
    divisor, mass : float
        What weighted sums are divided by, and the largest sum of absolute weights of rows.
    additions : float
        Longest chain of additions over bins.
    secret : int
        Number of secret bins of rows that are read in one pass.
    """

    total: int
    count: int
    edges: NDArray[np.intp]
    smallest: int
    divisor: float
    mass: float
    additions: float
    secret: int

    @property
    @abstractmethod
    def weights(self) -> Floats:
        """Permutations × bins; the first row is as observed."""

    def signs(self, labels: Floats | None) -> Floats | None:
        """Return the sign of each row in the sum over its bin; None if all are 1."""
        del labels
        return None

    def streamed_additions(self, maps: FeatureMaps) -> float:
        """Bound the rounding of sums over bins that are made block by block."""
        return block_additions(maps, self.total, self.smallest, self.secret)

    def held_additions(self, maps: FeatureMaps) -> float:
        """Bound the rounding of sums over bins of held rows: no more than by blocks."""
        return self.streamed_additions(maps)

    @abstractmethod
    def secret_bins(self, samples: TwoSamples, noise: NoiseSource) -> tuple[SecretBins, SecretBins]:
        """Draw secret bins for the rows of each sample, which are read apart."""

    @abstractmethod
    def join(self, x: Floats, y: Floats) -> Floats:
        """Return the sums over bins from those of each sample's secret bins."""

    @abstractmethod
    def heights(self, line: PlacedLine, sums: Floats) -> Floats:
        """Return the function on a line that is measured, from sums of cells by bin."""

    @abstractmethod
    def row_weights(
        self, labels: Floats | None, order: NDArray[np.intp]
    ) -> Callable[[slice], Floats]:
        """Return the function from a slice of permutations to their weights of rows in order."""

    def sum_features(self, rows: Floats, labels: Floats | None, maps: FeatureMaps) -> list[Floats]:
        """Sum each block's raw features over each bin: bins × features."""
        edges, signs = self.edges, self.signs(labels)

        def tile_sums(tile: tuple[int, NDArray[np.intp]]) -> tuple[int, list[Floats]]:
            first, inner = tile
            part = slice(inner[0], inner[-1])
            own = None if signs is None else signs[part]
            return first, list(maps.binned(rows[part], inner - inner[0], own))

        sums: list[Floats] = []
        for first, parts in parallel(tile_sums, tiles(edges), len(rows) * maps.blocks * 64):
            if not sums:
                sums = [np.zeros((len(edges) - 1, part.shape[1])) for part in parts]
            for total, part in zip(sums, parts, strict=True):
                total[first : first + len(part)] += part
        return sums

    def mean_features(self, sums: Floats, project: Callable[[Floats], Floats]) -> Floats:
        """Return permutations × features."""
        return self.weights @ project(sums / self.divisor)

    def sum_cells(self, line: PlacedLine, labels: Floats | None) -> Floats:
        """Sum cells over each bin."""
        return bin_sums(line, self.edges, self.signs(labels))

    def sum_grams(
        self, rows: Floats, labels: Floats | None, kernels: Sequence[Kernel], domain: Domain
    ) -> list[Floats]:
        """Sum each kernel's Gram matrix over pairs of bins, tile by tile."""
        edges, signs = self.edges, self.signs(labels)
        cuts = list(tiles(edges, _GRAM_TILE))
        pairs = [(left, right) for left in range(len(cuts)) for right in range(left, len(cuts))]
        sums = [np.zeros((len(edges) - 1, len(edges) - 1)) for _ in kernels]

        def binned(matrix: Floats, inner: NDArray[np.intp]) -> Floats:
            own = None if signs is None else signs[inner[0] : inner[-1]]
            return sum_rows(matrix, inner - inner[0], own)

        def tile_sums(pair: tuple[int, int]) -> list[Floats]:
            left, right = (cuts[place][1] for place in pair)
            matrices = grams(kernels, rows[left[0] : left[-1]], rows[right[0] : right[-1]], domain)
            return [binned(binned(matrix, left).T, right) for matrix in matrices]

        work = len(rows) ** 2 * len(kernels)
        for pair, parts in zip(pairs, parallel(tile_sums, pairs, work), strict=True):
            first_left, first_right = cuts[pair[0]][0], cuts[pair[1]][0]
            for total, part in zip(sums, parts, strict=True):  # part is right × left
                down = slice(first_right, first_right + part.shape[0])
                across = slice(first_left, first_left + part.shape[1])
                total[down, across] += part
                if pair[0] != pair[1]:
                    total[across, down] += part.T
        return sums

    def squares(
        self, rows: Floats, labels: Floats | None, kernels: Sequence[Kernel], domain: Domain
    ) -> tuple[Floats, float]:
        """Return squared norms (kernels × permutations), and the additions in each."""
        sums = self.sum_grams(rows, labels, kernels, domain)
        forms = np.array([quadratic_forms(each, self.weights) for each in sums])
        edges = self.edges
        depth = summation_depth(int(edges[1] - edges[0])) + self.additions
        return forms / self.divisor**2, 2 * depth


@dataclass(frozen=True, eq=False)
class BinPermutation(BinRelabelling):
    """Public groups: bins of one size are permuted between the samples."""

    layout: BinLayout
    in_x: NDArray[np.bool_]  # permutations × bins

    @cached_property
    def weights(self) -> Floats:
        """Weight of a row in each bin and block of leftovers: 1/n in x, -1/m in y."""
        return self._weights(slice(None))

    def _weights(self, chosen: slice) -> Floats:
        in_x, n, m = self.in_x[chosen], self.layout.n, self.layout.m
        weights = np.empty((len(in_x), in_x.shape[1] + 2))
        weights[:, :-2] = np.where(in_x, 1 / n, -1 / m)
        weights[:, -2:] = 1 / n, -1 / m
        return weights

    def secret_bins(self, samples: TwoSamples, noise: NoiseSource) -> tuple[SecretBins, SecretBins]:
        """Draw bins of each sample, and leftovers."""
        size = self.layout.size
        x, y = (
            secret_bins([size] * count + [len(sample) - count * size], noise)
            for sample, count in zip(samples, self.layout.counts, strict=True)
        )
        return x, y

    def join(self, x: Floats, y: Floats) -> Floats:
        """Return bins of x, bins of y, leftovers of x, leftovers of y."""
        return np.vstack([x[:-1], y[:-1], x[-1:], y[-1:]])

    def heights(self, line: PlacedLine, sums: Floats) -> Floats:
        """Return the difference of the two samples."""
        of_x = line.heights(self.in_x.astype(np.float64) @ sums[:-2] + sums[-2])
        of_y = line.heights(sums.sum(axis=0)) - of_x
        return of_x / self.layout.n - of_y / self.layout.m

    def row_weights(
        self, labels: Floats | None, order: NDArray[np.intp]
    ) -> Callable[[slice], Floats]:
        """Give each row the weight of its bin."""
        del labels
        bins = np.repeat(np.arange(len(self.edges) - 1), np.diff(self.edges))[order]
        return lambda chosen: np.take(self._weights(chosen), bins, axis=1)


@dataclass(frozen=True, eq=False)
class PairSwaps(BinRelabelling):
    """Private groups: labels are swapped within pairs of rows, bin by bin of pairs.

    Rows 0 and 1, 2 and 3, ... of the secret order make pairs (a, b). With labels g in {0, 1},
    T = |(1/N) sum over pairs of (g_a - g_b)(f(x_a) - f(x_b))|, and a swap turns the sign of a term.
    A permutation never parts a row from its pair, so that permuted statistics move no further
    than the observed one. Proof: docs/proofs/private-groups.md.
    """

    bin_signs: Floats  # permutations × bins

    @property
    def weights(self) -> Floats:
        """The sign of each bin."""
        return self.bin_signs

    @property
    def bin_of_row(self) -> NDArray[np.intp]:
        """The bin of each row; a leftover row counts to the last."""
        return np.searchsorted(self.edges[1:-1], np.arange(self.total), side="right")

    def signs(self, labels: Floats | None) -> Floats:
        """Return g_a - g_b and its negative; a leftover row has 0.

        Rows without weight are computed too: how many there are is private, and time would tell.
        """
        assert labels is not None
        signs, last = np.zeros(self.total), int(self.edges[-1])
        signs[0:last:2] = labels[0:last:2] - labels[1:last:2]
        signs[1:last:2] = -signs[0:last:2]
        return signs

    def held_additions(self, maps: FeatureMaps) -> float:
        """Longest chain of additions in the sum over a bin of held rows."""
        del maps
        return summation_depth(int(self.edges[1]))

    def secret_bins(self, samples: TwoSamples, noise: NoiseSource) -> tuple[SecretBins, SecretBins]:
        """Draw, for each bin, rows whose partner has the other label, and the others."""
        sizes = [*pair_bin_sizes(self.total), self.total % 2]
        return secret_pair_bins(len(samples.x), len(samples.y), sizes, noise)

    def join(self, x: Floats, y: Floats) -> Floats:
        """Return the differences of mixed pairs; all rows were summed, as time would tell."""
        mixed = slice(0, 2 * self.bin_signs.shape[1], 2)
        return x[mixed] - y[mixed]

    def heights(self, line: PlacedLine, sums: Floats) -> Floats:
        """Return signed sums over bins."""
        return line.heights(self.bin_signs @ sums) / self.total

    def row_weights(
        self, labels: Floats | None, order: NDArray[np.intp]
    ) -> Callable[[slice], Floats]:
        """Give each row its sign and that of its bin."""
        bins, own = self.bin_of_row[order], self.signs(labels)[order] / self.total
        return lambda chosen: np.take(self.bin_signs[chosen], bins, axis=1) * own


def pair_swaps(total: int, n_permutations: int, rng: np.random.Generator) -> PairSwaps:
    """Draw a sign for each bin of pairs: first as observed, then at random."""
    sizes = pair_bin_sizes(total)
    signs = np.ones((n_permutations + 1, len(sizes)))
    signs[1:] = 2.0 * rng.integers(2, size=signs[1:].shape) - 1.0
    return PairSwaps(
        total=total,
        count=len(signs),
        edges=np.concatenate([[0], np.cumsum(sizes)]),
        smallest=total,
        divisor=float(total),
        mass=1.0,
        additions=len(sizes) + 4.0,
        secret=2 * (len(sizes) + 1),
        bin_signs=signs,
    )


@dataclass(frozen=True, slots=True, eq=False)
class BlockPermutation:
    """Private groups: block a of rows gets block pi(a) of labels, position by position.

    It is a subgroup of all permutations; leftover rows keep their labels. The statistic is
    T = |(1/N) sum_i (g_i - mean g) f(x_i)| = (n m/N²) times that of public groups, so that an
    empty group gives T = 0. Rows are held.
    """

    total: int
    size: int  # rows of a block
    shuffles: NDArray[np.intp]  # permutations × blocks

    mass: ClassVar[float] = 1.0

    @property
    def count(self) -> int:
        """Number of permutations with the identity."""
        return len(self.shuffles)

    def held_additions(self, maps: FeatureMaps) -> float:
        """Longest chain of additions within blocks of held rows."""
        del maps
        return 1024 + self.size / 1024

    @property
    def additions(self) -> float:
        """Longest chain of additions over blocks, and in the mean of labels."""
        return 2 * len(self.shuffles.T) + math.log2(self.total)

    def blocks(self, labels: Floats) -> Floats:
        """Cut labels into blocks (blocks × size), without leftovers."""
        blocks = self.shuffles.shape[1]
        return labels[: blocks * self.size].reshape(blocks, self.size)

    def centred(self, labels: Floats | None) -> Floats:
        """Return the weights of rows as observed."""
        assert labels is not None
        weights: Floats = (labels - labels.mean()) / self.total
        return weights

    def sum_features(
        self, rows: Floats, labels: Floats | None, maps: FeatureMaps
    ) -> list[tuple[Floats, Floats]]:
        """Sum label × raw feature for every pair of blocks, and over the leftover rows."""
        centred = self.centred(labels)
        table = self.blocks(centred)
        blocks, size = table.shape
        edges = [*range(0, blocks * size + 1, size), len(rows)]
        parts = [
            (block, start, min(start + _ROWS_PER_PIECE, edges[block + 1]))
            for block in range(blocks + 1)
            for start in range(edges[block], edges[block + 1], _ROWS_PER_PIECE)
        ]

        def part_sums(part: tuple[int, int, int]) -> list[Floats]:
            block, start, stop = part
            offset = block * size
            leftover = block == blocks
            weights = (
                centred[None, start:stop] if leftover else table[:, start - offset : stop - offset]
            )
            return [weights @ raw for raw in maps.raw(rows[start:stop])]

        sums: list[tuple[Floats, Floats]] = []
        work = len(rows) * len(maps.spreads) * blocks
        for (block, _, _), own in zip(parts, parallel(part_sums, parts, work), strict=True):
            if not sums:
                widths = [part.shape[1] for part in own]
                sums = [(np.zeros((blocks, blocks, width)), np.zeros(width)) for width in widths]
            for total, part in zip(sums, own, strict=True):
                if block == blocks:
                    total[1][:] += part[0]
                else:
                    total[0][block] += part
        return sums

    def mean_features(
        self, sums: tuple[Floats, Floats], project: Callable[[Floats], Floats]
    ) -> Floats:
        """Return permutations × features."""
        features = project(sums[0])  # rows' block × labels' block × features
        means = np.broadcast_to(project(sums[1]), (len(self.shuffles), features.shape[2])).copy()
        for block, partners in enumerate(self.shuffles.T):
            means += features[block, partners]
        return means

    def sum_cells(self, line: PlacedLine, labels: Floats | None) -> tuple[Any, Floats, Floats]:
        """Count rows of label 1 by cell for each pair of blocks and in leftovers, and all rows."""
        assert labels is not None
        paired = self.blocks(labels)
        cross = _cross_cells(line, np.ascontiguousarray(paired.T))
        rest = bin_sums(line, np.array([paired.size, self.total]), labels)[0]
        every = line.heights(bin_sums(line, np.array([0, self.total]))[0])
        return cross, rest, labels.mean() * every

    def heights(self, line: PlacedLine, sums: tuple[Any, Floats, Floats]) -> Floats:
        """Return the function on a line that is measured (permutations × cells)."""
        cross, rest, expected = sums
        ones = np.empty((len(self.shuffles), line.width))
        step = max(1, _SUMS_HELD // len(ones))
        for start in range(0, line.width, step):
            part = slice(start, start + step)
            own = cross[0, self.shuffles[:, 0], part]
            for block in range(1, self.shuffles.shape[1]):
                own += cross[block, self.shuffles[:, block], part]
            ones[:, part] = own + rest[part]
        heights = line.heights(ones)
        heights -= expected
        return heights / self.total

    def row_weights(
        self, labels: Floats | None, order: NDArray[np.intp]
    ) -> Callable[[slice], Floats]:
        """Return the function from a slice of permutations to their weights of rows in order."""
        centred = self.centred(labels)
        table = self.blocks(centred)

        def weights(chosen: slice) -> Floats:
            shuffled = table[self.shuffles[chosen]].reshape(len(self.shuffles[chosen]), -1)
            rest = np.broadcast_to(centred[table.size :], (len(shuffled), self.total - table.size))
            return np.take(np.hstack([shuffled, rest]), order, axis=1)

        return weights


def block_permutation(
    total: int, n_permutations: int, rng: np.random.Generator
) -> BlockPermutation:
    """Draw which blocks of labels go with which blocks of rows: first as observed."""
    size = -(-total // LABEL_BLOCKS)  # so that fewer rows are left over than a block has
    shuffles = np.tile(np.arange(total // size), (n_permutations + 1, 1))
    rng.permuted(shuffles[1:], axis=1, out=shuffles[1:])
    return BlockPermutation(total, size, shuffles)


def _cross_cells(line: PlacedLine, labels: Floats) -> NDArray[np.integer[Any]]:
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


@dataclass(frozen=True, slots=True, eq=False)
class LabelPermutation:
    """Private groups: all labels are permuted, one by one.

    T is that of :class:`BlockPermutation`. Time grows with N² times permutations.
    """

    shuffles: NDArray[np.intp]  # permutations × rows

    mass: ClassVar[float] = 1.0
    additions: ClassVar[float] = 0.0

    def _weights(self, labels: Floats | None) -> Floats:
        assert labels is not None
        weights: Floats = ((labels - labels.mean()) / len(labels))[self.shuffles]
        return weights

    def held_additions(self, maps: FeatureMaps) -> float:
        """Longest chain of additions over rows."""
        del maps
        return 2.0 * len(self.shuffles.T)

    def sum_features(
        self, rows: Floats, labels: Floats | None, maps: FeatureMaps
    ) -> list[tuple[Floats, Floats]]:
        """Return the weights, and the raw features of each row, for each block of features."""
        weights = self._weights(labels)
        return [(weights, raw) for raw in maps.raw(rows)]

    def mean_features(
        self, sums: tuple[Floats, Floats], project: Callable[[Floats], Floats]
    ) -> Floats:
        """Return permutations × features."""
        weights, raw = sums
        return weights @ project(raw)

    def squares(
        self, rows: Floats, labels: Floats | None, kernels: Sequence[Kernel], domain: Domain
    ) -> tuple[Floats, float]:
        """Return squared norms (kernels × permutations), and the additions in each.

        The Gram matrix is made in slices.
        """
        weights, total = self._weights(labels), len(rows)
        squares = np.zeros((len(kernels), len(weights)))
        for start in range(0, total, _ROWS_PER_PIECE):
            piece = slice(start, start + _ROWS_PER_PIECE)
            for index, matrix in enumerate(grams(kernels, rows[piece], rows, domain)):
                squares[index] += np.einsum("ij,ij->i", weights[:, piece], weights @ matrix.T)
        return squares, 2.0 * total


def label_permutation(
    total: int, n_permutations: int, rng: np.random.Generator
) -> LabelPermutation:
    """Draw permutations of single labels; the first is the identity."""
    shuffles = np.tile(np.arange(total), (n_permutations + 1, 1))
    rng.permuted(shuffles[1:], axis=1, out=shuffles[1:])
    return LabelPermutation(shuffles)


# Permuted statistics.


def permuted_features(
    relabelling: BinRelabelling | BlockPermutation | LabelPermutation,
    rows: Floats,
    labels: Floats | None,
    maps: FeatureMaps,
) -> Statistics:
    """Return norms of mean features (members × permutations) of held rows."""
    sums = relabelling.sum_features(rows, labels, maps)
    return _norms(relabelling, sums, maps, relabelling.held_additions(maps))


def streamed_features(
    relabelling: BinRelabelling,
    samples: TwoSamples,
    maps: FeatureMaps,
    noise: NoiseSource,
    *,
    pairs: bool,
) -> tuple[Statistics, Pairs | None]:
    """Return the same from one pass over both samples, and secret pairs of all rows if wanted."""
    bins = relabelling.secret_bins(samples, noise)
    x, y, secret = _sum_in_secret_bins(samples, bins, maps, noise, pairs=pairs)
    sums = [relabelling.join(a, b) for a, b in zip(x, y, strict=True)]
    return _norms(relabelling, sums, maps, relabelling.streamed_additions(maps)), secret


def _norms(
    relabelling: Any, sums: Sequence[Any], maps: FeatureMaps, additions: float
) -> Statistics:
    values = [
        maps.measure(index, relabelling.mean_features(raw, partial(maps.project, index)))
        for index, raw in enumerate(sums)
    ]
    rounding = feature_rounding(maps, additions + float(relabelling.additions))
    return np.vstack(values), float(relabelling.mass) * rounding


def permuted_cells(
    relabelling: BinRelabelling | BlockPermutation,
    lines: Iterable[PlacedLine],
    labels: Floats | None,
) -> Statistics:
    """Return the mean over lines of a distance (1 × permutations) of held rows, from cells.

    One pass counts rows by bin and cell; the rest does not grow with the rows.
    """
    distances, errors = [], []
    for line in lines:
        sums: Any = relabelling.sum_cells(line, labels)
        distances.append(line.distance(relabelling.heights(line, sums)))
        errors.append(line.rounding)
    return np.mean(distances, axis=0)[None, :], np.array([max(errors)])


def streamed_cells(
    relabelling: BinRelabelling, samples: TwoSamples, place: Place, noise: NoiseSource
) -> Statistics:
    """Return the distance on one line from one pass over both samples."""
    bins = relabelling.secret_bins(samples, noise)
    empty = (partial(BinnedCells, place, own) for own in bins)
    # counts are exact up to 2^53
    x, y = (each.table.astype(np.float64) for each in summarise(*zip(samples, empty, strict=True)))
    line = place(np.empty((0, 1)))
    distance = line.distance(relabelling.heights(line, relabelling.join(x, y)))
    return distance[None, :], np.array([line.rounding])


def permuted_mmd(
    relabelling: BinRelabelling | LabelPermutation,
    rows: Floats,
    labels: Floats | None,
    kernels: Sequence[Kernel],
    domain: Domain,
) -> Statistics:
    """Return MMD, or T of private groups (kernels × permutations), from Gram matrices."""
    squares, additions = relabelling.squares(rows, labels, kernels, domain)
    # |error of v'Kv| <= (sum |v|)² times the error of an entry, and its sum over a tile
    mass = relabelling.mass
    if isinstance(relabelling, LabelPermutation):
        mass = 0.5  # sum |v| <= 1/2, as at most N²/4 pairs of rows differ in label
    errors = np.array(gram_roundings(kernels, domain)) + additions * UNIT_ROUNDOFF
    return np.sqrt(np.maximum(squares, 0.0)), np.sqrt(mass**2 * errors)


def permuted_mmd_u(
    permutation: BinPermutation, rows: Floats, kernels: Sequence[Kernel], domain: Domain
) -> Statistics:
    """Return the unbiased estimate of MMD² (kernels × permutations) of public groups."""
    sums = permutation.sum_grams(rows, None, kernels, domain)
    additions = 2 * summation_depth(permutation.layout.size) + 2 * permutation.additions
    errors = 8 * (np.array(gram_roundings(kernels, domain)) + additions * UNIT_ROUNDOFF)
    n, m = permutation.layout.n, permutation.layout.m
    in_x = (permutation.weights > 0).astype(np.float64)
    values = []
    for each in sums:  # without the diagonal, where k = 1
        within_x = quadratic_forms(each, in_x)
        across = in_x @ each.sum(axis=1) - within_x
        within_y = each.sum() - within_x - 2 * across
        values.append(
            (within_x - n) / (n * (n - 1)) + (within_y - m) / (m * (m - 1)) - 2 * across / (n * m)
        )
    return np.array(values), errors


# Sums over secret bins of rows, in one pass: rows may be in memory, in a file or on a cluster.


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


def _sum_in_secret_bins(
    samples: TwoSamples,
    bins: tuple[SecretBins, SecretBins],
    maps: FeatureMaps,
    noise: NoiseSource,
    *,
    pairs: bool,
) -> tuple[list[Floats], list[Floats], Pairs | None]:
    """Go once through both samples; return the sums of each, and secret pairs.

    The pairs are drawn apart from the bins, so that permuting rows and pairs together changes
    nothing (:func:`privatest.numerics.portfolio.secret_pairs`).
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


# Maximum mean discrepancy and its sensitivity. T = |sum_i v_i phi(z_i)| in the kernel's RKHS,
# v = 1/n on the first sample and -1/m on the second: Kim and Schrab (2023), section 4.1, with the
# sharper constants of docs/proofs/mmd-sensitivity.md.


def mmd(x: Floats, y: Floats, kernel: Kernel, domain: Domain) -> float:
    """Return the MMD (V-statistic) of two encoded samples; not private."""
    rows = np.vstack([x, y])
    weights = np.concatenate([np.full(len(x), 1 / len(x)), np.full(len(y), -1 / len(y))])
    return math.sqrt(max(float(weights @ (gram(kernel, rows, rows, domain) @ weights)), 0.0))


def mmd_u(x: Floats, y: Floats, kernel: Kernel, domain: Domain) -> float:
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


def pair_swaps_sensitivity(diameter: float, total: int) -> PermutationSensitivity:
    """How far T of swapped labels moves, ``diameter`` being that of f.

    Notes
    -----
    **Sensitivity** diameter/N, observed or permuted. A replaced row (x, g) is in one pair. Next to
    the other row's label, its own makes the term 0 or gives it one sign, whatever it is replaced
    by; so the term moves by at most the diameter (attained). Proof: docs/proofs/private-groups.md.
    """
    return PermutationSensitivity(diameter / total, diameter / total)


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


# Sums of features over secret bins, and their second moment, in one pass. Proof of the rounding
# bound: docs/proofs/exact-sums.md.


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
