"""Nyström features by looking kernels up, so that their sums are exact.

Rows and landmarks are rounded to a public lattice. Squared distances are then integers, which a
matrix product in single precision gets exactly, and a table holds the kernels of all bandwidths
at each of them, as multiples of a power of two: sums of up to 512 rows are exact in single
precision, sums of these in double. So a sum does not depend on the order of its rows, and what
rounding does to a feature counts for the replaced row alone. Proof: docs/proofs/exact-sums.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privatest.data.domain import Domain
from privatest.kernels.kernels import Kernel, gram, gram_roundings
from privatest.kernels.sums import sum_rows, tiles

__all__ = ["TabulatedKernels", "tabulated_kernels"]

Floats = NDArray[np.float64]

_ENTRIES = 1 << 14  # of the table: what is used of it stays in the processor's cache
_FINE = 2.0**14  # kernels, scaled to [-1, 1], are multiples of its inverse
_EXACT_ROWS = 512  # of which so many add up exactly in 24 bits
_MOST_CODES = 4096
# Directions of the landmarks' span with less than this share of the largest eigenvalue are
# dropped: they hold hardly any signal and would magnify what rounding to the table does.
_EIGENVALUE_CUT = 1e-4


@dataclass(frozen=True, eq=False)
class TabulatedKernels:
    """Projections on the span of public landmarks in each kernel's RKHS, from a table.

    Notes
    -----
    **Sensitivity** The features of a row are a fixed function of the row: the projection of its
    kernels at the landmarks, each off by at most ``error``. A projection is a contraction, so two
    rows' features are no further apart than c of the kernel plus twice the amplified error.
    """

    kernels: tuple[Kernel, ...]
    domain: Domain
    landmarks: Floats  # as codes
    steps: int  # of a numeric column
    cells: int  # a number counts as the centre of its cell first; 0: it does not
    table: NDArray[np.float32]  # (squared distance, mismatches) × kernels, padded
    projections: tuple[Floats, ...]
    spreads: tuple[float, ...]
    amplifications: tuple[float, ...]

    exact = True

    @property
    def roundings(self) -> tuple[float, ...]:
        """None: the table is exact."""
        return (0.0,) * len(self.kernels)

    @property
    def raw_width(self) -> int:
        """Number of landmarks."""
        return len(self.landmarks)

    @property
    def blocks(self) -> int:
        """One for each kernel."""
        return len(self.kernels)

    def raw(self, x: Floats) -> Iterator[Floats]:
        """Yield rows × landmarks for each kernel."""
        values = self._looked_up(self._codes(x), _Buffers.of(self, len(x)))
        by_kernel = values.reshape(len(x), self.raw_width, -1)
        return (by_kernel[:, :, index].astype(np.float64) for index in range(self.blocks))

    def binned(
        self, x: Floats, edges: NDArray[np.intp], weights: Floats | None = None
    ) -> Iterator[Floats]:
        """Yield, for each kernel, sums over the rows between edges; weights are -1, 0 and 1."""
        codes, buffers = self._codes(x), _Buffers.of(self, _EXACT_ROWS)
        signs = None if weights is None else weights.astype(np.float32)
        sums = np.zeros((len(edges) - 1, self.raw_width * self.table.shape[1]))
        for first, inner in tiles(edges, _EXACT_ROWS):
            part = slice(inner[0], inner[-1])
            values = self._looked_up(codes[:, part], buffers)
            own = None if signs is None else signs[part]
            found = sum_rows(values, inner - inner[0], own)
            sums[first : first + len(found)] += found
        by_kernel = sums.reshape(len(sums), self.raw_width, -1)
        return (np.ascontiguousarray(by_kernel[:, :, index]) for index in range(self.blocks))

    def project(self, index: int, sums: Floats) -> Floats:
        """Apply the linear part."""
        projection = self.projections[index]
        flat = sums.reshape(-1, len(projection))  # one product, not a stack of small ones
        return (flat @ projection).reshape(*sums.shape[:-1], projection.shape[1])

    def measure(self, index: int, sums: Floats) -> Floats:
        """Return the Euclidean norm."""
        del index
        norms: Floats = np.linalg.norm(sums, axis=1)[None, :]
        return norms

    def _codes(self, x: Floats) -> NDArray[np.float32]:
        """Lattice points of the numeric columns, their squared lengths, 1, and categories."""
        numeric, categorical = self.domain.numeric, self.domain.categorical
        codes = np.empty((len(numeric) + 2 + len(categorical), len(x)), dtype=np.float32)
        lengths = codes[len(numeric)]
        lengths[:] = 0.0
        for place, column in enumerate(numeric):
            np.rint(self._centred(x[:, column]) * self.steps, out=codes[place], casting="same_kind")
            lengths += np.square(codes[place])
        codes[len(numeric) + 1] = 1.0
        for place, column in enumerate(categorical, start=len(numeric) + 2):
            codes[place] = x[:, column]
        return codes

    def _centred(self, values: Floats) -> Floats:
        if not self.cells:
            return values
        cell: Floats = np.floor(np.minimum(values * self.cells, self.cells - 1))
        return (cell + 0.5) / self.cells

    @cached_property
    def _right(self) -> NDArray[np.float32]:
        """What codes are multiplied by: |a|² + |b|² - 2ab as one matrix product."""
        points = self.landmarks[:, self.domain.numeric].T
        ones = np.ones((1, points.shape[1]))
        stacked = np.vstack([-2 * points, ones, np.square(points).sum(axis=0)])
        return (stacked * self._strides).astype(np.float32)

    @property
    def _strides(self) -> int:
        """How many entries of the table have one squared distance."""
        return len(self.domain.categorical) + 1

    @cached_property
    def _items(self) -> NDArray[np.void]:
        """The table with a row as one item: items of 16 or 32 bytes are quick to look up."""
        return self.table.view(np.dtype((np.void, self.table.strides[0])))[:, 0]

    def _looked_up(self, codes: NDArray[np.float32], buffers: _Buffers) -> NDArray[np.float32]:
        """Return rows × (landmarks, kernels), in a buffer."""
        shared, rows = len(self.domain.numeric) + 2, codes.shape[1]
        distances, places = buffers.distances[:rows], buffers.places[:rows]
        found = buffers.found[:rows]
        np.matmul(codes[:shared].T, self._right, out=distances)  # integers: exact in any order
        for own, column in zip(codes[shared:], self.domain.categorical, strict=True):
            distances += np.not_equal.outer(own, self.landmarks[:, column].astype(np.float32))
        np.copyto(places, distances, casting="unsafe")
        np.take(self._items, places, out=found, mode="clip")  # other modes are slower
        return found.view(np.float32)


class _Buffers(NamedTuple):
    """Memory that is used again for every tile: fetching it anew would take most of the time."""

    distances: NDArray[np.float32]
    places: NDArray[np.intp]
    found: NDArray[np.void]

    @classmethod
    def of(cls, maps: TabulatedKernels, rows: int) -> _Buffers:
        """Make room for so many rows."""
        shape = rows, maps.raw_width
        found = np.empty(shape, dtype=maps._items.dtype)
        return cls(np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.intp), found)


def tabulated_kernels(
    kernels: Sequence[Kernel], landmarks: Floats, domain: Domain, cells: int = 0
) -> TabulatedKernels | None:
    """Build the features, or None where a table would be too long or distances are no sums.

    With ``cells`` a number counts as the centre of one of so many (:mod:`.coded`).

    psi(x) = D^(-1/2) U' k_L(x) with K_LL = U D U', small eigenvalues cut, rescaled so that
    W' K_LL W <= I despite rounding.
    """
    numeric, categorical = domain.numeric, domain.categorical
    if not domain.bounded or any(kernel.family == "laplace" for kernel in kernels):
        return None
    if any(level > _MOST_CODES for level in domain.levels) or len(kernels) > 8:
        return None
    room = _ENTRIES // ((len(categorical) + 1) * max(len(numeric), 1))
    steps = math.isqrt(room)
    if steps < 16:
        return None
    points = landmarks.copy()
    points[:, numeric] = np.rint(points[:, numeric] * steps)
    placed = points.copy()
    placed[:, numeric] /= steps
    values = _values(kernels, len(numeric), len(categorical), steps)
    width = next(size for size in (2, 4, 8) if len(kernels) <= size)
    table = np.zeros((len(values), width), dtype=np.float32)
    projections, spreads, amplifications = [], [], []
    for index, kernel in enumerate(kernels):
        middle = (values[:, index].max() + values[:, index].min()) / 2
        reach = float(np.abs(values[:, index] - middle).max())
        scale = 2.0 ** -math.ceil(math.log2(max(reach, 2.0**-30)))
        # a constant part is the same for all rows, and weights of rows add up to 0
        table[:, index] = np.rint((values[:, index] - middle) * scale * _FINE) / _FINE
        projection, smallest = _projection(kernel, placed, domain)
        error = 0.5 / (_FINE * scale) + 2.0**-45  # of the table, and of computing a kernel
        amplification = math.sqrt(len(points) / smallest)
        # W' (K + E) W <= I with |E| <= count · error of an entry: a contraction up to this factor
        distortion = len(points) * gram_roundings((kernel,), domain)[0] / smallest
        projections.append(projection / scale)
        widest = kernel.spread(domain) * (1 + distortion + 1e-12)
        spreads.append(widest + 2 * amplification * error)
        amplifications.append(amplification / scale)
    return TabulatedKernels(
        kernels=tuple(kernels),
        domain=domain,
        landmarks=points,
        steps=steps,
        cells=cells,
        table=table,
        projections=tuple(projections),
        spreads=tuple(spreads),
        amplifications=tuple(amplifications),
    )


def _values(kernels: Sequence[Kernel], numeric: int, categorical: int, steps: int) -> Floats:
    """Kernels at every squared distance and number of mismatches: entries × kernels."""
    squares = np.arange(numeric * steps**2 + 1) / steps**2
    columns = []
    for kernel in kernels:
        if kernel.family == "gaussian":
            radial = np.exp(-squares / kernel.bandwidth**2)
        else:
            radial = 1 / np.sqrt(1 + squares / kernel.bandwidth**2)
        factors = np.exp(np.append(0.0, np.full(categorical, kernel.log_mismatch)).cumsum())
        columns.append(np.outer(radial, factors).ravel())
    return np.stack(columns, axis=1)


def _projection(kernel: Kernel, points: Floats, domain: Domain) -> tuple[Floats, float]:
    """Return W, and the smallest eigenvalue that was kept."""
    matrix = gram(kernel, points, points, domain)
    values, vectors = np.linalg.eigh(matrix)
    kept = values >= _EIGENVALUE_CUT * values[-1]
    projection = vectors[:, kept] / np.sqrt(values[kept])
    size = np.linalg.norm(projection.T @ matrix @ projection, 2)
    projection /= math.sqrt(max(float(size), 1.0))
    return projection, float(values[kept][0])
