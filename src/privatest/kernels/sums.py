"""Sums of rows over bins, a tile at a time; and of a symmetric matrix, by weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["ROWS_PER_TILE", "pieces", "quadratic_forms", "sum_rows", "tile_sums", "tiles"]

Real = TypeVar("Real", np.float32, np.float64)

ROWS_PER_TILE = 1024  # a tile of raw features stays in the processor's cache
_LEAST_HALVED = 128  # columns up to which a product of all is as quick as one of half of them
_PRODUCT_ROWS = 32  # rows a bin, from which sums are matrix products


def tiles(
    edges: NDArray[np.intp], limit: int = ROWS_PER_TILE
) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Cut bins into tiles of about ``limit`` rows: (first bin, edges of the rows within it).

    A tile holds several small bins whole, or a part of one large bin.
    """
    first, last_bin = 0, len(edges) - 1
    while first < last_bin:
        stop = first + 1
        while stop < last_bin and edges[stop + 1] - edges[first] <= limit:
            stop += 1
        if edges[stop] - edges[first] <= limit:
            yield first, edges[first : stop + 1]
        else:
            for piece in pieces(edges[first], edges[stop], limit):
                yield first, np.array([piece.start, piece.stop])
        first = stop


def pieces(start: int, stop: int, limit: int) -> Iterator[slice]:
    """Cut rows ``start`` to ``stop`` into pieces of about one size, at most ``limit``."""
    count = max(1, -(-(stop - start) // limit))
    for number in range(count):
        yield slice(
            start + number * (stop - start) // count, start + (number + 1) * (stop - start) // count
        )


def tile_sums(
    raw: Callable[[NDArray[np.float64]], Iterator[NDArray[np.float64]]],
    x: NDArray[np.float64],
    edges: NDArray[np.intp],
    weights: NDArray[np.float64] | None,
) -> list[NDArray[np.float64]]:
    """Sum each block of raw features over the rows between edges, a tile at a time."""
    if edges[-1] - edges[0] <= ROWS_PER_TILE:
        return [sum_rows(block, edges, weights) for block in raw(x)]
    sums: list[NDArray[np.float64]] = []
    for first, inner in tiles(edges):
        part = slice(inner[0], inner[-1])
        own = None if weights is None else weights[part]
        found = [sum_rows(block, inner - inner[0], own) for block in raw(x[part])]
        if not sums:
            sums = [np.zeros((len(edges) - 1, each.shape[1])) for each in found]
        for total, each in zip(sums, found, strict=True):
            total[first : first + len(each)] += each
    return sums


def sum_rows(
    matrix: NDArray[Real], edges: NDArray[np.intp], weights: NDArray[Real] | None = None
) -> NDArray[Real]:
    """Sum the (weighted) rows of ``matrix`` between consecutive edges; an empty bin sums to 0."""
    if len(edges) == 2:
        ones = np.ones(len(matrix), dtype=matrix.dtype) if weights is None else weights
        return ones[None, :] @ matrix
    filled = np.flatnonzero(np.diff(edges))
    sums = np.zeros_like(matrix, shape=(len(edges) - 1, matrix.shape[1]))  # and in its order
    if len(matrix) > _PRODUCT_ROWS * len(filled):  # few long sums: products are quicker
        own = np.ones(len(matrix), dtype=matrix.dtype) if weights is None else weights
        for place in filled:
            part = slice(edges[place], edges[place + 1])
            np.matmul(own[part], matrix[part], out=sums[place])
        return sums
    weighted = matrix if weights is None else matrix * weights[:, None]
    alike = _add_alike(weighted, edges, sums)
    rest = filled[filled >= alike]
    if len(rest):
        sums[rest] = np.add.reduceat(weighted, edges[rest], axis=0)
    return sums


def _add_alike(matrix: NDArray[Real], edges: NDArray[np.intp], sums: NDArray[Real]) -> int:
    """Sum the first bins, which are of one size as a rule; return how many these are.

    All first rows of bins, then all second ones: each time one long addition.
    """
    sizes = np.diff(edges)
    size = int(sizes[0])
    others = np.flatnonzero(sizes != size)
    alike = int(others[0]) if len(others) else len(sizes)
    if size > 0:
        first, stop = int(edges[0]), int(edges[alike])
        np.copyto(sums[:alike], matrix[first:stop:size])
        for place in range(first + 1, first + size):
            sums[:alike] += matrix[place:stop:size]
    return alike


def quadratic_forms(
    matrix: NDArray[np.float64], vectors: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return v'Kv for each row v of the vectors, K symmetric but for rounding.

    It is the sum for both halves of K, and twice what is between them: the lower half of K is not
    multiplied, and no entry meets more additions than in (v'K)v.
    """
    result: NDArray[np.float64]
    if len(matrix) <= _LEAST_HALVED:
        result = np.einsum("ij,ij->i", vectors @ matrix, vectors)
        return result
    cut = len(matrix) // 16 * 8  # whole cache lines
    left, right = vectors[:, :cut], vectors[:, cut:]
    result = 2 * np.einsum("ij,ij->i", left @ matrix[:cut, cut:], right)
    result += quadratic_forms(matrix[:cut, :cut], left)
    result += quadratic_forms(matrix[cut:, cut:], right)
    return result
