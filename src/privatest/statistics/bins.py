"""Bins of rows, so that a permutation moves a few hundred bins and not a million rows.

Rows are put into a secret random order first. A stored order may depend on values, and what
is cut by position would then move by more than the sensitivity (docs/proofs/row-order.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from privatest.engines.local import one_blas_thread
from privatest.kernels.features import FeatureMaps
from privatest.kernels.kernels import UNIT_ROUNDOFF
from privatest.kernels.sums import ROWS_PER_TILE, tiles

__all__ = [
    "BinLayout",
    "TwoSampleBins",
    "bin_order",
    "feature_rounding",
    "feature_sums",
    "one_below_other",
    "parallel",
    "rows_per_bin",
    "summation_depth",
    "tiles",
    "two_sample_bins",
]

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
