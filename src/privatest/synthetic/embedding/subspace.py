"""The span of public points in a kernel's RKHS, and the coefficients of data in it.

Balog et al. (2018), Algorithm 1, lines 3 to 6. Proof: docs/proofs/synthetic.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.privacy import Sensitivity
from privatest.data.domain import Domain
from privatest.data.samples import Sample
from privatest.data.stream import Held
from privatest.engines.local import within_block
from privatest.engines.summaries import summarise
from privatest.kernels.kernels import UNIT_ROUNDOFF, Kernel, gram, gram_roundings

__all__ = [
    "Subspace",
    "coefficient_sensitivity",
    "coefficients",
    "kernel_sums",
    "span",
    "usual_tolerance",
]

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

    points: NDArray[np.float64]
    coordinates: NDArray[np.float64]
    pivots: NDArray[np.intp]
    kernel: Kernel
    domain: Domain

    @property
    def rank(self) -> int:
        """Number of coordinates."""
        return len(self.pivots)

    @property
    def triangle(self) -> NDArray[np.float64]:
        """T with T T' = the pivots' Gram matrix."""
        triangle: NDArray[np.float64] = self.coordinates[self.pivots]
        return triangle


def usual_tolerance(count: int) -> float:
    """Return the default tolerance for a number of public points."""
    return _TOLERANCES[count > _MANY_POINTS]


def span(
    points: NDArray[np.float64], kernel: Kernel, domain: Domain, tolerance: float | None = None
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

    def update(self, rows: NDArray[np.float64], start: int) -> None:
        """Add a block."""
        del start
        space = self.space
        pivots = space.points[space.pivots]
        size = max(16, min(4096, _TILE_ENTRIES // max(len(pivots), 1)))

        def tile(first: int) -> NDArray[np.int64]:
            matrix = gram(space.kernel, rows[first : first + size], pivots, space.domain)
            np.multiply(matrix, 2.0**SUM_BITS, out=matrix)
            np.rint(matrix, out=matrix)
            total: NDArray[np.float64] = np.ones(len(matrix)) @ matrix
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
    (found,) = summarise((Sample(rows, None), partial(KernelSums, space, len(rows))))
    return found.sums


def coefficients(space: Subspace, sums: NDArray[np.int64], n: int) -> NDArray[np.float64]:
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


def _inverse_norm(triangle: NDArray[np.float64]) -> float:
    """Bound the Frobenius norm of the inverse of a triangular matrix."""
    from scipy.linalg import solve_triangular  # noqa: PLC0415

    rank = len(triangle)
    inverse = float(np.linalg.norm(solve_triangular(triangle, np.eye(rank), lower=True)))
    # computed W has |W T - I| <= rank u |W||T|, and |T| <= sqrt(rank)
    lost = 1.01 * rank * UNIT_ROUNDOFF * inverse * math.sqrt(rank)
    if lost > 0.01:
        raise ParameterError("tolerance is too small for these public points: raise it.")
    return inverse / (1 - lost)
