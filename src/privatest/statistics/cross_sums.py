"""Sums of products of functions of x and of y, as independence tests need them, in one pass.

Rows come in a secret order. Blocks are permuted, or y is swapped within pairs of rows:
:class:`BlockProducts` and :class:`PairProducts` hold what all permutations or swaps are made from.
Proof of the rounding bounds: docs/proofs/exact-sums.md.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privatest.data.samples import Sample
from privatest.data.stream import BLOCK_ROWS
from privatest.engines.local import within_block
from privatest.engines.summaries import FixedPoint, summarise
from privatest.engines.sums import PIECE, UNIT_ROUNDOFF, pieces
from privatest.kernels.shared import Basis
from privatest.statistics.bins import parallel

__all__ = [
    "BLOCKS",
    "Bases",
    "BlockProducts",
    "PairProducts",
    "Products",
    "cross_sums",
    "pair_edges",
]

BLOCKS = 32  # blocks of rows that are permuted
_BINS = 128  # of pairs, which are swapped together
_MOST_ENTRIES = 1 << 25  # sums of one pass: 256 MiB for each worker
_SUM_ENTRIES = 1 << 16  # sums of permutations held at a time: they stay in the processor's cache
_SIGNED_ENTRIES = 1 << 21

Matrix = NDArray[np.float64]
Reduce = Callable[[Matrix], Matrix]
"""Permutations × functions of x × functions of y, to permutations × statistics.

Each statistic has to be a norm, or linear: what it returns is divided by the number of rows.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Bases:
    """Functions of the rows of each side; they travel to other processes.

    Parameters
    ----------
    left, right : function
        Encoded rows to rows × functions, each row by itself.
    widths : (int, int)
        How many functions.
    reaches : (float, float)
        Bounds on their absolute values, at least 1.
    """

    left: Basis
    right: Basis
    widths: tuple[int, int]
    reaches: tuple[float, float] = (1.0, 1.0)

    def of_rows(self, x: Matrix, y: Matrix) -> tuple[Matrix, Matrix]:
        """Return the functions of a block of rows, which are made piece by piece."""
        made = []
        sides = zip((self.left, self.right), (x, y), self.widths, strict=True)
        for basis, rows, width in sides:
            out = np.empty((len(rows), width))
            for place, piece in enumerate(pieces(rows)):
                out[place * PIECE : place * PIECE + len(piece)] = basis(piece)
            made.append(out)
        return made[0], made[1]

    @property
    def size(self) -> int:
        """Number of pairs of functions."""
        return math.prod(self.widths)

    @property
    def reach(self) -> float:
        """Bound on the absolute value of a product."""
        return math.prod(self.reaches)


class Products(Protocol):
    """Sums of products over the rows of a sample."""

    def update(self, x: Matrix, y: Matrix, start: int) -> None:
        """Add a block of both sides."""

    def merge(self, other: Any) -> None:
        """Add other blocks."""

    def reduced(self, draws: NDArray[Any], reduce: Reduce) -> Matrix:
        """Return statistics × permutations, of cross-covariances."""

    def rounding(self, widths: int = 0) -> float:
        """Bound the rounding of a covariance of vectors of norm at most 1, but for fixed point."""

    @property
    def fixed(self) -> float:
        """Bound how far fixed point puts an entry of a cross-covariance off."""


