"""Two-sample statistics where a person's group is part of the row and group sizes are private.

T = |(1/N) sum_i (g_i - mean g) phi(x_i)| = (n m / N²) MMD with g_i in {0, 1}: only the total N
is public, and an empty group gives T = 0. The null is made by permuting labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.privacy import PermutationSensitivity
from privatest.data.domain import Domain
from privatest.kernels.features import FeatureMaps
from privatest.kernels.kernels import UNIT_ROUNDOFF, Kernel, gram_roundings, grams
from privatest.statistics.bins import feature_rounding, one_below_other, parallel
from privatest.statistics.cells import PlacedLine, bin_sums
from privatest.statistics.ipm import LineMetric

__all__ = [
    "LABEL_BLOCKS",
    "permuted_groups_cells",
    "permuted_groups_exact",
    "permuted_groups_features",
    "permuted_groups_line",
    "private_groups_sensitivity",
]

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