class BlockProducts:
    """Sums over every pair of blocks, of x and of y.

    Row r of the secret order is in block r mod ``blocks``. A permutation pairs block a of x with
    block pi(a) of y, place by place: a subgroup of all permutations. Rows that are left over at
    the end keep their partners.
    """

    __slots__ = ("bases", "blocks", "left", "products", "rest", "right", "total")

    def __init__(self, bases: Bases, total: int, blocks: int) -> None:
        self.bases, self.total, self.blocks = bases, total, blocks
        reach = bases.reach
        self.products = FixedPoint((blocks, blocks, *bases.widths), total // blocks * reach)
        self.rest = FixedPoint(bases.widths, blocks * reach)
        self.left, self.right = (
            FixedPoint((width,), total * own)
            for width, own in zip(bases.widths, bases.reaches, strict=True)
        )

    def update(self, x: Matrix, y: Matrix, start: int) -> None:
        """Add a block of rows, which begins with one of block 0."""
        left, right = self.bases.of_rows(x, y)
        whole = self.total - self.total % self.blocks
        inside = min(max(whole - start, 0), len(x))
        shape = (inside // self.blocks, self.blocks)
        leading = left[:inside].reshape(*shape, left.shape[1])
        partners = right[:inside].reshape(*shape, right.shape[1])
        flat = partners.reshape(shape[0], -1)

        def one(block: int) -> None:
            sums = leading[:, block].T @ flat
            by_partner = sums.reshape(left.shape[1], self.blocks, -1).transpose(1, 0, 2)
            self.products.add(by_partner, block)

        work = inside * self.blocks * self.bases.size // 16
        for _ in within_block(one, range(self.blocks), self.total, work):
            pass
        self.rest.add(left[inside:].T @ right[inside:])
        # by block first, as products are: one sum over all rows would round more
        self.left.add(leading.sum(axis=0).sum(axis=0) + left[inside:].sum(axis=0))
        self.right.add(partners.sum(axis=0).sum(axis=0) + right[inside:].sum(axis=0))

    def merge(self, other: BlockProducts) -> None:
        """Add other blocks."""
        for name in ("products", "rest", "left", "right"):
            getattr(self, name).merge(getattr(other, name))

    def reduced(self, draws: NDArray[np.intp], reduce: Reduce) -> Matrix:
        """Reduce the cross-covariance of each permutation of blocks (permutations × blocks)."""
        products = self.products.value
        # what all permutations share: leftover rows, less the product of the means
        fixed = self.rest.value - np.outer(self.left.value, self.right.value) / self.total

        def statistics(chunk: NDArray[np.intp]) -> Matrix:
            sums = np.broadcast_to(fixed, (len(chunk), *fixed.shape)).copy()
            for block, partners in enumerate(chunk.T):
                sums += products[block, partners]
            return reduce(sums) / self.total

        return _in_chunks(statistics, draws, max(1, _SUM_ENTRIES // fixed.size), fixed.size)

    def rounding(self, widths: int = 0) -> float:
        """Bound the rounding of a covariance of vectors of norm at most 1, but for fixed point.

        No sum has more additions one after the other than a block of rows has places, and two for
        each block that is permuted. The mean product and both means are off by so many each.
        """
        places = min(self.total, BLOCK_ROWS) / self.blocks
        return 4 * (places + 2 * self.blocks + widths + 64) * UNIT_ROUNDOFF

    @property
    def fixed(self) -> float:
        """Bound how far fixed point puts an entry of a cross-covariance off."""
        return _fixed(self.total, self.bases.reach)


class PairProducts:
    """Sums, over bins of pairs of rows, of products of differences within pairs.

    Rows 0 and 1, 2 and 3, ... make pairs (a, b). The covariance is the mean over pairs of
    (f(x_a) - f(x_b)) (x) (g(y_a) - g(y_b))/2, and swapping y_a and y_b turns a pair's sign. An odd
    last row is in no pair.
    """

    __slots__ = ("bases", "edges", "products", "total")

    def __init__(self, bases: Bases, total: int) -> None:
        self.bases, self.total, self.edges = bases, total, pair_edges(total)
        largest = int(self.edges[1]) / 2 * 4 * bases.reach  # differences are twice as large
        self.products = FixedPoint((len(self.edges) - 1, bases.size), largest)

    def update(self, x: Matrix, y: Matrix, start: int) -> None:
        """Add a block of rows, which begins with a pair."""
        stop = min(start + len(x), int(self.edges[-1]))
        if stop <= start:
            return
        made = self.bases.of_rows(x[: stop - start], y[: stop - start])
        left, right = (np.subtract(side[::2], side[1::2]) for side in made)
        first = int(np.searchsorted(self.edges, start, side="right")) - 1
        last = int(np.searchsorted(self.edges, stop))
        cuts = (np.clip(self.edges[first : last + 1], start, stop) - start) // 2
        sums = [left[a:b].T @ right[a:b] for a, b in pairwise(cuts)]
        self.products.add(np.reshape(sums, (len(sums), -1)), slice(first, last))

    def merge(self, other: PairProducts) -> None:
        """Add other blocks."""
        self.products.merge(other.products)

    def reduced(self, draws: Matrix, reduce: Reduce) -> Matrix:
        """Reduce the cross-covariance of each draw of signs (permutations × bins)."""
        products, widths = self.products.value, self.bases.widths

        def statistics(chunk: Matrix) -> Matrix:
            return reduce((chunk @ products).reshape(len(chunk), *widths)) / self.total

        size = max(1, _SIGNED_ENTRIES // self.bases.size)
        return _in_chunks(statistics, draws, size, self.bases.size)

    def rounding(self, widths: int = 0) -> float:
        """Bound the rounding of a covariance of vectors of norm at most 1, but for fixed point.

        A bin's pairs within a block of rows are added up, then blocks, then signed bins.
        """
        bins = len(self.edges) - 1
        together = min(int(self.edges[1]), BLOCK_ROWS) / 2
        return 4 * (together + 2 * bins + widths + 64) * UNIT_ROUNDOFF

    @property
    def fixed(self) -> float:
        """Bound how far fixed point puts an entry of a cross-covariance off."""
        return _fixed(self.total, self.bases.reach)


def pair_edges(rows: int) -> NDArray[np.intp]:
    """Where each bin of pairs starts, and the end; an odd last row is in none."""
    pairs = rows // 2
    size = -(-pairs // _BINS)
    return 2 * np.minimum(np.arange(0, pairs + size, size), pairs)


def _fixed(total: int, reach: float) -> float:
    """Bound the error of fixed point: each block of rows is rounded once in every sum.

    Sums over blocks or bins, of leftover rows and of both sides have errors of at most
    2^-61 reach for each block of rows, when divided by the rows.
    """
    return 5 * (-(-total // BLOCK_ROWS)) * reach * 2.0**-61


class _CrossSums:
    """Several sums of products of the same rows: those of x, and beside them those of y."""

    __slots__ = ("every", "makers", "split")

    def __init__(self, split: int, makers: Sequence[Callable[[], Products]]) -> None:
        self.split, self.makers = split, makers
        self.every: list[Products] = []  # made when they are needed: they are large

    def update(self, rows: Matrix, start: int) -> None:
        """Add a block."""
        self.every = self.every or [make() for make in self.makers]
        x, y = (np.ascontiguousarray(side) for side in np.split(rows, [self.split], axis=1))
        for products in self.every:
            products.update(x, y, start)

    def merge(self, other: _CrossSums) -> None:
        """Add other blocks."""
        if not self.every:
            self.every = other.every
            return
        for own, more in zip(self.every, other.every, strict=bool(other.every)):
            own.merge(more)


def cross_sums(
    rows: Sample, split: int, asked: Sequence[tuple[Bases, int | None]]
) -> Iterator[Products]:
    """Go through rows in their secret order, once for as many sums as there is room for.

    Parameters
    ----------
    rows : Sample
        Columns of x, ``split`` of them, and of y.
    asked : sequence of (Bases, int or None)
        What is summed: over pairs of so many blocks, or with None over pairs of rows.
    """
    waiting = deque(asked)
    while waiting:
        makers: list[Callable[[], Products]] = []
        room = _MOST_ENTRIES
        while waiting and (not makers or room >= _entries(*waiting[0])):
            bases, blocks = waiting.popleft()
            room -= _entries(bases, blocks)
            makers.append(_maker(bases, len(rows), blocks))
        (sums,) = summarise((rows, partial(_CrossSums, split, makers)))
        yield from sums.every


def _entries(bases: Bases, blocks: int | None) -> int:
    return bases.size * (_BINS if blocks is None else blocks**2)


def _maker(bases: Bases, total: int, blocks: int | None) -> Callable[[], Products]:
    if blocks is None:
        return partial(PairProducts, bases, total)
    return partial(BlockProducts, bases, total, blocks)


def _in_chunks(
    statistics: Callable[[NDArray[Any]], Matrix], draws: NDArray[Any], size: int, entries: int
) -> Matrix:
    chunks = [draws[start : start + size] for start in range(0, len(draws), size)]
    found = list(parallel(statistics, chunks, draws.size * entries))
    return np.ascontiguousarray(np.concatenate(found).T)
